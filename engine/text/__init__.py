"""Text to token ids and back, in Python and in cells."""
