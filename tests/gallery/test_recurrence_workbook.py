"""recurrence: both models computed a second time with torch, and every number of its sentences."""

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from conftest import default_book

from cellformer.command import train
from cellformer.engine import Evaluator
from cellformer.engine.cells.batch import filled
from cellformer.engine.learning import in_cells
from cellformer.engine.learning.training import Progress
from cellformer.workbooks.recurrence import learning, machine, sentences
from cellformer.workbooks.recurrence.learning import DECODERS, FOLDER, MAMBA, TRANSFORMER
from cellformer.workbooks.recurrence.sentences import N_PEOPLE, N_WORDS, WORDS

CLOSE = {"rtol": 0, "atol": 1e-9}
SEEDS = range(8)


def drawn(seed: int) -> tuple[np.ndarray, Evaluator]:
    """The ids of a random sentence, and the workbook's cells after it is typed."""
    ids = np.random.default_rng(seed).integers(0, len(WORDS), N_WORDS)
    live = Evaluator(default_book("recurrence").graph)
    for t, i in enumerate(ids):
        live.set("typed", 0, t, WORDS[i])
    return ids, live


# --- both models with torch ---------------------------------------------------------------------


def weights(torch: ModuleType, model: str) -> dict[str, Any]:
    return {name: torch.tensor(w) for name, w in learning.load()[model].items()}


def transformer(torch: ModuleType, ids: np.ndarray) -> tuple[Any, list[Any]]:
    """The logits, and the attention of each layer."""
    w, n = weights(torch, TRANSFORMER), len(ids)
    x = w["W_E"][ids] + w["W_pos"][:n]
    later = torch.ones(n, n).triu(1).bool()
    patterns = []
    for layer in range(2):
        q, k, v, out = (w[f"blocks.{layer}.attn.h0.W_{name}"] for name in "QKVO")
        scores = (x @ q) @ (x @ k).T / q.shape[1] ** 0.5
        patterns.append(scores.masked_fill(later, -torch.inf).softmax(-1))
        x = x + patterns[-1] @ (x @ v) @ out
    return x @ w["W_U"], patterns


def rms(torch: ModuleType, x: Any, gain: Any) -> Any:
    return torch.nn.functional.rms_norm(x, x.shape[-1:], gain, 1e-5)


def mamba(torch: ModuleType, ids: np.ndarray) -> tuple[Any, Any]:
    """The logits, and the mean hidden attention: the derivative of what the states give by each
    input, where steps, writing and reading are held."""
    F = torch.nn.functional
    w = weights(torch, MAMBA)
    m = {k.rpartition(".")[2]: v for k, v in w.items() if ".ssm." in k}
    x = w["W_E"][ids]
    y = rms(torch, x, w["blocks.0.ln1.w"])
    before = F.pad(y @ m["W_x"], (0, 0, 1, 0))[:-1]
    u = F.silu(before * m["W_conv"][0] + (y @ m["W_x"]) * m["W_conv"][1] + m["b_conv"])
    step = F.softplus(u @ m["W_low"] @ m["W_step"] + m["b_step"])
    B, C, A = u @ m["W_B"], u @ m["W_C"], -torch.exp(m["A_log"])

    def states_give(u: Any) -> Any:
        state, given = torch.zeros_like(A), []
        for t in range(len(ids)):
            state = torch.exp(step[t] * A) * state + B[t][:, None] * step[t] * u[t]
            given.append(C[t] @ state)
        return torch.stack(given)

    z = states_give(u) + m["D"] * u
    out = (F.silu(y @ m["W_gate"]) * z) @ m["W_out"]
    logits = rms(torch, x + out, w["ln_final.w"]) @ w["W_U"]
    slopes = torch.autograd.functional.jacobian(states_give, u)  # [n, channels, n, channels]
    return logits, torch.einsum("tcsc->ts", slopes) / u.shape[1]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_transformer_equals_torch(seed: int, torch: ModuleType) -> None:
    ids, live = drawn(seed)
    logits, patterns = transformer(torch, ids)
    np.testing.assert_allclose(live["logits"], logits.numpy(), **CLOSE)
    for name, pattern in zip(machine.PATTERNS.values(), patterns, strict=True):
        np.testing.assert_allclose(np.tril(live[name]), pattern.numpy(), **CLOSE)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_mamba_and_its_hidden_attention_equal_torch(seed: int, torch: ModuleType) -> None:
    ids, live = drawn(seed)
    logits, hidden = mamba(torch, ids)
    np.testing.assert_allclose(live["mamba.logits"], logits.numpy(), **CLOSE)
    np.testing.assert_allclose(live["hidden.mean"], hidden.numpy(), **CLOSE)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_word_reads_is_its_row(seed: int) -> None:
    _, live = drawn(seed)
    for reader in (1, 5, N_WORDS):
        live.set("reader", 0, 0, float(reader))
        for name, of in (("layer_0", "blocks.0.attn.h0.pattern"), ("mamba", "hidden.mean")):
            row = np.where(np.arange(N_WORDS) < reader, live[of][reader - 1], 0)
            np.testing.assert_allclose(live[f"reads.{name}"][0], row, **CLOSE)


