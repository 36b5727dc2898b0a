"""A model on sheets: how much of it is shown, where each block stands, what it means in words."""
