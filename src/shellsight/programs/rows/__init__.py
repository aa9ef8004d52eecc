"""The facts about all programs: a module a family, a row a program. The package's README says how to add one."""
