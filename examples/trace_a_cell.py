"""Follow a number back: a cell's formula, what it reads, and what reads it."""

import cellformer as cf

cell = cf.graph("cat-sat").cell("blocks.0.attn.h0.scores", 2, 1)
print(f"{cell.name} = {cell.value:.4f} = {cell.formula}")
for precedent in cell.precedents:
    print(f"  reads {precedent.name} = {precedent.value:.4f}")
for dependent in cell.dependents:
    print(f"  is read by {dependent.name}")
