"""Reading an edited workbook: its differences from the workbook as built."""
