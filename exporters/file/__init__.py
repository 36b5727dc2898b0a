"""A workbook as a file: written from a book, and read back cell by cell."""
