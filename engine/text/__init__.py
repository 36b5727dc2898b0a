"""Text to token ids and back, in Python and in cells (tokenizing/, word_lookup, decoded_text)."""
