"""The language models of models that see, on random configurations, against the whole models in
transformers, which are given text alone. Needs torch."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_fuzz
from test_fuzz import EXACT, TIMES, in_float64, libraries, pick
from test_references import TOLERANCE, largest_gap

from cellformer.engine import InputError
from cellformer.engine.models import checkpoint
from cellformer.engine.models.seeing import QWEN2, QWEN3

__all__ = ["libraries"]  # the fixture that imports torch, for this file as well
VISION = {  # as small as the classes allow; the fields that a kind does not know are passed over
    "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
    "depth": 1, "num_heads": 2, "image_size": 8, "patch_size": 4, "embed_dim": 8,
    "num_position_embeddings": 4,
}  # fmt: skip
KINDS = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "llava", "smolvlm", "gemma4", "llama4")
READS = {"llava": ("llama", "mistral", "qwen2", "qwen3"), "smolvlm": ("llama", "mistral")}


def text_config(rng: np.random.Generator, kind: str) -> dict[str, Any]:
    """The config of the part that reads; its rotary positions say how pictures turn."""
    if kind == "llama4":
        return test_fuzz.llama4_sizes(rng)
    if kind == "gemma4":
        return test_fuzz.layered(rng) | {"pad_token_id": 0}
    text = test_fuzz.llama_sizes(rng) | {"pad_token_id": None, "rms_norm_eps": pick(rng, 1e-6, 0.1)}
    text |= {"attention_bias": bool(rng.integers(2))} if kind == "qwen3_vl" else {}
    if kind in READS:
        return text | {"model_type": pick(rng, *READS[kind])}
    text["num_attention_heads"] = text["num_key_value_heads"] = 2
    text["hidden_size"], text["head_dim"] = (4 * int(rng.integers(3, 5)), 8)
    pairs = 4
    if kind != "qwen3_vl":
        del text["head_dim"]
        pairs = text["hidden_size"] // 4
        text |= {"use_sliding_window": bool(rng.integers(2)), "sliding_window": 2}
        text |= {"max_window_layers": int(rng.integers(3)), "layer_types": None}
    sections = [pairs - 2, 1, 1]
    plain = {"rope_theta": pick(rng, 1e4, 50.0), "mrope_section": sections}
    linear = {"rope_type": "linear", "factor": pick(rng, 2.0, 8.0)}
    text["rope_parameters"] = plain | pick(rng, {"rope_type": "default"}, linear)
    return text


def reading(model: Any) -> Any:
    """The model that reads text; Llama 4's whole one fails on text alone."""
    return model.language_model if model.config.model_type == "llama4" else model


def whole(rng: np.random.Generator, kind: str) -> Any:
    """A random model that sees and reads."""
    text, vision = text_config(rng, kind), dict(VISION)
    if kind == "qwen2_vl":
        vision["hidden_size"] = text["hidden_size"]
    if kind in ("qwen2_5_vl", "qwen3_vl"):
        vision["out_hidden_size"] = text["hidden_size"]
    if kind == "llava":
        vision["model_type"] = "clip_vision_model"
    if kind == "gemma4":
        vision = None
    tied = {"tie_word_embeddings": text["tie_word_embeddings"]}
    config = test_fuzz.t.CONFIG_MAPPING[kind](text_config=text, vision_config=vision, **tied)
    with test_fuzz.double_constants():
        return test_fuzz.t.AutoModelForImageTextToText.from_config(config)


@pytest.mark.parametrize("kind", KINDS)
def test_text_alone_is_read_as_the_whole_model_reads_it(kind: str, tmp_path: Path) -> None:
    for n in range(TIMES // 3):
        rng = np.random.default_rng([n, *kind.encode()])
        test_fuzz.torch.manual_seed(n)
        with in_float64():
            model = whole(rng, kind)
        test_fuzz.make.randomize(model)
        model.save_pretrained(tmp_path)
        ids = rng.integers(0, model.config.text_config.vocab_size, 7).tolist()
        with in_float64():
            reference = test_fuzz.make.compute(reading(model.double()), ids)
        found = checkpoint.load(tmp_path)
        assert largest_gap(found.graph(ids), reference) < EXACT, n


@pytest.mark.parametrize("kind", KINDS)
def test_saved_language_model_is_one_of_its_own(kind: str, tmp_path: Path) -> None:
    model = whole(np.random.default_rng(1), kind)
    test_fuzz.make.randomize(model)
    model.save_pretrained(tmp_path)
    checkpoint.save(checkpoint.load(tmp_path), tmp_path / "alone")
    alone = test_fuzz.t.AutoModelForCausalLM.from_pretrained(tmp_path / "alone")
    both = (alone, reading(model))
    back, there = (test_fuzz.make.compute(one, [1, 0, 1])["logits"] for one in both)
    np.testing.assert_allclose(back, there, rtol=0, atol=TOLERANCE)  # their steps differ in order


def test_a_prompt_that_attends_both_ways_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "paligemma"}))
    with pytest.raises(InputError, match="does not read paligemma, because each word of"):
        checkpoint.load(tmp_path)


@pytest.mark.parametrize("kind", ["qwen2_vl", "qwen2_5_vl"])
def test_first_configs_have_all_fields_in_one_object(kind: str, tmp_path: Path) -> None:
    model = whole(np.random.default_rng(3), kind)
    model.save_pretrained(tmp_path)
    kept = checkpoint.load(tmp_path).spec
    values = json.loads((tmp_path / "config.json").read_text())
    text = values.pop("text_config")
    turns = text.pop("rope_parameters")
    text |= {"rope_theta": turns["rope_theta"]}
    if turns["rope_type"] == "default":
        turns = {"type": "mrope", "mrope_section": turns["mrope_section"]}
    (tmp_path / "config.json").write_text(json.dumps(text | values | {"rope_scaling": turns}))
    assert checkpoint.load(tmp_path).spec == kept
    values = text | values | {"rope_scaling": turns, "fusion": "late"}
    (tmp_path / "config.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match="fusion"):
        checkpoint.load(tmp_path)


@pytest.mark.parametrize(("kind", "ours"), [("qwen2_vl", QWEN2), ("qwen3_vl", QWEN3)])
def test_missing_fields_are_as_in_the_reference(kind: str, ours: dict, tmp_path: Path) -> None:
    text = test_fuzz.t.CONFIG_MAPPING[kind]().text_config.to_dict()
    theirs = {**text, **text["rope_parameters"], "model_type": ours["model_type"]}
    assert {name: theirs[name] for name in ours if name != "sliding_window"} == {
        name: value for name, value in ours.items() if name != "sliding_window"
    }
