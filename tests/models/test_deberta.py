"""DeBERTa: the distances that share a vector, and the configs that are refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN

from cellformer.engine import InputError
from cellformer.engine.models import checkpoint
from cellformer.engine.models.architectures import deberta
from cellformer.engine.models.architectures.deberta import DebertaSpec
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.forward import Forward

NAME = "deberta"


def said(**change: object) -> dict:
    """The golden model's config with other fields."""
    return {**json.loads((GOLDEN / NAME / "config.json").read_text()), **change}


def read(**change: object) -> DebertaSpec:
    spec = deberta.read_config(Config(Path("config.json"), said(**change)))
    assert isinstance(spec, DebertaSpec)
    return spec


@pytest.mark.parametrize("buckets, farthest", [(-1, 5), (2, 9), (4, 12), (7, 40), (256, 512)])
def test_rows_are_those_of_the_reference(buckets: int, farthest: int, transformers) -> None:
    import torch
    from transformers.models.deberta_v2.modeling_deberta_v2 import build_relative_position

    spec, n = read(position_buckets=buckets, max_relative_positions=farthest), farthest - 1
    text = torch.zeros(1, n, 1)
    places, half = build_relative_position(text, text, buckets, farthest)[0], spec.n_distances // 2
    expected = torch.clamp(places + half, 0, 2 * half - 1).numpy()
    np.testing.assert_array_equal(deberta.rows_of(spec, n), expected)


def test_only_distances_of_the_text_have_keys() -> None:
    values = checkpoint.load(GOLDEN / NAME).graph([3, 1, 4]).values
    assert values["distance.rows"][:, 0].tolist() == [2, 3, 4, 5, 6]  # of 8
    assert values["distance.bucket"].tolist() == [[2, 1, 0], [3, 2, 1], [4, 3, 2]]


@pytest.mark.parametrize("share", [True, False])
def test_maps_of_distances_are_those_of_tokens_if_shared(share: bool) -> None:
    spec = read(share_att_key=share)
    graph = Forward(spec)
    deberta.forward(graph, [0, 0])
    own = [block.name for block in graph.find("*.distance.W_[KQ]")]
    assert len(own) == (0 if share else 2 * spec.n_heads)


@pytest.mark.parametrize(
    "change, why",
    [
        ({"conv_kernel_size": 3}, "the convolution after the first layer is not supported"),
        ({"embedding_size": 5}, "only hidden_size is supported"),
        ({"position_buckets": 1}, "position_buckets = 1 does not fit max_relative_positions = 12"),
        ({"position_buckets": 22}, "it must be from 2 to 21"),
    ],
)
def test_refused(change: dict, why: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / NAME, tmp_path / NAME))
    (folder / "config.json").write_text(json.dumps(said(**change)))
    with pytest.raises(InputError, match=why):
        checkpoint.load(folder)
