"""`punie ask`: one turn without an IDE."""
