"""`punie pipelines`: composed tools."""
