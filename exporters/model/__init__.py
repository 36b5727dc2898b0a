"""A model on sheets: how much of it is shown, where each block stands, its meaning in words."""
