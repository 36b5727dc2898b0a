"""Load a checkpoint folder, switch off one head for good, and save it again."""

import cellformer as cf

cf.save(cf.load("dialogue-game"), "game")  # a folder, as a checkpoint would come
model = cf.load("game")
quiet = cf.folded(model, {("blocks.1.attn.h2.switch", 0, 0): 0.0})
cf.save(quiet, "game-quiet")
print(abs(cf.load("game-quiet").weights["blocks.1.attn.h2.W_O"]).max())
