"""The workbook of any checkpoint: its start sheet, and three suggested edits with their computed
effects."""

from collections.abc import Sequence
from dataclasses import replace

from cellformer.engine import Graph, Model
from cellformer.engine.cells.language import AsIs, worded
from cellformer.engine.cells.part import freeze_rest
from cellformer.engine.cells.texts import readable
from cellformer.engine.models import encoding, prompt
from cellformer.engine.models.architectures.mamba import MambaSpec
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.generate import Passage
from cellformer.engine.studies import addition, telling
from cellformer.engine.studies.addition import Studies
from cellformer.engine.studies.part_names import said
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

CONTINUED = "On the sheet Play, type a sentence. The model continues the sentence."
CONTINUED_TOKENS = (
    "On the sheet Play, type a sentence, with a space between tokens. The model continues the "
    "sentence."
)
BOTH_WAYS = (
    "On the sheet Play, type a sentence. The model reads each token together with all others."
)
BOTH_WAYS_TOKENS = (
    "On the sheet Play, type a sentence, with a space between tokens. The model reads each token "
    "together with all others."
)
VIEWS = (
    "The sheet Heads shows which tokens each token reads. The sheet Lens shows after which "
    "part the answer appears. The sheet Attribution shows what each part of the model adds."
)
STEP = (
    "On the sheet Attention, choose a layer, a head and a word. The sheet shows one attention "
    "step, number by number."
)
WITHOUT_HEADS = (
    "The sheet Lens shows after which part the answer appears. The sheet Attribution shows "
    "what each part of the model adds."
)
CHATS = (
    "On the sheet Play, type a message into the yellow cell ‘You’. The model answers in the "
    "format of its chat template."
)
ANSWERED = "On the sheet Play, type a sentence. The sheet ranks the most likely next tokens."
IDS = (
    "The sheet Play shows the prompt as token ids. If the readout is live, the sheet also ranks "
    "the most likely next tokens."
)
HIDDEN = "The sheet Hidden attention shows how much each token takes from each earlier token."
FEW_VIEWS = (
    "The sheet Heads shows which tokens each token reads. On the sheet Switches, you can turn "
    "heads and MLPs off."
)
ADAPTED = (
    "The sheet Used shows the weights with the adapter. Type ‘0’ into ‘merge’ to use the weights "
    "without the adapter."
)
MOST_COPIED = 4_000_000  # numbers of a weight that an edit is tried in


def build(
    title: str,
    model: Model,
    passage: Passage,
    live: Sequence[str] = (),
    studies: Studies | None = None,
    on_layout: OnLayout | None = None,
    limits: Limits = LIMITS,
    is_page: bool = False,
) -> ModelBook:
    """The workbook of a prompt of any model, with what `studies` add. `on_layout` is called with it
    before its values are computed. With `is_page` it becomes a page, which checks its own numbers:
    that of a large model does without the sums of all ranges of formulas. Raises InputError if the
    model does not support them.
    """
    by_ids = passage.chat is not None and passage.chat.by_ids
    plan = for_model(model, live, limits=replace(limits, words=0) if by_ids else limits)
    plan = replace(plan, studies=studies or {}, chat=passage.chat is not None and not by_ids)
    plan = replace(plan, checks=not (is_page and plan.readout.one_token))
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
        source="cellformer made this workbook from a checkpoint.",
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
                "The prompt has {n} tokens. The sheets have room for {room} tokens. The live "
                "part is {live}. The inputs of the live part are constants."
                if plan.live
                else "The prompt has {n} tokens. The sheets have room for {room} tokens. Every "
                "number is a formula, except the weights and inputs.",
                n=passage.n_prompt,
                room=len(passage.ids),
                live=", ".join(plan.live),
            ),
        ],
        look=[
            *_look(model, passage, plan, typed),
            "The sheet Block 0 and the next sheets show each layer, step by step. The sheet "
            "Weights 0 and the next sheets hold the weights of each layer.",
            *([ADAPTED] if model.adapter else []),
            *(line for each in addition.of(plan.studies) for line in each.look),
        ],
        suggestions=live_suggestions(graph, plan.live)
        if plan.live
        else _told(model, passage, plan, typed)
        or suggestions(graph, texts, passage.n_prompt - 1, typed),
    )


