"""Show the logit lens, and what each head adds to a word's logit (direct logit attribution)."""

import cellformer as cf

model = cf.load("dialogue-game")
words = model.vocabulary.texts
graph = model.graph(model.vocabulary.encode("<BOS> Pietro chiama Paolo"))
target, rival = (-graph.values["logits"][-1]).argsort()[:2]
views = cf.add_lens(graph, position=3, target=int(target), rival=int(rival))
for n, stage in enumerate(views.stages):
    probs = graph.values[f"lens.{n}.probs"][0]
    print(f"after {stage.name:<20} {words[probs.argmax()]:<8} {probs[target]:.3f}")
for writer, share in views.credits["target"].items():
    print(f"{writer:<24} {graph.values[share.name][-1, 0]:+.2f}")
