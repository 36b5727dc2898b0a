"""Steer the word for Paolo by the caller, from two lists of sentences, at the verb."""

from pathlib import Path

import cellformer as cf

LISTS = Path(__file__).with_name("callers.txt")  # Pietro calls; a number calls
model = cf.load("dialogue-game")
for caller in ("Pietro", "7"):
    prompt = f"<BOS> {caller} chiama Paolo"
    found = cf.steer(model, LISTS, token=2, prompt=prompt, n_tokens=1)
    for strength, ids in found.texts.items():
        print(f"{strength:+g}: {model.vocabulary.decode(ids)}")
print(f"the probe at {found.probe.site}: {found.probe.held_out:.0%} of held-out sentences")
