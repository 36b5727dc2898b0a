"""Reading an edited workbook: what differs from the one that was built."""
