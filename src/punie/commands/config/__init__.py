"""`punie config`: the settings in force."""
