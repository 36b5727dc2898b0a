"""A workbook that somebody has edited and saved: what differs from the one that was built."""
