"""An engine that plays a script instead of asking a model: demos, tests, CI."""
