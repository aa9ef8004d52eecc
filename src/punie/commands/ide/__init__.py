"""`punie ide`: for authors of IDEs and their plug-ins."""
