"""Make held_out.json: windows of the text that the model of `shakespeare` never learnt from.

    python tests/golden/shakespeare/make.py TEXT      # needs torch and transformers

TEXT is the whole text, 1,115,394 characters. Windows of 65 characters are spread evenly over its
last tenth; beside them the loss of the shipped weights on each, in nats per character, and what
these go on with, both as transformers computes them.
"""

import json
import sys
from pathlib import Path

import torch
import transformers

HERE = Path(__file__).parent
MODEL = HERE.parent.parent.parent / "workbooks" / "models" / "shakespeare"
N_WINDOWS, CONTEXT = 40, 64
PROMPT, N_MORE = "ROMEO:", 58


def main() -> None:
    """Cut the windows, and ask transformers."""
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    held_out = text[int(0.9 * len(text)) :]
    step = (len(held_out) - CONTEXT - 1) // (N_WINDOWS - 1)
    windows = [held_out[k * step :][: CONTEXT + 1] for k in range(N_WINDOWS)]
    characters = json.loads((MODEL / "characters.json").read_text())
    model = transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32).eval()
    ids = torch.tensor([[characters.index(c) for c in window] for window in windows])
    with torch.no_grad():
        logits = model(ids[:, :-1]).logits
    losses = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), ids[:, 1:], reduction="none"
    ).mean(1)
    prompt = torch.tensor([[characters.index(c) for c in PROMPT]])
    more = model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=N_MORE,
        do_sample=False,
        pad_token_id=0,
    )
    found = {
        "transformers": transformers.__version__,
        "windows": windows,
        "losses": [round(x, 6) for x in losses.tolist()],
        "continuation": "".join(characters[i] for i in more[0, len(PROMPT) :]),
    }
    (HERE / "held_out.json").write_text(json.dumps(found, indent=1) + "\n")


main()
