"""Checkpoint folders through the command: workbooks that recompute, and what cannot be used."""

import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from conftest import (
    GOLDEN,
    Edits,
    assert_agrees,
    assert_read_back,
    cli,
    libreoffice_shows,
    needs,
    random_edits,
    random_model,
    typed,
)
from corners import N_COLUMNS, corner, unlike
from kinds import ASKS, kinds, one_of_each
from safetensors.numpy import load_file, save_file

import cellformer as cf
from cellformer.engine import InputError, ModelSpec
from cellformer.engine.models import checkpoint
from cellformer.exporters.checking.programs import Recomputed
from cellformer.exporters.checking.verify import FormulaCells, read, verify
from cellformer.exporters.file.reading import WorkbookFile

pytestmark = pytest.mark.slow

NAMES = unlike()
IN_LIBREOFFICE = NAMES[::2]  # the others are there as large workbooks, see test_scale
IDS = [2, 0]  # without 1, which is padding of MPNet


class Edited(NamedTuple):
    """Random edits of a workbook: of cells of blocks, and a copy in which they are typed."""

    edits: Edits
    path: Path


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> tuple[dict[str, Path], dict[str, Edited]]:
    """The workbook of every unlike golden checkpoint's corner, as built and with random edits."""
    folder, paths, changed = tmp_path_factory.mktemp("checkpoints"), {}, {}
    for name in NAMES:
        book = cf.build(corner(name, folder / name), ids=IDS, n_tokens=N_COLUMNS)
        path = cf.write(book, folder / f"{name}.xlsx")
        edits = random_edits(book, 5, 1)
        cells = {book.cell(*cell): value for cell, value in edits.items()}
        edited = typed(path, folder / f"{name} edited.xlsx", cells)
        paths[name], changed[name] = path, Edited(edits, edited)
    return paths, changed


@pytest.fixture(scope="module")
def checkpoints(both) -> dict[str, Path]:
    """The workbook of each of them."""
    return both[0]


@pytest.fixture(scope="module")
def formula_cells(checkpoints) -> dict[str, FormulaCells]:
    """Their formula cells, read once."""
    return {name: read(path) for name, path in checkpoints.items()}


@pytest.fixture(scope="module")
def office(checkpoints, tmp_path_factory, libreoffice) -> dict[str, Recomputed]:
    """What LibreOffice makes of some of them, from wrong values."""
    paths = {name: checkpoints[name] for name in IN_LIBREOFFICE}
    return libreoffice_shows(paths, tmp_path_factory.mktemp("office") / "wrong")


@pytest.mark.parametrize("name", NAMES)
def test_golden_workbooks_in_ironcalc(name, formula_cells) -> None:
    needs("ironcalc")
    report = verify(formula_cells[name], "ironcalc")
    assert report.agrees, report


@pytest.mark.parametrize("name", NAMES)
def test_golden_workbooks_read_back(name: str, both) -> None:
    edits, path = both[1][name]
    assert_read_back(path, edits, IDS)


@pytest.mark.parametrize("name", IN_LIBREOFFICE)
def test_golden_workbooks_in_libreoffice(name, formula_cells, office) -> None:
    assert_agrees(formula_cells[name], office[name])


def test_commands_take_a_folder() -> None:
    folder, out = GOLDEN / "llama", ""
    for args in (
        ("run", folder, "--ids", "1,2"),
        ("trace", folder, "logits[0,0]", "--ids", "1,2"),
        ("info", folder),
        ("generate", folder, "--ids", "1,2", "-n", "3", "--temperature", "1", "--seed", "4"),
    ):
        done = cli(*args)
        assert done.code == 0
        out += done.out
    assert "4,080" in out  # parameters: 272 + 1,536 + 1,920 + 80 + 272
    assert "KV cache: 32 numbers" in out


