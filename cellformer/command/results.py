"""The results of the commands as JSON: the fields of each, and their meaning.

docs/json.md is made of this file, and tests hold every command's --json to it.
"""

from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NamedTuple,
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
    from cellformer.exporters.edits import grading
    from cellformer.workbooks.adder import proof

Rows = list[list[float | str | bool | None]]  # of a block; null: a blank cell, or no finite number


class Workbook(TypedDict):
    """A workbook of the gallery."""

    name: Annotated[str, "as commands take it"]
    title: Annotated[str, "what it is"]
    topic: Annotated[str, "the workbook's topic in the gallery"]
    level: Annotated[int, "required knowledge, as a level: 1, 2 or 3"]
    start_here: Annotated[bool, "true if you should read this workbook first"]


class List(TypedDict):
    """`list`"""

    workbooks: Annotated[list[Workbook], "in learning order"]


class Forecast(TypedDict):
    """The size of a workbook, before it is built."""

    cells: Annotated[int, "all cells"]
    formulas: Annotated[int, "of them formulas"]
    megabytes: Annotated[float, "of the file"]
    held: Annotated[float, "gigabytes of memory that LibreOffice needs"]


class Parameters(TypedDict):
    """A part of a model."""

    part: Annotated[str, "its name"]
    parameters: Annotated[int, "how many it has"]
    share: Annotated[float, "of all, from 0 to 1"]


class Info(TypedDict):
    """`info`"""

    architecture: Annotated[str, "its name"]
    sizes: Annotated[dict[str, int], "d_vocab, d_model, n_layers and so on"]
    parts: Annotated[list[Parameters], "the parameters of each part"]
    kv_cache: Annotated[
        int | None, "numbers per token in a KV cache; null: the model does not generate text"
    ]
    tokens: Annotated[int, "number of tokens in the forecast"]
    forecast: Annotated[Forecast, "its workbook"]


class Build(TypedDict):
    """`build`"""

    file: Annotated[str, "the file that was written; with --all, the folder"]
    beside: Annotated[list[str], "other files that were written"]
    formulas: Annotated[int, "formulas in the workbook, or in all workbooks"]
    sheets: NotRequired[Annotated[int, "of the workbook"]]
    bytes: NotRequired[Annotated[int, "of the file"]]
    forecast: NotRequired[Annotated[Forecast, "the size forecast of a large workbook"]]


class OfPrompts(TypedDict):
    """Every study with `--prompts`: `ablate`, `gradient`, `patch`, `sweep`"""

    columns: Annotated[list[str], "the names of the values in a row; see docs/many-prompts.md"]
    rows: Annotated[Rows, "of all prompts"]
    prompts: Annotated[int, "the number of prompts"]


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

    after: Annotated[str, "the block that the lens reads"]
    words: Annotated[list[str], "the most likely words, most likely first"]
    probabilities: Annotated[list[float], "theirs"]
    target: Annotated[float, "the target's probability"]


class Share(TypedDict):
    """The amount that a part adds."""

    part: Annotated[str, "a head, an MLP or an embedding"]
    logit: Annotated[float, "to the target's logit"]
    lead: Annotated[float, "amount added to the target's lead over the rival"]


class Table(TypedDict):
    """A table of a workbook without a model."""

    name: Annotated[str, "its name"]
    rows: Annotated[int, "how many"]
    columns: Annotated[int, "how many"]
    computed: Annotated[bool, "true if the cells are formulas"]
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
    blocks: Annotated[dict[str, Rows], "the values of the blocks named with --show, row by row"]
    lens: NotRequired[Annotated[list[Stage], "with --lens"]]
    attribution: NotRequired[Annotated[list[Share], "with --target"]]
    vector: NotRequired[Annotated[list[float], "of a sentence encoder"]]
    cosine: NotRequired[Annotated[float, "of two sentences"]]
    tables: NotRequired[Annotated[list[Table], "of a workbook without a model"]]
    changes: NotRequired[Annotated[list[Change], "cells that --set changed"]]


