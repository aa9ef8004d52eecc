"""The commands of `punie`, a module each: its flags, and what to run. None imports anything heavy before it runs."""
