"""Child processes of this machine: terminals, groups, output."""
