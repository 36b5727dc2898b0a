"""The results of the commands as JSON: the fields of each, and their meaning.

docs/json.md is made of this file, and tests hold every command's --json to it.
"""

from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NotRequired,
    TypedDict,
    get_type_hints,
    is_typeddict,
)

if TYPE_CHECKING:  # their rows; no command waits for studies that it does not need
    from cellformer.engine.studies import (
        circuits,
        heads,
        pair,
        patching,
        price,
        probes,
        quantization,
        sensitivity,
        sweep,
    )

Rows = list[list[float | str | bool | None]]  # of a block; null: a blank cell, or no finite number


class Workbook(TypedDict):
    """A workbook of the gallery."""

    name: Annotated[str, "as commands take it"]
    title: Annotated[str, "what it is"]
    topic: Annotated[str, "the topic of the gallery"]
    level: Annotated[int, "what one has to know: 1, 2 or 3"]
    start_here: Annotated[bool, "whether it is the first to read"]


class List(TypedDict):
    """`list`"""

    workbooks: Annotated[list[Workbook], "in learning order"]


class Forecast(TypedDict):
    """The size of a workbook, before it is built."""

    cells: Annotated[int, "all cells"]
    formulas: Annotated[int, "of them formulas"]
    megabytes: Annotated[float, "of the file"]
    held: Annotated[float, "gigabytes that LibreOffice holds it in"]


class Parameters(TypedDict):
    """A part of a model."""

    part: Annotated[str, "its name"]
    parameters: Annotated[int, "how many it has"]
    share: Annotated[float, "of all, from 0 to 1"]


class Info(TypedDict):
    """`info`"""

    architecture: Annotated[str, "its name"]
    sizes: Annotated[dict[str, int], "d_vocab, d_model, n_layers and so on"]
    parts: Annotated[list[Parameters], "its parameters, part by part"]
    kv_cache: Annotated[
        int | None, "numbers that a KV cache holds for a token; null: the model does not generate"
    ]
    tokens: Annotated[int, "that the forecast is for"]
    forecast: Annotated[Forecast, "its workbook"]


class Build(TypedDict):
    """`build`"""

    file: Annotated[str, "what was written; with --all, the folder"]
    beside: Annotated[list[str], "other files that were written"]
    formulas: Annotated[int, "of the workbook, or of all"]
    sheets: NotRequired[Annotated[int, "of the workbook"]]
    bytes: NotRequired[Annotated[int, "of the file"]]
    forecast: NotRequired[Annotated[Forecast, "what was forecast, if it was large"]]


class OfPrompts(TypedDict):
    """Every study with `--prompts`: `ablate`, `gradient`, `patch`, `sweep`"""

    columns: Annotated[list[str], "the names of a row's values, as docs/many-prompts.md"]
    rows: Annotated[Rows, "of all prompts"]
    prompts: Annotated[int, "how many there are"]


class Word(TypedDict):
    """A word that may come next."""

    rank: Annotated[int, "1: the likeliest"]
    word: Annotated[str, "as sheets show it"]
    id: Annotated[int, "its token id"]
    logit: Annotated[float | None, "the logit"]
    probability: Annotated[float | None, "from 0 to 1"]
    baseline: Annotated[float | None, "the probability before any change"]


class Stage(TypedDict):
    """The logit lens after a sublayer."""

    after: Annotated[str, "the block that is read"]
    words: Annotated[list[str], "the likeliest, first the likeliest"]
    probabilities: Annotated[list[float], "theirs"]
    target: Annotated[float, "the target's probability"]


class Share(TypedDict):
    """The amount that a part adds."""

    part: Annotated[str, "a head, an MLP or an embedding"]
    logit: Annotated[float, "to the target's logit"]
    lead: Annotated[float, "to its lead over the rival"]


class Table(TypedDict):
    """A table of a workbook without a model."""

    name: Annotated[str, "its name"]
    rows: Annotated[int, "how many"]
    columns: Annotated[int, "how many"]
    computed: Annotated[bool, "whether its cells are formulas"]
    at: Annotated[str, "where it stands"]


class Change(TypedDict):
    """A cell that changed."""

    cell: Annotated[str, "its name"]
    was: Annotated[float | str | bool | None, "its value as built"]
    now: Annotated[float | str | bool | None, "its value"]


