"""ACP v2 (draft): the same sessions as in v1 in the messages of version 2. Loaded where v2 was agreed on."""
