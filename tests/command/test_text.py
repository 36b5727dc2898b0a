"""Text that goes in and comes out at the command, with a subword tokenizer."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import cli, library, needs, random_model, told
from learnt import fewer, learnt
from on_play import PROMPT_ROW

from cellformer.engine import ModelSpec
from cellformer.engine.models import checkpoint
from cellformer.exporters.checking.verify import verify
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.exporters.model.block_sheets import PROMPT_COL

pytestmark = pytest.mark.slow

SPEC = {"d_model": 4, "n_ctx": 24, "n_layers": 1, "n_heads": 1, "d_head": 4}
PROMPT = "Once upon é a  value"
LENGTH = ("--text-length", "10")  # of a typed sentence: far fewer cells than as usual


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model with Llama's kind of tokenizer, which begins with <s> and ends with </s>."""
    pieces = learnt("sentencepiece")
    model = random_model(ModelSpec(d_vocab=pieces.n, **SPEC))
    path = tmp_path_factory.mktemp("text") / "llama"
    checkpoint.save(replace(model, vocabulary=replace(pieces, begin=0, ends=(1,))), path)
    return path


def tokens(*args: object) -> list[int]:
    """The ids that a command computes with."""
    return [int(i) for (i,) in told("run", *args, "--show", "tokens")["blocks"]["tokens"]]


def test_prompt_gets_special_tokens(folder: Path) -> None:
    with_beginning = tokens(folder, "--prompt", PROMPT)
    assert with_beginning[0] == 0
    assert tokens(folder, "--prompt", PROMPT, "--no-special") == with_beginning[1:]


def test_default_prompt_is_the_begin_token(folder: Path, tmp_path: Path) -> None:
    assert tokens(folder) == [0]
    assert cli("build", folder, "-o", tmp_path / "a.xlsx", "--tokens", "2", *LENGTH).code == 0
    assert WorkbookFile(tmp_path / "a.xlsx")["Play"][PROMPT_ROW, PROMPT_COL] == "<s>"
    for command in (("run", folder), ("build", folder, "-o", tmp_path / "b.xlsx")):
        done = cli(*command, "--no-special")
        assert done.code == 2 and "give a text with --prompt" in done.err


def test_every_command_takes_no_special_option(folder: Path, tmp_path: Path) -> None:
    plain = ("--prompt", PROMPT, "--no-special")
    cell = "tokens[0,0]"
    before = tokens(folder, *plain)[0]
    assert f"{cell} = {before}" in cli("trace", folder, cell, *plain).out
    assert f"{cell} = 0" in cli("trace", folder, cell, "--prompt", PROMPT).out
    for command in ("ablate", "generate"):
        both = [cli(command, folder, *given).out for given in (plain, plain[:2])]
        assert both[0] and both[0] != both[1]
    sweep = ("sweep", folder, "W_E[0,0]", "--steps", "2")
    assert cli(*sweep, *plain).out != cli(*sweep, *plain[:2]).out


def test_run_shows_the_prompt_as_one_line(folder: Path) -> None:
    line = cli("run", folder, "--prompt", "a\nvalue").out.splitlines()[0]
    assert line.split("   ")[0] == "a\\nvalue" and line.endswith("tokens")


def test_generate_continues_the_prompt(folder: Path) -> None:
    out = cli("generate", folder, "--prompt", PROMPT, "-n", "6", "--ignore-eos").out
    assert out.startswith(PROMPT) and "cells computed" not in out
    table = cli("generate", folder, "--prompt", PROMPT, "-n", "6", "--ignore-eos", "--table").out
    assert table.startswith(out) and "cells computed" in table


def test_generate_fills_the_context(folder: Path) -> None:
    out = cli("generate", folder, "--ids", "0,300", "--ignore-eos", "--table").out
    assert out.splitlines()[-1].split()[0] == str(SPEC["n_ctx"] - 2)


def test_generate_stops_at_the_end_of_the_text(folder: Path) -> None:
    args = ("generate", folder, "--ids", "0,300", "-n", "9", "--table")
    rows = [line.split() for line in cli(*args, "--ignore-eos").out.splitlines()[2:]]
    third = int(rows[2][2])
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [third, 1]}))
    try:
        ended = [line.split() for line in cli(*args).out.splitlines()[2:]]
    finally:
        (folder / "generation_config.json").unlink()
    first = next(k for k, row in enumerate(rows) if int(row[2]) == third)
    assert ended == rows[: first + 1]


class Terminal:
    """A stream that notes what is written and when it was flushed."""

    encoding = "ascii"

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.flushed = 0

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.parts.append(text)

    def flush(self) -> None:
        self.flushed += 1


