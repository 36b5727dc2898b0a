"""Move one weight through a range, with all variants in one batch."""

import numpy as np

import cellformer as cf

graph = cf.graph("cat-sat")
values = np.linspace(-2, 2, 9)
found = cf.variants(graph, [{("blocks.0.attn.h0.W_V", 2, 2): float(x)} for x in values])
for x, probs in zip(values, found["probs"][:, -1], strict=True):
    print(f"{x:+.1f}   {probs.max():.3f}   word {probs.argmax()}")
