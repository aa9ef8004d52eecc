"""Files and folders of this machine: safe opening, listing, search, ignore rules, kept outputs."""
