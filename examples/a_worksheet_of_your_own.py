"""A worksheet of typed numbers and formulas, each formula written once."""

import cellformer as cf
from cellformer.engine.cells.functions import EXP, SUM
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.story import Story

w = Workbook("shares")
ws = w.sheet("Softmax", "four logits, and their shares")
logits = ws.typed("logits", [[2.0, 1.0, 0.5, -1.0]], cols="abcd")
exps = ws.computed("exps", (1, 4), lambda i, j: EXP(logits[i, j]), cols="abcd")
shares = ws.computed("shares", (1, 4), lambda i, j: exps[i, j] / SUM(exps[i, :]), cols="abcd")
print(f"a: {w.now(shares[0, 0]):.3f}, and {w.edited({logits[0, 0]: 0.0})(shares[0, 0]):.3f} for 0")
book = w.done(Story("shares: a softmax", "", ["Four logits become shares."], [], []))
print(cf.write(book, "shares.xlsx"), book.graph.cell("shares", 0, 0).formula)
