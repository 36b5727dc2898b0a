"""Build a workbook of the gallery for another prompt, and list its contents."""

import cellformer as cf

book = cf.build("cat-sat", prompt="the dog sat")
path = cf.write(book, "the-dog-sat.xlsx")
print(f"{path}: {len(book.sheets)} sheets, {book.n_formulas:,} formulas")
