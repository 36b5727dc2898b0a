"""Make a decoder from sizes and weights alone, and its workbook."""

import numpy as np

import cellformer as cf

spec = cf.ModelSpec(
    d_vocab=4, d_model=8, n_ctx=16, n_layers=1, n_heads=2, d_head=4, tied=True, position="learned"
)
rng = np.random.default_rng(0)
attn = "blocks.0.attn"
heads = [f"{attn}.h{head}.W_{which}" for head in range(2) for which in "QKV"]
weights = {"W_E": rng.normal(size=(4, 8)), "W_pos": rng.normal(size=(16, 8))}
weights |= {name: rng.normal(size=(8, 4)) for name in heads}
weights |= {f"{attn}.h{head}.W_O": rng.normal(size=(4, 8)) for head in range(2)}
model = cf.Model(spec, weights, cf.WordList(("a", "b", "c", "d")))
book = cf.build(model, prompt="a c", n_tokens=6, title="mine")
print(cf.write(book, "mine.xlsx"), "generates", book.graph.values["tokens"].ravel())
