"""A book as a page: one HTML file with every cell live, and the same names and values."""

SUFFIXES = (".html", ".htm")  # of a page's file
