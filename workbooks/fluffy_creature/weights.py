"""fluffy-creature's words and weights, as the notes give them."""

WORDS = ("fluffy", "blue", "creature", "forest")
BLOCK, HEAD = "blocks.0", "blocks.0.attn.h0"
WEIGHTS: dict[str, list[list[float]]] = {
    "W_E": [[1.0, 2.0], [2.0, 0.5], [1.5, 1.5], [0.5, 2.5]],
    "W_Q": [[1, 0], [0, 1]],
    "W_K": [[0.5, 0.5], [0.5, -0.5]],
    "W_V": [[1, 1], [1, 0]],
    "W_O": [[0.8, 0.2], [0.1, 0.9]],
    "W_in": [[1, 0, 0, 1], [0, 1, 1, 0]],
    "W_out": [[0.5, 0.5], [0.5, 0.5], [0.2, 0.8], [0.8, 0.2]],
}
