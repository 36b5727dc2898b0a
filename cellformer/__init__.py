"""A transformer you can open in a spreadsheet: every cell a formula, every number recomputed."""
