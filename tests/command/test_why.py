"""The command `why`: a head's score by its writers, all heads, and one line for what is wrong."""

from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, cli, golden_models, random_model, told

import cellformer as cf
from cellformer.engine import ModelSpec
from cellformer.engine.models import checkpoint

HEAD = ("why", "dialogue-game", "--head", "1.2")


@pytest.mark.slow
def test_why_prints_the_split_of_a_score() -> None:
    out = cli(*HEAD, "--from", "Paolo", "--to", "chiama").out
    assert "head 1.2, from ‘Paolo’ (3) to ‘chiama’ (2), 98.9%" in out
    assert "MLP 0" in out and "88 other pairs" in out and "-3.1798" in out
    assert "QK circuit, which word attends to which word" in out
    assert cli(*HEAD).out == out  # the last token, and what it looks at most


@pytest.mark.slow
def test_why_in_json_is_the_whole_table() -> None:
    said = told(*HEAD, "--rival-key", "Pietro")
    table = np.array(said["table"])
    assert table.shape == (len(said["query_writers"]), len(said["key_writers"]))
    assert table.sum() == pytest.approx(said["score"], rel=1e-12)
    assert (said["key"]["token"], said["rival"]["key"]["token"]) == ("chiama", "Pietro")
    apart = said["score"] - said["rival"]["score"]
    assert np.sum(said["difference"]) == pytest.approx(apart, rel=1e-12)
    assert len(said["qk_circuit"]) == 5
    split = cf.why("dialogue-game", "1.2", key="chiama")
    assert split.table.tolist() == said["table"]


@pytest.mark.slow
def test_functions_leave_special_tokens_out_if_asked() -> None:
    game, other = {"prompt": "Pietro chiama Paolo"}, "3 chiama Paolo"
    for special, n_tokens in ((True, 4), (False, 3)):
        assert cf.why("dialogue-game", "1.2", **game, special=special).query == n_tokens - 1
        rows = cf.patch("dialogue-game", other, **game, special=special)
        assert max(row.token for row in rows) == n_tokens - 1
    with_it, without = (
        cf.quantize("dialogue-game", **game, bits=[2], special=special)[0]
        for special in (True, False)
    )
    assert with_it.loss < without.loss


def test_why_of_a_channel_sums_to_what_it_reads() -> None:
    """Of a recurrent model: the weights of its hidden attention, of each token up to the reader."""
    asked = ("why", str(GOLDEN / "mamba2"), "--ids", "3,1,4,9,5", "--channel", "0.3.2")
    said = told(*asked, "--from", "2")
    assert said["reader"] == {"position": 2, "token": "4"} and len(said["taken"]) == 3
    graph = golden_models()["mamba2"].graph([3, 1, 4, 9, 5])
    assert said["read"] == pytest.approx(graph.values["blocks.0.ssm.h3.z"][2, 2], abs=1e-15)
    adds = sum(one["weight"] * one["input"] for one in said["taken"])
    assert adds + said["past"] == pytest.approx(said["read"], abs=1e-12)
    out = cli(*asked).out
    assert "channel 0.3.2 at ‘5’ (4): the amount that the channel takes from each token" in out
    assert "D × token input" in out and "what it reads" in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("mamba", "--ids", "3,1"), "no attention heads; ask about a channel"),
        (("mamba",), "no attention heads; ask about a channel"),
        (("gpt2", "--ids", "3,1"), "--ids works only for one head or word; add --head or --say"),
        (
            ("gpt2", "--ids", "3,1", "--channel", "0.1"),
            "the model has no state-space recurrence (as in Mamba), so no layer has channels",
        ),
        (("mamba", "--ids", "3,1", "--channel", "0"), "no channel '0'; write ‘0.3’ for channel 3"),
        (
            ("mamba", "--ids", "3,1", "--channel", "0.77"),
            "has no channel 77; its channels run from 0 to",
        ),
        (
            ("mamba2", "--ids", "3,1", "--channel", "0.9.1"),
            "layer 0 has no head 9; its last head is 3",
        ),
        (("mamba", "--ids", "3,1", "--channel", "0.1", "--head", "0.1"), "cannot be combined"),
    ],
)
def test_what_has_no_head_or_channel_ends_in_a_line(options: tuple[str, ...], said: str) -> None:
    name, *rest = options
    done = cli("why", GOLDEN / name, *rest)
    assert done.code == 2 and said in done.err and done.err.count("\n") == 1


def test_why_without_a_head_lists_all_heads() -> None:
    said = told("why", "induction")
    assert [one["head"] for one in said["heads"]] == ["blocks.0.attn.h0", "blocks.1.attn.h0"]
    assert said["compositions"][0]["k"] > 0.1
    out = cli("why", "induction").out
    assert "previous" in out and "earlier" in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--head", "1.9"), "no head is named '1.9'; nearest: 1."),
        (("--head", "1.2", "--from", "Paula"), "no word of the prompt is named 'Paula'; nearest"),
        (("--head", "1.2", "--to", "9"), "--to 9: the positions of the prompt run from 0 to 3"),
        (("--head", "1.2", "--from", "1", "--to", "3"), "token 1 does not see token 3"),
        (
            ("--head", "1.2", "--prompt", "Paolo chiama Paolo", "--to", "Paolo"),
            "--to 'Paolo' is at positions 1 and 3; give one of these positions",
        ),
        (("--from", "Paolo"), "--from works only for one head; name the head, such as --head 1.2"),
    ],
)
def test_what_cannot_be_asked_ends_in_a_line(options: tuple[str, ...], said: str) -> None:
    done = cli("why", "dialogue-game", *options)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"cellformer: {said}") and done.err.count("\n") == 1


def test_models_without_heads_and_worksheets_are_refused(tmp_path: Path) -> None:
    model = random_model(ModelSpec(d_vocab=5, d_model=4, n_ctx=9, n_layers=1, d_mlp=3))
    checkpoint.save(model, tmp_path / "m")
    for options in ((), ("--head", "0.0", "--ids", "1,2")):
        assert "has no attention heads" in cli("why", tmp_path / "m", *options).err
    assert "has no model" in cli("why", "napkin").err
