"""Marian's tokenizer: pieces, ids and text as transformers and SentencePiece have them."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import GOLDEN, cli, script, told

from cellformer import names
from cellformer.engine import Evaluator, Graph, InputError
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import generate
from cellformer.engine.text.marian import Marian
from cellformer.engine.text.tokenizer import IdsOnly, load_tokenizer, save_tokenizer
from cellformer.engine.text.tokenizing import add, refusal
from cellformer.engine.text.unigram import CharacterMap, Unigram

FOLDER = GOLDEN / "tokenizers" / "marian"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
N = len(json.loads((FOLDER / "vocab.json").read_text()))


def test_ids_equal_transformers() -> None:
    tokenizer = load_tokenizer(FOLDER, N)
    assert isinstance(tokenizer, Marian)
    assert tokenizer.source.normalized("ﬁ½\n\tｘ") == "▁fi1/2▁x"
    for text, ids in EXPECTED["encoded"]:
        assert tokenizer.encode(text) == ids, text
        assert [*tokenizer.encode(text, special=False), tokenizer.ids["</s>"]] == ids, text


def test_a_map_that_ends_within_a_character_leaves_a_sign() -> None:
    first, units = 0xC3, [0] * 256  # the first byte of é
    units[first] = 1 << 10 | 1 << 8 | first  # its children are 1 away; one is a leaf, for place 0
    found = CharacterMap(tuple(units), b"e\0")
    assert found.longest("é".encode(), 0) == (1, "e")
    assert Unigram({"e": -1.0}, found).normalized("é") == "▁e\ufffd"


@pytest.mark.slow
def test_ids_in_cells_equal_transformers_or_a_message_says_why_not() -> None:
    tokenizer, graph, n_equal = load_tokenizer(FOLDER, N), Graph(None, None), 0
    assert not refusal(tokenizer)
    add(graph, tokenizer, "", 70, 70)
    live = Evaluator(graph)
    for text, ids in EXPECTED["encoded"]:
        live.set("sentence", 0, 0, text)
        found = [int(i) for i in live["tokenizer.ids"][:, 0] if i >= 0]
        if live["tokenizer.n_ids"][0, 0]:
            assert found == ids[:70], text
            n_equal += 1
        else:
            assert live["tokenizer.message"][0, 0] and (not found or text == ""), text
    assert n_equal > 0.6 * len(EXPECTED["encoded"])


@pytest.mark.parametrize("text", ["text >>fr<< y", ">>xx<< hello", "two >> one"])
def test_a_language_within_a_text_is_refused_in_cells(text: str) -> None:
    graph = Graph(None, None)
    add(graph, load_tokenizer(FOLDER, N), text, 30, 30)
    assert "a language" in graph.values["tokenizer.message"][0, 0]
    assert not graph.values["tokenizer.n_ids"][0, 0]


def test_texts_equal_transformers() -> None:
    tokenizer = load_tokenizer(FOLDER, N)
    for ids, text in EXPECTED["decoded"]:
        assert tokenizer.decode(ids) == text, ids


def test_saved_tokenizer_is_the_same(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(FOLDER, N)
    save_tokenizer(tokenizer, tmp_path)
    assert load_tokenizer(tmp_path, N).files == tokenizer.files


@pytest.fixture
def spoken(tmp_path: Path, torch, transformers) -> Path:
    """A small random model with the tokenizer."""
    make = script("make", "tests/golden")
    sizes = make.MARIAN | {"vocab_size": N, "max_position_embeddings": 64}
    sizes |= {"decoder_vocab_size": N}
    sizes |= dict.fromkeys(("pad_token_id", "decoder_start_token_id"), N - 1)
    torch.manual_seed(7)
    model = transformers.MarianMTModel(transformers.MarianConfig(**sizes))
    make.randomize(model, 0.8)
    model.generation_config.bad_words_ids = [[N - 1]]
    model.save_pretrained(tmp_path / "model")
    for file in FOLDER.iterdir():
        shutil.copy(file, tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.slow
def test_answers_to_text_equal_transformers(spoken, torch, transformers) -> None:
    reference = transformers.MarianMTModel.from_pretrained(spoken).eval()
    model, answers = checkpoint.load(spoken), set()
    for text, ids in EXPECTED["encoded"][:12]:
        assert names.load(str(spoken), text).model.read == ids
        given = torch.tensor([ids])
        asked = {"max_new_tokens": 9, "do_sample": False, "attention_mask": torch.ones_like(given)}
        expected = reference.generate(given, **asked)[0].tolist()
        found = told("generate", spoken, "--prompt", text, "-n", "9")
        assert [model.spec.start, *found["ids"]] == expected
        assert found["text"] == model.vocabulary.decode(expected)
        answers.add(found["text"])
    assert len(answers) > 1


@pytest.mark.slow
def test_padding_is_never_generated(spoken: Path) -> None:
    """The checkpoint says so; without that, this one would begin with it."""
    model = checkpoint.load(spoken)
    weights = dict(model.weights)
    weights["b_U"] = weights["b_U"].copy()
    weights["b_U"][N - 1] = 1e3
    checkpoint.save(replace(model, weights=weights), spoken.parent / "padding")
    loud = checkpoint.load(spoken.parent / "padding").reading([2, 3])
    assert loud.graph([N - 1]).values["logits"][0].argmax() == N - 1
    assert N - 1 not in [step.token for step in generate(loud, [N - 1], 6)]


def damaged(folder: Path, name: str, data: bytes) -> Path:
    """The tokenizer's folder with another file."""
    shutil.copytree(FOLDER, folder)
    (folder / name).write_bytes(data)
    return folder


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    source = (FOLDER / "source.spm").read_bytes()
    for k, data in enumerate((b"", source[:1000], b"\xff" * 50)):
        found = load_tokenizer(damaged(tmp_path / str(k), "source.spm", data), N)
        assert isinstance(found, IdsOnly) and "is not a SentencePiece model" in found.reason
    for k, (data, told_) in enumerate(
        {
            b"[1]": "does not contain tokens with their ids",
            b'{"</s>": 0, "<unk>": 1}': "lacks the special token '<pad>'",
            b'{"</s>": 0, "<unk>": 1, "<pad>": 999}': "'<pad>' has id 999, but the model's",
            b'{"</s>": 0, "<unk>": "1", "<pad>": 2}': "has a piece with the id '1'",
        }.items()
    ):
        with pytest.raises(InputError, match=told_) as error:
            load_tokenizer(damaged(tmp_path / f"v{k}", "vocab.json", data), N)
        assert "\n" not in str(error.value)


def test_a_vocabulary_that_is_not_in_the_file_is_one_line(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / "marian", tmp_path / "m"))
    values = json.loads((folder / "config.json").read_text())
    changed = values | {"share_encoder_decoder_embeddings": False}
    (folder / "config.json").write_text(json.dumps(changed))
    done = cli("run", folder, "--ids", "3")
    assert done.code == 2 and "encoder.embed_tokens.weight is missing" in done.err
    assert done.err.count("\n") == 1
