"""The calculus of cells: blocks, ops and their interpreters. Nothing here knows a transformer."""
