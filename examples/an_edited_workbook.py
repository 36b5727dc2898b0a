"""Take a workbook back that somebody edited: what was changed, and what the model says then."""

from openpyxl import load_workbook

import cellformer as cf

path = cf.write(cf.build("cat-sat"), "cat-sat.xlsx")
sheets = load_workbook(path)  # somebody opens it, types, and saves
place = cf.build("cat-sat").places["blocks.0.attn.h0.W_V"]
row, col = place.cell(2, 2)
sheets[place.sheet].cell(row + 1, col + 1).value = -1.0
sheets.save("edited.xlsx")
edited = cf.read("edited.xlsx")
for change in edited.inputs:
    print(f"{change.name} at {change.where}: {change.was} -> {change.now}")
print(edited.live()["probs"][edited.position].max())
