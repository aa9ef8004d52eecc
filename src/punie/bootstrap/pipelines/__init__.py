"""The pipelines that come with Punie: TOML files, data only."""
