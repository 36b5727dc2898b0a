"""Files of other programs whose values no program writes: the kinds of `tests/hostile.py` that need
a file made for them.

Each kind gives a name, the command, and what writes the files that it needs into a folder.
"""

import base64
import itertools
import json
import os
import random
import shutil
import struct
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load_file, save_file

GOLDEN = Path(__file__).parent / "golden"
NAN, HUGE = float("nan"), 2**31
DEEP = "[" * 100_000 + "]" * 100_000
Prepare = Callable[[Path], object]


class Given(NamedTuple):
    """One input: what it is called, the command, the files."""

    name: str
    args: list[str]
    prepare: Prepare


Kind = Iterator[Given]


def through(rng: random.Random, cases: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """All cases in some order, and again."""
    while True:
        yield from rng.sample(cases, len(cases))


def folder_of(name: str, at: Path, **changes: Any) -> Path:
    """A golden model in a folder, with other values in its config.json."""
    model = Path(shutil.copytree(GOLDEN / name, at / "model"))
    values = json.loads((model / "config.json").read_text()) | changes
    (model / "config.json").write_text(json.dumps(values))
    return model


READS = ["info", "model"], ["run", "model", "--ids", "0,1"]


# --- GGUF ---------------------------------------------------------------------------------------

UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64 = 4, 5, 6, 7, 8, 9, 10
WIDTH, WORDS, HIDDEN = 8, 12, 16
BASE: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.context_length": 32,
    "llama.embedding_length": WIDTH,
    "llama.block_count": 1,
    "llama.feed_forward_length": HIDDEN,
    "llama.attention.head_count": 2,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 10000.0,
    "llama.rope.dimension_count": 4,
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", *"▁abcdefgh"],
    "tokenizer.ggml.scores": [0.0] * 3 + [-float(k) for k in range(9)],
    "tokenizer.ggml.token_type": [2, 3, 3, *[1] * 9],
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
}
ODD = (0, -1, 1.5, NAN, float("inf"), True, "x", "", "\x1b[31m", [], [1], ["a"], [1.5],
       10**12, 2**63, "1" * 5000, DEEP)  # fmt: skip
BESIDE = ("general.alignment", "tokenizer.ggml.pre", "tokenizer.ggml.merges", "llama.expert_count",
          "tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_space_prefix", "llama.vocab_size",
          "llama.attention.key_length", "llama.rope.scaling.type", "llama.rope.scaling.factor",
          "llama.attention.sliding_window", "general.name")  # fmt: skip


def spelt(value: Any) -> tuple[int, bytes]:
    """A value as GGUF has it: its kind, and its bytes."""
    if value == DEEP:
        level = struct.pack("<IQ", ARRAY, 1)
        return ARRAY, level * 100_000 + struct.pack("<IQ", UINT32, 0)
    if isinstance(value, bool):
        return BOOL, bytes([value])
    if isinstance(value, int):
        kind = INT32 if value < 0 else UINT64 if value >= 2**32 else UINT32
        return kind, struct.pack("<" + {INT32: "i", UINT64: "Q", UINT32: "I"}[kind], value)
    if isinstance(value, float):
        return FLOAT32, struct.pack("<f", value)
    if isinstance(value, str):
        return STRING, struct.pack("<Q", len(value.encode())) + value.encode()
    of = spelt(value[0])[0] if value else UINT32
    return ARRAY, struct.pack("<IQ", of, len(value)) + b"".join(spelt(v)[1] for v in value)


