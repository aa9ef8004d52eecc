"""`punie acp`: serve an IDE over ACP on stdin and stdout."""
