"""The composition root: settings, containers, lifetimes."""
