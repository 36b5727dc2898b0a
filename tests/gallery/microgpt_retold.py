"""microgpt, retold in numpy: what A. Karpathy's program of February 2026 computes, line by line.

The program (gist.github.com/karpathy/8627fe009c40f57531cb18360106ce95) computes number by number;
here a matrix takes the place of a list of lists, and the derivatives, which it gets from a graph of
single numbers, are written out. Names are the program's.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

N_EMBD, N_HEAD, BLOCK_SIZE, NUM_STEPS = 16, 4, 16, 1000
HEAD_DIM = N_EMBD // N_HEAD
RATE, BETA1, BETA2, EPS_ADAM = 0.01, 0.85, 0.99, 1e-8
TEMPERATURE, N_SAMPLES = 0.5, 20
UCHARS = "abcdefghijklmnopqrstuvwxyz"
BOS = len(UCHARS)

Matrices = dict[str, np.ndarray]


@dataclass
class Begun:
    """What the program has before its first step."""

    rng: random.Random
    docs: list[str]
    weights: Matrices


def begin(docs: Sequence[str]) -> Begun:
    """Shuffle the names, and draw the weights, with one generator."""
    rng, docs = random.Random(42), list(docs)
    rng.shuffle(docs)

    def matrix(nout: int, nin: int) -> np.ndarray:
        return np.array([[rng.gauss(0, 0.08) for _ in range(nin)] for _ in range(nout)])

    weights = {
        "wte": matrix(len(UCHARS) + 1, N_EMBD),
        "wpe": matrix(BLOCK_SIZE, N_EMBD),
        "lm_head": matrix(len(UCHARS) + 1, N_EMBD),
        "attn_wq": matrix(N_EMBD, N_EMBD),
        "attn_wk": matrix(N_EMBD, N_EMBD),
        "attn_wv": matrix(N_EMBD, N_EMBD),
        "attn_wo": matrix(N_EMBD, N_EMBD),
        "mlp_fc1": matrix(4 * N_EMBD, N_EMBD),
        "mlp_fc2": matrix(N_EMBD, 4 * N_EMBD),
    }
    return Begun(rng, docs, weights)


def softmax(logits: np.ndarray) -> np.ndarray:
    """Of each row."""
    exps = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def rmsnorm(x: np.ndarray) -> np.ndarray:
    """Each row, divided by its root mean square."""
    return x * ((x * x).mean(axis=-1, keepdims=True) + 1e-5) ** -0.5


def rmsnorm_back(x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """The derivative for x of a loss whose derivative for rmsnorm(x) is dy."""
    scale = ((x * x).mean(axis=-1, keepdims=True) + 1e-5) ** -0.5
    return scale * dy - x * scale**3 * (x * dy).mean(axis=-1, keepdims=True)


def heads(x: np.ndarray) -> np.ndarray:
    """[n, n_embd] as [n_head, n, head_dim]."""
    return x.reshape(len(x), N_HEAD, HEAD_DIM).transpose(1, 0, 2)


def joined(x: np.ndarray) -> np.ndarray:
    """[n_head, n, head_dim] as [n, n_embd]."""
    return x.transpose(1, 0, 2).reshape(x.shape[1], N_EMBD)


def gpt(w: Matrices, ids: Sequence[int]) -> tuple[np.ndarray, Matrices]:
    """The logits after each token, [n, vocab_size], and what is computed on the way."""
    n = len(ids)
    x0 = w["wte"][list(ids)] + w["wpe"][:n]
    x1 = rmsnorm(x0)
    y1 = rmsnorm(x1)
    q, k, v = (heads(y1 @ w[f"attn_w{c}"].T) for c in "qkv")  # [n_head, n, head_dim]
    attn_logits = q @ k.transpose(0, 2, 1) / HEAD_DIM**0.5  # [n_head, n, n]
    future = np.triu(np.ones((n, n)), 1) > 0
    attn_weights = softmax(np.where(future, -np.inf, attn_logits))
    x_attn = joined(attn_weights @ v)
    x2 = x_attn @ w["attn_wo"].T + x1
    y2 = rmsnorm(x2)
    hidden = y2 @ w["mlp_fc1"].T
    relu = np.maximum(hidden, 0)
    x3 = relu @ w["mlp_fc2"].T + x2
    found = {"x0": x0, "x1": x1, "y1": y1, "q": q, "k": k, "v": v, "attn_weights": attn_weights}
    found |= {"x_attn": x_attn, "x2": x2, "y2": y2, "hidden": hidden, "relu": relu, "x3": x3}
    return x3 @ w["lm_head"].T, found


def loss_and_gradient(w: Matrices, doc: str) -> tuple[float, Matrices]:
    """The mean surprise at each next token of a name, and its derivative for every weight."""
    tokens = [BOS, *(UCHARS.index(ch) for ch in doc), BOS]
    n = min(BLOCK_SIZE, len(tokens) - 1)
    ids, targets = tokens[:n], tokens[1 : n + 1]
    logits, f = gpt(w, ids)
    probs = softmax(logits)
    loss = float(-np.log(probs[range(n), targets]).mean())

    dlogits = probs.copy()
    dlogits[range(n), targets] -= 1
    dlogits /= n
    g = {name: np.zeros_like(matrix) for name, matrix in w.items()}
    g["lm_head"] = dlogits.T @ f["x3"]
    dx3 = dlogits @ w["lm_head"]
    g["mlp_fc2"] = dx3.T @ f["relu"]
    dhidden = (dx3 @ w["mlp_fc2"]) * (f["hidden"] > 0)
    g["mlp_fc1"] = dhidden.T @ f["y2"]
    dx2 = dx3 + rmsnorm_back(f["x2"], dhidden @ w["mlp_fc1"])
    g["attn_wo"] = dx2.T @ f["x_attn"]
    dz = heads(dx2 @ w["attn_wo"])  # [n_head, n, head_dim]
    a = f["attn_weights"]
    da = dz @ f["v"].transpose(0, 2, 1)
    dscores = a * (da - (a * da).sum(axis=-1, keepdims=True)) / HEAD_DIM**0.5
    dq, dk = joined(dscores @ f["k"]), joined(dscores.transpose(0, 2, 1) @ f["q"])
    dv = joined(a.transpose(0, 2, 1) @ dz)
    for c, d in zip("qkv", (dq, dk, dv), strict=True):
        g[f"attn_w{c}"] = d.T @ f["y1"]
    dy1 = dq @ w["attn_wq"] + dk @ w["attn_wk"] + dv @ w["attn_wv"]
    dx0 = rmsnorm_back(f["x0"], dx2 + rmsnorm_back(f["x1"], dy1))
    np.add.at(g["wte"], ids, dx0)
    g["wpe"][:n] = dx0
    return loss, g


def train(begun: Begun, num_steps: int = NUM_STEPS) -> Iterator[float]:
    """The loss of each step, before it changes the weights of `begun` in place."""
    w = begun.weights
    m, v = ({name: np.zeros_like(x) for name, x in w.items()} for _ in range(2))
    for step in range(num_steps):
        loss, gradient = loss_and_gradient(w, begun.docs[step % len(begun.docs)])
        lr_t = RATE * (1 - step / NUM_STEPS)
        for name, grad in gradient.items():
            m[name] = BETA1 * m[name] + (1 - BETA1) * grad
            v[name] = BETA2 * v[name] + (1 - BETA2) * grad**2
            m_hat = m[name] / (1 - BETA1 ** (step + 1))
            v_hat = v[name] / (1 - BETA2 ** (step + 1))
            w[name] = w[name] - lr_t * m_hat / (v_hat**0.5 + EPS_ADAM)
        yield loss


def samples(begun: Begun) -> Iterator[str]:
    """Names that the model writes, drawn by the generator that drew the rest."""
    for _ in range(N_SAMPLES):
        ids = [BOS]
        for _ in range(BLOCK_SIZE):
            logits, _ = gpt(begun.weights, ids)
            probs = softmax(logits[-1] / TEMPERATURE)
            ids.append(begun.rng.choices(range(len(probs)), weights=probs.tolist())[0])
            if ids[-1] == BOS:
                break
        yield "".join(UCHARS[i] for i in ids[1:] if i != BOS)
