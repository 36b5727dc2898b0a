"""A checkpoint folder comes in, a head is silenced for good, and it goes back."""

import cellformer as cf
from cellformer.engine.studies.folding import folded

cf.save(cf.load("dialogue-game"), "game")  # a folder, as a checkpoint would come
model = cf.load("game")
quiet = folded(model, {("blocks.1.attn.h2.switch", 0, 0): 0.0})
cf.save(quiet, "game-quiet")
print(abs(cf.load("game-quiet").weights["blocks.1.attn.h2.W_O"]).max())
