"""Patching equals torch with hooks, finds the dialogue game's circuit, and refuses what has no
meaning."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest
from conftest import GOLDEN, ROOT, cli, golden_models, told

import cellformer as cf
from cellformer.engine import Evaluator, Graph, InputError, Model, WordList
from cellformer.engine.studies import patching
from cellformer.engine.studies.patching import Comparison, Path, Site, against, patch_each, site

GAME = ("<BOS> Pietro chiama Paolo", "<BOS> 3 chiama Paolo")
IDS, OTHER = [1, 2, 3, 5, 7], [1, 4, 3, 5, 2]
OF_NOTE = {
    "last_head": ("blocks.1.attn.h2.result", 3),
    "last_mlp": ("blocks.1.mlp_out", 3),
    "first_mlp": ("blocks.0.mlp_out", 2),
    "first_head": ("blocks.0.attn.h0.result", 2),
}
PATHS_OF_NOTE = {
    "to_mlp": (("blocks.0.attn.h0.result", "blocks.0.mlp_out"), 0),
    "to_value": (("blocks.0.attn.h0.result", "blocks.1.attn.h2.v"), 1),
    "mlp_to_value": (("blocks.0.mlp_out", "blocks.1.attn.h2.v"), 0),
}
KINDS = ("dialogue-game", "gpt2", "llama", "gemma2", "mixtral", "qwen3", "bert")


@cache
def model(name: str) -> Model:
    return cf.load(name) if name == "dialogue-game" else golden_models()[name]


@cache
def game() -> tuple[Graph, list[int]]:
    found = model("dialogue-game")
    ids, other = (found.vocabulary.encode(text) for text in GAME)
    return found.graph(ids), other


@cache
def circuit() -> Comparison:
    return patch_each(*game())


def along(sender: str, receiver: str) -> Comparison:
    graph, other = game()
    return patch_each(graph, other, path=Path(site(graph, sender), site(graph, receiver)))


def recovered(found: Comparison, name: str) -> list[float]:
    """By token."""
    return [float(row.recovered or 0) for row in found.rows if row.site == name]


# --- against torch --------------------------------------------------------------------------


def leads(logits: Any, found: Comparison) -> float:
    return float(logits[-1, found.target] - logits[-1, found.rival])


@pytest.mark.parametrize("name", KINDS)
def test_random_sites_equal_torch_with_hooks(name: str, torch) -> None:
    import hooked

    graph, draw, reference = model(name).graph(IDS), Random(3), hooked.Hooked(model(name))
    names = patching.sites(graph)
    rows = draw.choices(range(5), k=18)
    drawn = [*dict.fromkeys(Site(draw.choice(names), range(row, row + 1)) for row in rows)]
    found = patch_each(graph, OTHER, at=drawn)
    other, _ = hooked.recorded(reference, OTHER)
    assert len(found.rows) == len(drawn)
    for place, row in zip(drawn, found.rows, strict=True):
        logits = hooked.patched(reference, IDS, other, place.block, place.rows[0])
        assert row.scores.lead == pytest.approx(leads(logits, found), abs=1e-10)
        assert row.scores.logit == pytest.approx(float(logits[-1, found.target]), abs=1e-10)


@pytest.mark.parametrize("name", KINDS)
def test_random_paths_equal_three_passes_of_torch(name: str, torch) -> None:
    import hooked

    graph, draw, reference = model(name).graph(IDS), Random(5), hooked.Hooked(model(name))
    other, _ = hooked.recorded(reference, OTHER)
    writers = ["embed", *(b.name for b in graph if patching.writes(graph, b) and b.layer == 0)]
    readers = [b.name for b in graph if b.layer == 1 and b.leaf in ("q", "k", "rot_k", "v")]
    for _ in range(5):
        sender = draw.choice(writers)
        receiver = draw.choice(["resid_final", *readers])
        row = draw.randrange(5)
        path = Path(Site(sender, range(row, row + 1)), site(graph, receiver))
        found = patch_each(graph, OTHER, path=path)
        logits = hooked.along(reference, IDS, other, sender, receiver, row)
        assert found.rows[0].scores.lead == pytest.approx(leads(logits, found), abs=1e-10)


# --- what patching says ---------------------------------------------------------------------


def test_the_embedding_that_differs_recovers_everything_at_its_token_alone() -> None:
    assert recovered(circuit(), "embed") == pytest.approx([0, 1, 0, 0], abs=1e-12)
    for name in patching.sites(game()[0]):
        assert recovered(circuit(), name)[0] == pytest.approx(0, abs=1e-12)


def test_patching_finds_the_heads_of_the_dialogue_game() -> None:
    heads = [row for row in circuit().rows if row.site.endswith(".result")]
    first, second = sorted(heads, key=lambda row: -abs(row.recovered or 0))[:2]
    assert (first.site, first.token) == ("blocks.1.attn.h2.result", 3)
    assert (second.site, second.token) == ("blocks.0.attn.h0.result", 2)
    assert (first.recovered or 0) > 1
    assert second.scores.probability == pytest.approx(0.2963, abs=1e-4)


def test_the_estimate_is_the_slope_at_the_switch() -> None:
    graph, other = game()
    at = [site(graph, "blocks.1.attn.h1.v"), site(graph, "blocks.0.attn.h0.pattern")]
    found, live = patch_each(graph, other, at=at), Evaluator(against(graph, other, at))
    for row in found.rows:
        live.set(f"{row.site}.take", int(row.token or 0), 0, 1e-6)
        logits = live["logits"][-1]
        lead = logits[found.target] - logits[found.rival]
        slope = (found.before.lead - lead) / 1e-6 / (found.before.lead - found.other.lead)
        assert row.estimate == pytest.approx(slope, abs=1e-6)
        live.reset()


def test_switches_that_keep_change_no_number() -> None:
    graph, other = game()
    found = against(graph, other)
    for block in graph:
        assert np.array_equal(found.values[block.name], graph.values[block.name])


def test_all_paths_to_the_stream_sum_to_the_final_patch() -> None:
    """Without norms between, what a head writes reaches the end and is not changed on the way."""
    found = along("blocks.1.mlp_out", "resid_final")
    whole = [row.scores for row in circuit().rows if row.site == "blocks.1.mlp_out"]
    assert [row.scores.lead for row in found.rows[:4]] == pytest.approx([w.lead for w in whole])


def test_the_caller_goes_through_the_mlp_more_than_straight_to_the_next_head() -> None:
    one = along("blocks.0.attn.h0.result", "blocks.1.attn.h2.v").rows[2]
    through_mlp = along("blocks.0.attn.h0.result", "blocks.0.mlp_out").rows[2]
    assert 0 < (one.recovered or 0) < (through_mlp.recovered or 0) < 0.5


def test_rows_and_neurons_of_a_site_are_named_as_cells_are() -> None:
    graph, other = game()
    some = site(graph, "blocks.0.mlp.post[2,8:16]")
    assert (some.rows, some.columns) == (range(2, 3), range(8, 16))
    parts = [site(graph, f"blocks.0.mlp.post[2,{k}:{k + 32}]") for k in range(0, 256, 32)]
    found = [patch_each(graph, other, at=[part]).rows[0] for part in parts]
    whole = patch_each(graph, other, at=[site(graph, "blocks.0.mlp.post[2,:]")]).rows[0]
    total = sum(row.estimate or 0 for row in found)
    assert total == pytest.approx(whole.estimate)  # the gradient is linear, what recovers is not
    assert found[0].site == "blocks.0.mlp.post[:,0:32]"


def test_scores_can_be_patched_too() -> None:
    graph, other = game()
    at = [site(graph, "blocks.1.attn.h2.scores[3,:]"), site(graph, "blocks.1.attn.h2.pattern[3]")]
    one, two = patch_each(graph, other, at=at).rows
    assert one.scores.lead == pytest.approx(two.scores.lead)


def test_the_character_that_differs_recovers_everything_in_shakespeare() -> None:
    found = cf.patch("shakespeare", "ROMEA: O", "ROMEO: O", sites=["embed", "blocks.1.resid_pre"])
    assert [row.recovered for row in found[:8]] == pytest.approx([0, 0, 0, 0, 1, 0, 0, 0], abs=1e-9)
    assert [row.recovered for row in found[8:12]] == pytest.approx([0] * 4, abs=1e-9)


def test_encoders_recover_at_the_masked_word() -> None:
    found = patch_each(model("bert").graph(IDS), OTHER, row=2)
    assert sum(recovered(found, "embed")) != 0
    last = recovered(found, "blocks.1.resid_mid")
    assert last == pytest.approx([0, 0, 1, 0, 0], abs=1e-10)


def test_the_note_tells_these_numbers() -> None:
    note = (ROOT / "docs" / "patching.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"<!--(\w+)-->(.*?) %<!--/-->", note))
    rows = {(row.site, row.token): row for row in circuit().rows}
    for name, at in OF_NOTE.items():
        assert told.pop(name) == f"{100 * (rows[at].recovered or 0):.0f}"
        assert told.pop(f"{name}_estimate") == f"{100 * (rows[at].estimate or 0):.0f}"
    for name, (ends, digits) in PATHS_OF_NOTE.items():
        assert told.pop(name) == f"{100 * (along(*ends).rows[2].recovered or 0):.{digits}f}"
    assert not told


# --- what is refused ------------------------------------------------------------------------

REFUSED = {
    "another length": (
        {"against": "<BOS> chiama Paolo"},
        "where the prompt has 'Pietro', the other sentence has nothing.*add 1 token",
    ),
    "the same": ({"against": GAME[0]}, "change one of its words"),
    "an unknown site": ({"sites": ["blocks.0.attn.h9.result"]}, "nearest: blocks.0.attn.h"),
    "a weight": ({"sites": ["W_E"]}, "cannot be patched, because it has no row for each token"),
    "no site": ({"sites": ["resid mid?"]}, "is not the name of a site"),
    "a row too far": ({"sites": ["blocks.0.resid_mid[4,:]"]}, "rows run from 0 to 3"),
    "keys of a pattern": ({"sites": ["blocks.0.attn.h0.pattern[2,1]"]}, "whole rows"),
    "no range": ({"sites": ["blocks.0.resid_mid[x,:]"]}, "is not a range of rows"),
    "an unknown word": ({"target": "Tarzo"}, "nearest: Tarso"),
    "one word twice": (
        {"target": "Tarso", "rival": "Tarso"},
        "the target and its rival are the same word",
    ),
    "a path back": ({"path": ("blocks.1.mlp_out", "blocks.0.mlp_out")}, "computed before"),
    "no direct path": (
        {"path": ("blocks.0.attn.h0.q", "blocks.1.attn.h0.q")},
        "through other heads",
    ),
    "a part of a path": ({"path": ("embed[:,2]", "resid_final")}, "whole rows"),
}


@pytest.mark.parametrize(("given", "told"), REFUSED.values(), ids=REFUSED)
def test_one_line_says_what_cannot_be_patched(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        cf.patch("dialogue-game", **{"against": GAME[1], "prompt": GAME[0], **given})


def test_a_mask_in_another_place_is_refused() -> None:
    words = ("[MASK]", *(f"w{n}" for n in range(1, model("bert").spec.d_vocab)))
    masked = replace(model("bert"), vocabulary=WordList(words))
    with pytest.raises(InputError, match="same place"):
        patching.check_pair(masked, [0, 1, 2], [1, 0, 2])


# --- the command ----------------------------------------------------------------------------


def test_the_command_lists_the_strongest_sites() -> None:
    done = cli("patch", "dialogue-game", "--prompt", GAME[0], "--against", GAME[1])
    assert done.code == 0
    assert "head 0.0" in done.out
    assert "111 other patches recover none of the difference" in done.out
    assert "73 other patches recover less of the difference" in done.out


def test_a_block_is_named_with_the_same_columns_each_time() -> None:
    sites = [arg for columns in ("0:2", "2:4") for arg in ("--site", f"embed[:,{columns}]")]
    done = cli("patch", "dialogue-game", "--prompt", GAME[0], "--against", GAME[1], *sites)
    assert done.code == 2 and "embed is named twice with different columns" in done.err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_sites_stay_whole_in_a_narrow_terminal() -> None:
    reads, writes = os.openpty()
    asked = ("--prompt", "<BOS> Pietro chiama Paolo", "--against", "<BOS> 3 chiama Paolo")
    command = (sys.executable, "-m", "cellformer", "patch", "dialogue-game", *asked)
    narrow = os.environ | {"COLUMNS": "78", "TERM": "dumb"}
    subprocess.run(command, stdout=writes, env=narrow, check=True, timeout=60)
    os.close(writes)
    assert "head 1.2 pattern" in os.read(reads, 100_000).decode()


def test_the_command_prints_json() -> None:
    given = ("patch", "dialogue-game", "--prompt", GAME[0], "--against", GAME[1])
    said = told(*given, "--site", "blocks.0.attn.h0.result[2,:]")
    (row,) = said["sites"]
    assert (row["site"], row["token"]) == ("blocks.0.attn.h0.result", 2)
    assert row["probability"] == pytest.approx(0.2963, abs=1e-4)
    assert (said["target"], said["rival"]) == ("Tarso", "vice")
    ends = ("--from", "blocks.0.attn.h0.result", "--to", "blocks.1.attn.h2.v")
    assert [row["token"] for row in told(*given, *ends)["sites"]] == [
        0,
        1,
        2,
        3,
        None,
    ]


def test_a_model_without_a_tokenizer_takes_ids() -> None:
    given = ("patch", str(GOLDEN / "gpt2"), "--ids", "1,2,3", "--site", "embed")
    rows = told(*given, "--against", "1,4,3")["sites"]
    assert [row["recovered"] for row in rows] == pytest.approx([0, 1, 0], abs=1e-9)
    assert cli(*given, "--against", "1;4;3").code == 2


def test_a_path_with_one_end_is_refused() -> None:
    done = cli("patch", "dialogue-game", "--against", GAME[1], "--from", "embed")
    assert done.code == 2
    assert "--to" in done.err
