"""Encoder-decoders: greedy answers against transformers, buckets of distances, what is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, cli, script, told
from learnt import learnt

from cellformer import names
from cellformer.engine import InputError
from cellformer.engine.cells.batch import variants
from cellformer.engine.cells.gradient import backward
from cellformer.engine.learning import objective
from cellformer.engine.models import checkpoint
from cellformer.engine.models.distance import Buckets
from cellformer.engine.models.generate import generate

GOLD = GOLDEN / "t5"
N_SENTENCES, N_MORE = 10, 8


NAMES = (
    "t5",
    "flan-t5",
    "mt5",
    "umt5",
    "bart",
    "mbart",
    "blenderbot",
    "pegasus",
    "marian",
    "m2m_100",
)


def assert_answers_equal(folder: Path, torch, transformers) -> list[list[int]]:
    """Our greedy answers to ten sources equal those of transformers; they, up to their end."""
    reference = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    model, rng, answers = checkpoint.load(folder), np.random.default_rng(3), []
    for _ in range(N_SENTENCES):
        source = rng.integers(2, 16, int(rng.integers(1, 12))).tolist()
        asked = {"max_new_tokens": N_MORE, "do_sample": False, "num_beams": 1}
        seen = torch.ones(1, len(source))
        expected = reference.generate(torch.tensor([source]), attention_mask=seen, **asked)
        steps = generate(model.reading(source), [model.spec.start], N_MORE)
        answer = [model.spec.start]
        for step in steps:
            answer.append(step.token)
            if step.token in model.vocabulary.ends:
                break
        assert answer == expected[0].tolist()
        answers.append(answer)
    return answers


@pytest.mark.parametrize("name", NAMES)
def test_greedy_answers_equal_transformers(name: str, torch, transformers) -> None:
    answers = assert_answers_equal(GOLDEN / name, torch, transformers)
    ends = checkpoint.load(GOLDEN / name).rules.last
    assert all(answer[-1] in ends for answer in answers if ends)


RULES = {
    "a first word": {"forced_bos_token_id": 7},
    "two ends": {"forced_eos_token_id": [3, 2], "eos_token_id": [2, 3]},
    "words that never come": {"bad_words_ids": [[9], [11], [15], [7], [5, 3], [2]]},
    "nothing twice": {"no_repeat_ngram_size": 2, "bad_words_ids": [[9, 9]]},
    "nothing of the source": {"encoder_no_repeat_ngram_size": 1},
    "an end that is not early": {"min_length": 5, "forced_eos_token_id": None},
    "no rules": {"forced_eos_token_id": None},
    "another start": {"decoder_start_token_id": 4},
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("name", "file"), [("bart", "config.json"), ("marian", "generation_config.json")]
)
def test_rules_of_answers_equal_transformers(name, file, rule, tmp_path, torch, transformers):
    folder = Path(shutil.copytree(GOLDEN / name, tmp_path / name))
    values = json.loads((folder / "config.json").read_text())
    if file != "config.json":
        own = ("eos_token_id", "pad_token_id", "decoder_start_token_id")
        values = {key: values[key] for key in own}
    (folder / file).write_text(json.dumps(values | RULES[rule]))
    model = checkpoint.load(folder)
    changed = (model.rules, model.spec.start, model.vocabulary.ends)
    plain = checkpoint.load(GOLDEN / name)
    assert changed != (plain.rules, plain.spec.start, plain.vocabulary.ends)
    answers = assert_answers_equal(folder, torch, transformers)
    checkpoint.save(model, tmp_path / "back")
    assert assert_answers_equal(tmp_path / "back", torch, transformers) == answers


WORDS = [*(f"w{k}" for k in range(14)), "__fr__", "fra_Latn", "it_IT"]


@pytest.mark.parametrize(("language", "first"), [("fr", 14), ("fra_Latn", 15), ("it_IT", 16)])
def test_an_answer_begins_with_its_language(language, first, tmp_path, torch, transformers) -> None:
    """As with forced_bos_token_id in transformers, in the command and in a workbook."""
    folder = Path(shutil.copytree(GOLDEN / "m2m_100", tmp_path / "m"))
    (folder / "words.json").write_text(json.dumps(WORDS))
    asked = ("--ids", "3,4,9", "--answer-language", language)
    found = told("generate", folder, *asked, "-n", "5")["ids"]
    reference = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    source = torch.tensor([[3, 4, 9]])
    rules = {"forced_bos_token_id": first, "max_new_tokens": 5, "do_sample": False}
    answer = reference.generate(source, attention_mask=torch.ones_like(source), **rules)[0]
    assert found == answer.tolist()[1 : 1 + len(found)] and found[0] == first
    done = cli("build", folder, *asked, "--tokens", "4", "-o", tmp_path / "book.xlsx")
    assert done.code == 0, done.err
    again = told("generate", tmp_path / "book.xlsx", "-n", "3")["ids"]
    assert again[: len(found)] == found[:3]


@pytest.mark.parametrize(
    ("folder", "said"),
    [("m2m_100", "the vocabulary has no language 'xx'"), ("gpt2", "translates nothing")],
)
def test_a_language_that_is_not_there_is_one_line(folder: str, said: str) -> None:
    done = cli("generate", GOLDEN / folder, "--ids", "3", "--answer-language", "xx")
    assert done.code == 2 and said in done.err and done.err.count("\n") == 1


BAD_RULES = {
    "forced_bos_token_id": (17, "forced_bos_token_id has 17, but ids run from 0 to 16"),
    "bad_words_ids": ([3], "bad_words_ids"),
    "min_length": (-1, "min_length is -1; it cannot be negative"),
    "no_repeat_ngram_size": ("3", "no_repeat_ngram_size"),
}


@pytest.mark.parametrize("field", BAD_RULES)
def test_an_odd_rule_is_one_line(field: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / "bart", tmp_path / "bart"))
    value, told = BAD_RULES[field]
    (folder / "generation_config.json").write_text(json.dumps({field: value}))
    done = cli("run", folder, "--ids", "3")
    assert done.code == 2 and told in done.err and done.err.count("\n") == 1


def test_rules_that_leave_no_word_are_one_line(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / "bart", tmp_path / "bart"))
    words = {"bad_words_ids": [[i] for i in range(17)], "min_length": 9}
    (folder / "generation_config.json").write_text(json.dumps(words))
    done = cli("generate", folder, "--ids", "3", "-n", "3")
    assert done.code == 2 and "allow no further word" in done.err and done.err.count("\n") == 1


def spoken(kind: str, folder: Path, torch, transformers) -> None:
    """Save a small random model of a kind with a tokenizer learnt from the lines of a tale."""
    make = script("make", "tests/golden")
    inner = json.loads(learnt("gpt2" if kind == "bart" else "unigram").inner.to_str())["model"]
    end = "<|endoftext|>"
    if kind == "bart":
        pairs = [tuple(pair) for pair in inner["merges"]]
        parts = ("bos", "eos", "cls", "sep", "unk", "pad", "mask")
        marks = {f"{part}_token": end for part in parts}
        tokenizer = transformers.BartTokenizer(vocab=inner["vocab"], merges=pairs, **marks)
        sizes, cls = make.BART, transformers.BartForConditionalGeneration
    else:
        words = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
        words += [tuple(pair) for pair in inner["vocab"] if pair[0] not in dict(words)]
        tokenizer = transformers.T5Tokenizer(vocab=words, extra_ids=0)
        sizes, cls = make.T5, transformers.T5ForConditionalGeneration
    ids = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    longer = {"n_positions": 64}
    if kind == "bart":
        own = ("bos_token_id", "forced_eos_token_id", "decoder_start_token_id")
        longer = {"max_position_embeddings": 64, **dict.fromkeys(own, tokenizer.eos_token_id)}
    torch.manual_seed(6)  # so that answers differ
    made = cls(cls.config_class(**sizes | longer | ids | {"vocab_size": len(tokenizer)}))
    make.randomize(made, 0.8)
    made.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


SOURCES = ["the cat sat on the mat", " Once upon a time, there was a frog.", "Ünïcode, 42!", "a"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_text_to_text_equals_transformers(kind: str, tmp_path, torch, transformers) -> None:
    spoken(kind, tmp_path, torch, transformers)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    reference = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path).eval()
    seen = set()
    for text in SOURCES:
        source = tokenizer(text, return_tensors="pt")
        assert names.load(str(tmp_path), text).model.read == source["input_ids"][0].tolist()
        mask = torch.ones_like(source["input_ids"])
        asked = {"max_new_tokens": 9, "do_sample": False, "num_beams": 1}
        answer = reference.generate(source["input_ids"], attention_mask=mask, **asked)[0]
        expected = tokenizer.decode(answer, skip_special_tokens=True)
        found = told("generate", tmp_path, "--prompt", text, "-n", "9")
        assert found["ids"] == answer[1:].tolist() and found["text"] == expected
        seen.add(expected)
    assert len(seen) > 1


BAD = [
    ("bart", {"encoder_attention_heads": 3}, "encoder_attention_heads = 3 must divide d_model"),
    ("bart", {"decoder_attention_heads": 0}, "decoder_attention_heads = 0 must divide d_model"),
    ("bart", {"normalize_before": True}, "normalize_before = True is not supported"),
    (
        "bart",
        {"activation_function": "sin"},
        "activation_function = 'sin' is not supported; choose one of",
    ),
    ("bart", {"encoder_layers": 10**9}, "encoder_layers is 1,000,000,000"),
    ("bart", {"decoder_layers": -1}, "n_layers is -1"),
    ("bart", {"encoder_layers": -1}, "n_layers is -1"),
    ("bart", {"encoder_layers": "1"}, "'encoder_layers' is '1', but must have the type int"),
    (
        "bart",
        {"max_position_embeddings": 13},
        "embed_positions.weight has shape 14 x 8, not 15 x 8",
    ),
    ("bart", {"decoder_start_token_id": 17}, "decoder_start_token_id has 17"),
    ("bart", {"is_encoder_decoder": False}, "is_encoder_decoder = False is not supported"),
    ("bart", {"decoder_layers": 2}, "decoder.layers.1.encoder_attn_layer_norm.bias is missing"),
    ("bart", {"some_option": 1}, "cellformer does not know some_option = 1, which could change"),
    ("marian", {"decoder_vocab_size": 9}, "decoder_vocab_size = 9 is not supported"),
    ("marian", {"static_position_embeddings": False}, "static_position_embeddings = False"),
    ("marian", {"d_model": 0}, "d_model"),
    ("m2m_100", {"d_model": 2}, "sines and cosines need 4 or more"),
    ("m2m_100", {"pad_token_id": "1"}, "'pad_token_id' is '1', but must have the type int"),
]


@pytest.mark.parametrize(("name", "values", "told"), BAD)
def test_a_bad_config_is_one_line(name: str, values: dict, told: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / name, tmp_path / name))
    before = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(before | values))
    done = cli("run", folder, "--ids", "3")
    assert done.code == 2 and told in done.err and done.err.count("\n") == 1, done.err


def test_a_start_that_is_null_is_the_begin_of_text(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / "mbart", tmp_path / "mbart"))
    values = json.loads((folder / "config.json").read_text())
    values |= {"decoder_start_token_id": None, "bos_token_id": 3}
    (folder / "config.json").write_text(json.dumps(values))
    assert checkpoint.load(folder).spec.start == 3


OF_OLD = {
    "bart": {"add_final_layer_norm": False, "classif_dropout": 0.1, "extra_pos_embeddings": 2},
    "mbart": {"add_final_layer_norm": True, "normalize_before": True, "save_step": 9},
    "marian": {"normalize_embedding": False, "static_position_embeddings": True},
}


@pytest.mark.parametrize("name", OF_OLD)
def test_fields_of_older_files_change_nothing(name: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / name, tmp_path / name))
    before = json.loads((folder / "config.json").read_text())
    beams = {"num_beams": 4, "early_stopping": True, "length_penalty": 2.0, "max_length": 142}
    more = OF_OLD[name] | beams | {"task_specific_params": {"summarization": beams}}
    (folder / "config.json").write_text(json.dumps(before | more))
    one, other = (
        checkpoint.load(path).reading([3, 1, 4]).graph([2, 5]).values["logits"]
        for path in (folder, GOLDEN / name)
    )
    np.testing.assert_array_equal(one, other)


def test_a_model_without_a_bias_of_logits(tmp_path: Path, torch, transformers) -> None:
    """As facebook/bart-base, whose file has no head, and names without `model.` before them."""
    whole = transformers.BartForConditionalGeneration.from_pretrained(GOLDEN / "bart")
    whole.model.save_pretrained(tmp_path)
    reference = transformers.BartForConditionalGeneration.from_pretrained(tmp_path).eval()
    source, ids = torch.tensor([[3, 1, 4]]), torch.tensor([[2, 5]])
    expected = reference(source, decoder_input_ids=ids).logits[0].detach().numpy()
    graph = checkpoint.load(tmp_path).reading([3, 1, 4]).graph([2, 5])
    assert "b_U" not in graph.blocks
    np.testing.assert_allclose(graph.values["logits"], expected, atol=2e-5)


@pytest.mark.parametrize("both_ways", [True, False])
@pytest.mark.parametrize(("n", "farthest"), [(32, 128), (8, 20), (6, 5), (64, 256), (9, 100)])
def test_distances_are_sorted_as_in_transformers(n, farthest, both_ways, torch) -> None:
    from transformers.models.t5.modeling_t5 import T5Attention

    distance = np.arange(-400, 400)
    expected = T5Attention._relative_position_bucket(
        torch.tensor(distance), both_ways, n, farthest
    ).numpy()
    np.testing.assert_array_equal(Buckets(n, farthest, both_ways).of(distance), expected)


def test_generate_prints_the_answer_alone() -> None:
    done = cli("generate", GOLD, "--ids", "3,1,4", "-n", "3")
    assert done.out.split() == ["11", "11", "11"]


WEIGHTS = ["encoder.blocks.0.attn.h1.W_V", "blocks.0.cross.h0.W_K", "W_E"]
PLACES = ["encoder.W_pos", "W_pos", "blocks.0.mlp.W_in", "encoder.blocks.0.mlp.W_out"]


@pytest.mark.parametrize(
    ("model", "name"),
    [
        *(("t5", name) for name in WEIGHTS),
        *(("bart", name) for name in WEIGHTS + PLACES),
        *(("marian", name) for name in WEIGHTS),
    ],
)
def test_gradients_go_through_both_stacks(model: str, name: str) -> None:
    graph = checkpoint.load(GOLDEN / model).reading([3, 1, 4]).graph([0, 5])
    score = objective.logit(graph, 1, 7, 4)
    gradient = backward(graph, score)[name]
    at = (name, 3, 1)
    start = graph.values[name][3, 1]
    up, down = variants(graph, [{at: start + 1e-5}, {at: start - 1e-5}])[score.name].ravel()
    assert graph.values[gradient.name][3, 1] == pytest.approx((up - down) / 2e-5, abs=1e-8)
    assert abs(up - down) > 1e-9


@pytest.mark.parametrize("name", ["t5", "bart", "marian"])
def test_what_is_ablated_and_swept_is_of_both_stacks(name: str) -> None:
    parts = told("ablate", GOLDEN / name, "--ids", "3,1,4")["rows"]
    change = {part["part"]: part["probability"] - part["before"] for part in parts}
    assert {"encoder.blocks.0.attn.h0", "blocks.0.cross", "blocks.0.mlp"} <= set(change)
    assert all(change.values())
    cell = "encoder.blocks.0.attn.switch[0,0]"
    asked = ("--ids", "3,1,4", "--from", "0", "--to", "1", "--steps", "2")
    off, on = told("sweep", GOLDEN / name, cell, *asked)["rows"]
    moved = off["probability"] - on["probability"]
    assert moved == pytest.approx(change["encoder.blocks.0.attn"], abs=1e-12)


@pytest.mark.parametrize("name", ["t5", "bart", "mbart", "marian"])
def test_attribution_of_a_word_sums_to_its_logit(name: str) -> None:
    found = told("run", GOLDEN / name, "--ids", "3,1,4", "--target", "5", "--lens")
    written = {share["part"]: share["logit"] for share in found["attribution"]}
    assert "blocks.0.cross.h1.result" in written and len(found["lens"]) == 4
    (logit,) = [word["logit"] for word in found["words"] if word["word"] == "5"]
    assert sum(written.values()) == pytest.approx(logit, abs=1e-12)


@pytest.mark.parametrize(
    "asked",
    [
        ("patch", GOLD, "--ids", "3,1,4", "--against", "2,1,4"),
        ("why", GOLD),
        ("why", GOLD, "--ids", "3,1,4", "--say", "5"),
    ],
)
def test_studies_of_one_stack_refuse_two(asked) -> None:
    done = cli(*asked)
    assert done.code == 2 and "stack" in done.err and done.err.count("\n") == 1


def test_an_answer_depends_on_the_source() -> None:
    model = checkpoint.load(GOLD)
    one, other = (model.reading(ids).graph([0]).values["logits"] for ids in ([3, 1, 4], [3, 1, 5]))
    assert np.abs(one - other).max() > 1e-3


def test_a_longer_source_than_the_context_is_refused() -> None:
    with pytest.raises(InputError, match="13 tokens, but the model reads at most 12"):
        checkpoint.load(GOLD).reading([1] * 13)


def test_an_unknown_activation_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes((GOLD / "model.safetensors").read_bytes())
    text = (GOLD / "config.json").read_text().replace('"relu"', '"double-relu"', 2)
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(InputError, match="'double-relu' is not supported; use relu or gated-gelu"):
        checkpoint.load(tmp_path)
