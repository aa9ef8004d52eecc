"""Language servers: programs that know the code of a project, spoken with over the Language Server Protocol."""
