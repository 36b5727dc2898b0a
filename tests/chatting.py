"""Small models that chat: a llama of random weights, a tokenizer of SmolLM2's kind, and a chat
template."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

IM = "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nBe kind<|im_end|>\n' }}{% endif %}" + IM + "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TRIMS = CHATML.replace("message['content']", "message['content'] | trim")
SHORT = (  # for cells: the tokenizer's grow with the square of the text
    "{% for m in messages %}{% if loop.first and m.role != 'system' %}s:kind<|im_end|>{% endif %}"
    "{{ m.role[0] + ':' + (m.content | trim) + '<|im_end|>' }}{% endfor %}{{ 'a:' }}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEXT = ["system user assistant Be kind What is the capital of France? Paris, and of Italy: Rome."]


def tokenizer(size: int = 320) -> Tokenizer:
    """Byte pairs with single digits, learnt from TEXT."""
    inner = Tokenizer(models.BPE())
    digits = pre_tokenizers.Digits(individual_digits=True)
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [digits, pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    inner.train_from_iterator(TEXT, trainer)
    return inner


def write(folder: Path, template: str = CHATML, n_ctx: int = 128, seed: int = 1) -> Path:
    """A checkpoint folder."""
    folder.mkdir(parents=True, exist_ok=True)
    inner = tokenizer()
    inner.save(str(folder / "tokenizer.json"))
    n, d, hidden = inner.get_vocab_size(), 8, 12
    config = {
        "model_type": "llama",
        "vocab_size": n,
        "hidden_size": d,
        "intermediate_size": hidden,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": n_ctx,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    rng = np.random.default_rng(seed)
    shapes = {
        "model.embed_tokens": (n, d),
        "model.norm": (d,),
        "model.layers.0.input_layernorm": (d,),
        "model.layers.0.post_attention_layernorm": (d,),
        "model.layers.0.self_attn.q_proj": (d, d),
        "model.layers.0.self_attn.k_proj": (d // 2, d),
        "model.layers.0.self_attn.v_proj": (d // 2, d),
        "model.layers.0.self_attn.o_proj": (d, d),
        "model.layers.0.mlp.gate_proj": (hidden, d),
        "model.layers.0.mlp.up_proj": (hidden, d),
        "model.layers.0.mlp.down_proj": (d, hidden),
    }
    tensors = {
        f"{name}.weight": rng.normal(size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config))
    said = {"chat_template": template, "tokenizer_class": "PreTrainedTokenizerFast"}
    said |= {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    return folder
