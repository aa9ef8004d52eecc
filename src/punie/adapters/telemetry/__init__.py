"""OpenTelemetry: the events of a session as spans for a collector (opentelemetry-sdk, an optional extra)."""
