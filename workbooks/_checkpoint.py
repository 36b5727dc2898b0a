"""The workbook of any checkpoint: its own three edits to try, with what the engine says they do."""

from engine import Evaluator, Graph, Model, ablation
from engine.generate import Passage
from engine.tokenizer import shown
from exporters.book import Book
from exporters.pages import Story, Try, assemble


def build(title: str, model: Model, passage: Passage) -> Book:
    """The workbook of a prompt of a model that was loaded from a folder."""
    model = ablation.averaged(model, [passage.ids])
    graph = model.graph(passage.ids)
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
    weight = next(b for b in reversed(list(graph)) if b.kind == "weight" and b.shape[0] > 1)
    edits = (
        (f"Choose `{texts[other]}`", ("tokens", last, 0, float(other)), last),
        ("Type 3", ("temperature", 0, 0, 3.0), ("temperature", 0, 0)),
        ("Type 5", (weight.name, 0, 0, 5.0), (weight.name, 0, 0)),
    )
    return [
        Try(f"{text}: {effect(graph, edit, texts, last)}.", where) for text, edit, where in edits
    ]


def effect(
    graph: Graph, edit: tuple[str, int, int, float], texts: tuple[str, ...], last: int
) -> str:
    """What an edit does to the word whose probability moves most."""
    live = Evaluator(graph)
    live.set(*edit)
    before, after = graph.values["probs"][last], live["probs"][last]
    v = int(abs(after - before).argmax())
    return f"`{texts[v]}` goes from {before[v]:.1%} to {after[v]:.1%}"
