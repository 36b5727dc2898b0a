"""The workbook of any checkpoint: its start sheet, and three suggested edits with their computed
effects."""

from collections.abc import Sequence
from dataclasses import replace

from cellformer.engine import Graph, Model
from cellformer.engine.cells.language import AsIs, worded
from cellformer.engine.cells.part import freeze_rest
from cellformer.engine.models import encoding, prompt
from cellformer.engine.models.architectures.mamba import MambaSpec
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.generate import Passage
from cellformer.engine.studies import addition
from cellformer.engine.studies.addition import Studies
from cellformer.engine.text import tokenizing
from cellformer.engine.text.tokenizer import shown
from cellformer.exporters.assemble import encoder_workbook, refusals, two_stack_workbook
from cellformer.exporters.assemble.effects import effect
from cellformer.exporters.assemble.transformer import assemble
from cellformer.exporters.compose.book import OnLayout
from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.plan import LIMITS, Limits, Plan, for_model
from cellformer.exporters.pages import vocabulary

CONTINUED = "Play: type a sentence; it continues itself."
CONTINUED_TOKENS = "Play: type a sentence of tokens with a space between each; it continues itself."
BOTH_WAYS = "Play: type a sentence; each is read with all the others."
BOTH_WAYS_TOKENS = (
    "Play: type a sentence of tokens with a space between each; each is read with all the others."
)
VIEWS = "Heads, Lens, Attribution: where it looks, when it knows, and what contributes."
STEP = "Attention: one attention step, number by number; choose a layer, a head and a word."
WITHOUT_HEADS = "Lens, Attribution: when it knows, and what contributes."
CHATS = "Play: say something in the yellow cell You; it answers, as its chat template has it."
ANSWERED = "Play: type a sentence; the likeliest next tokens are ranked."
IDS = "Play: the prompt as token ids and, where the readout is live, the likeliest next tokens."
HIDDEN = "Hidden attention: how much each token takes of those before it."
FEW_VIEWS = "Heads: where each token looks. Switches: heads and MLPs off."
ADAPTED = "Used: the weights with the adapter; type 0 for merge, and they are read without it."
MOST_COPIED = 4_000_000  # numbers of a weight that an edit is tried in


def build(
    title: str,
    model: Model,
    passage: Passage,
    live: Sequence[str] = (),
    studies: Studies | None = None,
    on_layout: OnLayout | None = None,
    limits: Limits = LIMITS,
) -> ModelBook:
    """The workbook of a prompt of any model, with what `studies` add. `on_layout` is called with it
    before its values are computed. Raises InputError if the model does not support them.
    """
    plan = for_model(model, live, limits=limits)
    plan = replace(plan, studies=studies or {}, chat=passage.chat is not None)
    refusals.check(model, plan)
    if plan.gives != "next word" and not live:
        return encoder_workbook.build(title, model, passage, plan, on_layout)
    if plan.sources and not live:
        return two_stack_workbook.build(title, model, passage, plan, on_layout)
    story = _story(title, model, passage, plan)
    chosen = vocabulary.of_groups(plan.studies["words"]) if "words" in plan.studies else None
    return assemble(title, model, passage, story, plan=plan, chosen=chosen, on_layout=on_layout)


def _story(title: str, model: Model, passage: Passage, plan: Plan) -> Story:
    """The text of the start sheet. The graph in which its edits are tried is freed before the book
    makes its own: both together would need the most memory of a large build."""
    graph = encoding.graph(model, passage, plan.readout)
    texts = shown(model.vocabulary.texts)
    spec, typed = model.spec, plan.answers and not tokenizing.refusal(model.vocabulary)
    return Story(
        title=worded("{title}: every cell of a {kind} model", title=title, kind=model.kind),
        source="Made by cellformer from a checkpoint.",
        about=[
            worded(
                "{n_layers} layers, {n_heads} heads, vectors of {d_model} numbers, {d_vocab:,} "
                "tokens."
                if spec.n_heads
                else "{n_layers} layers, vectors of {d_model} numbers, {d_vocab:,} tokens.",
                n_layers=spec.n_layers,
                n_heads=spec.n_heads,
                d_model=spec.d_model,
                d_vocab=spec.d_vocab,
            ),
            worded(
                "The prompt has {n} tokens, and room for {room}; live is {live}, and what it reads "
                "is constant."
                if plan.live
                else "The prompt has {n} tokens, and room for {room}; every number is a formula "
                "down to the weights.",
                n=passage.n_prompt,
                room=len(passage.ids),
                live=", ".join(plan.live),
            ),
        ],
        look=[
            *_look(model, passage, plan, typed),
            "Block 0 and on: each layer, step by step; Weights 0 and on: what it multiplies with.",
            *([ADAPTED] if model.adapter else []),
            *(line for each in addition.of(plan.studies) for line in each.look),
        ],
        suggestions=live_suggestions(graph, plan.live)
        if plan.live
        else suggestions(graph, texts, passage.n_prompt - 1, typed),
    )


