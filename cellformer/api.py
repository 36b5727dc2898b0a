"""The functions of `import cellformer`: load, graph, build, write, read, and studies of a model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from cellformer import exercises, names
from cellformer.engine.cells import finite, language
from cellformer.engine.cells.arguments import explained
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.files import possible
from cellformer.engine.cells.graph import Graph
from cellformer.engine.models import generate as generating
from cellformer.engine.models.choosing import GREEDY, Sampling
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.generate import Step, passage
from cellformer.engine.models.model import Model
from cellformer.engine.studies import scores, steering
from cellformer.engine.studies.quantization import WIDTHS, Grid, Measure, Rounded, check
from cellformer.engine.studies.scores import Split
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.compose.book import Book
from cellformer.exporters.edits import edited
from cellformer.exporters.file import xlsx
from cellformer.exporters.web import SUFFIXES, page
from cellformer.given import name_of


@explained
def load(name: str | Path, adapter: str | Path | None = None) -> Model:
    """The model of a gallery workbook or of a checkpoint folder, with the LoRA adapter of a folder
    if one is given. Raises InputError.

    >>> cf.load("cat-sat")
    <Model decoder: 300 weights, 1 layers, 1 heads, d_model 5, 20 tokens>
    """
    return names.model(str(name), None if adapter is None else Path(adapter))


@explained
def graph(name: str | Path, prompt: str | None = None) -> Graph:
    """The graph of a model's forward pass over a prompt, or of a worksheet's tables.

    >>> cf.graph("cat-sat", "the cat sat")
    <Forward: 36 blocks, mean_ablation to probs>
    """
    return names.graph(str(name), prompt, force=True)


@explained
def build(
    what: str | Path | Model,
    prompt: str | None = None,
    ids: Sequence[int] | None = None,
    n_tokens: int | None = None,
    sampling: Sampling = GREEDY,
    seed: int = 0,
    live: Sequence[str] = (),
    title: str = "model",
    special: bool = True,
    second: str | None = None,
    lang: str = "en",
    system: str | None = None,
) -> Book:
    """The workbook of a gallery name, a checkpoint folder, or a model of your own.

    `n_tokens` counts the columns, prompt and continuation; `live` names the parts that recompute
    (default: all); `title` names a model of your own; with `special`, the tokenizer adds its
    special tokens; `second` is the sentence that a sentence encoder compares the prompt with;
    `lang` is the language of its texts, "it" for Italian; with a `system` text, even an empty one,
    the prompt is said in the model's own chat template. Raises InputError for an invalid prompt,
    or without one if the model has no default, and for an unknown language.

    >>> book = cf.build("cat-sat", prompt="the dog sat")
    >>> cf.write(book, "the-dog-sat.xlsx").exists()
    True
    """
    with language.speaking(language.language(lang)):
        return _build(
            what, prompt, ids, n_tokens, sampling, seed, live, title, special, second, system
        )


def _build(
    what: str | Path | Model,
    prompt: str | None,
    ids: Sequence[int] | None,
    n_tokens: int | None,
    sampling: Sampling,
    seed: int,
    live: Sequence[str],
    title: str,
    special: bool,
    second: str | None,
    system: str | None,
) -> Book:
    """The workbook, in the current language."""
    if not (isinstance(live, list | tuple) and all(isinstance(part, str) for part in live)):
        raise InputError(f"live is {live!r}; give a list of names, such as ['blocks.0']")
    if isinstance(what, str | Path) and names.is_worksheet(str(what)):
        if live or n_tokens is not None or any(x is not None for x in (prompt, ids, second)):
            raise InputError(f"{what} has no model; leave out prompt, ids, n_tokens and live")
        return names.book(str(what))
    if ids is not None and prompt is not None:
        raise InputError("prompt and ids cannot be combined; give only one of them")
    if not isinstance(what, Model):
        text = ",".join(map(str, ids)) if ids is not None else None
        loaded = names.load(str(what), prompt, text, special, live, second, True, system=system)
    elif system is not None:
        loaded = names.conversation(title, what, prompt, None, system, live, True)
    else:
        given = list(ids) if ids is not None else names.prompt_ids(what, prompt, special)
        other = names.prompt_ids(what, second, special) if second is not None else []
        loaded = names.Loaded(title, what, given, len(given), other)
    columns = loaded.n_tokens if n_tokens is None else n_tokens
    words = passage(loaded.model, loaded.ids, columns, sampling, seed, loaded.second, loaded.chat)
    if isinstance(what, Model):
        return model_workbook.build(title, what, words, live)
    return loaded.book(loaded.model, words, live)


@explained
def generate(
    what: str | Path | Model,
    prompt: str | Sequence[int] | None = None,
    n_tokens: int = 40,
    sampling: Sampling = GREEDY,
    seed: int = 0,
    change: Callable[[Forward], Forward] = lambda graph: graph,
) -> Iterator[Step]:
    """Continue a text, or token ids, by `n_tokens` tokens; the same seed gives the same tokens.

    `what` is a name of the gallery, a checkpoint folder, an edited workbook, or a model; the prompt
    is by default its own. A step has the `token`'s id. The token at position k is chosen with the
    k-th random number of the seed, so a longer prompt continues in the same way. `change` gives the
    graph that is computed instead of the model's, as an intervention does. Raises InputError if
    prompt and continuation exceed the context, or the mask is not causal.

    >>> steps = cf.generate("dialogue-game", "<BOS> Pietro chiama", 3)
    >>> cf.load("dialogue-game").vocabulary.decode([step.token for step in steps])
    '6 <SEP> 6'
    """
    if prompt is None or isinstance(prompt, str):
        loaded = names.load(name_of(what), prompt, force=True)
        model, ids = loaded.model, loaded.ids
    else:
        model, ids = names.model(name_of(what)), list(prompt)
    return generating.generate(model, ids, n_tokens, sampling, seed, change)


@explained
def why(
    what: str | Path | Model,
    head: str,
    query: str | int | None = None,
    key: str | int | None = None,
    prompt: str | None = None,
    special: bool = True,
) -> Split:
    """A head's score, split by the parts that wrote the query and the key.

    `head` is `1.2` (layer 1, head 2); `query` and `key` are words of the prompt, or positions
    (default: the last token, and the key that it looks at most); with `special`, the tokenizer
    adds its special tokens. Raises InputError.

    >>> cf.why("dialogue-game", "1.2", query="chiama", key="Pietro")
    <Split of head 1.2, query 2, key 1: score 1.27717>
    """
    loaded = names.load(name_of(what), prompt, special=special, force=True)
    graph = loaded.graph
    found = scores.Head(graph, scores.head_of(graph, str(head)))
    finite.check(graph, graph.values)
    at = loaded.place(query, "query")
    return found.split(at, found.most(at) if key is None else loaded.place(key, "key"))


@explained
def steer(
    what: str | Path | Model,
    lists: str | Path | Mapping[str, Sequence[str]],
    site: str = "",
    strengths: Sequence[float] = steering.STRENGTHS,
    token: int | None = None,
    prompt: str | None = None,
    n_tokens: int | None = None,
    mean: bool = False,
    special: bool = True,
) -> steering.Steered:
    """The texts of a model steered by the difference between two lists of sentences, with the
    direction's words and the accuracy of the probe along it.

    `lists` is a file, or two lists of texts by name; `site` is where (default: the stream in the
    middle of the layers); `token` is the position to steer at (default: all); `n_tokens` counts
    the tokens written; with `mean`, each sentence's tokens are averaged. Raises InputError.

    >>> lists = {"Pietro": ["Pietro chiama", "Pietro vice"], "3": ["3 chiama", "3 vice"]}
    >>> cf.steer("dialogue-game", lists, prompt="Pietro chiama Paolo", n_tokens=1)
    <Steered at blocks.1.resid_pre by -2, -1, 0, 1, 2>
    """
    loaded = names.load(name_of(what), prompt, special=special, force=True)
    model, ids = loaded.model, loaded.ids
    given = possible(lists) if isinstance(lists, str | Path) else lists
    found = steering.contrast(model, names.sentences(model, given, special), site, mean)
    return steering.steer(model, found, ids, strengths, token, n_tokens)


@explained
def exercise(
    name: str | Path, level: int = 1, prompt: str | None = None, solved: bool = False
) -> Book:
    """The workbook of a gallery name or a checkpoint folder with cells to fill in; `solved`, with
    the right formulas there. Raises InputError.

    >>> cf.exercise("loss", level=1)
    <Book loss: 10 sheets, 42 blocks>
    """
    return exercises.recipe(str(name), level, prompt).book(solved)


@explained
def grade(paths: Sequence[str | Path]) -> list[exercises.Grade]:
    """The marks of filled-in workbooks of exercises, each graded in a process of its own. Raises
    InputError for the first file that is not marked.

    >>> filled_in = cf.write(cf.exercise("loss", solved=True), "filled-in.xlsx")
    >>> cf.grade([filled_in])
    [<Grade filled-in.xlsx: 6 of 6>]
    """
    if isinstance(paths, str):
        raise InputError("give a list of files")
    return list(map(exercises.Grader().grade, paths))


@explained
def write(
    book: Book, path: str | Path, edits: Mapping[tuple[str, int, int], float | str] | None = None
) -> Path:
    """Write a book as an .xlsx workbook, or as an .html page, completely or not at all. `edits` (by
    block, row and column) are written as if typed into the workbook. Raises InputError.

    >>> cf.write(cf.build("loss"), "loss.xlsx").exists()
    True
    >>> cf.write(cf.build("loss"), "loss.html").suffix  # the same as a page
    '.html'
    """
    if Path(path).suffix.lower() in SUFFIXES:
        if edits:
            raise InputError(
                f"{path}: a page keeps edits in its link, not in its file; write an .xlsx "
                "workbook instead"
            )
        return page.write(book, Path(path))[0]
    if not edits:
        return xlsx.write(book, path)
    for (name, i, j), value in edits.items():
        book.graph.check_value(book.graph[name], i, j, value)
    typed = {book.graph[name][i, j]: value for (name, i, j), value in edits.items()}
    return xlsx.write(book, path, shown=book.edited(typed))


@explained
def read(path: str | Path, find: Callable[[str], Model] | None = None) -> edited.Edited:
    """The changes in an edited workbook. Raises InputError if cellformer did not make it.

    >>> path = cf.write(cf.build("cat-sat"), "edited.xlsx", edits={("W_E", 1, 0): 0.5})
    >>> cf.read(path)
    <EditedModel cat-sat: cells changed: 1, added: 0>
    >>> cf.read(path).inputs[0].name
    'W_E[1,0]'
    """
    return edited.read(path, find, names.of_gallery)


@explained
def quantize(
    what: str | Path | Model,
    prompt: str | None = None,
    bits: Sequence[int] = WIDTHS,
    group: int = 0,
    asymmetric: bool = False,
    texts: Sequence[str] = (),
    special: bool = True,
) -> list[Rounded]:
    """The answers of a model with its weights rounded to so many bits: as they are, all parts
    together, each part alone.

    `group` weights of a row share a scale (0: the whole row); the loss is that of the next words
    within `texts` (default: the prompt); with `special`, the tokenizer adds its special tokens.
    Raises InputError for a number of bits besides 8, 4, 3, 2.

    >>> for effect in cf.quantize("dialogue-game", bits=[2])[:2]:
    ...     print(effect.part, effect.bits, round(effect.loss, 3))
    all 0 1.486
    all 2 3.192
    """
    check(bits)
    loaded = names.load(name_of(what), prompt, special=special, force=True)
    model, ids = loaded.model, loaded.ids
    others = [names.text_ids(model, text, special) for text in texts]
    measure = Measure(model, ids, texts=others, row=model.place_of_answer(ids))
    return list(measure.effects([Grid(n, group, asymmetric) for n in bits]))