class Run(TypedDict):
    """`run`"""

    prompt: Annotated[str | None, "the text that was read"]
    ids: Annotated[list[int], "its token ids"]
    words: Annotated[list[Word], "the likeliest words, and the target"]
    blocks: Annotated[dict[str, Rows], "the values of the blocks of --show, row by row"]
    lens: NotRequired[Annotated[list[Stage], "with --lens"]]
    attribution: NotRequired[Annotated[list[Share], "with --target"]]
    vector: NotRequired[Annotated[list[float], "of a sentence encoder"]]
    cosine: NotRequired[Annotated[float, "of two sentences"]]
    tables: NotRequired[Annotated[list[Table], "of a workbook without a model"]]
    changes: NotRequired[Annotated[list[Change], "what --set changed in it"]]


class Traced(TypedDict):
    """A cell of a trace."""

    depth: Annotated[int, "0: the cell that was asked about"]
    cell: Annotated[str, "its name, or its address"]
    value: Annotated[float | str | bool | None, "its value"]
    formula: Annotated[str | None, "with names; null: it holds a value"]
    reads: Annotated[int, "how many cells it reads; of a formula with many, 12 are listed"]
    was: NotRequired[Annotated[str, "its content as built, if something was typed into it"]]
    now: NotRequired[Annotated[str, "what was typed"]]


class Trace(TypedDict):
    """`trace`"""

    cells: Annotated[list[Traced], "each before the cells that it reads, one deeper"]


class Reached(Change):
    """An edit of the file that reaches a cell; if there are more than 50, all edits of a block
    together."""

    at: Annotated[str, "its address"]
    n: Annotated[int, "how many edits; of several, was and now are null"]
    alone: Annotated[float | str | bool | None, "the cell's value with this edit alone"]


class Explained(TypedDict):
    """A cell in words."""

    at: Annotated[str, "its address"]
    cell: Annotated[str, "its name; without one, its address"]
    value: Annotated[float | str | bool | None, "its value, computed with the file's edits"]
    was: Annotated[float | str | bool | None, "its value as built"]
    saved: Annotated[float | str | bool | None, "its value in the file"]
    formula: Annotated[str | None, "with names; null: it holds a value"]
    a1: Annotated[str | None, "the formula as in the sheet"]
    says: Annotated[list[str], "the same in sentences"]
    reads: Annotated[list[str], "the ranges that it reads, and their names"]
    edits: Annotated[list[Reached], "that reach it, each made alone"]


class Explain(TypedDict):
    """`explain`"""

    file: Annotated[str, "the workbook"]
    cells: Annotated[list[Explained], "in the order given"]


class Sweep(TypedDict):
    """`sweep`"""

    target: Annotated[str, "the word, or the cell that is watched"]
    rows: Annotated["list[sweep.Row] | list[sweep.Watched]", "in order"]


class Written(TypedDict):
    """A token that was generated."""

    token: Annotated[str, "as sheets show it"]
    id: Annotated[int, "its id"]
    cells: Annotated[int, "computed for it"]
    full_pass: Annotated[int, "cells of a full pass of that length"]


class Generate(TypedDict):
    """`generate`"""

    prompt: Annotated[str, "the text that was read"]
    text: Annotated[str, "the prompt and its continuation"]
    ids: Annotated[list[int], "of the continuation"]
    tokens: Annotated[list[Written], "the continuation"]


class Gradient(TypedDict):
    """`gradient`"""

    objective: Annotated[str, "what is differentiated"]
    value: Annotated[float, "its value"]
    gradient: Annotated[dict[str, list[list[float | None]]], "of every weight, block by block"]
    by_gradient: Annotated[
        "list[sensitivity.Weight] | list[sensitivity.Slope]", "the largest gradients"
    ]
    by_weight_times_gradient: Annotated[
        "list[sensitivity.Weight] | list[sensitivity.Slope]", "the largest of that product"
    ]
    blocks: NotRequired[Annotated[list["sensitivity.Group"], "sums over blocks"]]
    heads: NotRequired[Annotated[list["sensitivity.Group"], "sums over heads, MLPs and norms"]]
    parts: NotRequired[Annotated[list["sensitivity.Part"], "parts switched off"]]


