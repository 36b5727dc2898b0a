"""Continue a prompt token by token. Each new token computes one row of every block."""

import cellformer as cf

model = cf.load("dialogue-game")
ids = model.vocabulary.encode("<BOS> Pietro")
words = model.vocabulary.texts
for step in cf.generate(model, ids, 8, cf.Sampling(temperature=0.9, top_k=5), seed=4):
    print(f"{words[step.token]:<10} {step.n_cells:,} cells computed, {step.n_full:,} in all")
