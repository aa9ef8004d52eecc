"""Files and folders of this machine: texts, listing, search, ignore rules, kept outputs."""
