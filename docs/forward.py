"""The whole decoder in plain numpy: from token ids to the probability of every next word.

GPT-2's forward pass (Radford et al. 2019, section 2.3), with the names that its cells have in
cellformer. Here a line computes a whole matrix; in a workbook each of its numbers is a cell.
"""

import numpy as np


def forward(w, ids, n_layers, n_heads, eps=1e-5):
    """Probabilities of the next word after each token: [n_tokens, d_vocab]; `w` has the weights."""
    x = w["W_E"][ids] + w["W_pos"][: len(ids)]  # [n_tokens, d_model], the residual stream
    for layer in range(n_layers):
        b = f"blocks.{layer}"
        y = layer_norm(x, w[f"{b}.ln1.w"], w[f"{b}.ln1.b"], eps)
        for h in [f"{b}.attn.h{n}" for n in range(n_heads)]:
            q, k, v = (y @ w[f"{h}.W_{c}"] + w[f"{h}.b_{c}"] for c in "QKV")  # [n_tokens, d_head]
            scores = q @ k.T / np.sqrt(q.shape[1])  # [n_tokens, n_tokens]
            future = np.triu(np.ones_like(scores), 1) > 0
            pattern = softmax(np.where(future, -np.inf, scores))
            x = x + pattern @ v @ w[f"{h}.W_O"]  # what this head writes
        x = x + w[f"{b}.attn.b_O"]
        y = layer_norm(x, w[f"{b}.ln2.w"], w[f"{b}.ln2.b"], eps)
        x = x + gelu(y @ w[f"{b}.mlp.W_in"] + w[f"{b}.mlp.b_in"]) @ w[f"{b}.mlp.W_out"]
        x = x + w[f"{b}.mlp.b_out"]
    return softmax(layer_norm(x, w["ln_final.w"], w["ln_final.b"], eps) @ w["W_E"].T)


def layer_norm(x, gain, bias, eps):
    """Ba et al. 2016: centre, divide by the deviation, gain and bias."""
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt(x.var(axis=1, keepdims=True) + eps) * gain + bias


def softmax(x):
    """Shares that sum to 1 along each row."""
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def gelu(x):
    """Hendrycks & Gimpel 2016, tanh form."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
