"""`punie uninstall`: removes from this machine everything that Punie wrote."""
