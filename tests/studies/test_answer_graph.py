"""The graph of an answer: what enters a node sums to it, cuts equal a separate numpy forward pass,
and the dialogue game's circuit is found without being told."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pytest
from conftest import GOLDEN, golden_models, recurrent, script

from cellformer.engine import Evaluator, Graph, InputError
from cellformer.engine.cells.gradient import backward
from cellformer.engine.models import checkpoint, ops
from cellformer.engine.models.model import Model
from cellformer.engine.studies import live_cuts
from cellformer.engine.studies.answer_graph import ANSWER, AnswerGraph, Ends, Node
from cellformer.engine.studies.circuit import Case, search
from cellformer.engine.studies.edge_cuts import Cuts, averages
from cellformer.workbooks.dialogue_game import game
from cellformer.workbooks.dialogue_game import model as dialogue_model
from docs.forward import gelu, layer_norm, softmax

IDS = [3, 1, 5, 2, 4, 1]
ENCODERS = [  # EuroBERT ends like a decoder
    name for name, model in golden_models().items() if not model.spec.causal and name != "eurobert"
]
# Values that stay within a bound, as no share of one does; biases that experts' shares multiply;
# rows that read rows before; embeddings of layers, which a gate multiplies; a dense layer before
# the words.
TWO_STACKS = [name for name, model in golden_models().items() if model.read]
REFUSED = (
    "gemma3n",
    "gemma4",
    "mpt",
    "olmo",
    "gpt_oss",
    "lfm2",
    "lfm2_moe",
    "modernbert-decoder",
    *recurrent(),
    *TWO_STACKS,
)
SOME = ("gpt2", "mixtral")
OTHERS = [name for name in golden_models() if name not in (*ENCODERS, *REFUSED, *SOME)]
STREAMS_OF_THEIR_OWN = ("bloom", "gemma2", "gemma3", "granite", "olmo2", "opt-350m")
STREAMS_OF_THEIR_OWN += ("exaone4", "glm4", "olmo3", "openai-gpt", "granitemoe", "flex_olmo")
STREAMS_OF_THEIR_OWN += ("gemma4_moe",)
LIVE = [name for name in (*SOME, *OTHERS) if name not in STREAMS_OF_THEIR_OWN]
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in OTHERS]


def of_golden(name: str) -> AnswerGraph:
    model = checkpoint.load(GOLDEN / name)
    return AnswerGraph(
        model.graph(IDS[: model.spec.n_ctx]), -1 % min(len(IDS), model.spec.n_ctx), 7, 4
    )


@pytest.mark.parametrize("name", [*SOME, *SLOW])
def test_what_enters_a_node_sums_to_it_and_so_does_what_leaves(name: str) -> None:
    answer = of_golden(name)
    leaves: dict[str, np.ndarray] = {}
    for reader, sources in answer.into.items():
        enters = sum(each.sum(1) for each in sources.values())
        if reader == ANSWER:
            assert abs(np.sum(enters) - answer.lead) < 1e-12
        else:
            np.testing.assert_allclose(enters, answer.value(reader), atol=1e-12)
        for source, each in sources.items():
            leaves[source] = leaves.get(source, 0) + each.sum(0)
    for source in ("embed", *answer.into):
        if source in leaves:
            np.testing.assert_allclose(leaves[source], answer.value(source), atol=1e-12)


@pytest.mark.parametrize("name", [*ENCODERS, *REFUSED])
def test_what_cannot_be_followed_is_refused(name: str) -> None:
    graph = checkpoint.load(GOLDEN / name).graph([3, 4, 5])
    with pytest.raises(InputError):
        AnswerGraph(graph, 0, 7, 4)


@pytest.mark.parametrize("name", ["gpt2", "granite", "mixtral"])
def test_neurons_are_nodes_too(name: str) -> None:
    answer = of_golden(name)
    enters: dict[Node, float] = {}
    leaves: dict[Node, float] = {}
    for source, reader, value in answer.edges(n_neurons=5):
        enters[reader] = enters.get(reader, 0.0) + value
        leaves[source] = leaves.get(source, 0.0) + value
    hidden = {reader.wrote.name: reader.hidden for reader in answer.readers}
    for node in answer.neurons(5):
        block = hidden[node.name]
        assert block is not None
        at = node.token, node.neuron
        value = (answer.values[block.name] * answer.slope(block.name))[at]
        assert abs(enters[node] - value) < 1e-12 and abs(leaves[node] - value) < 1e-12
    assert abs(enters[Node(ANSWER, answer.row)] - answer.lead) < 1e-12


def test_a_secant_is_the_ratio_of_a_value_and_its_operand() -> None:
    graph = Graph()
    x = graph.input("x", [[-1.5, 0.0, 2.0]])
    y = graph.block("y", ops.gelu, x)
    of = graph.block("of", ops.linear, y, graph.input("w", [[3.0], [1.0], [2.0]]))
    slope = backward(graph, of, [x], secants=[y])["x"]
    found = graph.values[slope.name][0]
    ratios = graph.values["y"][0, [0, 2]] / [-1.5, 2.0]
    np.testing.assert_allclose(found, [3 * ratios[0], 0, 2 * ratios[1]], rtol=1e-15)


# --- cuts in cells --------------------------------------------------------------------------


def assert_cells_cut_as_the_engine_does(model: Model, ids: Sequence[int]) -> None:
    """Random cuts of random edges of the answer after the last but one of some tokens."""
    row, graph, rng = len(ids) - 2, model.graph(ids), np.random.default_rng(1)
    cuts = Cuts(AnswerGraph(model.graph(ids[: row + 1]), row, 7, 4))
    edges = some_edges(cuts, 12, 1)
    live_cuts.add(graph, row, edges, graph.input("cuts", np.ones((len(edges), 1))).area)
    live, logits = Evaluator(graph), live_cuts.logits(graph).name
    for share in (0.0, 0.3, 0.6, 1.0):
        off = rng.random(len(edges)) < share
        for k, is_off in enumerate(off):
            live.set("cuts", k, 0, float(not is_off))
        (expected,) = cuts.leads([[edge for edge, cut in zip(edges, off, strict=True) if cut]])
        assert abs(live[logits][0, 7] - live[logits][0, 4] - expected) < 1e-10


@pytest.mark.parametrize("name", LIVE)
def test_cuts_in_cells_are_those_of_the_engine(name: str) -> None:
    model = checkpoint.load(GOLDEN / name)
    assert_cells_cut_as_the_engine_does(model, IDS[: model.spec.n_ctx])


def test_cuts_of_the_game_in_cells_are_those_of_the_engine() -> None:
    assert_cells_cut_as_the_engine_does(dialogue_model(), [4, 2, 1, 5, 3])


@pytest.mark.parametrize("name", ["bloom", "gemma2", "granite"])
def test_a_stream_that_is_no_sum_has_no_cuts_in_cells(name: str) -> None:
    graph = checkpoint.load(GOLDEN / name).graph(IDS)
    with pytest.raises(InputError, match="is not a plain sum of the outputs of heads"):
        live_cuts.add(graph, 2, [], graph.input("cuts", np.ones((1, 1))).area)


# --- cuts -----------------------------------------------------------------------------------


def some_edges(cuts: Cuts, n: int, seed: int) -> list[Ends]:
    found = [edge.ends for edge in cuts.answer.edges() if cuts.possible(edge.ends)]
    rng = np.random.default_rng(seed)
    return [found[k] for k in rng.choice(len(found), min(n, len(found)), replace=False)]


def gpt2_with_cuts(name: str, cut: Sequence[Ends]) -> float:
    """GPT-2's lead of word 7 over word 4, by numpy alone."""
    model = checkpoint.load(GOLDEN / name)
    w, spec = model.weights, model.spec
    parts = {"embed": w["W_E"][IDS], "pos_embed": w["W_pos"][: len(IDS)]}

    def read(reader: str) -> Iterator[tuple[int, np.ndarray]]:
        for token in range(len(IDS)):
            stream = sum(parts.values())
            for source, at, of, t in cut:
                if (of, t) == (reader, token):
                    stream[at] = stream[at] - parts[source][at]
            yield token, stream

    def written(reader: str, of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        return np.stack([of(stream)[token] for token, stream in read(reader)])

    for b in (f"blocks.{layer}" for layer in range(spec.n_layers)):

        def head(x: np.ndarray, b: str, h: str) -> np.ndarray:
            y = layer_norm(x, w[f"{b}.ln1.w"], w[f"{b}.ln1.b"], spec.norm_eps)
            q, k, v = (y @ w[f"{h}.W_{c}"] + w[f"{h}.b_{c}"] for c in "QKV")
            scores = q @ k.T / np.sqrt(q.shape[1])
            future = np.triu(np.ones_like(scores), 1) > 0
            return softmax(np.where(future, -np.inf, scores)) @ v @ w[f"{h}.W_O"]

        def mlp(x: np.ndarray, b: str) -> np.ndarray:
            y = layer_norm(x, w[f"{b}.ln2.w"], w[f"{b}.ln2.b"], spec.norm_eps)
            hidden = gelu(y @ w[f"{b}.mlp.W_in"] + w[f"{b}.mlp.b_in"])
            return hidden @ w[f"{b}.mlp.W_out"] + w[f"{b}.mlp.b_out"]

        heads = [f"{b}.attn.h{n}" for n in range(spec.n_heads)]
        new = {f"{h}.result": written(f"{h}.result", partial(head, b=b, h=h)) for h in heads}
        parts |= new | {"bias": parts.get("bias", 0) + np.tile(w[f"{b}.attn.b_O"], (len(IDS), 1))}
        parts[f"{b}.mlp_out"] = written(f"{b}.mlp_out", partial(mlp, b=b))
    end = written(ANSWER, lambda x: layer_norm(x, w["ln_final.w"], w["ln_final.b"], spec.norm_eps))
    logits = end[-1] @ w["W_E"].T
    return float(logits[7] - logits[4])


def test_cuts_equal_a_separate_forward_pass() -> None:
    answer = of_golden("gpt2")
    cuts = Cuts(answer)
    edges = some_edges(cuts, 12, 1)
    sets: list[list[Ends]] = [[], *([edge] for edge in edges[:8]), edges[:3], edges]
    expected = [gpt2_with_cuts("gpt2", cut) for cut in sets]
    np.testing.assert_allclose(cuts.leads(sets), expected, atol=1e-12)


@pytest.mark.parametrize("name", [*SOME, *SLOW])
def test_with_every_edge_kept_nothing_changes(name: str) -> None:
    cuts = Cuts(of_golden(name))
    every = [edge.ends for edge in cuts.answer.edges() if cuts.possible(edge.ends)]
    none, all_kept = cuts.leads([[]])[0], cuts.leads([every], keep=True)[0]
    assert abs(none - cuts.answer.lead) < 1e-12 and abs(all_kept - cuts.answer.lead) < 1e-10
    logits = cuts.logits([[]])[0]
    assert abs(logits[7] - logits[4] - cuts.answer.lead) < 1e-12


def test_an_edge_that_is_not_there_is_refused() -> None:
    cuts = Cuts(of_golden("gpt2"))
    with pytest.raises(InputError, match=r"^there is no edge from embed at token 3"):
        cuts.leads([[("embed", 3, "blocks.0.mlp_out", 2)]])
    with pytest.raises(InputError, match="single neurons cannot be cut"):
        _ = cuts.answer.edges(3)[0]._replace(source=Node("blocks.0.mlp_out", 1, 2)).ends


# --- the dialogue game ------------------------------------------------------------------------


@pytest.mark.slow
def test_search_finds_how_the_caller_becomes_tarso() -> None:
    """0.0 and the MLP of layer 0 write who called at the verb; 1.2 carries it to the callee; the
    MLP of layer 1 says the name."""
    model = dialogue_model()
    said = model.vocabulary.encode
    tarso, vice = game.ID["Tarso"], game.ID["vice"]
    others = [said(f"<BOS> {n} chiama Paolo") for n in game.NUMBERS]
    instead = averages(model, others, 4)
    case = Case(model, said("<BOS> Pietro chiama Paolo"), tarso, vice, instead)
    found = search([case])
    assert {
        ("embed", -2, "blocks.0.attn.h0.result", -1),
        ("blocks.0.attn.h0.result", -1, "blocks.0.mlp_out", -1),
        ("blocks.0.mlp_out", -1, "blocks.1.attn.h2.result", 0),
        ("blocks.1.attn.h2.result", 0, ANSWER, 0),
        ("blocks.1.mlp_out", 0, ANSWER, 0),
    } <= set(found.edges)
    assert len(found.edges) <= 12 and found.kept - found.without >= 0.9 * (
        found.lead - found.without
    )
    assert search([case]) == found


def test_the_note_tells_where_predicted_cuts_miss_most() -> None:
    section, model = script("dialogue_circuit"), dialogue_model()
    text = section.FILE.read_text()
    assert section.cut_alone(model) in text
    ids = model.vocabulary.encode("<BOS> Pietro chiama Paolo")
    graph = AnswerGraph(model.graph(ids), 3, game.ID["Tarso"], game.ID["vice"])
    worst = [edge.reader.name for edge, _ in section.gaps(graph)[:3]]
    assert all(name.endswith("mlp_out") for name in worst)
    assert "All three are at inputs of an MLP." in " ".join(text.split())


@pytest.mark.slow
def test_the_note_names_the_edges_of_peer_epithets_and_they_hold_on_fresh_games() -> None:
    section, model = script("dialogue_circuit"), dialogue_model()
    found = section.circuit(model, "peer epithet")
    (row,) = (x for x in section.FILE.read_text().splitlines() if x.startswith("| peer epithet |"))
    assert f"| {len(found.edges)} |" in row and row.endswith(f"| {section.told(found)} |")
    kept, without, n = section.followed(model, "peer epithet", found, 12)
    assert n == 12 and kept >= 11 and without == 0
