"""`punie demo`: the main job on one screen, with a small IDE, its own tools, a person and a real agent process."""
