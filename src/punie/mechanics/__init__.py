"""Parts without a domain, shared by adapters and the reference IDE; they import nothing else of Punie."""
