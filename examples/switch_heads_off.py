"""Switch off every head and MLP in turn, and show the likeliest word's logit."""

import cellformer as cf

model = cf.load("dialogue-game")
graph = model.graph(model.vocabulary.encode("<BOS> Pietro chiama Paolo"))
target = int(graph.values["logits"][-1].argmax())
print(f"after Pietro chiama Paolo: {model.vocabulary.texts[target]}")
for effect in cf.effects(graph, target, words=model.vocabulary.texts):
    print(f"{effect.part:<18} off: logit {effect.change:+.2f}, then {effect.first}")
