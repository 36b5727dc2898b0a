"""Model files that lie: configs, weights, tokenizers, other formats."""

import json
import os
import random
import struct
import tempfile
import zipfile
from functools import cache, partial
from pathlib import Path

import foreign_values
import format_writers

import cellformer
from hostile_kinds.cases import (
    GOLDEN,
    MODELS,
    TEXTS,
    VALUES,
    Case,
    Cases,
    Kind,
    copy_of,
    some_command,
)

WAYS = ("cut", "flip", "header", "name", "size", "more")  # that weights are spoilt in


def configs(rng: random.Random) -> Cases:
    """A field of config.json with a value that no tool writes."""
    more = ("head_dim", "rope_scaling", "rope_parameters", "sliding_window", "layer_types", "n_ctx")
    while True:
        name, value = rng.choice(MODELS), rng.choice(VALUES)
        fields = list(json.loads((GOLDEN / name / "config.json").read_text()))
        key = rng.choice([*fields, *more])

        def prepare(folder: Path, name: str = name, key: str = key, value: str = value) -> None:
            model = copy_of(name, folder)
            held = json.loads((model / "config.json").read_text()) | {key: "HERE"}
            text = json.dumps(held).replace('"HERE"', value)
            (model / "config.json").write_text(text)

        yield Case(f"{name}: {key} = {value[:40]}", some_command(rng), prepare)


@cache
def own() -> dict[str, bytes]:
    """The files of a model in our own layout."""
    with tempfile.TemporaryDirectory() as folder:
        cellformer.save(cellformer.load("cat-sat"), Path(folder) / "own")
        return {path.name: path.read_bytes() for path in (Path(folder) / "own").iterdir()}


def own_configs(rng: random.Random) -> Cases:
    """The same in our own layout."""
    fields = json.loads(own()["config.json"])
    more = ("n_heads", "d_head", "d_mlp", "windows", "norm_eps", "sqrt_d_head", "causal", "tied")
    more += ("position", "activation", "rope_frequencies", "d_rotary", "d_vocab_out", "bias")
    while True:
        key, value = rng.choice([*fields, *more]), rng.choice(VALUES)

        def prepare(folder: Path, key: str = key, value: str = value) -> None:
            text = json.dumps(fields | {key: "HERE"}).replace('"HERE"', value)
            (folder / "model").mkdir()
            for name, data in (own() | {"config.json": text.encode()}).items():
                (folder / "model" / name).write_bytes(data)

        yield Case(f"own: {key} = {value[:40]}", some_command(rng), prepare)


def files(rng: random.Random) -> Cases:
    """A file of a checkpoint that holds something else, is missing, or is no file."""
    names = ("config.json", "model.safetensors", "words.json", "tokenizer.json", "vocab.json")
    names += ("merges.txt", "tokenizer_config.json", "model.safetensors.index.json")
    names += ("added_tokens.json", "characters.json", "special_tokens_map.json", "tokenizer.model")
    while True:
        name, what = rng.choice(names), rng.choice([*TEXTS, "zero", "folder", "fifo", "gone"])

        def prepare(folder: Path, name: str = name, what: bytes | str = what) -> None:
            model = copy_of(rng.choice(MODELS), folder)
            path = model / name
            if name.endswith(".index.json"):
                (model / "model.safetensors").unlink()
            if name == "merges.txt":
                (model / "vocab.json").write_text('{"a": 0, "b": 1}')
            path.unlink(missing_ok=True)
            if what == "zero":
                path.symlink_to("/dev/zero")
            elif what == "folder":
                path.mkdir()
            elif what == "fifo":
                os.mkfifo(path)
            elif isinstance(what, bytes):
                path.write_bytes(what)

        yield Case(f"{name} is {what[:20]!r}", some_command(rng), prepare)


def weights(rng: random.Random) -> Cases:
    """model.safetensors cut, flipped, or with a header that lies."""
    while True:
        name, how, seed = rng.choice(MODELS), rng.choice(WAYS), rng.random()

        def prepare(folder: Path, name: str = name, how: str = how, seed: float = seed) -> None:
            draw, path = random.Random(seed), copy_of(name, folder) / "model.safetensors"
            path.write_bytes(spoilt_safetensors(path.read_bytes(), how, draw))

        yield Case(f"{name}: weights, {how} {seed:.3f}", some_command(rng), prepare)


def spoilt_safetensors(data: bytes, how: str, draw: random.Random) -> bytes:
    """A safetensors file with a fault in it."""
    size = struct.unpack("<Q", data[:8])[0]
    header, rest = data[8 : 8 + size], data[8 + size :]
    if how == "cut":
        return data[: draw.randrange(len(data))]
    if how == "flip":
        at = draw.randrange(min(len(data), 8 + size))
        return data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]
    if how == "size":
        return struct.pack("<Q", draw.choice([0, 1, 2**31, 2**63, 2**64 - 1])) + header + rest
    held = json.loads(header)
    key = draw.choice([k for k in held if k != "__metadata__"])
    if how == "name":
        held[draw.choice(["x" * 300, "\x1b[31m", "a\nb", "", "=1+1", "ü" * 99])] = held.pop(key)
    elif how == "more":
        held[key]["dtype"] = draw.choice(["I64", "BOOL", "F64", "F8_E4M3", "Q4", "", None])
    else:
        field = draw.choice(["shape", "data_offsets"])
        values = [[], [0], [-1, 1], [10**18], [10**30, 1], ["a"], None, [0, 10**12], [1] * 300]
        held[key][field] = draw.choice(values)
    text = json.dumps(held).encode()
    return struct.pack("<Q", len(text)) + text + rest


@cache
def of_formats() -> dict[str, bytes]:
    """A GGUF, a llama2.c file, and a torch file, each as its own program writes it."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        format_writers.write_gguf(GOLDEN / "llama", folder / "model.gguf")
        format_writers.write_llama2c(GOLDEN / "llama", folder / "model.bin")
        with zipfile.ZipFile(folder / "model.pt", "w") as archive:  # as torch saves: a zip archive
            archive.writestr(
                "archive/data.pkl", b"\x80\x02}q\x00X\x05\x00\x00\x00modelq\x01}q\x02s."
            )
            archive.writestr("archive/version", b"3")
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def formats(rng: random.Random) -> Cases:
    """Files of other formats, cut, flipped, or with other bytes at their beginning."""
    while True:
        name, seed = rng.choice(list(of_formats())), rng.random()

        def prepare(folder: Path, name: str = name, seed: float = seed) -> None:
            draw, data = random.Random(seed), bytearray(of_formats()[name])
            if draw.random() < 0.3:
                del data[draw.randrange(len(data)) :]
            for _ in range(draw.choice([1, 3, 20])):
                near = draw.choice([40, 400, len(data)])
                if data:
                    data[draw.randrange(min(near, len(data)))] = draw.randrange(256)
            (folder / name).write_bytes(bytes(data))

        yield Case(
            f"{name} {seed:.4f}", rng.choice([["info", name], ["run", name, "--ids", "1"]]), prepare
        )


def made_for_it(kind: str, rng: random.Random) -> Cases:
    """Files of other programs, each made for its case."""
    return (Case(*given) for given in foreign_values.KINDS[kind](rng))


def ready() -> None:
    of_formats()


KINDS: dict[str, Kind] = {
    "configs": configs,
    "own_configs": own_configs,
    "files": files,
    "weights": weights,
    "formats": formats,
    **{kind: partial(made_for_it, kind) for kind in foreign_values.KINDS},
}
