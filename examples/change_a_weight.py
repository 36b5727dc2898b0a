"""Change one weight, and compare the model's next words before and after."""

import cellformer as cf

model = cf.load("cat-sat")
graph = model.graph(model.vocabulary.encode("the cat sat"))
live = cf.Evaluator(graph)
live.set("blocks.0.attn.h0.W_V", 2, 2, -1.0)
before, after = graph.values["probs"][-1], live["probs"][-1]
for v in (-after).argsort()[:5]:
    print(f"{model.vocabulary.texts[v]:<8} {before[v]:.3f} -> {after[v]:.3f}")
print(f"{live.recompute()} cells left to compute")