class Traced(TypedDict):
    """A cell of a trace."""

    depth: Annotated[int, "0 for the cell that was asked about"]
    cell: Annotated[str, "the cell's name or address"]
    value: Annotated[float | str | bool | None, "its value"]
    formula: Annotated[str | None, "with names; null: it holds a value"]
    reads: Annotated[int, "number of cells that the formula reads; at most 12 are listed"]
    was: NotRequired[Annotated[str, "the cell's original content, if someone typed over the cell"]]
    now: NotRequired[Annotated[str, "what was typed"]]


class Trace(TypedDict):
    """`trace`"""

    cells: Annotated[
        list[Traced], "each cell, followed by the cells that it reads, one level deeper"
    ]


@dataclass(frozen=True)
class Reached:
    """An edit of the file that reaches a cell; if there are more than 50, all edits of a block
    together."""

    cell: Annotated[str, "its name"]
    at: Annotated[str, "its address"]
    was: Annotated[float | str | bool | None, "its value as built"]
    now: Annotated[float | str | bool | None, "its value"]
    n: Annotated[int, "number of edits; with several edits, was and now are null"]
    alone: Annotated[float | str | bool | None, "the cell's value with this edit alone"]


class Explained(TypedDict):
    """A cell in words."""

    at: Annotated[str, "its address"]
    cell: Annotated[str, "its name; without one, its address"]
    value: Annotated[float | str | bool | None, "the cell's value, computed with the file's edits"]
    was: Annotated[float | str | bool | None, "its value as built"]
    saved: Annotated[float | str | bool | None, "the value saved in the file"]
    formula: Annotated[str | None, "with names; null: it holds a value"]
    a1: Annotated[str | None, "the formula as the sheet shows it"]
    says: Annotated[list[str], "the same in sentences"]
    reads: Annotated[list[str], "the ranges that the cell reads, and the names of the ranges"]
    edits: Annotated[list[Reached], "edits that affect the cell, each applied alone"]


class Explain(TypedDict):
    """`explain`"""

    file: Annotated[str, "the workbook"]
    cells: Annotated[list[Explained], "in the order given"]


class Sweep(TypedDict):
    """`sweep`"""

    target: Annotated[str, "the watched word or cell"]
    rows: Annotated["list[sweep.Row] | list[sweep.Watched]", "in order"]


class Written(TypedDict):
    """A token that was generated."""

    token: Annotated[str, "as sheets show it"]
    id: Annotated[int, "its id"]
    cells: Annotated[int, "computed for it"]
    full_pass: Annotated[int, "cells that a full pass of that length computes"]


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
    gradient: Annotated[
        dict[str, list[list[float | None]]], "the gradient of every weight, block by block"
    ]
    by_gradient: Annotated[
        "list[sensitivity.Weight] | list[sensitivity.Slope]", "the largest gradients"
    ]
    by_weight_times_gradient: Annotated[
        "list[sensitivity.Weight] | list[sensitivity.Slope]",
        "the largest products of weight and gradient",
    ]
    blocks: NotRequired[Annotated[list["sensitivity.Group"], "sums over blocks"]]
    heads: NotRequired[Annotated[list["sensitivity.Group"], "sums over heads, MLPs and norms"]]
    parts: NotRequired[Annotated[list["sensitivity.Part"], "parts switched off"]]


class Edit(TypedDict):
    """`edit`"""

    word: Annotated[str, "that comes first now"]
    file: Annotated[str, "the workbook"]
    norm: Annotated[float, "of the change"]
    share: Annotated[float | None, "share of the norm of all weights that may change"]
    weights: Annotated[int, "that may change"]
    changed: Annotated[int, "that do"]
    before: Annotated[list[float], "probabilities of the next words, by id"]
    after: Annotated[list[float], "the same probabilities after the change"]
    change: Annotated[dict[str, list[list[float]]], "the change of each block of weights"]
    moved: Annotated[list[Change], "the weights that change, the largest change first"]
    price: Annotated[list["price.Price"], "side effects"]


