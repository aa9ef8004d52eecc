"""The tool desk: every call of every engine is checked, decided, asked about, run, limited and recorded here."""
