"""Find where the model stores the caller: patch its parts, one by one, from another sentence."""

import cellformer as cf

HERE, THERE = "<BOS> Pietro chiama Paolo", "<BOS> 3 chiama Paolo"
rows = cf.patch("dialogue-game", THERE, prompt=HERE, target="Tarso", rival="vice")
heads = [row for row in rows if row.site.endswith(".result")]
for row in sorted(heads, key=lambda row: -(row.recovered or 0))[:3]:
    word = HERE.split()[row.token or 0]
    print(f"{row.site} at {word}: {row.recovered:.1%}, the gradient says {row.estimate:.1%}")

path = ("blocks.0.attn.h0.result", "blocks.0.mlp_out")
*_, together = cf.patch("dialogue-game", THERE, prompt=HERE, path=path)
print(f"head 0.0 through the MLP after it, and nothing else: {together.recovered:.1%}")
