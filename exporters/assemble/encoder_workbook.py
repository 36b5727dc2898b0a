"""The workbook of any encoder: its start sheet, and three suggested edits."""

from cellformer.engine.cells.language import worded
from cellformer.engine.cells.name import SECOND
from cellformer.engine.models import encoding
from cellformer.engine.models.generate import Passage
from cellformer.engine.models.model import Model
from cellformer.exporters.assemble.transformer import assemble
from cellformer.exporters.compose.book import OnLayout
from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.plan import Plan

PLAYS = {
    "masked word": "Play: type a sentence with a mask in it; the words that may stand there are "
    "ranked.",
    "sentence": "Play: type two sentences; the cosine of their vectors says how alike they are.",
    "class": "Play: type a text; the classes are ranked.",
    "token class": "Play: type a text, and the place of a token; its classes are ranked.",
}
SEES_ALL = (
    "{n_layers} layers, {n_heads} heads, vectors of {d_model} numbers, {d_vocab:,} "
    "tokens; every token sees all others."
)
SEES_BEFORE = (
    "{n_layers} layers, {n_heads} heads, vectors of {d_model} numbers, {d_vocab:,} "
    "tokens; every token sees those before it."
)
MORE = "Heads: where each token looks. Tokenizer: how the text becomes ids."


def build(
    title: str, model: Model, passage: Passage, plan: Plan, on_layout: OnLayout | None = None
) -> ModelBook:
    """The workbook of a prompt, or of two sentences; `on_layout` is called with it before its
    values are computed."""
    spec = model.spec
    two = spec.gives == "sentence"
    room = worded(
        "room for {n} tokens in each sentence" if two else "room for {n} tokens", n=len(passage.ids)
    )
    story = Story(
        title=worded("{title}: every cell of a {kind} model", title=title, kind=model.kind),
        source="Made by cellformer from a checkpoint.",
        about=[
            worded(
                SEES_BEFORE if spec.causal else SEES_ALL,
                n_layers=spec.n_layers,
                n_heads=spec.n_heads,
                d_model=spec.d_model,
                d_vocab=spec.d_vocab,
            ),
            worded("There is {room}; every number is a formula down to the weights.", room=room),
        ],
        look=[
            PLAYS[spec.gives],
            MORE,
            "Block 0 and on: each layer, step by step; Weights 0 and on: what it multiplies with.",
        ],
        suggestions=_suggestions(model, passage.prompts),
    )
    return assemble(title, model, passage, story, plan=plan, on_layout=on_layout)


def _suggestions(model: Model, given: list[list[int]]) -> list[Suggestion]:
    """Three edits: a sentence, the second sentence or the temperature, and a weight."""
    two = len(given) > 1
    typed = [encoding.text_of(model.vocabulary, ids) is not None for ids in given]
    cells = ["sentence" if typed[0] else "tokens"]
    seen = worded("and see the cosine change" if two else "and see the ranking change")
    texts = [
        worded(
            "Type another sentence, {seen}." if typed[0] else "Type another token id, {seen}.",
            seen=seen,
        )
    ]
    if two:
        cells.append(f"{SECOND}.{'sentence' if typed[1] else 'tokens'}")
        texts.append("Type the same here: the cosine of a sentence with itself is 1.")
    else:
        cells.append("temperature")
        texts.append("Type ‘3’: the probabilities come closer to each other.")
    weight = "blocks.0.mlp.W_out" if model.spec.n_layers else "W_pos"
    texts.append(
        worded("Type ‘5’ into the first weight of {weight}, {seen}.", weight=weight, seen=seen)
    )
    values = (None, None if two else 3.0, 5.0)
    told = zip(texts, [*cells, weight], values, strict=True)
    return [Suggestion(text, (cell, 0, 0), value=value) for text, cell, value in told]