Patch = TypedDict(
    "Patch",
    {
        "tokens": Annotated[list[str], "of the prompt"],
        "against": Annotated[list[str], "of the other sentence"],
        "target": Annotated[str, "the word"],
        "rival": Annotated[str, "the word compared with the target"],
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
    refused: Annotated[str, "the reason, if there are no compositions"]


class At(TypedDict):
    """A token of the prompt."""

    position: Annotated[int, "from 0"]
    token: Annotated[str, "as sheets show it"]


class Looked(TypedDict):
    """A score, split by the parts that wrote the query (rows) and the key (columns)."""

    key: Annotated[At, "the token that receives the attention"]
    score: Annotated[float, "the whole score: the sum of the fields table and outside"]
    pattern: Annotated[float, "the attention"]
    table: Annotated[list[list[float]], "the score's parts"]
    outside: Annotated[dict[str, float], "parts of the score that belong to no writer"]


class WhyHead(Looked):
    """`why --head`"""

    head: Annotated[str, "its name"]
    query: Annotated[At, "the token that looks"]
    query_writers: Annotated[list[str], "of the rows"]
    key_writers: Annotated[list[str], "of the columns"]
    rival: NotRequired[Annotated[Looked, "with --rival-key"]]
    difference: NotRequired[Annotated[list[list[float]], "the table minus the rival's table"]]
    qk_circuit: Annotated[list[tuple[str, str, float]] | str, "which word attends to which word"]
    ov_circuit: Annotated[list[tuple[str, str, float]] | str, "which word raises which"]


class Taken(At):
    """The amount that a channel takes from a token."""

    weight: Annotated[float, "the factor for the input"]
    input: Annotated[float, "the channel's input at that token"]
    adds: Annotated[float, "the weight times the input"]


class WhyChannel(TypedDict):
    """`why --channel`"""

    channel: Annotated[str, "layer and channel number; if the states are in heads, also the head"]
    reader: Annotated[At, "the token that reads"]
    taken: Annotated[list[Taken], "every token up to the token that reads"]
    past: Annotated[float, "D times the channel's own input, which bypasses the states"]
    read: Annotated[float, "the sum that the channel reads"]


class Edge(TypedDict):
    """An edge of the answer's graph: a name and a position at each end."""

    source: Annotated[list[str | int], "what writes"]
    reader: Annotated[list[str | int], "what reads"]
    value: NotRequired[Annotated[float, "the edge's part of the lead"]]
    cut: NotRequired[
        Annotated[
            float | None,
            "change of the lead if the edge is cut; null if this is only a part of an edge",
        ]
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
    rival: Annotated[str, "the word that the target competes with"]
    lead: Annotated[float, "of its logit"]
    edges: Annotated[list[Edge], "the strongest"]
    circuit: Annotated[Circuit | None, "null: no small set of edges keeps the answer"]
    refused: Annotated[str, "why not"]
    other_sentences: Annotated[list[Trial], "results of the circuit on other sentences"]


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
    towards: Annotated[list[Near], "words that the direction points to"]
    away: Annotated[list[Near], "words that the direction points away from"]
    probes: Annotated[list["probes.Accuracy"], "first at the site"]


class Quantize(TypedDict):
    """`quantize`"""

    target: Annotated[str, "the word"]
    rival: Annotated[str, "the word that the target competes with"]
    effects: Annotated[
        list["quantization.Rounded"],
        "effects of rounding: no part, all parts together, each part alone",
    ]


class Differs(TypedDict):
    """A cell that differs from the workbook as built."""

    kind: Annotated[str, "changed, formula, label, added, or filled in"]
    cell: Annotated[str, "the cell's name; for an added cell, the address"]
    at: Annotated[str, "its address"]
    was: Annotated[float | str | bool | None, "its content as built"]
    now: Annotated[float | str | bool | None, "the cell's content; a formula begins with ="]
    counts: Annotated[str, "how the value counts, if the value has the wrong type"]


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
    prompt: NotRequired[Annotated[str, "for a model that continues texts: the current prompt"]]
    words: NotRequired[Annotated[list[Turned], "for a model that continues texts: the next words"]]
    effects: NotRequired[Annotated[list[Change], "of a workbook without a model"]]
    refused: NotRequired[Annotated[str, "the reason, if the effect is not computed"]]


class Import(TypedDict):
    """`import`"""

    folder: Annotated[str, "the checkpoint"]
    changes: Annotated[
        int | None, "number of changed cells; null: the model learned in the workbook"
    ]
    added: Annotated[int, "number of added cells, which are left out"]


class Graded(TypedDict):
    """A file."""

    file: Annotated[str, "its name"]
    reader: Annotated[str, "the name in it"]
    level: Annotated[int, "of the exercises"]
    score: Annotated[int, "exercises that are right"]
    exercises: Annotated[list[list["grading.Marked"]], "the cells of each"]


class NotMarked(NamedTuple):
    """A file without marks."""

    file: Annotated[str, "its name"]
    why: Annotated[str, "not marked: the reason"]


class Grade(TypedDict):
    """`grade`"""

    files: Annotated[list[Graded], "files with marks, in the order given"]
    not_marked: Annotated[list[NotMarked], "the others"]


@dataclass(frozen=True)
class Verdict:
    """The verdict of an engine."""

    engine: Annotated[str, "its name"]
    verdict: Annotated[str, "agrees, disagrees, skipped or not installed"]
    cells: Annotated[int, "that were compared"] = 0
    largest: Annotated[
        float | None, "largest difference; null: no difference, or a value is not a number"
    ] = None
    where: Annotated[str, "the cell with the largest difference"] = ""
    why: Annotated[str, "the reason for skipping the engine, or how to install the engine"] = ""


class Verify(TypedDict):
    """`verify`"""

    file: Annotated[str, "the workbook, or the page"]
    engines: Annotated[list[Verdict], "those that were asked"]
    rules: Annotated[list[str], "rules of Excel that the file breaks"]
    uncomputed: Annotated[int, "formulas without a value, which are not compared"]
    digits: Annotated[
        float | None,
        "largest change of a logit from shortened weights; null: the weights are exact",
    ]


class Prove(TypedDict):
    """`prove`"""

    proved: Annotated[bool, "true: the model is right for all sums"]
    cases: Annotated[int, "of all digits"]
    lead: Annotated[float | None, "the least lead of all cases; null: no number"]
    digits: Annotated[list["proof.Digit"], "the digits of the sum, from the right"]
    unproved: Annotated[list["proof.Case"], "the cases that are not proved"]


class Differing(TypedDict):
    """A cell that a program computes differently."""

    cell: Annotated[str, "its address"]
    form: Annotated[str, "the function or sign in the formula, and its arguments"]
    formula: Annotated[str, "the formula in the workbook"]
    ours: Annotated[float | bool | str | None, "what cellformer computes"]
    program: Annotated[float | bool | str | None, "the program's result; null: no result"]


class Bless(TypedDict):
    """`bless`"""

    file: Annotated[str, "the workbook with all forms of formulas"]
    forms: Annotated[
        int, "number of forms; a form is a function or sign with its kinds of arguments"
    ]
    formulas: Annotated[int, "examples of the forms"]
    program: Annotated[str, "the program that saved the file, as the file says; empty with -o"]
    cells: Annotated[int, "that were compared"]
    largest: Annotated[
        float | None, "largest difference in the cells that agree; null: no cell agrees"
    ]
    differ: Annotated[list[Differing], "cells that differ"]


class Figure(TypedDict):
    """A number of a trained model."""

    what: Annotated[str, "it is"]
    figure: Annotated[str, "with its unit"]


class Train(TypedDict):
    """`train`"""

    folder: Annotated[str, "the checkpoint"]
    figures: Annotated[list[Figure], "measures of the model's quality"]


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
    "prove": (Prove,),
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
    "Prove": "digits",
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
    from cellformer.exporters.edits import grading
    from cellformer.workbooks.adder import proof

    of_studies = modules(studies.__name__, studies.__path__)
    rooms = {module.__name__.rpartition(".")[2]: module for module in (*of_studies, grading, proof)}
    return get_type_hints(
        kind, rooms | globals() if is_typeddict(kind) else None, include_extras=True
    )
