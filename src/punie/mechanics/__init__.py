"""Parts without a domain, shared by adapters and by the reference IDE: they import nothing else of Punie."""