def _look(model: Model, passage: Passage, plan: Plan, typed: bool) -> list[str]:
    """The lines of "What to look at", for a model's pages."""
    views = [VIEWS if model.spec.n_heads else WITHOUT_HEADS] if plan.whole else []
    if not plan.whole and model.spec.n_heads:
        views.append(FEW_VIEWS)
    if model.spec.n_heads and not plan.live:
        views.append(STEP)
    if isinstance(model.spec, MambaSpec) and not plan.live:
        views.append(HIDDEN)
    if plan.chat:
        return [CHATS, *views]
    if not plan.whole:
        return [ANSWERED if typed else IDS, *views]
    if prompt.spelt(model.vocabulary, passage.ids[: passage.n_prompt]):
        return [CONTINUED if plan.continues else BOTH_WAYS, *views]
    return [CONTINUED_TOKENS if plan.continues else BOTH_WAYS_TOKENS, *views]


def suggestions(
    graph: Forward, texts: tuple[str, ...], last: int, typed: bool = False
) -> list[Suggestion]:
    """Three edits with their effects, computed here: the last token, the temperature, and a
    weight."""
    current = int(graph.inputs["tokens"][last, 0])
    other = (current + 1) % graph.spec.d_vocab
    weight = next(
        b
        for b in reversed(list(graph))
        if b.kind == "weight" and b.shape[0] > 1 and b.whole.size <= MOST_COPIED
    )
    word = worded("Choose ‘{word}’", word=texts[other])
    if graph.readout.one_token:
        word = worded("Type ‘{id}’, the id of ‘{word}’", id=other, word=texts[other])
    picked: tuple[str, int, int] | int = last
    if graph.readout.one_token:
        picked = ("prompt.pick" if typed else "tokens", last, 0)
    edits: tuple[tuple[str, tuple[str, int, int, float], tuple[str, int, int] | int], ...] = (
        (word, ("tokens", last, 0, float(other)), picked),
        (worded("Type ‘{n}’", n=3), ("temperature", 0, 0, 3.0), ("temperature", 0, 0)),
        (worded("Type ‘{n}’", n=5), (weight.name, 0, 0, 5.0), (weight.name, 0, 0)),
    )
    if graph.readout.one_token:  # what it does is a whole pass away
        return [
            Suggestion(
                worded("{text}, and see the ranking on Play change.", text=text), at, value=edit[3]
            )
            for text, edit, at in edits
        ]
    return [
        Suggestion(
            AsIs(f"{text}: {effect(graph, edit, texts, last)}."),
            at,
            value=texts[other] if at == last else edit[3],
        )
        for text, edit, at in edits
    ]


def live_suggestions(graph: Graph, live: Sequence[str]) -> list[Suggestion]:
    """Edits of three cells of the live part: weights and settings that its blocks read."""
    inputs = freeze_rest(graph, live).inputs
    found = [graph[name] for name in inputs if name.startswith(tuple(live))]
    found.sort(key=lambda b: (b.kind != "weight", b.leaf != "switch", b.leaf == "average"))
    text = "Type ‘0’, and see the cells that follow change; Check says that something was edited."
    return [Suggestion(text, (block.name, 0, 0), value=0.0) for block in (*found[:2], *found[-1:])]
