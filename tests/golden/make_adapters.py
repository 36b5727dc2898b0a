"""Make the golden adapters: LoRA adapters of golden models, as peft saves and computes them.

    python tests/golden/make_adapters.py    # needs torch, transformers, peft

For each a folder as `save_pretrained` writes it, with golden.npz: ids [n_tokens], the logits of the
base, with the adapter, and with it merged into the weights, [n_tokens, d_vocab] each, computed in
float64; and the versions of these libraries.
"""

from pathlib import Path

import numpy as np
import peft
import torch
import transformers as t

HERE = Path(__file__).parent
IDS = [3, 8, 12, 1, 16, 3, 0]
ADAPTERS = {  # name -> base, what LoraConfig takes
    "gpt2": ("gpt2", {"r": 3, "lora_alpha": 5, "target_modules": ["c_attn", "c_proj", "c_fc"]}),
    "llama": (
        "llama",
        {
            "r": 2, "lora_alpha": 4, "use_rslora": True,
            "target_modules": ["q_proj", "v_proj", "o_proj", "down_proj"],
        },
    ),
    "gpt2-dora": ("gpt2", {"r": 2, "target_modules": ["c_attn"], "use_dora": True}),
}  # fmt: skip


def logits(model: torch.nn.Module) -> np.ndarray:
    """What a model makes of the ids: [n_tokens, d_vocab]."""
    with torch.no_grad():
        found: np.ndarray = model(torch.tensor([IDS])).logits[0].numpy()
    return found


if __name__ == "__main__":
    versions = f"peft {peft.__version__}, transformers {t.__version__}, torch {torch.__version__}"
    for seed, (name, (base, asked)) in enumerate(ADAPTERS.items()):
        torch.manual_seed(seed)
        own = t.AutoModelForCausalLM.from_pretrained(HERE / base).eval()
        plain = logits(t.AutoModelForCausalLM.from_pretrained(HERE / base).double().eval())
        config = peft.LoraConfig(task_type="CAUSAL_LM", fan_in_fan_out=base == "gpt2", **asked)
        model = peft.get_peft_model(own, config).eval()
        with torch.no_grad():
            for key, weight in model.named_parameters():
                if "lora_" in key:
                    weight.normal_(0, 0.3)
        folder = HERE / "adapters" / name
        model.save_pretrained(folder)
        (folder / "README.md").unlink(missing_ok=True)
        config_file = folder / "adapter_config.json"
        config_file.write_text(config_file.read_text().replace(str(HERE / base), base))
        apart = logits(model.double())
        merged = logits(model.merge_and_unload())
        found = {"ids": IDS, "base": plain, "logits": apart, "merged": merged}
        np.savez_compressed(folder / "golden.npz", **found, versions=versions)
        print(name, abs(apart - plain).max(), abs(apart - merged).max())
