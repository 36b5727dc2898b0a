"""The modules of sentence-transformers: what they mean, and which are refused by name."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import GOLDEN, cli
from safetensors.numpy import load_file, save_file

import cellformer as cf
from cellformer.engine.models import checkpoint

IDS = [2, 5, 7, 3]


def folder(target: Path, modules: list[dict[str, Any]]) -> Path:
    """The golden sentence encoder with other modules behind it."""
    shutil.copytree(GOLDEN / "minilm", target)
    listed = json.loads((target / "modules.json").read_text())[:1]
    for k, module in enumerate(modules, 1):
        kind = module.pop("type")
        (target / f"{k}_{kind}").mkdir(exist_ok=True)
        (target / f"{k}_{kind}" / "config.json").write_text(json.dumps(module))
        listed.append({"path": f"{k}_{kind}", "type": f"sentence_transformers.models.{kind}"})
    (target / "modules.json").write_text(json.dumps(listed))
    return target


def pooling(**modes: bool) -> dict[str, Any]:
    return {"type": "Pooling", **{f"pooling_mode_{name}": on for name, on in modes.items()}}


def test_dense_layer_after_pooling(tmp_path: Path) -> None:
    tanh = {"out_features": 5, "bias": True, "activation_function": "torch.nn.Tanh"}
    modules = [pooling(cls_token=True), {"type": "Dense", "in_features": 12, **tanh}]
    where = folder(tmp_path / "model", [*modules, {"type": "Normalize"}])
    rng = np.random.default_rng(0)
    shapes = {"linear.weight": (5, 12), "linear.bias": (5,)}
    linear = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    save_file(linear, where / "2_Dense" / "model.safetensors")
    values = cf.load(where).graph(IDS).values
    v = np.tanh(values["resid_final"][0] @ linear["linear.weight"].T + linear["linear.bias"])
    np.testing.assert_allclose(values["vector"][0], v / np.sqrt(v @ v), atol=1e-12)

    checkpoint.save(cf.load(where), tmp_path / "back")
    again = cf.load(tmp_path / "back").graph(IDS).values
    np.testing.assert_array_equal(again["vector"], values["vector"])
    saved = load_file(tmp_path / "back" / "2_Dense" / "model.safetensors")
    np.testing.assert_array_equal(saved["linear.weight"], linear["linear.weight"])
    listed = json.loads((tmp_path / "back" / "modules.json").read_text())
    assert [module["type"].rpartition(".")[2] for module in listed] == [
        "Transformer", "Pooling", "Dense", "Normalize",
    ]  # fmt: skip


def test_two_dense_layers_after_pooling(tmp_path: Path) -> None:
    """As EmbeddingGemma: two matrices, the second one back to the size of the stream."""
    plain = {"bias": False, "activation_function": "torch.nn.modules.linear.Identity"}
    dense = [{"type": "Dense", "out_features": n, **plain} for n in (7, 5)]
    modules = [pooling(mean_tokens=True), *dense, {"type": "Normalize"}]
    where = folder(tmp_path / "model", modules)
    rng, weights = np.random.default_rng(0), []
    for k, shape in enumerate([(7, 12), (5, 7)], 2):
        weights.append(rng.normal(size=shape).astype(np.float32))
        save_file({"linear.weight": weights[-1]}, where / f"{k}_Dense" / "model.safetensors")
    values = cf.load(where).graph(IDS).values
    v = values["resid_final"].mean(axis=0) @ weights[0].T @ weights[1].T
    np.testing.assert_allclose(values["vector"][0], v / np.sqrt(v @ v), atol=1e-12)
    checkpoint.save(cf.load(where), tmp_path / "back")
    again = cf.load(tmp_path / "back").graph(IDS).values
    np.testing.assert_array_equal(again["vector"], values["vector"])
    for k, weight in enumerate(weights, 2):
        saved = load_file(tmp_path / "back" / f"{k}_Dense" / "model.safetensors")
        np.testing.assert_array_equal(saved["linear.weight"], weight)


def test_first_of_two_dense_layers_is_a_matrix(tmp_path: Path) -> None:
    dense = [{"type": "Dense", "out_features": n, "bias": n == 7} for n in (7, 5)]
    dense = [one | {"activation_function": "Identity"} for one in dense]
    where = folder(tmp_path / "model", [pooling(mean_tokens=True), *dense])
    for module in ("2_Dense", "3_Dense"):
        save_file({"linear.weight": np.ones((5, 7))}, where / module / "model.safetensors")
    with pytest.raises(cf.InputError, match="in the first of two Dense"):
        cf.load(where)


def test_last_token_of_a_decoder(tmp_path: Path) -> None:
    """As Qwen3-Embedding: a decoder without a head, whose last token stands for the sentence."""
    where = Path(shutil.copytree(GOLDEN / "qwen3", tmp_path / "model"))
    tensors = load_file(where / "model.safetensors")
    bare = {
        name.removeprefix("model."): t for name, t in tensors.items() if name != "lm_head.weight"
    }
    save_file(bare, where / "model.safetensors")
    values = json.loads((where / "config.json").read_text()) | {"architectures": ["Qwen3Model"]}
    (where / "config.json").write_text(json.dumps(values | {"tie_word_embeddings": False}))
    with pytest.raises(
        cf.InputError, match=r"a Qwen3Model has no head\. For a decoder, use ForCausalLM"
    ):
        cf.load(where)
    (where / "1_Pooling").mkdir()
    mode = {"pooling_mode_lasttoken": True, "pooling_mode_mean_tokens": False}
    (where / "1_Pooling" / "config.json").write_text(json.dumps(mode))
    kinds = (("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", ""))
    listed = [
        {"path": path, "type": f"sentence_transformers.models.{kind}"} for kind, path in kinds
    ]
    (where / "modules.json").write_text(json.dumps(listed))
    v = cf.load(GOLDEN / "qwen3").graph(IDS).values["ln_final.out"][-1]
    found = cf.load(where).graph(IDS).values["vector"][0]
    np.testing.assert_allclose(found, v / np.sqrt(v @ v), rtol=0, atol=1e-12)
    checkpoint.save(cf.load(where), tmp_path / "back")
    np.testing.assert_array_equal(cf.load(tmp_path / "back").graph(IDS).values["vector"][0], found)


@pytest.mark.parametrize("name", ["LlamaForQuestionAnswering", "GPT2ForTokenClassification"])
def test_other_heads_of_decoders_are_named(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)  # of a long path the line would leave out what it says
    where = Path(shutil.copytree(GOLDEN / "llama", "model"))
    values = json.loads((where / "config.json").read_text()) | {"architectures": [name]}
    (where / "config.json").write_text(json.dumps(values))
    with pytest.raises(cf.InputError, match=f"a {name} has a head that cellformer does not know"):
        cf.load(where)


REFUSED = {
    "pooling by mean_tokens, max_tokens": [pooling(mean_tokens=True, max_tokens=True)],
    "pooling by weightedmean_tokens": [pooling(weightedmean_tokens=True)],
    "the module WeightedLayerPooling": [{"type": "WeightedLayerPooling"}],
    "in the order Transformer, Normalize": [{"type": "Normalize"}],
}


@pytest.mark.parametrize("message", REFUSED)
def test_other_modules_are_refused_by_name(message: str, tmp_path: Path) -> None:
    where = folder(tmp_path / "model", [dict(module) for module in REFUSED[message]])
    with pytest.raises(cf.InputError, match=message):
        cf.load(where)


def test_unsupported_encoder_options_are_one_line(tmp_path: Path) -> None:
    minilm, bert = GOLDEN / "minilm", GOLDEN / "bert"
    assert "9" in cli("run", minilm, "--ids", "1,2,3,4,5,6,7,8,9,10").err  # max_seq_length
    for arguments, message in (
        (("generate", minilm, "--ids", "1,2"), "cannot continue"),
        (("ablate", minilm, "--ids", "1,2"), "predicts no words"),
        (("run", bert, "--ids", "1,2", "--second", "a"), "not a sentence encoder"),
        (("run", GOLDEN / "roberta", "--ids", "3,16"), "padding token"),
    ):
        done = cli(*arguments)
        assert done.code == 2 and message in done.err and done.err.count("\n") == 1, done
    shutil.copytree(bert, tmp_path / "model")
    config = json.loads((bert / "config.json").read_text())
    config["architectures"] = ["BertForMultipleChoice"]
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    with pytest.raises(cf.InputError, match="BertForMultipleChoice"):
        cf.load(tmp_path / "model")