@pytest.mark.parametrize("seed", SEEDS)
def test_hidden_attention_of_every_channel_gives_the_layers_output(seed: int) -> None:
    _, live = drawn(seed)
    for channel in range(1, learning.MAMBA_SPEC.d_inner + 1):
        live.set("channel", 0, 0, float(channel))
        live.set("reader", 0, 0, float(1 + (seed + channel) % N_WORDS))
        assert abs(live["channel.gap"][0, 0]) < 1e-12


# --- the sentences, and what must follow ---------------------------------------------------------


def must_follow(ids: np.ndarray) -> list[str]:
    found = []
    for t, word in enumerate(ids):
        places = [s for s in range(t) if ids[s] == word]
        after = WORDS[ids[places[-1] + 1]] if word < N_PEOPLE and places else ""
        found.append(after if after in sentences.ACCOUNTS else "")
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_what_must_follow(seed: int) -> None:
    ids, live = drawn(seed)
    assert live["right"][0].tolist() == must_follow(ids)
    batch = sentences.batch(np.random.default_rng(seed), 20)
    known = sentences.known(batch)
    for row, mask in zip(batch, known, strict=True):
        right = must_follow(row[:-1])
        assert [word != "" for word in right] == mask.tolist()
        assert all(WORDS[row[t + 1]] == right[t] for t in np.flatnonzero(mask))


@pytest.mark.parametrize("typed", ["", "nobody", 7.0, "ANN "])
def test_an_unknown_word_counts_as_a_filler(typed: str | float) -> None:
    live = Evaluator(default_book("recurrence").graph)
    live.set("typed", 0, 4, typed)
    assert live["tokens"][4, 0] == len(WORDS) - 1
    assert np.isfinite(live["mamba.logits"].astype(float)).all()


@pytest.mark.parametrize(("typed", "used"), [(-2.0, 1), (0.0, 1), (99.0, N_WORDS), (3.7, 3)])
def test_a_word_number_out_of_range(typed: float, used: int) -> None:
    live = Evaluator(default_book("recurrence").graph)
    live.set("reader", 0, 0, typed)
    assert live["reader.used"][0, 0] == used


# --- what the sheets say --------------------------------------------------------------------------


