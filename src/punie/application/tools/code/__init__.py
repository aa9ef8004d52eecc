"""The tools that ask a language server about code."""
