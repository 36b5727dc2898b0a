"""Make a worksheet of typed numbers and formulas. You write each formula once."""

import cellformer as cf

w = cf.Workbook("shares")
ws = w.sheet("Softmax", "four logits, and their shares")
logits = ws.typed("logits", [[2.0, 1.0, 0.5, -1.0]], cols="abcd")
exps = ws.computed("exps", (1, 4), lambda i, j: cf.f.EXP(logits[i, j]), cols="abcd")
shares = ws.computed("shares", (1, 4), lambda i, j: exps[i, j] / cf.f.SUM(exps[i, :]), cols="abcd")
print(f"a: {w.now(shares[0, 0]):.3f}, and {w.edited({logits[0, 0]: 0.0})(shares[0, 0]):.3f} for 0")
book = w.done(cf.Story("shares: a softmax", "", ["Four logits become shares."], [], []))
print(cf.write(book, "shares.xlsx"), book.graph.cell("shares", 0, 0).formula)
