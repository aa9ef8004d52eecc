"""WebSockets: the server that accepts clients, and the transport of one client."""