def gguf(said: Mapping[str, Any], more: Mapping[str, tuple[int, ...]] | None = None) -> bytes:
    """A small llama; `more` are further tensors, or the same with other sides, innermost first."""
    square, name = (WIDTH, WIDTH), "blk.0.{}.weight".format
    sides: dict[str, tuple[int, ...]] = {"token_embd.weight": (WIDTH, WORDS)}
    sides |= {"output_norm.weight": (WIDTH,), "output.weight": (WIDTH, WORDS)}
    sides |= {name(f"attn_{part}"): square for part in ("q", "k", "v", "output")}
    sides |= {name("attn_norm"): (WIDTH,), name("ffn_norm"): (WIDTH,)}
    sides |= {name("ffn_gate"): (WIDTH, HIDDEN), name("ffn_up"): (WIDTH, HIDDEN)}
    sides |= {name("ffn_down"): (HIDDEN, WIDTH), **(more or {})}
    head = b"GGUF" + struct.pack("<IQQ", 3, len(sides), len(said))
    for key, value in said.items():
        kind, data = spelt(value)
        head += spelt(key)[1] + struct.pack("<I", kind) + data
    at = 0
    for key, shape in sides.items():
        head += spelt(key)[1] + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        head += struct.pack("<IQ", 0, at)
        at += 4 * WORDS * HIDDEN * 32
    head += bytes(-len(head) % 32)
    return head + np.linspace(-1, 1, at // 4, dtype="<f4").tobytes() + bytes(100_000)


SIDES = ((), (0,), (4, 0), (10**6, 4, 0), (2**62, 4), (2**31, 2**31, 4), (1,) * 9, (3, 3, 3))


def gguf_values(rng: random.Random) -> Kind:
    """Metadata of the wrong kind, and tensors whose sides make no sense."""
    cases: list[tuple[Any, ...]] = list(itertools.product([*BASE, *BESIDE], ODD, [None]))
    names = ("rope_freqs.weight", "blk.0.ffn_up_exps.weight", "blk.{0.x}.ffn_up_exps.weight",
             "token_embd.weight", "blk.0.attn_q.weight", "x")  # fmt: skip
    cases += [("general.name", "x", {name: sides}) for name in names for sides in SIDES]
    for key, value, more in through(rng, cases):

        def prepare(at: Path, key: str = key, value: Any = value, more: Any = more) -> None:
            (at / "m.gguf").write_bytes(gguf(BASE | {key: value}, more))

        args = rng.choice([["info", "m.gguf"], ["run", "m.gguf", "--prompt", "abc"]])
        yield Given(f"{key} = {str(value)[:30]!r}, {more}", args, prepare)


# --- llama2.c -----------------------------------------------------------------------------------


def llama2c_headers(rng: random.Random) -> Kind:
    """Headers that lie about layers and sizes, of every version."""
    values = (0, 1, 3, -1, 7, 10**9, 2**31 - 1, -(2**31))
    cases = list(itertools.product((0, 1, 2), range(8), values))
    for version, place, value in through(rng, [*cases, *([(v, 2, 10**9) for v in (0, 1, 2)] * 5)]):

        def prepare(at: Path, version: int = version, place: int = place, value: int = value):
            sizes = [8, 16, 1, 2, 2, 12, 32, 8]  # the last is the group
            sizes[place] = value
            head = struct.pack("<7i", *sizes[:7])
            if version:
                head = struct.pack("<Ii", 0x616B3432, version) + head
                head += struct.pack("<?i", True, sizes[7])
                head = head.ljust(256, b"\0")
            (at / "m.bin").write_bytes(head + bytes(4 * rng.choice([1000, 1084, 3000])))

        yield Given(f"version {version}: {place} = {value}", ["info", "m.bin"], prepare)


# --- tokenizers ---------------------------------------------------------------------------------

PLAIN: dict[str, Any] = {
    "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
    "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
    "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]],
}  # fmt: skip


def unigram(**said: Any) -> dict[str, Any]:
    return {"type": "Unigram", "vocab": [["a", -1.0], ["b", -2.0]], **said}


def replace(content: str, **pattern: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def split(pattern: str) -> dict[str, Any]:
    part = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}
    return {"pre_tokenizer": part | {"invert": False}}


def charsmap(data: bytes) -> dict[str, Any]:
    text = base64.b64encode(data).decode()
    return {"normalizer": {"type": "Precompiled", "precompiled_charsmap": text}}


def template(name: str, ids: list[int]) -> dict[str, Any]:
    pieces = [{"SpecialToken": {"id": name, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    known = {"[C]": {"id": "[C]", "ids": ids, "tokens": ["[C]"]}}
    part = {"type": "TemplateProcessing", "single": pieces, "pair": [], "special_tokens": known}
    return {"post_processor": part}


def added(content: str, i: int) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"added_tokens": [{"id": i, "content": content, "special": True, **flags}]}


def bert(**said: Any) -> dict[str, Any]:
    prefix = {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    return {"model": {"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "[UNK]"} | prefix | said}


LIBRARY: dict[str, dict[str, Any]] = {
    "a map of garbage": charsmap(bytes(range(256)) * 4),
    "an empty map": charsmap(b""),
    "a map that points outside": charsmap(b"\x08\0\0\0" + b"\xff" * 8 + b"abc"),
    "a map longer than itself": charsmap(b"\xff\0\0\0" + b"\0" * 64),
    "a map that is no text": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": 5}},
    "one becomes a million": {"normalizer": replace("a" * 10**6, String="a")},
    "one becomes 2^40": {"normalizer": {"type": "Sequence", "normalizers": [
        replace("aa", String="a")] * 40}},
    "a regex becomes a million.": {"normalizer": replace("b" * 10**6, Regex="a")},
    "much is put before": {"normalizer": {"type": "Prepend", "prepend": "a" * 10**8}},
    "an empty pattern": {"normalizer": replace("b", String="")},
    "backtracking": split("(a+)+$"),
    "backtracking, nested": split("(a*)*b"),
    "backtracking, long": split("(a|aa)+$"),
    "backtracking, polynomial": split("a*a*a*a*a*a*b"),
    "backtracking in a normalizer": {"normalizer": replace("b", Regex="(a+)+$")},
    "backtracking in a decoder": {"decoder": replace("b", Regex="(a+)+$")},
    "brackets": split("(" * 9000 + "a" + ")" * 9000),
    "repeated thousandfold": split("((a{1,1000}){1,1000}){1,1000}"),
    "no regex": split("(("),
    "no id for unknown pieces": {"model": unigram()},
    "an id beyond": {"model": unigram(unk_id=9)},
    "no pieces": {"model": unigram(vocab=[], unk_id=None)},
    "scores too low": {"model": unigram(vocab=[["a", -1e308], ["b", -1e308]], unk_id=0)},
    "a long piece in a tree": {"model": unigram(vocab=[["a", 0.0], ["b" * 10**7, 0.0]], unk_id=0)},
    "a long piece": {"model": PLAIN | {"vocab": {"a": 0, "b" * 10**7: 1}, "merges": []}},
    "ids of 3,000,000,000": {"model": PLAIN | {"vocab": {"a": 0, "b": 1, "ab": 3 * 10**9}}},
    "ids that are texts": {"model": PLAIN | {"vocab": {"a": "x"}}},
    "dropout": {"model": PLAIN | {"dropout": 0.5}},
    "words without unknown": {"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "?"}},
    "WordPiece without unknown": bert(),
    "WordPiece of 2^64": bert(max_input_chars_per_word=2**64 - 1),
    "an unknown token in front": template("[X]", [0]),
    "a token in front beyond": template("[C]", [4 * 10**9]),
    "no ids in front": template("[C]", []),
    "filled to 10^12": {"padding": {
        "strategy": {"Fixed": 10**12}, "direction": "Right", "pad_to_multiple_of": None,
        "pad_id": 0, "pad_type_id": 0, "pad_token": "a"}},
    "become 0.": {"truncation": {
        "direction": "Right", "max_length": 0, "strategy": "LongestFirst", "stride": 9}},
    "an empty added token": added("", 5),
    "an added token beyond": added("zz", 4 * 10**9),
    "pieces of length 0": {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
    "a decoder that strips 2^63": {
        "decoder": {"type": "Strip", "content": "a", "start": 0, "stop": 2**63}},
    "nested": {"normalizer": json.loads(
        '{"type": "Sequence", "normalizers": [' * 100 + "]}" * 100)},
    "no model": {"model": None},
    "a model of another kind": {"model": {"type": "Telepathy"}},
    "merges of nothing": {"model": PLAIN | {"merges": [["x", "y"]]}},
    "a list": {"normalizer": [1, 2]},
    "a number": {"pre_tokenizer": 5},
}  # fmt: skip


def tokenizer_files(at: Path, given: Mapping[str, Any]) -> None:
    """A model with a tokenizer.json that has these parts."""
    parts = ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder")
    spec = {"version": "1.0", "added_tokens": [], **dict.fromkeys(parts), "model": PLAIN, **given}
    (folder_of("llama", at) / "tokenizer.json").write_text(json.dumps(spec))


def tokenizer_json(rng: random.Random) -> Kind:
    """Parts of a tokenizer.json that the library does not survive, or answers with an exception."""
    commands = (
        ["run", "model", "--prompt", "a" * 40 + "! nothing"],
        ["run", "model", "--prompt", "abab"],
        ["run", "model", "--ids", "0,1"],
        ["generate", "model", "--prompt", "abba", "-n", "2"],
        ["build", "model", "--prompt", "ab", "--tokens", "3", "-o", "book.xlsx"],
    )
    for name, args in through(rng, list(itertools.product(LIBRARY, commands))):
        yield Given(f"{name}: {args[0]}", args, partial(tokenizer_files, given=LIBRARY[name]))


def sparse(n: int) -> Callable[[Path], object]:
    """A file of nothing but zeros, which takes no room."""

    def write(path: Path) -> None:
        path.touch()
        os.truncate(path, n)

    return write


def data(what: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(what)


FILES: tuple[tuple[str, Callable[[Path], object]], ...] = (
    ("tokenizer.model", sparse(100_000_000)),
    ("tokenizer.model", sparse(10_000_000)),
    ("tokenizer.model", data(b"\xff" * 1_000_000)),
    ("tokenizer.model", data(b"\x08\x00" * 5_000_000)),
    ("tokenizer.model", data(b"\x0a\x07\x0a\x01a\x15\0\0\xc0\x7f")),
    ("tokenizer.model", data(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")),
    ("words.json", data(json.dumps(["é" * 10_000_000, *"bcdefghijklmnopq"]).encode())),
    ("words.json", data(json.dumps(["a" * 10_000_000, *"bcdefghijklmnopq"]).encode())),
    ("words.json", data(DEEP.encode())),
    ("characters.json", data(b"[1e999]")),
    ("added_tokens.json", data(b'{"zz": "x"}')),
    ("added_tokens.json", data(b'{"zz": 99999999999}')),
    ("added_tokens.json", data(b'{"zz": -1}')),
    ("added_tokens.json", data(json.dumps({f"t{k}": 3 + k for k in range(200_000)}).encode())),
    ("tokenizer_config.json", data(b'{"added_tokens_decoder": [1]}')),
    ("tokenizer_config.json", data(b'{"added_tokens_decoder": {"x": {"content": "zz"}}}')),
    ("tokenizer_config.json", data(b'{"added_tokens_decoder": {"3": {"content": 5}}}')),
    ("tokenizer_config.json", data(b'{"added_tokens_decoder": {"3": {"content": "z", "w": 5}}}')),
    ("tokenizer_config.json", data(b'{"added_tokens_decoder": {"3": null}}')),
    ("tokenizer_config.json", data(b'{"added_tokens_decoder": {"' + b"9" * 5000 + b'": {}}}')),
    ("tokenizer_config.json", data(b'{"bos_token": {"content": [1]}, "add_bos_token": true}')),
    ("tokenizer_config.json", data(b'{"add_prefix_space": "x", "bos_token": 5}')),
    ("special_tokens_map.json", data(b'{"bos_token": "$A", "additional_special_tokens": [[1]]}')),
    ("generation_config.json", data(b'{"bos_token_id": 1e30, "eos_token_id": [NaN, "x"]}')),
    ("generation_config.json", data(DEEP.encode())),
    ("vocab.json", data(b'{"a": 3000000000}')),
    ("vocab.json", data(b'{"a": "x"}')),
    ("vocab.json", data(b'{"a": NaN}')),
    ("vocab.txt", data(b"a\n" * 5_000_000)),
    ("vocab.txt", data(b"a" * 20_000_000)),
    ("vocab.txt", data(b"\xff\xfe")),
    ("merges.txt", sparse(400_000_000)),
)


def beside_a_model(rng: random.Random) -> Kind:
    """Files of a vocabulary that hold what no tokenizer does."""

    def prepare(at: Path, name: str, write: Callable[[Path], object], base: int) -> None:
        model = folder_of("llama", at)
        if base == 0:
            spec = {"version": "1.0", "added_tokens": [], "model": PLAIN}
            (model / "tokenizer.json").write_text(json.dumps(spec))
        elif base == 1:
            (model / "vocab.json").write_text('{"a": 0, "b": 1, "ab": 2}')
            (model / "merges.txt").write_text("#version: 0.2\na b\n")
        write(model / name)

    for name, write in through(rng, list(FILES)):
        base = 0 if "token" in name and ".json" in name and rng.random() < 0.5 else 1
        base = 2 if name in ("tokenizer.model", "vocab.txt") else base
        args = rng.choice([["run", "model", "--prompt", "ab"], ["run", "model", "--ids", "0,1"]])
        yield Given(
            f"{name} beside {base}", args, partial(prepare, name=name, write=write, base=base)
        )


def llama2c_tokenizers(rng: random.Random) -> Kind:
    """tokenizer.bin with lengths and scores that lie, or far too long."""
    one = struct.pack("<fi", 0.0, 1) + b"a"
    ways: list[tuple[str, Callable[[Path], object]]] = [
        ("100 MB of zeros", sparse(100_000_000)),
        ("19 MB of zeros", sparse(19_000_000)),
        ("a negative length", data(struct.pack("<ifi", 1, 0.0, -5))),
        ("a length beyond", data(struct.pack("<ifi", 1, 0.0, 2**31 - 1))),
        ("no scores", data(struct.pack("<i", 1) + one * 11 + struct.pack("<fi", NAN, 0))),
        ("nothing", data(b"")),
        ("twelve alike", data(struct.pack("<i", 1) + one * 12)),
        ("a long piece", data(struct.pack("<ifi", 1, 0.0, 10**7) + b"a" * 10**7 + one * 11)),
    ]  # fmt: skip
    for name, write in through(rng, ways):

        def prepare(at: Path, write: Callable[[Path], object] = write) -> None:
            head = struct.pack("<7i", 8, 16, 1, 2, 2, 12, 32)
            numbers = 12 * 8 + 2 * 8 + 4 * 64 + 3 * 128 + 8 + 32 * 4
            (at / "m.bin").write_bytes(head + bytes(4 * numbers))
            write(at / "tokenizer.bin")

        args = rng.choice([["run", "m.bin", "--prompt", "aaa"], ["run", "m.bin", "--ids", "1,2"]])
        yield Given(f"tokenizer.bin: {name}", args, prepare)


# --- sentence encoders --------------------------------------------------------------------------


def modules(rng: random.Random) -> Kind:
    """modules.json and the config of a module: other kinds, paths that lead away, deep nesting."""
    odd = ("0", "-1", "NaN", '"x"', "[]", "{}", "null", "1e999", "1" * 5000, DEEP)
    lists = ["[]", "{}", DEEP, "[1]", "[[]]", '[{"type": 5}]', '[{"type": "a.Transformer"}]',
             json.dumps([{"type": "a.Normalize", "path": "2_Normalize"}] * 100_000)]  # fmt: skip
    for path in ("../../../../etc", "/etc", "..\\..", "C:\\x", "1_Pooling/../..", "\0", "x" * 5000):
        kinds = [{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": path}]
        lists.append(json.dumps(kinds))
    fields = {
        "1_Pooling/config.json": ("pooling_mode_mean_tokens", "pooling_mode_cls_token", "x"),
        "sentence_bert_config.json": ("max_seq_length", "do_lower_case"),
        "config_sentence_transformers.json": ("default_prompt_name", "prompts"),
    }
    cases: list[tuple[Any, ...]] = [("modules.json", "", text) for text in lists]
    cases += [(f, key, value) for f, keys in fields.items() for key in keys for value in odd]
    for name, key, value in through(rng, cases):

        def prepare(at: Path, name: str = name, key: str = key, value: str = value) -> None:
            path = folder_of("minilm", at) / name
            if key:
                held = json.loads(path.read_text()) if path.exists() else {}
                value = json.dumps(held | {key: "HERE"}).replace('"HERE"', value)
            path.write_text(value)

        yield Given(f"{name}: {key} {value[:40]}", rng.choice(READS), prepare)


# --- what configs say ---------------------------------------------------------------------------

LIES: list[tuple[str, dict[str, Any]]] = [
    *(("phi", {"partial_rotary_factor": x}) for x in (NAN, 0, -1, "x", [1], 1e300)),
    *(("llama", {"rope_theta": x}) for x in (0, -2, NAN, "x", 1e300)),
    *(("llama", {"rope_scaling": x}) for x in ([1], {"rope_type": 5}, {"factor": NAN},
        {"rope_type": "linear", "factor": NAN}, {"rope_type": "yarn", "factor": 1e-300})),
    *((name, {"layer_types": x}) for name in ("qwen2", "qwen3", "gemma2", "gemma3", "qwen3_moe")
        for x in (["telepathy"] * 2, ["full_attention"], ["full_attention"] * 10**6, [1, 2], "x")),
    *((name, {key: 0}) for name, key in (("llama", "num_attention_heads"),
        ("mistral", "num_attention_heads"), ("gpt2", "n_head"), ("gpt_neo", "num_heads"),
        ("phi3", "num_attention_heads"), ("gemma2", "num_attention_heads"),
        ("llama", "num_key_value_heads"), ("mixtral", "num_local_experts"))),
    *(("gpt_neo", {"attention_types": x}) for x in (
        [[["global"]]], [["global", 2]], [[["global", "local"], "x"]], [[["global"], 1e9]], [1],
        [[["global"], 10**18]], [[["global"] * 10**6, 10**6]])),
    ("gpt2", {"vocab_size": HUGE, "n_embd": HUGE}),
    ("gpt2", {"n_layer": 100_000}),
    ("gpt2", {"n_layer": 8_333, "n_head": 12}),
    ("gpt2", {"n_embd": 10**6, "n_head": 10**6, "n_layer": 1}),
    *((name, {"num_hidden_layers": 10**8}) for name in (
        "mistral", "llama", "qwen2", "gemma3", "bert", "opt", "falcon", "phi")),
    *((name, {key: 10**8}) for name, key in (("bloom", "n_layer"), ("gptj", "n_layer"),
        ("gpt_neo", "num_layers"), ("mixtral", "num_local_experts"))),
    ("llama", {"head_dim": 10**9}),
    ("llama", {"head_dim": -4}),
    ("mixtral", {"num_experts_per_tok": 0}),
    ("minilm", {"architectures": [5]}),
    ("minilm", {"architectures": "BertModel"}),
    ("minilm", {"sentence_modules": 5}),
    ("minilm", {"sentence_modules": [5]}),
    ("minilm", {"sentence_modules": [{"type": "Transformer", "max_seq_length": "x"}]}),
    ("minilm", {"sentence_modules": [{}, {}]}),
]  # fmt: skip


def lies(rng: random.Random) -> Kind:
    """Configs of every architecture whose sizes and choices make no model."""
    for name, changes in through(rng, LIES):
        said = ", ".join(f"{key} = {str(value)[:40]}" for key, value in changes.items())
        yield Given(f"{name}: {said}", rng.choice(READS), partial(folder_of, name, **changes))


# --- tensors ------------------------------------------------------------------------------------


def many_tensors(at: Path, n: int) -> None:
    """A model whose weights have a million tensors more, with no numbers."""
    path = folder_of("gpt2", at) / "model.safetensors"
    size = struct.unpack("<Q", path.read_bytes()[:8])[0]
    header, rest = path.read_bytes()[8 : 8 + size], path.read_bytes()[8 + size :]
    empty = ",".join(f'"t{k}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' for k in range(n))
    text = header.rstrip()[:-1] + b"," + empty.encode() + b"}"
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + rest)


def in_torch(at: Path, how: str) -> None:
    """A pytorch_model.bin of which one tensor is no plain one."""
    import torch

    model = folder_of("gpt2", at)
    held = {n: torch.from_numpy(t) for n, t in load_file(model / "model.safetensors").items()}
    (model / "model.safetensors").unlink()
    name = "transformer.wte.weight"
    values = held[name]
    made = {
        "sparse": lambda: values.to_sparse(),
        "compressed": lambda: values.to_sparse_csr(),
        "quantized": lambda: torch.quantize_per_tensor(values, 0.1, 0, torch.qint8),
        "without numbers": lambda: values.to("meta"),
        "complex": lambda: values.to(torch.complex64),
        "of 8 bits": lambda: values.to(torch.float8_e4m3fn),
        "of nothing": lambda: torch.zeros(0),
        "one number": lambda: torch.tensor(1.0),
        "a number stretched": lambda: torch.tensor([1.0]).expand(10**6, 10**6),
        "whole numbers": lambda: values.to(torch.int64),
        "a list": lambda: [1, 2],
    }
    with warnings.catch_warnings(action="ignore"):  # some kinds are deprecated
        torch.save(held | {name: made[how]()}, model / "pytorch_model.bin")


TORCH = ("sparse", "compressed", "quantized", "without numbers", "complex", "of 8 bits",
         "of nothing", "one number", "a number stretched", "whole numbers", "a list")  # fmt: skip
CHARACTERS = {
    "meta.json": (DEEP.encode(), b'{"itos": 5}', b'{"itos": {"' + b"9" * 5000 + b'": "a"}}'),
    "meta.pkl": (b"\x80\x02}r\xff\xff\xff\x3f.", b"\x80\x02cos\nsystem\n.", b"(" * 10**6),
}


def nanogpt(at: Path, name: str, what: bytes) -> None:
    """A checkpoint of nanoGPT with characters beside it."""
    import torch

    values = load_file(GOLDEN / "gpt2" / "model.safetensors")
    said = json.loads((GOLDEN / "gpt2" / "config.json").read_text())
    args = {k: said[k] for k in ("n_layer", "n_head", "n_embd", "vocab_size")}
    weights = {
        n: torch.from_numpy(np.ascontiguousarray(t.T if n.endswith(LINEAR) else t))
        for n, t in values.items()
    }
    args["block_size"] = said["n_positions"]
    torch.save({"model_args": args, "model": weights}, at / "m.pt")
    (at / name).write_bytes(what)


LINEAR = ("c_attn.weight", "c_proj.weight", "c_fc.weight")


def outside(at: Path) -> None:
    """An index whose shard lies beside the folder."""
    model = folder_of("gpt2", at)
    shutil.move(model / "model.safetensors", at / "x.safetensors")
    held = dict.fromkeys(load_file(at / "x.safetensors"), "../x.safetensors")
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": held}))


def tensors(rng: random.Random) -> Kind:
    """Tensors without end, outside the folder, or of kinds that are no plain numbers."""
    cases: list[tuple[Any, ...]] = [
        ("1,000,000 empty tensors", READS[0], partial(many_tensors, n=1_000_000)),
        ("150,000 empty tensors", READS[0], partial(many_tensors, n=150_000)),
        ("a shard outside", READS[0], outside),
    ]
    try:
        import torch
    except ImportError:
        torch = None
    if torch is not None:
        cases += [(f"torch, {how}", READS[0], partial(in_torch, how=how)) for how in TORCH]
        for name, texts in CHARACTERS.items():
            run = ["run", "m.pt", "--ids", "0,1"]
            cases += [
                (f"{name}: {t[:20]!r}", run, partial(nanogpt, name=name, what=t)) for t in texts
            ]
    for case in through(rng, cases):
        yield Given(*case)


# --- budgets ------------------------------------------------------------------------------------


def endless(at: Path) -> None:
    """A llama whose context is as long as a number can say."""
    folder_of("llama", at, max_position_embeddings=10**12)


def one_by_one(at: Path) -> None:
    """A real file of one layer and 100,000 heads of one feature."""
    n = 100_000
    model = folder_of("gpt2", at, n_layer=1, n_head=n, n_embd=n, n_inner=1)
    (model / "model.safetensors").unlink()
    held = {"transformer.wte.weight": np.zeros((17, 100), np.float32)}
    save_file(held | {"x": np.zeros(10**6, np.float32)}, model / "model.safetensors")


def wide(at: Path, hidden: int = 11_000_000) -> None:
    """A real file with half a billion weights and more in each MLP: a hole, which takes no room."""
    model = folder_of("llama", at, intermediate_size=hidden)
    held = load_file(model / "model.safetensors")
    header, end = {}, 0
    for name, values in held.items():
        sides = list(values.shape)
        if ".mlp." in name:  # [hidden, width], or turned
            sides[int("down_proj" in name)] = hidden
        size = 2 * int(np.prod(sides))
        header[name] = {"dtype": "F16", "shape": sides, "data_offsets": (end, end + size)}
        end += size
    text = json.dumps(header).encode()
    with open(model / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)


def budgets(rng: random.Random) -> Kind:
    """What would take hours, or more memory than there is: told before it begins."""
    many = ",".join(["0"] * 20_000)
    at_once = ["--ids", many]
    commands: list[tuple[list[str], Prepare]] = [
        *(([c, "model", *at_once, *more], endless) for c, *more in (
            ["run"], ["generate"], ["ablate"], ["gradient"], ["trace", "logits[0,0]"],
            ["build", "-o", "b.xlsx"], ["sweep", "W_E[0,0]"], ["run", "--tokens", "20001"],
            ["edit", "--say", "1", "-o", "b.xlsx"])),
        *(([c, "model", "--ids", "0,1", *more], endless) for c, *more in (
            ["run", "--tokens", "1000000000"], ["run", "--tokens", "100000"],
            ["generate", "-n", "1000000000"], ["build", "--tokens", "1000000000", "-o", "b.xlsx"],
            ["trace", "logits[0,0]", "--tokens", "1000000000"],
            ["trace", "logits[0,0]", "--depth", "1000000"],
            ["sweep", "W_E[0,0]", "--steps", "10001"])),
        (["info", "model", "--tokens", "1000000000000"], endless),
        (["info", "model", "--tokens", "1000000"], endless),
        (["info", "model"], one_by_one),
        (["build", "model", "--ids", "0", "--live", "blocks.0", "-o", "b.xlsx"], wide),
        (["edit", "model", "--ids", "0,1", "--say", "2", "-o", "b.xlsx"], wide),
        (["build", "cat-sat", "--text-length", "1000000", "-o", "b.xlsx"], lambda at: None),
        (["build", "cat-sat", "--text-length", "1" + "0" * 20, "-o", "b.xlsx"], lambda at: None),
        (["trace", "dialogue-game", "logits[3,3]", "--depth", "12"], lambda at: None),
        (["trace", "dialogue-game", "blocks.0.attn.h0.scores[2,1]", "--depth", "1000000"],
         lambda at: None),
        (["trace", "dialogue-game", "logits[3,3]", "--depth", "1" + "0" * 20], lambda at: None),
    ]  # fmt: skip
    for args, prepare in through(rng, commands):
        yield Given(" ".join(args)[:60].replace("0,0,", ""), args, prepare)


KINDS: dict[str, Callable[[random.Random], Kind]] = {
    "gguf_values": gguf_values,
    "llama2c_headers": llama2c_headers,
    "tokenizer_json": tokenizer_json,
    "beside_a_model": beside_a_model,
    "llama2c_tokenizers": llama2c_tokenizers,
    "modules": modules,
    "lies": lies,
    "tensors": tensors,
    "budgets": budgets,
}
