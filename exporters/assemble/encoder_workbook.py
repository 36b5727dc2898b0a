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
    "masked word": "On the sheet Play, type a sentence with a mask in the place of a word. The "
    "sheet ranks the words that fit this place.",
    "sentence": "On the sheet Play, type two sentences. The sheet shows how similar the "
    "sentences are (cosine).",
    "class": "On the sheet Play, type a text. The sheet ranks the text’s classes.",
    "token class": "On the sheet Play, type a text and the position of a token. The sheet "
    "ranks the classes of this token.",
}
SEES_ALL = (
    "{n_layers} layers, {n_heads} heads, vectors of {d_model} numbers, {d_vocab:,} tokens. Every "
    "token can read all other tokens."
)
SEES_BEFORE = (
    "{n_layers} layers, {n_heads} heads, vectors of {d_model} numbers, {d_vocab:,} tokens. Every "
    "token can read only earlier tokens."
)
MORE = (
    "The sheet Heads shows which tokens each token reads. The sheet Tokenizer shows how the text "
    "becomes ids."
)


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
        source="cellformer made this workbook from a checkpoint.",
        about=[
            worded(
                SEES_BEFORE if spec.causal else SEES_ALL,
                n_layers=spec.n_layers,
                n_heads=spec.n_heads,
                d_model=spec.d_model,
                d_vocab=spec.d_vocab,
            ),
            worded(
                "The sheets have {room}. Every number is a formula, except the weights and inputs.",
                room=room,
            ),
        ],
        look=[
            PLAYS[spec.gives],
            MORE,
            "The sheet Block 0 and the next sheets show each layer, step by step. The sheet "
            "Weights 0 and the next sheets hold the weights of each layer.",
        ],
        suggestions=_suggestions(model, passage.prompts),
    )
    return assemble(title, model, passage, story, plan=plan, on_layout=on_layout)


def _suggestions(model: Model, given: list[list[int]]) -> list[Suggestion]:
    """Three edits: a sentence, the second sentence or the temperature, and a weight."""
    two = len(given) > 1
    typed = [encoding.text_of(model.vocabulary, ids) is not None for ids in given]
    cells = ["sentence" if typed[0] else "tokens"]
    seen = worded(
        "and watch how the cosine changes" if two else "and watch how the ranking changes"
    )
    texts = [
        worded(
            "Type another sentence, {seen}." if typed[0] else "Type another token id, {seen}.",
            seen=seen,
        )
    ]
    if two:
        cells.append(f"{SECOND}.{'sentence' if typed[1] else 'tokens'}")
        texts.append(
            "Type the first sentence here, too: the cosine of a sentence with itself is 1."
        )
    else:
        cells.append("temperature")
        texts.append("Type ‘3’: the probabilities become more equal.")
    weight = "blocks.0.mlp.W_out" if model.spec.n_layers else "W_pos"
    texts.append(
        worded("Type ‘5’ into the first weight of {weight}, {seen}.", weight=weight, seen=seen)
    )
    told = zip(texts, [*cells, weight], (None, None if two else 3.0, 5.0), strict=True)
    return [Suggestion(text, (cell, 0, 0), value=value) for text, cell, value in told]
