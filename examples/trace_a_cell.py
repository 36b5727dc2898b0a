"""Trace a number: a cell's formula, the cells in it, and the cells that use it."""

import cellformer as cf

cell = cf.graph("cat-sat").cell("blocks.0.attn.h0.scores", 2, 1)
print(f"{cell.name} = {cell.value:.4f} = {cell.formula}")
for precedent in cell.precedents:
    print(f"  reads {precedent.name} = {precedent.value:.4f}")
for dependent in cell.dependents:
    print(f"  is read by {dependent.name}")