class Edit(TypedDict):
    """`edit`"""

    word: Annotated[str, "that comes first now"]
    file: Annotated[str, "the workbook"]
    norm: Annotated[float, "of the change"]
    share: Annotated[float | None, "of the norm of the weights that may change"]
    weights: Annotated[int, "that may change"]
    changed: Annotated[int, "that do"]
    before: Annotated[list[float], "probabilities of the next words, by id"]
    after: Annotated[list[float], "the same after the change"]
    change: Annotated[dict[str, list[list[float]]], "of each block of weights"]
    moved: Annotated[list[Change], "the weights that change, the largest change first"]
    price: Annotated[list["price.Price"], "side effects"]


Patch = TypedDict(
    "Patch",
    {
        "tokens": Annotated[list[str], "of the prompt"],
        "against": Annotated[list[str], "of the other sentence"],
        "target": Annotated[str, "the word"],
        "rival": Annotated[str, "the word that it is compared with"],
        "before": Annotated["patching.Scores", "after the prompt"],
        "other": Annotated["patching.Scores", "after the other sentence"],
        "from": NotRequired[Annotated[str, "of a path"]],
        "to": NotRequired[Annotated[str, "of a path"]],
        "sites": Annotated[list["pair.PatchedSite"], "every patch"],
    },
)
Patch.__doc__ = "`patch`"


class WhyHeads(TypedDict):
    """`why`"""

    heads: Annotated[list["heads.Habits"], "every head"]
    compositions: Annotated[list["circuits.Composition"], "which head reads which"]
    refused: Annotated[str, "why there are no compositions"]


class At(TypedDict):
    """A token of the prompt."""

    position: Annotated[int, "from 0"]
    token: Annotated[str, "as sheets show it"]


class Looked(TypedDict):
    """A score, split by the parts that wrote the query (rows) and the key (columns)."""

    key: Annotated[At, "the token that is looked at"]
    score: Annotated[float, "the sum of the table and of what is outside"]
    pattern: Annotated[float, "the attention"]
    table: Annotated[list[list[float]], "the score's parts"]
    outside: Annotated[dict[str, float], "parts that no writer has"]


class WhyHead(Looked):
    """`why --head`"""

    head: Annotated[str, "its name"]
    query: Annotated[At, "the token that looks"]
    query_writers: Annotated[list[str], "of the rows"]
    key_writers: Annotated[list[str], "of the columns"]
    rival: NotRequired[Annotated[Looked, "with --rival-key"]]
    difference: NotRequired[Annotated[list[list[float]], "the table less the rival's"]]
    qk_circuit: Annotated[list[tuple[str, str, float]] | str, "which word looks at which"]
    ov_circuit: Annotated[list[tuple[str, str, float]] | str, "which word raises which"]


class Taken(At):
    """The amount that a channel takes from a token."""

    weight: Annotated[float, "how much of the input"]
    input: Annotated[float, "of the channel at that token"]
    adds: Annotated[float, "the weight times the input"]


class WhyChannel(TypedDict):
    """`why --channel`"""

    channel: Annotated[str, "its layer and number; where states are in heads, with the head"]
    reader: Annotated[At, "the token that reads"]
    taken: Annotated[list[Taken], "every token up to it"]
    past: Annotated[float, "D times the own input, past the states"]
    read: Annotated[float, "what the channel reads: the sum"]


class Edge(TypedDict):
    """An edge of the answer's graph: a name and a position at each end."""

    source: Annotated[list[str | int], "what writes"]
    reader: Annotated[list[str | int], "what reads"]
    value: NotRequired[Annotated[float, "its part of the lead"]]
    cut: NotRequired[
        Annotated[float | None, "change of the lead without it; null: not a whole edge"]
    ]


class Circuit(TypedDict):
    """The edges that alone keep the answer."""

    edges: Annotated[list[Edge], "of the circuit"]
    lead: Annotated[float, "with these alone"]
    lead_without: Annotated[float, "with none"]


class Trial(TypedDict):
    """The circuit on another sentence."""

    ids: Annotated[list[int], "of the sentence"]
    says: Annotated[str, "the whole model's word"]
    alone: Annotated[str, "the circuit's"]


