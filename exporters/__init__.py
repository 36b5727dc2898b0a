"""The way from a graph, or tables, to a workbook file and back.

compose (sheets before they are a file) < file (written and read) < model (a model's blocks on
sheets) < play, pages (the sheets around them) < assemble (whole workbooks) < edits (reading an
edited file), checking (other programs recompute it).
"""
