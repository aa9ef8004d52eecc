"""Doubles that keep the ports' promises: each stands in the contract tables beside the real adapters."""
