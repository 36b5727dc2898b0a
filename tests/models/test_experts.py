"""Mixtures of experts: which are chosen, what each writes, and their switches, in cells as well."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, InIronCalc
from safetensors.numpy import load_file, save_file

from cellformer.engine import Evaluator, InputError
from cellformer.engine.models import checkpoint, prompt
from cellformer.engine.models.architectures.llama import with_mlps
from cellformer.engine.models.architectures.mixtral import MoeSpec, forward
from cellformer.engine.models.forward import EVERYTHING, ONE_TOKEN, weight_shapes
from cellformer.engine.models.generate import passage
from cellformer.engine.models.model import Model
from cellformer.engine.studies import ablation
from cellformer.engine.studies.forecast import parameters
from cellformer.engine.text.tokenizer import WordList
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file.xlsx import write

SPEC = MoeSpec(
    7, 6, 8, n_layers=2, n_heads=2, d_head=4, d_mlp=5, position="rotary", norm="rms",
    final_norm=True, activation="silu", layers=with_mlps((1,), 2), n_experts=4, n_chosen=2,
    d_expert=3, d_shared=2,
)  # fmt: skip
SHARE = "blocks.0.mlp.router.share"
IDS = [3, 1, 2, 6]


def random_mixture(spec: MoeSpec) -> Model:
    rng = np.random.default_rng(0)
    shapes = weight_shapes(forward, spec)
    weights = {name: rng.normal(0, 0.7, shape) for name, shape in shapes.items()}
    words = WordList(tuple(f"w{i}" for i in range(spec.d_vocab)))
    return Model(spec, weights, words, architecture=forward)


MODEL = random_mixture(SPEC)


@pytest.fixture(scope="module")
def book() -> Book:
    return model_workbook.build("experts", MODEL, passage(MODEL, IDS, 5))


@pytest.fixture(scope="module")
def sheet(book: Book, tmp_path_factory: pytest.TempPathFactory) -> InIronCalc:
    return InIronCalc(write(book, tmp_path_factory.mktemp("experts") / "experts.xlsx"))


EDITS = {
    "another sentence": {("sentence", 0, 0): "w4 w0 w5"},
    "an expert off": {("blocks.0.mlp.e1.switch", 0, 0): 0.0},
    "the expert for every token off": {("blocks.0.mlp.shared.switch", 0, 0): 0.0},
    "all experts off": {("blocks.0.mlp.switch", 0, 0): 0.0},
    "one expert for each token": {("blocks.0.mlp.router.n_chosen", 0, 0): 1.0},
    "experts that suit a token alike": {
        ("blocks.0.mlp.W_router", i, j): 0.0 for i in range(6) for j in range(4)
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EDITS)
def test_sheet_chooses_experts_as_the_engine(name: str, book: Book, sheet: InIronCalc) -> None:
    live = Evaluator(prompt.graph(MODEL, passage(MODEL, IDS, 5)))
    before = live["logits"].copy()
    cells = {}
    for (block, i, j), value in EDITS[name].items():
        live.set(block, i, j, value)
        cells[book.cell(block, i, j)] = value
    assert np.abs(live["logits"] - before).max() > 1e-3
    with sheet.typed(cells):
        for block in (SHARE, "blocks.0.mlp_out", "logits"):
            found = np.zeros(live[block].shape)
            for cell in np.ndindex(*found.shape):
                found[cell] = sheet[book.cell(block, *cell)]
            np.testing.assert_allclose(found, live[block], atol=1e-12, err_msg=block)


def test_the_chosen_work_by_shares_that_sum_to_1() -> None:
    values = MODEL.graph(IDS).values
    assert ((values[SHARE] > 0).sum(axis=1) == SPEC.n_chosen).all()
    np.testing.assert_allclose(values[SHARE].sum(axis=1), 1)
    written = [values[f"blocks.0.mlp.e{n}.result"] for n in range(SPEC.n_experts)]
    for n, result in enumerate(written):
        assert (result.any(axis=1) == (values[SHARE][:, n] > 0)).all()
    total = sum(written) + values["blocks.0.mlp.shared.result"]
    np.testing.assert_allclose(values["blocks.0.mlp_out"], total)


def test_tied_experts_first_is_chosen() -> None:
    weights = MODEL.weights | {"blocks.0.mlp.W_router": np.zeros((6, 4))}
    values = replace(MODEL, weights=weights).graph(IDS).values
    np.testing.assert_array_equal(values[SHARE], [[0.5, 0.5, 0, 0]] * len(IDS))


def test_hidden_experts_compute_the_same() -> None:
    shown, hidden = (Evaluator(MODEL.graph(IDS, readout)) for readout in (EVERYTHING, ONE_TOKEN))
    assert "blocks.0.mlp.e0.result" not in hidden.graph.blocks
    for part in ("blocks.0.mlp.e1", "blocks.0.mlp.shared", "blocks.0.mlp", "blocks.0.attn.h1"):
        np.testing.assert_allclose(hidden["logits"][0], shown["logits"][-1], atol=1e-12)
        for live in (shown, hidden):
            live.set(f"{part}.switch", 0, 0, 0.5)
    assert sum(parameters(MODEL).values()) == sum(w.size for w in MODEL.weights.values())


def test_every_expert_can_be_switched_off() -> None:
    found = {effect.part: effect.change for effect in ablation.effects(MODEL.graph(IDS), 4)}
    values = MODEL.graph(IDS).values
    for n in range(SPEC.n_experts):
        assert (abs(found[f"blocks.0.mlp.e{n}"]) > 1e-9) == values[SHARE][:, n].any()
    assert abs(found["blocks.0.mlp.shared"]) > 1e-9 and abs(found["blocks.1.mlp"]) > 1e-9


@pytest.mark.parametrize("name", ["mixtral", "qwen3_moe"])
def test_experts_that_are_stacked_in_one_tensor(name: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / name, tmp_path / name))
    tensors, stacks = {}, {}
    for old, values in load_file(folder / "model.safetensors").items():
        new = old.replace("block_sparse_moe", "mlp")
        front, experts, rest = new.partition(".experts.")
        if experts:
            number, part, _ = rest.split(".")
            stacks.setdefault(f"{front}.experts", {})[int(number), part[:4]] = values
        else:
            tensors[new] = values
    for path, held in stacks.items():
        n_experts = 1 + max(n for n, _ in held)
        gate, into, out = ("gate", "up_p", "down") if name == "qwen3_moe" else ("w1", "w3", "w2")
        both = [np.vstack([held[n, gate], held[n, into]]) for n in range(n_experts)]
        tensors[f"{path}.gate_up_proj"] = np.stack(both)
        tensors[f"{path}.down_proj"] = np.stack([held[n, out] for n in range(n_experts)])
    save_file(tensors, folder / "model.safetensors")
    model, kept = checkpoint.load(folder), checkpoint.load(GOLDEN / name)
    for weight, values in kept.weights.items():
        np.testing.assert_array_equal(model.weights[weight], values)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_experts_per_tok": 5}, "5 of 4 experts"),
        ({"num_experts_per_tok": 0}, "0 of 4 experts"),
        ({"moe_layer_freq": 2}, "moe_layer_freq"),
    ],
)
def test_impossible_number_of_experts_is_refused(
    fields: dict, message: str, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(GOLDEN / "mixtral", tmp_path / "mixtral"))
    config = json.loads((folder / "config.json").read_text()) | fields
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=message):
        checkpoint.load(folder)
