"""Every number of one-step is the engine's: the pass, its gradients, the pass after the step."""

from dataclasses import replace

import numpy as np
import pytest

from cellformer.engine import Model
from cellformer.engine.cells.batch import filled
from cellformer.engine.cells.gradient import backward
from cellformer.engine.learning import objective
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.workbooks import cat_sat, one_step
from cellformer.workbooks.cat_sat.weights import HEAD, WORDS
from cellformer.workbooks.one_step import sheet
from cellformer.workbooks.one_step.blocks import LAST, PROMPT, WEIGHTS

BLOCKS = {  # by the names of the tables; of the last word alone
    "q": f"{HEAD}.q", "score": f"{HEAD}.scores", "share": f"{HEAD}.pattern", "z": f"{HEAD}.z",
    "out": "blocks.0.attn_out", "h": "resid_final", "logit": "logits",
}  # fmt: skip
WHOLE = {"x": "embed", "k": f"{HEAD}.k", "v": f"{HEAD}.v"} | {
    name: of for name, of in WEIGHTS.items() if name[:2] == "W_"
}


def drawn(seed: int) -> Model:
    """cat-sat with random weights."""
    rng, model = np.random.default_rng(seed), cat_sat.model()
    weights = {name: rng.normal(size=w.shape) for name, w in model.weights.items()}
    return replace(model, weights=weights)


@pytest.mark.parametrize("following", ["on", "the", ".EOS"])
@pytest.mark.parametrize("model", [cat_sat.model(), drawn(1)], ids=["cat-sat", "random"])
def test_every_number_equals_the_engine(model: Model, following: str) -> None:
    graph = model.graph(model.vocabulary.encode(" ".join(PROMPT)))
    wanted = [0] * LAST + [WORDS.index(following)]
    loss = objective.loss(graph, wanted, [0.0] * LAST + [1.0])
    gradients = {name: graph.values[x.name] for name, x in backward(graph, loss).items()}

    w = Workbook("one-step")
    sheet.add(w, one_step.weights(model))
    read = w.edited({w["next_word"]: following})
    after = filled(
        graph,
        {
            name: np.atleast_2d(x) - sheet.RATE * gradients[name]
            for name, x in model.weights.items()
        },
    )
    for lane, values in zip(sheet.PREFIXES, (graph.values, gradients, after), strict=True):
        for name, of in (BLOCKS | WHOLE).items():
            expected = values[of] if name in WHOLE else values[of][LAST]
            found = np.asarray(read(w[lane + name]))
            found = found.T if name == "W_U" else found.reshape(expected.shape)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=name)
        if lane != sheet.PREFIXES[sheet.BACK]:
            assert read(w[f"{lane}loss"]) == pytest.approx(values["loss"].item(), abs=1e-12)
            found = np.ravel(read(w[f"{lane}p"]))
            np.testing.assert_allclose(found, values["probs"][LAST], atol=1e-12)


def test_small_step_follows_the_gradient() -> None:
    w = Workbook("one-step")
    sheet.add(w, one_step.weights(cat_sat.model()))
    expected, fell = np.ravel(w.edited({w["rate"]: 1e-5})(w["falls"]))
    assert fell == pytest.approx(expected, rel=1e-4)
