"""`punie setup`: Punie's entry in an IDE's file, and the model with its key."""
