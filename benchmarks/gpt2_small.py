"""Make a random checkpoint of GPT-2 small's sizes in transformers' own layout: argv is a folder.

python benchmarks/gpt2_small.py /tmp/gpt2-small [LAYERS WIDTH HEADS VOCABULARY CONTEXT]
"""

import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file


def tensors(n_layers: int, d: int, vocab: int, n_ctx: int) -> dict[str, np.ndarray]:
    """Weights as `GPT2LMHeadModel` names them, initialised as it does."""
    rng = np.random.default_rng(0)

    def normal(*shape: int, scale: float = 0.02) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32) * np.float32(scale)

    found = {"transformer.wte.weight": normal(vocab, d), "transformer.wpe.weight": normal(n_ctx, d)}
    for layer in range(n_layers):
        h = f"transformer.h.{layer}"
        for norm in ("ln_1", "ln_2"):
            found[f"{h}.{norm}.weight"] = 1 + normal(d)
            found[f"{h}.{norm}.bias"] = normal(d)
        for name, shape in (
            ("attn.c_attn", (d, 3 * d)),
            ("attn.c_proj", (d, d)),
            ("mlp.c_fc", (d, 4 * d)),
            ("mlp.c_proj", (4 * d, d)),
        ):
            found[f"{h}.{name}.weight"] = normal(*shape)
            found[f"{h}.{name}.bias"] = normal(shape[1])
    return found | {"transformer.ln_f.weight": 1 + normal(d), "transformer.ln_f.bias": normal(d)}


def main() -> None:
    """Write the folder."""
    folder = Path(sys.argv[1])
    sizes = [int(x) for x in sys.argv[2:]] or [12, 768, 12, 50257, 1024]
    n_layers, d, n_heads, vocab, n_ctx = sizes
    config = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": vocab,
        "n_positions": n_ctx,
        "n_embd": d,
        "n_layer": n_layers,
        "n_head": n_heads,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    weights = tensors(n_layers, d, vocab, n_ctx)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main()
