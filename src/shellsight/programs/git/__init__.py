"""git: its options for all subcommands, and what each subcommand does."""
