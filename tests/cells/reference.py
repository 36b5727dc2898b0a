"""The decoder in plain numpy, written apart from the engine, to hold the engine to."""

import numpy as np

from cellformer.engine import ModelSpec


def straight_numpy(spec: ModelSpec, w: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    """The same decoder in plain numpy, written apart from the engine."""

    def layer_norm(x, name):
        z = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + spec.norm_eps)
        return z * w[f"{name}.w"] + w[f"{name}.b"]

    def softmax(x):
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    x = w["W_E"][ids]
    if spec.position == "learned":
        x = x + w["W_pos"][: len(ids)]
    for n in range(spec.n_layers):
        b = f"blocks.{n}"
        if spec.n_heads:
            y = layer_norm(x, f"{b}.ln1") if spec.norm == "layer" else x
            for head in range(spec.n_heads):
                h = f"{b}.attn.h{head}"
                q, k, v = (y @ w[f"{h}.W_{c}"] + w.get(f"{h}.b_{c}", 0) for c in "QKV")
                s = q @ k.T / (spec.sqrt_d_head or np.sqrt(spec.d_head))
                s = np.where(np.tril(np.ones_like(s)) > 0, s, -np.inf)
                x = x + softmax(s) @ v @ w[f"{h}.W_O"]
            x = x + w.get(f"{b}.attn.b_O", 0)
        if spec.d_mlp:
            y = layer_norm(x, f"{b}.ln2") if spec.norm == "layer" else x
            y = y @ w[f"{b}.mlp.W_in"] + w.get(f"{b}.mlp.b_in", 0)
            if spec.activation == "relu":
                y = np.maximum(y, 0)
            else:
                y = 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))
            x = x + y @ w[f"{b}.mlp.W_out"] + w.get(f"{b}.mlp.b_out", 0)
    if spec.final_norm:
        x = layer_norm(x, "ln_final")
    return x @ (w["W_E"].T if spec.tied else w["W_U"])