class WhyWord(TypedDict):
    """`why --say`"""

    tokens: Annotated[list[str], "of the prompt"]
    target: Annotated[str, "the word"]
    rival: Annotated[str, "the word that it leads"]
    lead: Annotated[float, "of its logit"]
    edges: Annotated[list[Edge], "the strongest"]
    circuit: Annotated[Circuit | None, "null: no few edges keep it"]
    refused: Annotated[str, "why not"]
    other_sentences: Annotated[list[Trial], "how the circuit does there"]


class Steered(TypedDict):
    """The text that a steered model writes."""

    strength: Annotated[float, "times the direction"]
    text: Annotated[str, "the prompt and its continuation"]
    ids: Annotated[list[int], "of both"]


class Near(TypedDict):
    """A word and its dot product with the direction."""

    word: Annotated[str, "the word"]
    dot: Annotated[float, "the product"]


class Steer(TypedDict):
    """`steer`"""

    site: Annotated[str, "where the direction is added"]
    lists: Annotated[dict[str, int], "sentences of each list"]
    norm: Annotated[float, "of the direction"]
    texts: Annotated[list[Steered], "by strength"]
    towards: Annotated[list[Near], "words that it points to"]
    away: Annotated[list[Near], "words that it points away from"]
    probes: Annotated[list["probes.Accuracy"], "first at the site"]


class Quantize(TypedDict):
    """`quantize`"""

    target: Annotated[str, "the word"]
    rival: Annotated[str, "the word that it leads"]
    effects: Annotated[list["quantization.Rounded"], "as they are, all together, each alone"]


class Differs(TypedDict):
    """A cell that differs from the workbook as built."""

    kind: Annotated[str, "changed, formula, label, added, or filled in"]
    cell: Annotated[str, "its name; of an added one, its address"]
    at: Annotated[str, "its address"]
    was: Annotated[float | str | bool | None, "its content as built"]
    now: Annotated[float | str | bool | None, "its content; a formula begins with ="]
    counts: Annotated[str, "what it counts as, if it is of the wrong kind"]


class Turned(TypedDict):
    """A next word, before and after."""

    rank: Annotated[int, "1: the likeliest now"]
    word: Annotated[str, "as sheets show it"]
    was: Annotated[float, "its probability as built"]
    now: Annotated[float, "its probability"]


class Diff(TypedDict):
    """`diff`"""

    file: Annotated[str, "the workbook"]
    changes: Annotated[list[Differs], "every cell that differs"]
    prompt: NotRequired[Annotated[str, "of a model that goes on: as it is now"]]
    words: NotRequired[Annotated[list[Turned], "of a model that goes on: its next words"]]
    effects: NotRequired[Annotated[list[Change], "of a workbook without a model"]]
    refused: NotRequired[Annotated[str, "why the effect is not computed"]]


class Import(TypedDict):
    """`import`"""

    folder: Annotated[str, "the checkpoint"]
    changes: Annotated[int | None, "cells that differ; null: a model that learned"]
    added: Annotated[int, "added cells, which are left out"]


class Marked(TypedDict):
    """A yellow cell."""

    name: Annotated[str, "its name"]
    right: Annotated[bool, "whether it is"]
    said: Annotated[str, "what is said of it"]
    slips: Annotated[list[str], "the slips that are known"]


class Graded(TypedDict):
    """A file."""

    file: Annotated[str, "its name"]
    reader: Annotated[str, "the name in it"]
    level: Annotated[int, "of the exercises"]
    score: Annotated[int, "exercises that are right"]
    exercises: Annotated[list[list[Marked]], "the cells of each"]


class NotMarked(TypedDict):
    """A file without marks."""

    file: Annotated[str, "its name"]
    why: Annotated[str, "not marked: the reason"]


class Grade(TypedDict):
    """`grade`"""

    files: Annotated[list[Graded], "those with marks, in the order given"]
    not_marked: Annotated[list[NotMarked], "the others"]


class Verdict(TypedDict):
    """The verdict of an engine."""

    engine: Annotated[str, "its name"]
    verdict: Annotated[str, "agrees, disagrees, skipped or not installed"]
    cells: Annotated[int, "that were compared"]
    largest: Annotated[float | None, "difference; null: none, or one is no number"]
    where: Annotated[str, "the cell of that difference"]
    why: Annotated[str, "it was skipped, or how to install it"]