def test_streamed_text_has_no_control_characters(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cellformer.command import printing

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    for part in ("a", "b\n\t", "\x1b[31m", "é"):
        printing.text(part)
    assert terminal.parts == ["a", "b\n\t", "\\x1b[31m", "?"]
    assert terminal.flushed == 4


def test_target_with_or_without_a_space(folder: Path) -> None:
    def followed(target: str) -> str:
        done = cli("ablate", folder, "--prompt", PROMPT, "--target", target)
        assert done.code == 0, done.err
        return done.out.split("logit of ")[1].partition(", and the probability of ")[0]

    probs = told("run", folder, "--prompt", PROMPT, "--show", "probs")["blocks"]
    vocabulary = learnt("sentencepiece").inner
    plain, spaced, byte = (vocabulary.token_to_id(p) for p in ("a", "▁a", "<0x61>"))
    likelier = "a" if probs["probs"][-1][plain] > probs["probs"][-1][spaced] else "␣a"
    assert followed("a") == likelier
    assert (followed("␣a"), followed(" a"), followed("<0x61>")) == ("␣a", "␣a", "<0x61>")
    assert byte not in (plain, spaced)
    done = cli("run", folder, "--prompt", PROMPT, "--target", "a value")
    assert done.code == 2 and "2 tokens; give a word of one token" in done.err


FEW = {"sentencepiece": 350, "llama3": 300, "bert": 180}  # pieces: a sheet has a row for each


@pytest.mark.parametrize("kind", FEW)
def test_subword_workbook_recomputes_and_reads_back(kind: str, tmp_path: Path) -> None:
    needs("ironcalc")
    pieces = fewer(kind, FEW[kind])
    model = random_model(ModelSpec(d_vocab=pieces.n, **SPEC), seed=2)
    checkpoint.save(replace(model, vocabulary=pieces), tmp_path / "m")
    out = tmp_path / "m.xlsx"
    n_tokens = len(pieces.encode("é  a")) + 1  # columns for the prompt and one token more
    args = ("--prompt", "é  a", "--tokens", n_tokens, "--text-length", "8")
    done = cli("build", tmp_path / "m", *args, "-o", out)
    assert done.code == 0, done.err
    report = verify(out, "ironcalc")
    assert report.agrees, report
    assert "nothing" in cli("diff", out).out


def test_tokenizer_larger_than_the_model(tmp_path: Path) -> None:
    model = random_model(ModelSpec(d_vocab=100, **SPEC))
    checkpoint.save(replace(model, vocabulary=replace(learnt("gpt2"), n=100)), tmp_path / "m")
    letters = ",".join(str(learnt("gpt2").texts.index(letter)) for letter in "the")
    for command in ("run", "generate"):
        assert cli(command, tmp_path / "m", "--ids", letters).code == 0
    args = ("--ids", letters, "--tokens", "4", *LENGTH)
    done = cli("build", tmp_path / "m", *args, "-o", tmp_path / "m.xlsx")
    assert done.code == 0, done.err
    needs("ironcalc")
    assert verify(tmp_path / "m.xlsx", "ironcalc").agrees
    done = cli("run", tmp_path / "m", "--prompt", "the Python value")
    assert done.code == 2 and "embedding has only 100 rows" in done.err


N_NEW = 12  # tokens at most that a text is continued by
PROMPTS = (PROMPT, "", "the model", "A formula:\n", "x", "you'll see 😀", "é" * 5, "1 2 3")


@pytest.mark.parametrize(
    ("kind", "prompts"),
    [("sentencepiece", PROMPTS), ("gpt2", PROMPTS[2:5]), ("bert", PROMPTS[1:4])],
)
def test_ids_and_greedy_text_equal_transformers(
    kind: str, prompts: Sequence[str], tmp_path: Path
) -> None:
    torch = library("torch")
    transformers = library("transformers")
    inner = learnt(kind).inner
    torch.manual_seed(3)
    config = transformers.LlamaConfig(
        vocab_size=inner.get_vocab_size(),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
        initializer_range=0.5,
    )
    model = transformers.LlamaForCausalLM(config)
    model.generation_config.eos_token_id = np.arange(2, inner.get_vocab_size(), 9).tolist()
    model.save_pretrained(tmp_path)
    inner.save(str(tmp_path / "tokenizer.json"))
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(tmp_path / "tokenizer.json")
    )
    lengths = set()
    for prompt in prompts:
        given = tokenizer(prompt, return_tensors="pt", return_token_type_ids=False)
        ids = given["input_ids"][0].tolist()
        assert tokens(tmp_path, "--prompt", prompt) == ids
        found = model.generate(**given, do_sample=False, max_new_tokens=N_NEW)[0]
        text = tokenizer.decode(found, skip_special_tokens=True)
        lengths.add(len(found) - len(ids))
        assert cli("generate", tmp_path, "--prompt", prompt, "-n", N_NEW).out == text + "\n"
    assert len(lengths) > min(2, len(prompts) - 2)  # some came to an end of their own
