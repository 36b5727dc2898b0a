"""Round a model's weights to few bits: all of them, and then the most sensitive part alone."""

import cellformer as cf

plain, *effects = cf.quantize("dialogue-game", "<BOS> Pietro chiama Paolo", bits=[8, 4, 3, 2])
print(f"as they are: lead {plain.lead:.2f}")
for effect in effects:
    if effect.part == "all":
        print(f"all parts in {effect.bits} bits: lead {effect.lead:.2f}")
worst = min((e for e in effects if e.part != "all"), key=lambda e: e.lead)
print(f"{worst.part} alone in {worst.bits} bits: lead {worst.lead:.2f}")
