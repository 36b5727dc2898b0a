"""Make the model say another word, by the smallest change of one matrix."""

import cellformer as cf

model = cf.load("dialogue-game")
graph = model.graph(model.vocabulary.encode("<BOS> Pietro chiama Paolo"))
(target,) = model.vocabulary.encode("Cefa", special=False)
found = cf.smallest_change(graph, -1, target, ["blocks.1.mlp.W_out"])
print(f"norm {found.norm:.3f}, {found.share:.1%} of the norm of {found.n:,} weights")
for name, i, j, was, now in found.cells()[:5]:
    print(f"{name}[{i},{j}]: {was:+.4f} -> {now:+.4f}")
after = found.made(model).graph(model.vocabulary.encode("<BOS> Pietro chiama Paolo"))
print("now it says", model.vocabulary.texts[after.values["probs"][-1].argmax()])
