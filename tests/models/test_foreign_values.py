"""What files of other programs say that no program writes: one line that names file and fact."""

import json
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import cli
from foreign_values import (
    BASE,
    DEEP,
    NAN,
    TORCH,
    endless,
    folder_of,
    gguf,
    in_torch,
    many_tensors,
    nanogpt,
    outside,
    wide,
)

from cellformer.engine import InputError
from cellformer.engine.models import checkpoint
from cellformer.engine.models.formats import llama2c
from cellformer.engine.text import sentencepiece, vocabularies

SOON = 60  # seconds: it is refused before what would take hours


def refused(*args: object, says: str) -> None:
    """The command ends in one line that says so, and soon."""
    began = time.monotonic()
    done = cli(*map(str, args))
    assert done.code == 2 and done.err.count("\n") == 1, done.err
    assert says in done.err, done.err
    assert time.monotonic() - began < SOON


# --- GGUF ---------------------------------------------------------------------------------------

VALUES: list[tuple[str, Any, str]] = [
    *(("general.alignment", value, "general.alignment") for value in (0, "x", NAN, [32], 33)),
    ("general.alignment", -32, "general.alignment is -32, which is not a power of two"),
    ("general.architecture", ["llama"],
     "'general.architecture' is ['llama'], but must have the type str"),
    ("general.name", DEEP, "an array of arrays"),
    ("llama.attention.head_count", 0, "num_attention_heads = 0 must divide"),
    ("llama.attention.head_count", "2", "'num_attention_heads' is '2', but must have the type int"),
    ("llama.rope.freq_base", "x", "'rope_theta' is 'x', but must have the type float"),
    ("llama.rope.freq_base", NAN, "no model can use such a number"),
    ("llama.embedding_length", 2**63, "no model can use such a number"),
    *((f"tokenizer.ggml.{key}", value, f"tokenizer.ggml.{key}") for key, value in (
        ("tokens", 5), ("tokens", [1]), ("model", 5), ("scores", "x"),
        ("scores", [0.0]), ("scores", [NAN] * 12), ("token_type", [9] * 12), ("token_type", 1),
        ("bos_token_id", "1"), ("bos_token_id", [1]), ("bos_token_id", 1.5),
        ("eos_token_id", NAN), ("eos_token_id", [1]), ("add_bos_token", 5),
        ("add_space_prefix", "x"))),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value", "says"), VALUES, ids=lambda v: str(v)[:30])
def test_metadata_of_gguf_of_the_wrong_kind(key: str, value: Any, says: str, tmp_path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf(BASE | {key: value}))
    refused("run", path, "--prompt", "abc", says=says)


SIDES: list[tuple[str, tuple[int, ...], str]] = [
    ("x", (), "x in "),
    ("x", (1,) * 9, "has 9 dimensions, not 1 to 4"),
    ("blk.0.ffn_up_exps.weight", (10**6, 4, 0), "has a dimension of size 0"),
    ("blk.0.ffn_up_exps.weight", (1, 1, 20_000), "20,000 experts"),
    ("blk.{0.x}.ffn_up_exps.weight", (3, 3, 3), "is not a weight of this model"),
    ("rope_freqs.weight", (2, 2), "all these numbers must be positive"),
    ("rope_freqs.weight", (4,), "these are not the numbers of Llama 3"),
]


@pytest.mark.parametrize(("name", "sides", "says"), SIDES)
def test_gguf_tensors_of_impossible_shape(name, sides, says, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf(BASE, {name: sides}))
    refused("info", path, says=says)


def test_pre_tokenizer_of_the_wrong_type(tmp_path: Path) -> None:
    said = BASE | {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": ["x"]}
    (tmp_path / "m.gguf").write_bytes(gguf(said))
    refused(
        "info",
        tmp_path / "m.gguf",
        says="'tokenizer.ggml.pre' is ['x'], but must have the type str",
    )


def test_unchanged_gguf_is_read(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(gguf(BASE))
    done = cli("run", str(tmp_path / "m.gguf"), "--prompt", "abc")
    assert done.code == 0, done.err


# --- llama2.c and SentencePiece -----------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("n_layers", [10_000, 10**9, 2**31 - 1])
def test_lying_llama2c_header(version: int, n_layers: int, tmp_path) -> None:
    head = struct.pack("<7i", 8, 16, n_layers, 1, 1, 12, 32)
    if version:
        head = struct.pack("<Ii", llama2c.MAGIC, version) + head + struct.pack("<?i", True, 8)
    (tmp_path / "m.bin").write_bytes(head.ljust(5000, b"\0"))
    says = "its header requires" if n_layers == 10_000 else "the values in its header are not valid"
    refused("info", tmp_path / "m.bin", says=says)


@pytest.mark.parametrize("end", [b"\xff" * 1_000_000, bytes(10_000_000), b"\x08\x00" * 2_000_000])
def test_endless_sentencepiece_model(end: bytes, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(end)
    began = time.monotonic()
    with pytest.raises(sentencepiece.UnreadError, match="not a SentencePiece model"):
        sentencepiece.tokenizer(tmp_path / "tokenizer.model")
    assert time.monotonic() - began < SOON


def test_sentencepiece_varint_length() -> None:
    assert list(sentencepiece.fields(b"\x08" + b"\xff" * 9 + b"\x01")) == [(1, 2**64 - 1)]
    with pytest.raises(ValueError, match="that ends with the file"):
        list(sentencepiece.fields(b"\x08" + b"\xff" * 11))


def test_piece_of_ten_million_characters() -> None:
    with pytest.raises(InputError, match="10,000,000 characters among its pieces"):
        vocabularies.sentence_pieces(["<unk>", "a" * 10_000_000], [0.0, 0.0], [2, 1])


def test_tokenizer_bin_of_100_mb_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "tokenizer.bin").open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(InputError, match="is larger than 20 MB, and no model needs so large"):
        llama2c.in_tokenizer(tmp_path / "tokenizer.bin")


# --- folders ------------------------------------------------------------------------------------

PATHS = ("../../../../etc", "/etc", "..\\..", "C:\\x", "1_Pooling/../..")


@pytest.mark.parametrize("path", PATHS)
def test_a_module_stays_inside_its_folder(path: str, tmp_path: Path) -> None:
    model = folder_of("minilm", tmp_path)
    listed = [{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": path}]
    (model / "modules.json").write_text(json.dumps(listed))
    refused("info", model, says="is outside the model's folder, so cellformer does not read it")


@pytest.mark.parametrize(
    ("text", "says"),
    [(DEEP, "is nested too deeply; download"), ("[1]", "must contain a list of modules")],
    ids=["deep", "one"],
)
def test_malformed_list_of_modules(text: str, says: str, tmp_path: Path) -> None:
    model = folder_of("minilm", tmp_path)
    (model / "modules.json").write_text(text)
    refused("info", model, says=says)


def test_a_shard_stays_inside_its_folder(tmp_path: Path) -> None:
    outside(tmp_path)
    refused(
        "info",
        tmp_path / "model",
        says="the shard '../x.safetensors' is outside the model's folder",
    )


def test_a_safetensors_file_of_a_million_tensors(tmp_path: Path) -> None:
    many_tensors(tmp_path, 1_000_000)
    refused("info", tmp_path / "model", says="bytes, too large for a model")


@pytest.mark.parametrize("how", TORCH)
def test_unusual_torch_tensors_are_refused(how: str, tmp_path: Path, torch) -> None:
    in_torch(tmp_path, how)
    with pytest.raises(InputError) as told:
        checkpoint.load(tmp_path / "model")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("pickled", [b"\x80\x02}r\xff\xff\xff\x3f.", b"\x80\x02cos\nsystem\n."])
def test_hostile_pickle_of_characters(pickled: bytes, tmp_path, torch) -> None:
    nanogpt(tmp_path, "meta.pkl", pickled)
    refused("info", tmp_path / "m.pt", says="does not show which characters the ids stand for")


# --- configs ------------------------------------------------------------------------------------

LIES: list[tuple[str, dict[str, Any], str]] = [
    ("phi", {"partial_rotary_factor": NAN}, "no model can use such a number"),
    ("phi", {"rope_parameters": {"partial_rotary_factor": NAN}}, "partial_rotary_factor is nan"),
    ("phi", {"partial_rotary_factor": -1},
     "partial_rotary_factor is -1.0, but it must be positive"),
    ("llama", {"rope_theta": 0}, "rope_theta is 0.0, but it must be positive"),
    ("llama", {"rope_theta": -2.5}, "rope_theta is -2.5, but it must be positive"),
    *((name, {"layer_types": ["telepathy"] * 2}, "layer_types has 'telepathy'")
        for name in ("qwen2", "qwen3", "gemma2", "gemma3", "qwen3_moe")),
    ("qwen2", {"layer_types": ["full_attention"]}, "layer_types lists 1 layers"),
    ("llama", {"num_attention_heads": 0}, "says 0 attention heads"),
    ("mistral", {"num_attention_heads": 0, "head_dim": 4}, "says 0 attention heads"),
    ("gpt_neo", {"attention_types": [[["global"]]]}, "attention_types"),
    ("gpt_neo", {"attention_types": [1]}, "attention_types"),
    ("gpt2", {"vocab_size": 2**31, "n_embd": 2**31, "n_head": 2}, "weights do not fit the config"),
    ("gpt2", {"n_layer": 100_000}, "n_layer is 100,000"),
    ("gpt2", {"n_layer": 8_333, "n_head": 12}, "n_layer is 8,333"),
    ("mistral", {"num_hidden_layers": 10**8}, "num_hidden_layers is 100,000,000"),
    ("mixtral", {"num_local_experts": 10**8}, "experts"),
    ("minilm", {"sentence_modules": [5]}, "sentence_modules"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "says"), LIES, ids=lambda v: str(v)[:40])
def test_lying_config_is_one_line(name: str, changes, says: str, tmp_path: Path) -> None:
    refused("info", folder_of(name, tmp_path, **changes), says=says)


# --- budgets ------------------------------------------------------------------------------------

MANY = ",".join(["0"] * 20_000)
BEYOND: list[tuple[str, Callable[[Path], object], tuple[str, ...], str]] = [
    *((f"{args[0]} of 20,000", endless, (args[0], "MODEL", "--ids", MANY, *args[1:]),
       "numbers in a pass over 20,000 tokens: 9,6") for args in (
        ("run",), ("generate",), ("ablate",), ("gradient",), ("sweep", "W_E[0,0]"),
        ("trace", "logits[0,0]"), ("build", "-o", "b.xlsx"), ("edit", "--say", "1"))),
    ("run", endless, ("run", "MODEL", "--ids", "0", "--tokens", "1000000000"), "tokens of a pass"),
    ("generate", endless, ("generate", "MODEL", "--ids", "0", "-n", "100000"),
     "a pass over 100,001"),
    ("info", endless, ("info", "MODEL", "--tokens", "1000000000000"), "tokens of a pass"),
    ("build", endless, ("build", "cat-sat", "--text-length", "1000000"), "--text-length"),
    ("build", wide, ("build", "MODEL", "--ids", "0", "--live", "blocks.0"),
     "cells of the workbook: 5"),
    ("edit", endless, ("edit", "MODEL", "--ids", ",".join(["0"] * 3_000), "--say", "1"),
     "numbers in one step's gradients for the weights that may change (see --only): 6,9"),
    ("trace", endless, ("trace", "dialogue-game", "logits[3,3]", "--depth", "1000000"),
     "lines in this tree (at least this many): 5,0"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "make", "args", "says"), BEYOND, ids=lambda v: str(v)[:20])
def test_beyond_the_budget_is_refused(name, make, args, says, tmp_path, monkeypatch) -> None:
    make(tmp_path)
    monkeypatch.chdir(tmp_path)
    refused(*(arg.replace("MODEL", "model") for arg in args), says=says)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_force_goes_on_beyond_the_budget(tmp_path: Path) -> None:
    endless(tmp_path)
    command = ("info", str(tmp_path / "model"), "--tokens", "5000")
    assert cli(*command).code == 2
    whole = cli(*command, "--force")
    assert whole.code == 0 and "workbook of 5000 tokens: " in whole.out, whole
