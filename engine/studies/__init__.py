"""Questions to a model: what a part is worth, what each layer knows, what a workbook will cost."""
