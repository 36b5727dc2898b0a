"""A workbook before it is a file: sheets, addresses, texts, colours."""
