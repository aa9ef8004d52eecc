"""JSON-RPC 2.0 over lines of bytes: framing, envelopes, pending requests, and the single writer of a wire."""