def _told(model: Model, passage: Passage, plan: Plan, typed: bool) -> list[Suggestion]:
    """The edits of a model that ranks one token's words: a fact, the head that matters most, the
    temperature. None for another model, or one that is too large to try them."""
    if not (plan.readout.one_token and telling.tells(model)):
        return []
    found = telling.told(model, passage.ids[: passage.n_prompt], plan.readout)
    if found is None:
        return []
    answer = found.answer
    switch, watched = (f"{found.head}.switch", 0, 0), ("probs", 0, answer.id)
    text = worded(
        "Switch {head} off: as the first word of the answer to ‘{you}’, ‘{word}’ changes from "
        "{before} % to {after} %. The likeliest word is then ‘{then}’."
        if passage.chat
        else "Switch {head} off: ‘{word}’ changes from {before} % to {after} %. The likeliest "
        "word is then ‘{then}’.",
        you=passage.chat.you if passage.chat else "",
        head=said(found.head),
        word=_word(model, answer.id),
        before=f"{100 * answer.probability:.1f}",
        after=f"{100 * found.without:.1f}",
        then=_word(model, found.then),
    )
    off = Suggestion(AsIs(text), switch, 0.0, watched, found.without)
    if passage.chat:  # later, the page shows the word after another token
        off = replace(off, watch=None, becomes=None)
    heat = worded("Type ‘{n}’ as temperature: the model becomes less certain.", n=3)
    asks = _asks(model, found) if typed and not passage.chat else []
    return [*asks, off, Suggestion(heat, ("temperature", 0, 0), 3.0)]


def _word(model: Model, token: int) -> str:
    """A token as a word in a sentence, without the space before it."""
    return (
        readable(model.vocabulary.decode([token])).strip() or shown(model.vocabulary.texts)[token]
    )


def _asks(model: Model, found: telling.Told) -> list[Suggestion]:
    """Another sentence that the model knows how to complete."""
    if found.fact is None:
        return []
    text = worded(
        "Type ‘{sentence}’: the model continues with ‘{word}’ ({share} %).",
        sentence=found.fact.text,
        word=_word(model, found.fact.id),
        share=f"{100 * found.fact.probability:.1f}",
    )
    return [Suggestion(AsIs(text), ("sentence", 0, 0), found.fact.text)]


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
    other = (int(graph.inputs["tokens"][last, 0]) + 1) % graph.spec.d_vocab
    weight = next(
        b
        for b in reversed(list(graph))
        if b.kind == "weight" and b.shape[0] > 1 and b.whole.size <= MOST_COPIED
    )
    word = worded("Choose ‘{word}’", word=texts[other])
    picked: tuple[str, int, int] | int = last
    if graph.readout.one_token:
        word = worded("Type ‘{id}’, the id of ‘{word}’", id=other, word=texts[other])
        picked = ("prompt.pick" if typed else "tokens", last, 0)
    edits: tuple[tuple[str, tuple[str, int, int, float], tuple[str, int, int] | int], ...] = (
        (word, ("tokens", last, 0, float(other)), picked),
        (worded("Type ‘{n}’", n=3), ("temperature", 0, 0, 3.0), ("temperature", 0, 0)),
        (worded("Type ‘{n}’", n=5), (weight.name, 0, 0, 5.0), (weight.name, 0, 0)),
    )
    if graph.readout.one_token:  # what it does is a whole pass away
        return [
            Suggestion(
                worded("{text}, and watch how the ranking on Play changes.", text=text),
                at,
                value=edit[3],
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
    text = (
        "Type ‘0’, and watch the cells that depend on this number. The sheet Check reports that "
        "you edited something."
    )
    return [Suggestion(text, (block.name, 0, 0), value=0.0) for block in (*found[:2], *found[-1:])]
