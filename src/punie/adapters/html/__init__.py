"""Pages for a browser (jinja2)."""
