"""OpenTelemetry: what a session does, as spans for somebody's collector (opentelemetry-sdk, an optional extra)."""
