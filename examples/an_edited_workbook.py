"""Take back an edited workbook: list the edits, and the model's new answer.

Edit the workbook in a spreadsheet, or write it with edits, as here. Libraries that load a workbook
and save it, such as openpyxl, drop the parts that they do not know.
"""

import cellformer as cf

book = cf.build("cat-sat")
cf.write(book, "cat-sat.xlsx")  # a person opens it, types, and saves
cf.write(book, "edited.xlsx", edits={("blocks.0.attn.h0.W_V", 2, 2): -1.0})  # the same
edited = cf.read("edited.xlsx")
for change in edited.inputs:
    counts = f" ({change.counts})" if change.counts else ""
    print(f"{change.name} at {change.where}: {change.was} -> {change.now}{counts}")
for cell in edited.added:
    print(f"{cell.where} was added: {cell.now}")
live = edited.live()
print(live["probs"][int(live["position"][0, 0])].max())
