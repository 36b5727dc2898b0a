"""The pages of a workbook that is too large to show every word at every token."""
