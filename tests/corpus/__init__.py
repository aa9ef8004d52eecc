"""Command lines written for this project, dangerous and everyday, and how `punie permissions check` judges them."""
