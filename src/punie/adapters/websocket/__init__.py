"""WebSockets: the door that clients of a server come through, and the wire to each of them."""
