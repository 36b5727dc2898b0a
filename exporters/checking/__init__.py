"""Workbooks held to other programs and to Excel's rules."""