def asked(model: str, n_people: int, n_fillers: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """Fresh questions, the right accounts, and every block of the model's pass over them."""
    ids, right = sentences.questions(np.random.default_rng(3), n_people, n_fillers, 300)
    graph = in_cells.blank_pass(DECODERS[model], learning.load()[model], ids.shape[1])
    return ids, right, filled(graph, {"tokens": ids[..., None].astype(float)})


@pytest.mark.parametrize("n_people", [1, 3, 5])
def test_two_heads_find_the_account(n_people: int) -> None:
    """Head 0.0 reads the person before an account, head 1.0 the account of the person."""
    ids, right, values = asked(TRANSFORMER, n_people, 11 - 2 * n_people)
    accounts = np.arange(1, 2 * n_people, 2)
    assert values["blocks.0.attn.h0.pattern"][:, accounts, accounts - 1].mean() > 0.95
    pairs = ids[:, : 2 * n_people].reshape(len(ids), n_people, 2)
    place = 2 * (pairs[:, :, 0] == ids[:, -1:]).argmax(axis=1) + 1
    read = values["blocks.1.attn.h0.pattern"][np.arange(len(ids)), -1, place]
    assert read.mean() > 0.98
    assert (values["logits"][:, -1].argmax(axis=1) == right).all()


def test_wrong_answers_are_accounts_of_other_people() -> None:
    for n_people in (2, 3, 5):
        ids, right, values = asked(MAMBA, n_people, 1)
        found = values["logits"][:, -1].argmax(axis=1)
        others = (ids[:, 1 : 2 * n_people : 2] == found[:, None]).any(axis=1)
        assert others[found != right].mean() > 0.9


def told(sheet: str) -> str:
    """All texts of a sheet."""
    book = default_book("recurrence")
    shown = (book.clean.cell(sheet, *at) for at in sorted(book.sheets[sheet].entries))
    return " ".join(text for text in shown if isinstance(text, str))


def percent(share: float, decimals: int = 0) -> str:
    return f"{share:.{decimals}%}".replace("%", " %")


def test_shares_on_the_sheets() -> None:
    right = {m: np.array(rows, float) / 500 for m, rows in learning.answers().items()}
    n_words = 2 * np.arange(1, 6)[:, None] + np.array(learning.SHOWN) + 1
    fits = n_words <= N_WORDS
    assert (right[TRANSFORMER][fits] == 1).all() and np.isnan(right[TRANSFORMER][~fits]).all()
    few, many = (right[MAMBA][k][fits[k]].mean() for k in (0, 4))
    assert f"answers {percent(few)} of the questions about one person" in told("Start")
    assert f"but {percent(many)} of the questions about 5 people" in told("Start")
    assert f"50 filler words, {percent(right[MAMBA][0, 8])} of its answers" in told("Start")
    n = {m: sum(w.size for w in held.values()) for m, held in learning.load().items()}
    assert f"{n[TRANSFORMER]:,} and {n[MAMBA]:,} weights" in told("Start")
    share = {m: percent(found[fits].mean(), 1) for m, found in right.items()}
    assert f"the transformer answers {share[TRANSFORMER]}" in told("Failures")
    assert f"The Mamba answers {share[MAMBA]}" in told("Failures")
    assert f"the same training. It answers {share[learning.LARGER]}" in told("Failures")


def test_numbers_kept() -> None:
    """Keys and values, or state and last inputs; Pythia 2.8B has 32 layers of 2,560 numbers."""
    words, kept = np.array([1, 12, 100, 1_000, 10_000, 100_000]), default_book("recurrence").values
    of_mamba = 64 * 5120 * (16 + 3)
    wanted = np.stack(
        [2 * 2 * 12 * words, 0 * words + 48, 2 * 32 * 2560 * words, 0 * words + of_mamba]
    )
    np.testing.assert_array_equal(kept["grown"].astype(float), wanted.T)
    assert of_mamba // (2 * 32 * 2560) + 1 == 39
    assert "From word 39 on, the Mamba keeps fewer" in told("Cost")


# --- training -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_training_repeats_the_file(tmp_path: Path) -> None:
    train.workbook("recurrence", None, tmp_path / "again", False, 0)
    again = (tmp_path / "again" / learning.FILE).read_bytes()
    assert again == (FOLDER / learning.FILE).read_bytes()


def test_training_depends_on_the_seed() -> None:
    losses = {}
    for seed in (0, 0, 1):
        found = [s.loss for s in learning.learn(seed, 2) if isinstance(s, Progress)]
        losses.setdefault(seed, found)
        assert losses[seed] == found
    assert losses[0] != losses[1]
    assert len(losses[0]) == 2 * len(DECODERS)


@pytest.mark.slow
@pytest.mark.parametrize("model", DECODERS)
def test_right_answers_are_measured(model: str) -> None:
    assert learning.measured(model, learning.load()[model]) == learning.answers()[model]
