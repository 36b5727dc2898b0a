"""Load a model with a LoRA adapter, switch it off in its cell, and merge it into the weights."""

from pathlib import Path

import cellformer as cf

golden = Path(__file__).resolve().parents[1] / "tests" / "golden"
model = cf.load(golden / "gpt2", adapter=golden / "adapters" / "gpt2")
graph = model.graph([3, 8, 12])
live = cf.Evaluator(graph)
live.set("merge", 0, 0, 0.0)
print("the adapter changes logits by up to", abs(live["logits"] - graph.values["logits"]).max())
merged = model.merged().graph([3, 8, 12])
print(f"merged: {abs(merged.values['logits'] - graph.values['logits']).max():.1f}")
