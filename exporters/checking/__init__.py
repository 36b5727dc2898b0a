"""Checking workbooks with other programs and against Excel's rules."""
