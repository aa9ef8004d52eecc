"""JSON Schema through jsonschema_rs."""
