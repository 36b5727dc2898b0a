"""dialogue-game: a trained transformer that plays the calling game, `Pietro chiama Paolo Tarso`.

Two layers, four heads, 64 dimensions, 28 words. Look at the heads, switch one off, and see which
rule of the game breaks; type another sentence, and see it continue itself.
"""

from engine import ModelSpec
from workbooks import _calling_game as game

PROMPT = "<BOS> Pietro chiama Paolo"
SPEC = ModelSpec(
    d_vocab=len(game.WORDS), d_model=64, n_ctx=game.LENGTH - 1, n_layers=2, n_heads=4, d_head=16,
    d_mlp=256, activation="gelu_tanh", position="learned", norm="layer", final_norm=True,
    tied=True, bias=True,
)  # fmt: skip
