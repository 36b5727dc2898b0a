"""Take a workbook back that somebody edited: what was changed, and what the model says then.

Edit it in a spreadsheet, or have it written with edits, as here: libraries that load a workbook and
save it, openpyxl for one, drop what they don't know of it.
"""

import cellformer as cf

book = cf.build("cat-sat")
cf.write(book, "cat-sat.xlsx")  # somebody opens it, types, and saves
cf.write(book, "edited.xlsx", edits={("blocks.0.attn.h0.W_V", 2, 2): -1.0})  # the same
edited = cf.read("edited.xlsx")
for change in edited.inputs:
    counts = f" ({change.counts})" if change.counts else ""
    print(f"{change.name} at {change.where}: {change.was} -> {change.now}{counts}")
for cell in edited.added:
    print(f"{cell.where} was added: {cell.now}")
live = edited.live()
print(live["probs"][int(live["position"][0, 0])].max())
