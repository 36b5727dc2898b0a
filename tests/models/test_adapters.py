"""LoRA adapters, held to peft's own numbers."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, cli
from safetensors.numpy import load_file, save_file

import cellformer as cf
from cellformer.engine import Evaluator, InputError
from cellformer.engine.cells.gradient import backward
from cellformer.engine.learning import objective
from cellformer.engine.models import checkpoint
from cellformer.exporters.model.model_book import ModelBook

ADAPTERS = GOLDEN / "adapters"
NAMES = ("gpt2", "llama")  # one tensor for queries, keys and values, and one for each


def golden(name: str) -> tuple[cf.Model, dict[str, np.ndarray]]:
    with np.load(ADAPTERS / name / "golden.npz") as file:
        return cf.load(GOLDEN / name, ADAPTERS / name), dict(file)


def copied(name: str, to: Path, **said: object) -> Path:
    """A copy of an adapter, with other fields in its config."""
    shutil.copytree(ADAPTERS / name, to)
    config = to / "adapter_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | said))
    return to


@pytest.mark.parametrize("name", NAMES)
def test_logits_are_those_of_peft(name: str) -> None:
    model, wanted = golden(name)
    graph = model.graph(wanted["ids"].tolist())
    assert np.abs(graph.values["logits"] - wanted["logits"]).max() < 1e-6
    merged = model.merged().graph(wanted["ids"].tolist())
    assert np.abs(merged.values["logits"] - wanted["merged"]).max() < 1e-6
    assert np.abs(merged.values["logits"] - graph.values["logits"]).max() < 1e-13
    assert np.abs(wanted["logits"] - wanted["base"]).max() > 1


@pytest.mark.parametrize("name", NAMES)
def test_merge_switch_turns_the_adapter_off(name: str) -> None:
    model, wanted = golden(name)
    ids = wanted["ids"].tolist()
    live, plain = Evaluator(model.graph(ids)), cf.load(GOLDEN / name).graph(ids).values["logits"]
    live.set("merge", 0, 0, 0.0)
    assert np.abs(live["logits"] - plain).max() < 1e-14
    for weight in model.adapter.pairs if model.adapter else ():
        assert np.array_equal(live[f"{weight}.used"], model.weights[weight])


def test_heads_share_the_matrix_of_what_they_all_read() -> None:
    model, wanted = golden("gpt2")
    graph = model.graph(wanted["ids"].tolist())
    shared = graph["blocks.0.attn.c_attn.lora_A"]
    assert shared.shape == (12, 3)
    assert len(graph.readers[shared.name]) == 9
    assert graph["blocks.0.attn.h1.W_Q.lora_B"].shape == (3, 4)


@pytest.mark.slow
def test_generation_reads_the_adapter() -> None:
    model, wanted = golden("gpt2")
    ids = wanted["ids"].tolist()[:4]
    tokens = [step.token for step in cf.generate(model, ids, 5, cf.Sampling(), 0)]
    again = [step.token for step in cf.generate(model.merged(), ids, 5, cf.Sampling(), 0)]
    assert tokens == again
    plain = cf.load(GOLDEN / "gpt2")
    assert tokens != [s.token for s in cf.generate(plain, ids, 5, cf.Sampling(), 0)]


@pytest.mark.slow
def test_gradient_by_both_matrices() -> None:
    model, wanted = golden("gpt2")
    graph = model.graph(wanted["ids"].tolist())
    of = objective.logit(graph, 6, 4)
    found = backward(graph, of)
    for name in ("blocks.0.attn.c_attn.lora_A", "blocks.1.attn.h1.W_V.lora_B"):
        live, step = Evaluator(graph), 1e-6
        live.set(name, 1, 2, graph.values[name][1, 2] + step)
        slope = float(live[of.name][0, 0] - graph.values[of.name][0, 0]) / step
        assert graph.values[found[name].name][1, 2] == pytest.approx(slope, rel=1e-4)


def test_model_with_an_adapter_is_saved_merged(tmp_path: Path) -> None:
    model, wanted = golden("llama")
    with pytest.raises(InputError, match=r"save model\.merged\(\)"):
        cf.save(model, tmp_path / "no")
    cf.save(model.merged(), tmp_path / "merged")
    found = cf.load(tmp_path / "merged").graph(wanted["ids"].tolist()).values["logits"]
    assert np.abs(found - wanted["merged"]).max() < 1e-6


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"peft_type": "IA3"}, "peft_type IA3 is not supported"),
        ({"use_dora": True}, "use_dora = True is not supported"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"rank_pattern": {"c_attn": 4}}, "rank_pattern"),
        ({"alpha_pattern": {"c_attn": 4}}, "alpha_pattern"),
        ({"bias": "all"}, "bias 'all' is not supported"),
        ({"lora_bias": True}, "lora_bias"),
        ({"init_lora_weights": "pissa_niter_4"}, "changes the base model's weights"),
        ({"brand_new": 3}, "brand_new = 3 is not supported"),
        ({"r": 0}, "r is 0"),
        ({"r": 4}, "or its rank is not 4"),
        ({"r": "x"}, "'r' is 'x', but must have the type int"),
    ],
)
def test_adapter_that_is_not_supported(tmp_path: Path, said: dict[str, object], fault: str) -> None:
    folder = copied("gpt2", tmp_path / "adapter", **said)
    with pytest.raises(InputError, match=fault):
        cf.load(GOLDEN / "gpt2", folder)


def test_adapter_for_another_base() -> None:
    for base, name in (("gpt2", "llama"), ("llama3", "llama"), ("bert", "gpt2")):
        with pytest.raises(InputError) as refused:
            cf.load(GOLDEN / base, ADAPTERS / name)
        told = str(refused.value)
        assert str(ADAPTERS / name) in told and str(GOLDEN / base) in told and "\n" not in told
    with pytest.raises(InputError, match="cat-sat is not a checkpoint"):
        cf.load("cat-sat", ADAPTERS / "gpt2")


def test_damaged_adapter(tmp_path: Path) -> None:
    folder = copied("gpt2", tmp_path / "adapter")
    tensors = load_file(folder / "adapter_model.safetensors")
    first = next(iter(tensors))
    for changed, fault in (
        ({k: v for k, v in tensors.items() if k != first}, "only one of the two matrices"),
        (tensors | {first: tensors[first] * np.nan}, "infinite or not a number"),
        (
            tensors | {f"{first}_magnitude": tensors[first]},
            "reads only lora_A and lora_B of an adapter",
        ),
        ({}, "no lora_A and lora_B"),
    ):
        save_file(changed, folder / "adapter_model.safetensors")
        with pytest.raises(InputError, match=fault):
            cf.load(GOLDEN / "gpt2", folder)
    (folder / "adapter_model.safetensors").unlink()
    with pytest.raises(InputError, match="as safetensors"):
        cf.load(GOLDEN / "gpt2", folder)
    with pytest.raises(InputError, match=r"contains no adapter_config\.json"):
        cf.load(GOLDEN / "gpt2", tmp_path)


def test_adapter_alone_and_adapter_beside_its_base(tmp_path: Path) -> None:
    done = cli("run", f"{ADAPTERS / 'gpt2'}", "--ids", "1,2")
    assert (
        done.code == 2
        and "contains an adapter and no model; name the base model, and add --adapter" in done.err
    )
    both = copied("gpt2", tmp_path / "both")
    for path in (GOLDEN / "gpt2").iterdir():
        shutil.copy(path, both)
    done = cli("run", f"{both}", "--ids", "1,2")
    assert done.code == 2 and "add --adapter" in done.err
    done = cli("run", f"{both}", "--ids", "1,2", "--adapter", f"{both}", "--show", "merge")
    assert not done.code, done.err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert", "minilm"])
def test_workbook_of_an_encoder_with_an_adapter(name: str, tmp_path: Path) -> None:
    """The switch stands beside the weights as they are read, whatever Play asks for."""
    base = cf.load(GOLDEN / name)
    module = "encoder.layer.1.attention.self.query"
    module = module if name == "minilm" else f"bert.{module}"
    matrices = {"lora_A": np.full((2, 12), 0.3), "lora_B": np.full((12, 2), 0.2)}
    tensors = {f"base_model.model.{module}.{k}.weight": m for k, m in matrices.items()}
    save_file(tensors, tmp_path / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 3}
    (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    model = cf.load(GOLDEN / name, tmp_path)
    book = cf.build(model, ids=[3, 8, 12], title=name)
    assert isinstance(book, ModelBook) and book.places["merge"].sheet == "Used"
    used = book.values["blocks.1.attn.h0.W_Q.used"]
    assert np.allclose(used - base.weights["blocks.1.attn.h0.W_Q"], 3 / 2 * 2 * 0.3 * 0.2)


@pytest.mark.slow
def test_run_and_generate_take_an_adapter() -> None:
    given = (f"{GOLDEN / 'gpt2'}", "--ids", "3,8,12,1", "--adapter", f"{ADAPTERS / 'gpt2'}")
    done = cli("generate", *given, "-n", "2")
    assert not done.code, done.err
    whole, plain = cli("run", *given).out, cli("run", *given[:3]).out
    assert whole != plain
    assert (
        "has no model, so --adapter does not work"
        in cli("run", "gram-schmidt", "--adapter", "x").err
    )
    assert checkpoint.load(GOLDEN / "gpt2").adapter is None
