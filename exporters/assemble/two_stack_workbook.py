"""The workbook of any encoder-decoder: its start sheet, and three suggested edits."""

from cellformer.engine.cells.language import AsIs, worded
from cellformer.engine.cells.name import ENCODER
from cellformer.engine.models import encoding
from cellformer.engine.models.generate import Passage
from cellformer.engine.models.model import Model
from cellformer.engine.models.spec import TwoStackSpec
from cellformer.engine.text.tokenizer import shown
from cellformer.exporters.assemble.effects import effect
from cellformer.exporters.assemble.transformer import assemble
from cellformer.exporters.compose.book import OnLayout
from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.plan import Plan

PLAYS = (
    "On the sheet Play, type a source sentence. The encoder reads the sentence, and the decoder "
    "answers word by word."
)
PLAYS_ONE = (
    "On the sheet Play, type a source sentence. The sheet ranks the most likely next tokens of "
    "the answer."
)
BY_LAYER = (
    "The sheets Encoder Block 0, Block 0 and the next sheets show each layer, step by step. The "
    "sheets whose names contain ‘Weights’ hold the weights of the layers."
)
VIEWS = (
    "The sheet Heads shows which tokens each token reads. The sheet Lens shows after which "
    "part the answer appears. The sheet Attribution shows what each part of the model adds."
)
FEW_VIEWS = (
    "The sheet Heads shows which tokens each token reads. On the sheet Switches, you can turn "
    "heads and MLPs off."
)
TYPE = "Type another source sentence, and watch how the answer changes."
TYPE_ID = "Type another token id, and watch how the answer changes."
SIZES = (
    "An encoder (layers: {n_encoder_layers}, heads in each layer: {n_encoder_heads}) and a "
    "decoder (layers: {n_layers}, heads in each layer: {n_heads}). Vectors have {d_model} "
    "numbers. The vocabulary has {d_vocab:,} tokens."
)
ROOM = (
    "The source sentence has {n} tokens. The sheets have room for {room} tokens. The answer has "
    "{columns} columns. Every number is a formula, except the weights and inputs."
)


def build(
    title: str, model: Model, passage: Passage, plan: Plan, on_layout: OnLayout | None = None
) -> ModelBook:
    """The workbook of a source sentence and its answer; `on_layout` is called with it before its
    values are computed."""
    spec = model.spec
    assert isinstance(spec, TwoStackSpec)
    sizes = ("n_encoder_layers", "n_encoder_heads", "n_layers", "n_heads", "d_model", "d_vocab")
    n, columns = len(model.source), len(passage.ids)
    story = Story(
        title=worded("{title}: every cell of a {kind} model", title=title, kind=model.kind),
        source="cellformer made this workbook from a checkpoint.",
        about=[
            worded(SIZES, **{size: getattr(spec, size) for size in sizes}),
            worded(ROOM, n=n, room=passage.n_source, columns=columns),
        ],
        look=[
            PLAYS if plan.ranks_every_token else PLAYS_ONE,
            VIEWS if plan.explains else FEW_VIEWS,
            BY_LAYER,
        ],
        suggestions=_suggestions(model, passage, plan),
    )
    return assemble(title, model, passage, story, plan=plan, on_layout=on_layout)


def _suggestions(model: Model, passage: Passage, plan: Plan) -> list[Suggestion]:
    """Three edits: the source sentence, the temperature, and the last layer's cross attention
    off."""
    spelt = encoding.text_of(model.reader, model.source) is not None
    source = Suggestion(
        TYPE if spelt else TYPE_ID,
        (f"{ENCODER}.{'sentence' if spelt else 'tokens'}", 0, 0),
    )
    switch = f"blocks.{model.spec.n_layers - 1}.cross.switch"
    edits = (
        (worded("Type ‘{n}’", n=3), ("temperature", 0, 0, 3.0)),
        (worded("Type ‘0’: this layer stops reading the source"), (switch, 0, 0, 0.0)),
    )
    if not plan.ranks_every_token:  # what an edit does is a whole pass away
        text = "{text}, and watch how the ranking on Play changes."
        told = [worded(text, text=text_of) for text_of, _ in edits]
    else:
        graph = encoding.graph(model, passage, plan.readout)
        words = shown(model.vocabulary.texts)
        told = [
            AsIs(f"{text}: {effect(graph, edit, words, passage.n_prompt - 1)}.")
            for text, edit in edits
        ]
    found = zip(told, edits, strict=True)
    return [source, *(Suggestion(text, edit[:3], value=edit[3]) for text, (_, edit) in found)]