@pytest.mark.parametrize(("name", "cache"), [("llama", 32), ("bert", None), ("mpnet", None)])
def test_only_what_generates_has_a_kv_cache(name: str, cache: int | None) -> None:
    assert ("KV cache" in cli("info", GOLDEN / name).out) == (cache is not None)
    assert json.loads(cli("info", GOLDEN / name, "--json").out)["result"]["kv_cache"] == cache


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("llama", "has no model.safetensors and no index of shards; download the weights, too"),
        ("gemma3", "has no model.safetensors and no index of shards; download the weights, too"),
        ("gemma9", "no architecture 'gemma9'; nearest: gemma"),
    ],
)
def test_config_alone_says_whether_it_is_read(kind: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    done = cli("info", tmp_path)
    assert done.code == 2 and done.err.count("\n") == 1
    assert says in done.err


def test_gpt_neox_does_not_read_rope_theta(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / "gpt_neox", tmp_path / "model"))
    config = json.loads((folder / "config.json").read_text())
    del config["rope_parameters"]
    (folder / "config.json").write_text(json.dumps(config | {"rope_theta": 100.0}))
    assert checkpoint.load(folder).spec.rope_theta == 10000.0  # as in transformers


OWN = {
    "zero-layer": {},
    "one-layer attention-only": {"n_layers": 1, "n_heads": 2, "d_head": 3},
    "full one-layer": {
        "n_layers": 1, "n_heads": 2, "d_head": 2, "d_mlp": 5, "norm": "layer", "final_norm": True,
        "position": "learned", "activation": "gelu",
    },
    "pre-LN with biases": {
        "n_layers": 1, "n_heads": 2, "d_head": 2, "d_mlp": 5, "norm": "layer", "final_norm": True,
        "position": "learned", "bias": True, "tied": True,
    },
    "two layers": {"n_layers": 2, "n_heads": 2, "d_head": 3, "d_mlp": 8, "position": "learned"},
    "post-norm of 2017, both ways": {
        "n_layers": 1, "n_heads": 2, "d_head": 2, "d_mlp": 5, "norm": "layer", "norm_after": True,
        "position": "sinusoidal", "bias": True, "causal": False,
    },
    "rotary, RMSNorm, MLP first of all": {
        "n_layers": 1, "n_heads": 1, "d_head": 4, "d_mlp": 3, "norm": "rms", "final_norm": True,
        "position": "rotary", "activation": "silu",
    },
    "MLP only": {"n_layers": 1, "d_mlp": 4, "activation": "gelu_tanh"},
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_hand_written_config(name, tmp_path) -> None:
    """Saved, loaded, built, recomputed; and the words come back."""
    needs("ironcalc")
    spec = ModelSpec(**({"d_vocab": 4, "d_model": 3, "n_ctx": 4} | OWN[name]))
    model = random_model(spec)
    checkpoint.save(model, tmp_path / "model")
    (tmp_path / "model" / "words.json").write_text('["the", "cat", "sat", "."]')
    again = checkpoint.load(tmp_path / "model")
    checkpoint.save(again, tmp_path / "model", force=True)
    assert checkpoint.load(tmp_path / "model").vocabulary == again.vocabulary
    np.testing.assert_array_equal(
        again.graph([0, 1]).values["logits"], model.graph([0, 1]).values["logits"]
    )
    out = tmp_path / "book.xlsx"
    args = ("build", tmp_path / "model", "--prompt", "the cat .", "-o", out)
    assert cli(*args).code == 0
    assert WorkbookFile(out)["Play"]["D34"] == "cat"
    report = verify(out, "ironcalc")
    assert report.agrees, report


def smallest(name: str, folder: Path, *live: str) -> Path:
    """The workbook of a model with few cells of each kind, all of it or some parts alive."""
    few = {"d_vocab": 2, "d_model": 2, "n_ctx": 5, "n_heads": 1, "d_head": 2, "d_mlp": 1}
    checkpoint.save(random_model(ModelSpec(**(OWN[name] | few))), folder / "model")
    out = folder / "book.xlsx"
    args = ("build", folder / "model", "--ids", "1,0", "--tokens", "2", "-o", out)
    assert cli(*args, *(arg for part in live for arg in ("--live", part))).code == 0
    return out


def test_llama_in_formulas(tmp_path: Path, formulas) -> None:
    """The slowest engine, which is asked about every kind of them."""
    whole = WorkbookFile(smallest("rotary, RMSNorm, MLP first of all", tmp_path))
    path = one_of_each(whole, tmp_path / "kinds.xlsx")
    assert kinds(WorkbookFile(path)) == kinds(whole) - {ASKS}
    assert verify(path, "formulas").agrees


def test_gpt2_in_formulas(tmp_path: Path, formulas) -> None:
    """From its tokens to its logits, each cell from those before it."""
    live = ("embed", "blocks.0", "ln_final", "logits")
    assert verify(smallest("pre-LN with biases", tmp_path, *live), "formulas").agrees


# --- malformed checkpoints --------------------------------------------------------------------

Spoil = Callable[[Path], None]


def config(**changes: object) -> Spoil:
    def spoil(folder: Path) -> None:
        values = json.loads((folder / "config.json").read_text()) | changes
        (folder / "config.json").write_text(json.dumps(values))

    return spoil


def text(name: str, content: str) -> Spoil:
    return lambda folder: (folder / name).write_text(content) and None


def without(name: str) -> Spoil:
    return lambda folder: (folder / name).unlink()


def tensors(change: Callable[[dict[str, np.ndarray]], object]) -> Spoil:
    def spoil(folder: Path) -> None:
        path = folder / "model.safetensors"
        held = load_file(path)
        change(held)
        save_file(held, path)

    return spoil


def raw(change: Callable[[bytes], bytes]) -> Spoil:
    def spoil(folder: Path) -> None:
        path = folder / "model.safetensors"
        path.write_bytes(change(path.read_bytes()))

    return spoil


def header(change: Callable[[dict], object]) -> Spoil:
    def rewrite(data: bytes) -> bytes:
        n = struct.unpack("<Q", data[:8])[0]
        head = json.loads(data[8 : 8 + n])
        change(head)
        new = json.dumps(head).encode()
        return struct.pack("<Q", len(new)) + new + data[8 + n :]

    return raw(rewrite)


WTE, FC = "transformer.wte.weight", "transformer.h.0.mlp.c_fc.weight"
ATTN = "transformer.h.0.attn.c_attn.weight"

MALFORMED: dict[str, tuple[Spoil, str]] = {
    "no config": (without("config.json"), "config.json"),
    "config is not JSON": (text("config.json", "{model"), "JSON"),
    "config is a list": (text("config.json", "[]"), "object"),
    "config is binary": (lambda f: (f / "config.json").write_bytes(b"\xff\xfe") and None, "JSON"),
    "no model type": (text("config.json", "{}"), "model_type"),
    "an unknown architecture": (config(model_type="lama"), "nearest: llama"),
    "model type is a number": (config(model_type=3), "model_type"),
    "the number of heads": (config(n_head=5), "divide"),
    "no heads": (config(n_head=0), "n_head"),
    "negative layers": (config(n_layer=-1), "n_layers"),
    "a billion layers": (config(n_layer=10**9), "n_layer is 1,000,000,000"),
    "a billion heads": (config(n_head=10**9, n_embd=10**9), "heads"),
    "a huge vocabulary": (config(vocab_size=10**12), "weights do not fit the config"),
    "negative width": (config(n_embd=-12), "d_model"),
    "negative vocabulary": (config(vocab_size=-1), "d_vocab"),
    "zero context": (config(n_positions=0), "n_ctx"),
    "width is text": (config(n_embd="12"), "n_embd"),
    "width is a fraction": (config(n_embd=12.5), "n_embd"),
    "width is true": (config(n_embd=True), "n_embd"),
    "an unknown activation": (config(activation_function="hardswish"), "hardswish"),
    "too many layers": (config(n_layer=3), "missing"),
    "too few layers": (config(n_layer=1), "is not a weight"),
    "an extra head": (config(n_head=4, n_embd=16), "shape"),
    "a larger vocabulary": (config(vocab_size=18), "shape"),
    "a shorter context": (config(n_positions=11), "shape"),
    "a wider MLP": (config(n_inner=50), "shape"),
    "no weights": (without("model.safetensors"), "model.safetensors"),
    "empty weights": (raw(lambda b: b""), "safetensors"),
    "truncated header": (raw(lambda b: b[:20]), "safetensors"),
    "truncated data": (raw(lambda b: b[:-100]), "safetensors"),
    "extra data": (raw(lambda b: b + b"1234"), "safetensors"),
    "a header of 2 GB": (raw(lambda b: struct.pack("<Q", 2**31) + b[8:]), "safetensors"),
    "a header of 2^63": (raw(lambda b: struct.pack("<Q", 2**63) + b[8:]), "safetensors"),
    "header is not JSON": (raw(lambda b: b[:8] + b"x" + b[9:]), "safetensors"),
    "offsets that lie": (header(lambda h: h[WTE].update(data_offsets=[0, 4])), "safetensors"),
    "offsets past the end": (
        header(lambda h: h[WTE].update(data_offsets=[0, 10**9])), "safetensors"),
    "a shape that lies": (header(lambda h: h[WTE].update(shape=[17, 13])), "safetensors"),
    "an unknown type": (header(lambda h: h[WTE].update(dtype="F31")), "safetensors"),
    "whole numbers": (tensors(lambda t: t.update({WTE: t[WTE].astype(np.int32)})), "I32"),
    "a transposed weight": (
        tensors(lambda t: t.update({FC: np.ascontiguousarray(t[FC].T)})), "48 x 12"),
    "a missing weight": (tensors(lambda t: t.pop(ATTN)), ATTN),
    "an extra weight": (tensors(lambda t: t.update(extra=np.ones(2, np.float32))), "extra"),
    "a nan": (tensors(lambda t: t[WTE].__setitem__((2, 2), np.nan)), WTE),
    "an infinity": (tensors(lambda t: t[FC].__setitem__((0, 0), -np.inf)), FC),
    "a missing shard": (
        lambda f: (without("model.safetensors")(f), text(
            "model.safetensors.index.json", '{"weight_map": {"a": "model-2.safetensors"}}')(f)),
        "model-2"),
    "an index without a map": (
        lambda f: (without("model.safetensors")(f), text("model.safetensors.index.json", "{}")(f)),
        "weight_map"),
    "a shard outside the folder": (
        lambda f: (without("model.safetensors")(f), text(
            "model.safetensors.index.json", '{"weight_map": {"a": "../x.safetensors"}}')(f)),
        "shard"),
    "too few words": (text("words.json", '["a", "b"]'), "17"),
    "words twice": (text("words.json", json.dumps(["a"] * 17)), "twice"),
    "words are numbers": (text("words.json", "[1]"), "list of words"),
    "words are not JSON": (text("words.json", "a b c"), "JSON"),
    "a tokenizer that is none": (text("tokenizer.json", "{}"), "tokenizer"),
    "merges that are none": (
        lambda f: (text("vocab.json", "[]")(f), text("merges.txt", "a b c d\n")(f)), "vocab.json"),
}  # fmt: skip


@pytest.fixture
def gpt2(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "gpt2", tmp_path / "gpt2"))


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_checkpoint_is_one_line(name, gpt2, tmp_path) -> None:
    spoil, remedy = MALFORMED[name]
    spoil(gpt2)
    out = tmp_path / "out.xlsx"
    code, _, err = cli("build", gpt2, "--ids", "1,2", "-o", out)
    assert code == 2
    assert err.startswith("cellformer: ") and err.count("\n") == 1
    assert remedy in err
    assert not out.exists()


