"""The facts about programs: one row a program in `rows`, and the judges of programs that need more than a table."""
