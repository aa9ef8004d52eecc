"""Pages of the web: bounded requests to addresses that were judged, and the readable text of what came back."""