PROMPTS = {
    "empty": (["--prompt", ""], "empty"),
    "unknown word": (["--prompt", "w1 x2"], "w2"),
    "lone surrogate": (["--prompt", "w1 \udcff"], "udcff"),
    "no prompt": ([], "--prompt"),
    "too long": (["--ids", ",".join("1" * 13)], "shorten"),
    "past the vocabulary": (["--ids", "17"], "16"),
    "a negative id": (["--ids", "-1"], "0,1,3"),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_bad_prompt_is_one_line(name, gpt2) -> None:
    (gpt2 / "words.json").write_text(json.dumps([f"w{i}" for i in range(17)]))
    args, remedy = PROMPTS[name]
    code, _, err = cli("run", gpt2, *args)
    assert code == 2
    assert remedy in err and err.count("\n") == 1


ROPE = {"rope_type": "spiral", "factor": 2.0}


@pytest.mark.parametrize(
    ("name", "spoil", "remedy"),
    [
        ("llama", config(rope_parameters=ROPE), "spiral"),
        ("llama", config(rope_scaling={"type": "yarn"}, rope_parameters=None), "yarn"),
        ("llama", config(rope_parameters={"rope_theta": -1.0}), "positive"),
        ("llama", config(num_key_value_heads=3), "n_kv_heads"),
        ("llama", config(head_dim=3), "even"),
        ("gpt_neo", config(attention_types=[[["global"], 1]]), "attention_types"),
        ("gpt_neox", config(num_attention_heads=3), "divide"),
        ("llama", config(rope_parameters={"partial_rotary_factor": 2.0}), "d_rotary"),
        ("mistral", config(sliding_window=0), "window"),
    ],
)
def test_architectures_refuse_unknown_options(name, spoil, remedy, tmp_path) -> None:
    folder = Path(shutil.copytree(GOLDEN / name, tmp_path / name))
    spoil(folder)
    code, _, err = cli("info", folder)
    assert code == 2
    assert remedy in err and err.count("\n") == 1


MEASURED = r"""
import re
from cellformer.__main__ import main
try:
    main()
finally:  # of this program alone: what the system counts for a child begins with its parent's
    print(re.search(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="it reads Linux's own figures")
def test_header_of_2_gb_takes_no_memory(gpt2) -> None:
    MALFORMED["a header of 2 GB"][0](gpt2)
    command = [sys.executable, "-c", MEASURED, "info", str(gpt2)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "safetensors" in done.stderr
    assert int(done.stdout) < 500_000  # kB


def test_checkpoint_without_prefix(gpt2) -> None:
    held = load_file(gpt2 / "model.safetensors")
    bare = {name.removeprefix("transformer."): values for name, values in held.items()}
    bare["h.0.attn.bias"] = np.tril(np.ones((1, 1, 12, 12), np.float32))
    save_file(bare, gpt2 / "model.safetensors")
    found, kept = checkpoint.load(gpt2), checkpoint.load(GOLDEN / "gpt2")
    for name, values in kept.weights.items():
        np.testing.assert_array_equal(found.weights[name], values)


@pytest.mark.parametrize(("name", "layer"), [("glm4_moe", 46), ("deepseek_v3", 61)])
def test_layers_of_further_tokens_are_not_read(name: str, layer: int, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / name, tmp_path / name))
    held = load_file(folder / "model.safetensors")
    held[f"model.layers.{layer}.enorm.weight"] = np.ones(8, np.float32)
    save_file(held, folder / "model.safetensors")
    found, expected = (cf.load(of).graph([1, 2]).values["logits"] for of in (folder, GOLDEN / name))
    np.testing.assert_array_equal(found, expected)


def test_own_config_names_a_wrong_field(tmp_path) -> None:
    checkpoint.save(random_model(ModelSpec(d_vocab=2, d_model=2, n_ctx=2)), tmp_path)
    config(n_layer=1)(tmp_path)
    with pytest.raises(InputError, match="n_layers"):
        checkpoint.load(tmp_path)


@pytest.mark.parametrize("wrong", [{"activation": "swish2"}, {"norm": "l2"}, {"d_model": 2.5}])
def test_own_config_with_a_wrong_value(wrong, tmp_path) -> None:
    checkpoint.save(random_model(ModelSpec(d_vocab=2, d_model=2, n_ctx=2)), tmp_path)
    config(**wrong)(tmp_path)
    with pytest.raises(InputError, match=next(iter(wrong))):
        checkpoint.load(tmp_path)


@pytest.mark.filterwarnings("error")
def test_number_beyond_float32_is_kept(tmp_path: Path) -> None:
    """One of a size that somebody may type into a workbook."""
    shipped = checkpoint.load(str(GOLDEN / "llama"))
    embedding = np.array(shipped.weights["W_E"])
    embedding[3, 1] = 1e300
    model = replace(shipped, weights={**shipped.weights, "W_E": embedding})
    checkpoint.save(model, tmp_path / "huge")
    assert checkpoint.load(str(tmp_path / "huge")).weights["W_E"][3, 1] == 1e300
