"""`punie demo`: the main job, played with the reference IDE."""