class Verify(TypedDict):
    """`verify`"""

    file: Annotated[str, "the workbook, or the page"]
    engines: Annotated[list[Verdict], "those that were asked"]
    rules: Annotated[list[str], "rules of Excel that the file breaks"]
    uncomputed: Annotated[int, "formulas without a value, which are not compared"]
    digits: Annotated[float | None, "what shortened weights do to a logit; null: exact"]


class Differing(TypedDict):
    """A cell that a program computes differently."""

    cell: Annotated[str, "its address"]
    form: Annotated[str, "what its formula calls, and with what"]
    formula: Annotated[str, "as the workbook has it"]
    ours: Annotated[float | bool | str | None, "what cellformer computes"]
    program: Annotated[float | bool | str | None, "what the program does; null: nothing"]


class Bless(TypedDict):
    """`bless`"""

    file: Annotated[str, "the workbook of all forms"]
    forms: Annotated[int, "functions and signs, each with what it is given"]
    formulas: Annotated[int, "examples of the forms"]
    program: Annotated[str, "that saved the file, as the file says; empty with -o"]
    cells: Annotated[int, "that were compared"]
    largest: Annotated[float | None, "difference of a cell that agrees; null: none does"]
    differ: Annotated[list[Differing], "cells that differ"]


class Figure(TypedDict):
    """A number of a trained model."""

    what: Annotated[str, "it is"]
    figure: Annotated[str, "with its unit"]


class Train(TypedDict):
    """`train`"""

    folder: Annotated[str, "the checkpoint"]
    figures: Annotated[list[Figure], "how well the model does"]


OF: dict[str, tuple[Any, ...]] = {
    "list": (List,),
    "build": (Build,),
    "run": (Run,),
    "trace": (Trace,),
    "explain": (Explain,),
    "patch": (Patch, OfPrompts),
    "quantize": (Quantize,),
    "gradient": (Gradient, OfPrompts),
    "why": (WhyHeads, WhyHead, WhyWord, WhyChannel),
    "steer": (Steer,),
    "sweep": (Sweep, OfPrompts),
    "generate": (Generate,),
    "info": (Info,),
    "edit": (Edit,),
    "diff": (Diff,),
    "import": (Import,),
    "grade": (Grade,),
    "verify": (Verify,),
    "bless": (Bless,),
    "train": (Train,),
}
ROWS = {  # of each result the list that --csv prints
    "List": "workbooks",
    "Run": "words",
    "Trace": "cells",
    "Explain": "cells",
    "Patch": "sites",
    "Quantize": "effects",
    "Gradient": "by_gradient",
    "WhyHeads": "heads",
    "WhyWord": "edges",
    "WhyChannel": "taken",
    "Steer": "texts",
    "Sweep": "rows",
    "Study": "rows",
    "Generate": "tokens",
    "Info": "parts",
    "Edit": "moved",
    "Diff": "changes",
    "Grade": "files",
    "Verify": "engines",
    "Bless": "differ",
    "Train": "figures",
}


def kinds(command: str) -> tuple[Any, ...]:
    """The kinds of results of a command. A study without a command file answers its rows."""
    if command in OF:
        return OF[command]
    from cellformer.engine.studies.study import studies

    fields = {
        "target": Annotated[str, "the word"],
        "rows": Annotated[list[studies()[command].row], "all that was found"],  # type: ignore[misc]
    }
    found = TypedDict(f"Study {command}", fields)  # type: ignore[misc]
    found.__doc__ = f"`{command}`"
    return found, OfPrompts


def main_table(kind: Any) -> str | None:
    """The list of a result that --csv prints, if there is one."""
    return ROWS.get(kind.__name__.partition(" ")[0])


def hints(kind: type) -> dict[str, Any]:
    """The fields of a kind of result, or of a row, with their meanings."""
    from cellformer.engine import studies
    from cellformer.engine.cells.packages import modules

    rooms = {
        module.__name__.rpartition(".")[2]: module
        for module in modules(studies.__name__, studies.__path__)
    }
    return get_type_hints(
        kind, rooms | globals() if is_typeddict(kind) else None, include_extras=True
    )
