"""A model's whole book: blocks laid out, pages around them, sheets in reading order."""

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

from cellformer.engine.cells import finite
from cellformer.engine.cells.arrays import ranked
from cellformer.engine.cells.errors import declared
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.language import worded
from cellformer.engine.cells.packages import modules
from cellformer.engine.cells.part import freeze_rest
from cellformer.engine.cells.texts import readable
from cellformer.engine.learning import objective
from cellformer.engine.models import choosing, encoding, prompt
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.generate import Passage
from cellformer.engine.models.model import Model
from cellformer.engine.studies import ablation, addition, lens
from cellformer.engine.studies.lens import Views
from cellformer.engine.text import tokenizing
from cellformer.engine.text.tokenizer import shown
from cellformer.exporters import pages as of_all_pages
from cellformer.exporters.assemble import start, tour
from cellformer.exporters.compose import digest, legend, theme, unharmed
from cellformer.exporters.compose.address import quoted
from cellformer.exporters.compose.book import START, OnLayout, Sheet
from cellformer.exporters.compose.story import Chosen, Printed, Story
from cellformer.exporters.compose.topological import reading_order
from cellformer.exporters.model import block_sheets, glossary, layout
from cellformer.exporters.model.block_sheets import PLAY
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.plan import Plan, for_model
from cellformer.exporters.pages import glossary as terms
from cellformer.exporters.pages import guess, ledger
from cellformer.exporters.pages import printed as of_tables

STUDY = "Study"  # the sheet of a workbook's own
OF_LAYERS = {"Machine", "Guess", "Lens", "Attribution", "Words", "Map"}  # hidden without layers
DECLARED = ("SHEET", "PURPOSE", "AFTER", "add")  # by every page
LINK_WIDTH = 6  # characters
LINK_ROOM = 20  # the same: where the ledger stands depends on no sheet's name


def assemble(
    title: str,
    model: Model,
    passage: Passage,
    story: Story,
    tables: Sequence[Printed] = (),
    headings: Mapping[str, str] | None = None,
    study: Callable[[ModelBook], None] | None = None,
    plan: Plan | None = None,
    chosen: Chosen | None = None,
    on_layout: OnLayout | None = None,
) -> ModelBook:
    """A whole workbook for a model and a passage: laid-out blocks, with pages around them.

    `headings` gives the title of the step that a block begins: a model that has them is small
    enough to read, and its weights stand beside what they multiply. `study` adds the workbook's own
    sheet "Study"; `chosen` are the words on its maps. If the `plan` names live parts, what they
    read from the rest is constant, and nothing else is there. A story without a title leaves out
    the tour, whose place on Start depends on the story. `on_layout` is called with the book before
    its values are computed.
    """
    plan = plan or for_model(model, by_hand=headings is not None)
    if plan.readout.by_head:
        model = ablation.with_averages(model, passage.prompts)
    graph, views, labels = _blocks(model, passage, plan)
    book = ModelBook(
        title,
        graph,
        labels=labels,
        headings=headings or {},
        passage=passage,
        views=views,
        plan=plan,
        model=model,
        printed=tables,
        section=story.section,
        words=story.words,
        chosen=chosen,
    )
    layout.split(book)
    if on_layout:
        on_layout(book)
    finite.check_for_sheets(graph, graph.values)
    _add_pages(book)
    usual = {*book.sheets} - {of_tables.SHEET}
    if study:
        study(book)
    ledger.fill(book, own={*book.sheets} - usual)
    stops = tour.stops(book)
    _put_in_order(book, stops)
    start.add(book, story, stops if story.title else ())
    ledger.show(book, book.sheet(START), 2, 0)
    unharmed.make(book)
    digest.show(book)
    if story.title and plan.checks:
        digest.fill(book, ledger.watch(book))
    return book


def _blocks(
    model: Model, passage: Passage, plan: Plan
) -> tuple[Graph, Views, dict[str, tuple[str, ...]]]:
    """The graph of a workbook, its views, and the labels of the vocabulary axes."""
    graph: Graph = encoding.graph(model, passage, plan.readout)
    prompt.set_temperature(graph, passage)
    asked = addition.of(plan.studies)
    for each in asked:
        graph = each.adds(graph, passage, plan.studies[each.name])
    if plan.live:
        graph = freeze_rest(graph, plan.live)
    views = _views(graph, model, passage, plan) if plan.explains else Views()
    for each in asked:
        each.ends(graph, passage)
    labels = {"vocab": shown(model.vocabulary.texts), "vocab_source": shown(model.reader.texts)}
    if model.outputs:
        labels["vocab_out"] = tuple(map(readable, model.outputs.texts))
    _follow_what_is_typed(graph, model, passage, plan)
    if plan.ranks_every_token:
        prompt.look(graph, labels[graph["logits"].axes[1]])
    if objective.LOSS in graph.blocks:
        objective.follow(graph)
    for each in asked:
        each.follows(graph, labels["vocab"], labels.get(graph["logits"].axes[1], ()))
    return graph, views, labels


