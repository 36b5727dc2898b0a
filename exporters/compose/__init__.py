"""What a workbook is made of before it is a file: sheets, addresses, texts, colours."""
