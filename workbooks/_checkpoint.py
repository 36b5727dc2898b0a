"""The workbook of any checkpoint: its own three edits to try, with what the engine says they do."""

from dataclasses import replace

from engine import Evaluator, Graph, Model, ablation
from engine.generate import Passage
from engine.tokenizer import shown
from exporters.book import Book
from exporters.pages import Story, Try, assemble
from exporters.pages.assembling import MANY_WORDS

MOST_COPIED = 4_000_000  # numbers of a weight that an edit is tried in


def build(title: str, model: Model, passage: Passage) -> Book:
    """The workbook of a prompt of a model that was loaded from a folder."""
    last_only = model.spec.d_vocab > MANY_WORDS
    if not last_only:
        model = ablation.averaged(model, [passage.ids])
    graph = replace(model, spec=replace(model.spec, last_only=last_only)).graph(passage.ids)
    texts = shown(model.vocabulary.texts)
    spec = model.spec
    kind = model.config.get("model_type", "decoder")
    story = Story(
        title=f"{title}: every cell of a {kind} model",
        source="Made by cellformer from a checkpoint.",
        about=[
            f"{spec.n_layers} layers, {spec.n_heads} heads, vectors of {spec.d_model} numbers, "
            f"{spec.d_vocab:,} tokens.",
            f"The prompt has {passage.n_prompt} tokens, and room for {len(passage.ids)}; every number "
            "is a formula down to the weights.",
        ],
        look=[
            "Play: type a sentence of tokens with a space between each; it continues itself.",
            "Heads, Lens, Attribution: where it looks, when it knows, and what contributes.",
            "Block 0 and on: each layer, step by step; Weights 0 and on: what it multiplies with.",
        ],
        tries=tries(graph, texts, passage.n_prompt - 1),
    )
    return assemble(title, model, passage, story)


def tries(graph: Graph, texts: tuple[str, ...], last: int) -> list[Try]:
    """The last token, the temperature, and one weight: what each does is computed here."""
    current = int(graph.inputs["tokens"][last, 0])
    other = (current + 1) % graph.spec.d_vocab
    weight = next(
        b
        for b in reversed(list(graph))
        if b.kind == "weight" and b.shape[0] > 1 and b.whole.size <= MOST_COPIED
    )
    word = f"Choose `{texts[other]}`"
    if graph.spec.last_only:
        word = f"Type {other}, the id of `{texts[other]}`"
    picked = ("tokens", last, 0) if graph.spec.last_only else last
    edits: tuple[tuple[str, tuple[str, int, int, float], tuple[str, int, int] | int], ...] = (
        (word, ("tokens", last, 0, float(other)), picked),
        ("Type 3", ("temperature", 0, 0, 3.0), ("temperature", 0, 0)),
        ("Type 5", (weight.name, 0, 0, 5.0), (weight.name, 0, 0)),
    )
    if graph.spec.last_only:  # what it does is a whole pass away
        return [Try(f"{text}, and see the ranking on Play change.", at) for text, _, at in edits]
    return [Try(f"{text}: {effect(graph, edit, texts, last)}.", at) for text, edit, at in edits]


def effect(
    graph: Graph, edit: tuple[str, int, int, float], texts: tuple[str, ...], row: int
) -> str:
    """What an edit does to the word whose probability moves most."""
    live = Evaluator(graph)
    live.set(*edit)
    before, after = graph.values["probs"][row], live["probs"][row]
    v = int(abs(after - before).argmax())
    return f"`{texts[v]}` goes from {before[v]:.1%} to {after[v]:.1%}"
