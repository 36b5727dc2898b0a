"""Building whole workbooks: of a model with its pages, or of worksheets."""
