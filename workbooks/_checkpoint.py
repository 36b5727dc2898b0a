"""The workbook of any checkpoint: its own three edits to try, with what the engine says they do."""

from engine import Evaluator, Graph, Model
from engine.tokenizer import shown
from exporters.book import Book
from exporters.pages import Story, Try, assemble


def build(title: str, model: Model, graph: Graph) -> Book:
    """The workbook of a forward pass of a model that was loaded from a folder."""
    texts = shown(model.vocabulary.texts)
    spec = model.spec
    kind = model.config.get("model_type", "decoder")
    story = Story(
        title=f"{title}: every cell of a {kind} model",
        source="Made by cellformer from a checkpoint.",
        about=[
            f"{spec.n_layers} layers, {spec.n_heads} heads, vectors of {spec.d_model} numbers, "
            f"{spec.d_vocab:,} tokens.",
            f"The prompt has {graph['tokens'].shape[0]} tokens; every number is a formula down to "
            "the weights.",
        ],
        look=[
            "Play: the prompt, the ranked next tokens, baseline beside live.",
            "Block 0 and on: each layer, weights beside what they multiply; every pattern's columns "
            "sum to 1.",
            "Index: every block, where it stands, its shape and meaning.",
        ],
        tries=tries(graph, texts),
    )
    return assemble(title, graph, {"vocab": model.vocabulary.texts}, story)


def tries(graph: Graph, texts: tuple[str, ...]) -> list[Try]:
    """The last token, the temperature, and one weight: what each does is computed here."""
    last = graph["tokens"].shape[0] - 1
    current = int(graph.inputs["tokens"][last, 0])
    other = (current + 1) % graph.spec.d_vocab
    weight = next(b for b in reversed(list(graph)) if b.kind == "weight" and b.shape[0] > 1)
    return [
        Try(f"Choose `{texts[other]}`: {effect(graph, ('tokens', last, 0, other), texts)}.", last),
        Try(f"Type 3: {effect(graph, ('temperature', 0, 0, 3.0), texts)}.", ("temperature", 0, 0)),
        Try(f"Type 5: {effect(graph, (weight.name, 0, 0, 5.0), texts)}.", (weight.name, 0, 0)),
    ]


def effect(graph: Graph, edit: tuple[str, int, int, float], texts: tuple[str, ...]) -> str:
    """What an edit does to the word whose probability moves most."""
    live = Evaluator(graph)
    live.set(*edit)
    before, after = graph.values["probs"][-1], live["probs"][-1]
    v = int(abs(after - before).argmax())
    return f"`{texts[v]}` goes from {before[v]:.1%} to {after[v]:.1%}"