def _add_pages(book: ModelBook) -> None:
    """Add every page that the book wants; blocks are laid out after pages have placed their own."""
    book.sheet(START)
    found = wanted(book)
    for module in found:
        if hasattr(module, "place"):
            module.place(book)
    layout.lay_out(book)
    for module in sorted(found, key=lambda module: module.SHEET != PLAY):  # others read Play
        module.add(book)
        sheet = book.sheets[module.SHEET]
        sheet.purpose = sheet.purpose or module.PURPOSE
        sheet.hidden = sheet.hidden or (not book.plan.layers and module.SHEET in OF_LAYERS)


def _follow_what_is_typed(graph: Graph, model: Model, passage: Passage, plan: Plan) -> None:
    """Make the tokens of a graph follow a typed sentence, if possible."""
    if isinstance(graph, Forward) and plan.sources and not plan.live:
        encoding.follow_source(graph, passage, model)
    if isinstance(graph, Forward) and plan.gives != "next word" and not plan.live:
        encoding.follow(graph, passage, model)
    elif plan.ranks_every_token:
        prompt.follow(graph, passage, model)
    elif plan.answers and (plan.sources or not tokenizing.refusal(model.vocabulary)):
        prompt.answer(graph, passage, model.vocabulary)


def wanted(book: ModelBook) -> list[ModuleType]:
    """The pages of this book, in the order of their sheets."""
    return [page for page in pages() if not hasattr(page, "wanted") or page.wanted(book)]


def pages() -> list[ModuleType]:
    """Every page module, in the order of their sheets.

    A page declares its SHEET, its PURPOSE in a line, and the sheet that it comes AFTER; `add` adds
    it. One that not every book has says in `wanted` which do; one with blocks of the model places
    them in `place`, before the others are laid out. Raises InputError for a page that lacks one of
    the first four.
    """
    every = modules(of_all_pages.__name__, of_all_pages.__path__)
    found = [declared(module, "a page", DECLARED) for module in every]
    places = order({module.SHEET: module.AFTER for module in found})
    return sorted(found, key=lambda module: places[module.SHEET])


def order(after: Mapping[str, str]) -> dict[str, int]:
    """The position of each kind of sheet, given the sheet that each comes after. Raises InputError
    for a sheet that comes after an unknown one."""
    of_blocks = {name: before for name, (before, _) in block_sheets.SHEETS.items()}
    found = reading_order({STUDY: PLAY} | of_blocks | dict(after), START, "sheet")
    return {name: place for place, name in enumerate(found)}


def _views(graph: Graph, model: Model, passage: Passage, plan: Plan) -> lens.Views:
    """Lens and attribution at the end of the prompt, for the two words that rank first there."""
    last = passage.n_prompt - 1
    logits = graph.values["logits"][last]
    if plan.ranks_every_token and graph["logits"].axes[1] == "vocab":
        logits = choosing.penalized(
            logits,
            passage.sampling.repetition_penalty,
            passage.ids[: last + 1],
            prompt.never(model),
        )
    likeliest = ranked(logits, 2)
    return lens.add_lens(graph, last, likeliest[0], likeliest[-1])


def _put_in_order(book: ModelBook, stops: Sequence[tour.Stop]) -> None:
    """Put sheets in reading order, each with its purpose, legend, ledger and link to the next stop.
    A workbook's own sheets without a page stand where its study does."""
    place = order({module.SHEET: module.AFTER for module in pages()})
    place = {name: place.get(block_sheets.kind_of(name), place[STUDY]) for name in book.sheets}
    book.sheets = dict(sorted(book.sheets.items(), key=lambda item: place[item[0]]))
    for sheet, following in start.ways(book):
        name = sheet.name
        col = _clear_of_links(sheet) if name != PLAY else 1
        ways = [
            (worded("next: {sheet} →", sheet=following), f"{quoted(following)}!A1"),
            *tour.links(stops, name),
        ]
        for text, target in ways:
            sheet.link(1, col, text, target)
            col = legend.past(sheet, col, max(len(text), LINK_ROOM))
        if name != guess.SHEET:  # the ledger's line has the word that is asked for
            ledger.show(book, sheet, 1, col)
        sheet.put(2, 0, sheet.purpose, "note")
        legend.add(sheet)
        if name != terms.SHEET:
            glossary.add_notes(sheet)


def _clear_of_links(sheet: Sheet) -> int:
    """The first column after the link to Play in column 1."""
    col, room = 2, float(sheet.widths.get(1, theme.COLUMN_WIDTH))
    while room < LINK_WIDTH:
        room += sheet.widths.get(col, theme.COLUMN_WIDTH)
        col += 1
    return col
