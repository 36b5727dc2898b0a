"""The house: which room knows which, how long a function is, and what is found by being there."""

import ast
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from conftest import ROOT, InIronCalc, cli, told
from safetensors.numpy import save_file

import cellformer as cf
from cellformer import workbooks
from cellformer.engine import studies
from cellformer.engine.cells.functions import ROUND
from cellformer.engine.cells.interventions import intervened
from cellformer.engine.cells.op import op
from cellformer.engine.models import architectures
from cellformer.exporters import pages
from cellformer.exporters.checking.verify import verify
from cellformer.exporters.file.reading import WorkbookFile

MOST_LINES = 60  # of a function, signature and docstring included
ROOMS = ("engine", "exporters", "workbooks", "cellformer")
LEVELS = {  # what stands in a room, from the ground up: each imports only what comes before it
    "": ROOMS,
    "engine": ("cells", "text", "models", "learning", "studies"),
    "engine.text": (
        *("chat_child", "chat_template", "chat", "chat_ids"),
        *("tokenizers_library", "vocabularies", "unigram", "sentencepiece", "spiece"),
        "tokenizer_config",
        *("subwords", "marian", "tokenizer"),
        *("list_file", "word_list_file", "sentence_lists", "word_lookup"),
        *("detokenizing", "decoded_text", "tokenizing"),
    ),
    "engine.models": (
        *("spec", "foreign", "answering", "ops", "adapter", "tensors", "unpacking", "classes"),
        "sentence_modules",
        *("gguf_file", "gguf_families", "rope", "seeing"),
        *(
            "formats",
            "forward",
            "parts",
            "alibi",
            "distance",
            "two_stacks",
            "pooling",
            "architectures",
            "model",
        ),
        *("checkpoint", "rank_search", "choosing", "generate", "prompt", "encoding"),
        "prompt_status",
    ),
    "exporters": (
        *("compose", "file", "model", "play", "pages", "assemble", "web", "edits", "checking"),
    ),
}


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the house by its name."""
    found = {}
    for file in (file for room in ROOMS for file in (ROOT / room).rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(file.read_text())
    return found


@cache
def nodes(name: str) -> list[ast.AST]:
    """What a module's tree holds of imports and functions."""
    wanted = (ast.Import, ast.ImportFrom, ast.FunctionDef)
    return [node for node in statements(modules()[name]) if isinstance(node, wanted)]


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All of a tree, however deep, but for what stands in expressions, which is most of it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield node
            yield from statements(node)


def imported(name: str) -> Iterator[str]:
    """The modules of the house that a module imports, at its top or within a function."""
    for node in nodes(name):
        if isinstance(node, ast.Import):
            found = [in_repository(alias.name) for alias in node.names]
            yield from (other for other in found if other in modules())
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports say the whole name"
            module = in_repository(str(node.module))
            for alias in node.names:
                whole = in_repository(f"{node.module}.{alias.name}")
                if whole in modules() or module in modules():
                    yield whole if whole in modules() else module


def in_repository(module: str) -> str:
    """Where a module stands there: `engine/` is installed as `cellformer.engine`."""
    inside = module.removeprefix("cellformer.")
    return inside if inside.partition(".")[0] in ROOMS else module


def within(name: str, room: str) -> bool:
    return name == room or name.startswith(f"{room}.")


@cache
def imports() -> dict[str, set[str]]:
    """What each module imports of the house."""
    return {name: {*imported(name)} for name in modules()}


@pytest.mark.parametrize("room", LEVELS)
def test_imports_run_one_way(room: str) -> None:
    """The cells know no transformer, the engine no exporter, exporters no workbook."""
    levels = {name: level for level, name in enumerate(LEVELS[room])}
    begin = room.count(".") + 1 if room else 0
    inside = {
        name: {other for other in others if other.startswith(room)}
        for name, others in imports().items()
        if name.startswith(room) and name != room
    }
    assert len(inside) > len(levels)
    for name, others in inside.items():
        here = name.split(".")[begin]
        assert here in levels, f"{name} stands on no level of LEVELS[{room!r}]"
        for there in {other.split(".")[begin] for other in others if other != room}:
            assert levels[there] <= levels[here], f"{name} imports {there}, which stands above it"


def test_benchmarks_import_existing_names() -> None:
    """No test runs them: they take minutes."""
    tests = {file.stem: file for file in (ROOT / "tests").rglob("*.py")}
    taken = [
        (script, node.module, alias.name)
        for script in (ROOT / "benchmarks").glob("*.py")
        for node in ast.walk(ast.parse(script.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module in tests
        for alias in node.names
    ]
    assert len(taken) > 10
    for script, module, name in taken:
        defined = rf"^(from .*\b|def |class )?{name}\b"
        assert re.search(defined, tests[module].read_text(), re.M), (script.name, module, name)


def test_no_circular_imports() -> None:
    graph = {name: others - {name} for name, others in imports().items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        pytest.fail(" -> ".join(reversed(circle.args[1])))


def test_functions_fit_on_a_screen() -> None:
    functions = {
        f"{name}.{node.name}": node.end_lineno + 1 - node.lineno
        for name in modules()
        for node in nodes(name)
        if isinstance(node, ast.FunctionDef)
    }
    assert {name: n for name, n in functions.items() if n > MOST_LINES} == {}


# --- one file each ----------------------------------------------------------------------------

PAGE = '''"""Twice: a page of its own."""

from cellformer.exporters.model import layout

SHEET = "Twice"
PURPOSE = "the first logit, twice"
AFTER = "Play"


def add(book):
    page = layout.page(book, SHEET)
    page.show("logit", (4, 1), book.graph["logits"][0, 0] * 2, "live")
'''

ARCHITECTURE = '''"""A bigram model: the last word alone chooses the next one."""

from cellformer.engine.models import ops, parts
from cellformer.engine.models.foreign import Piece
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("bigram",)
EPS = "epsilon"


def forward(g, ids):
    table, embed = parts.embed(g, ids)
    x = g.block("resid_final", ops.add, [embed])
    parts.unembed(g, x, table)


def read_config(c):
    return ModelSpec(c.get("vocab_size", int), c.get("width", int), n_ctx=8)


def pieces(spec):
    yield "W_E", Piece("words_in")
    yield "W_U", Piece("words_out", transposed=True)
'''

WORKBOOK = '''"""halves: a number and its half. Look at the half. Try another number."""

from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.exporters.assemble.worksheets import Workbook

TOPIC, AFTER, LEVEL = "Sizes", "napkin", 1
TITLE = "halves: a number, and its half"


def book():
    w = Workbook("halves")
    ws = w.sheet("Halves", "a number and its half")
    number = ws.typed("number", [[3.0]])
    half = ws.computed("half", (1, 1), lambda i, j: number[i, j] / 2)
    suggestions = [Suggestion("Type 4.", ("number", 0, 0), 4.0, ("half", 0, 0), 2.0)]
    return w.done(Story(TITLE, "", [""], [""], suggestions))
'''


STUDY = '''"""Rounded: what the model says if a layer's output keeps few decimals."""

from dataclasses import dataclass
from typing import Annotated

from cellformer.engine.cells.functions import ROUND
from cellformer.engine.cells.interventions import intervened
from cellformer.engine.cells.op import op
from cellformer.engine.studies.study import Study


@op(x="i,j", n="0,0")
def kept(x, n):
    return ROUND(x, n)


@dataclass(frozen=True)
class Row:
    """A block that is rounded."""

    block: Annotated[str, "its name"]
    change: Annotated[float, "of the target's logit", "+.3f"]


@dataclass(frozen=True)
class Options:
    decimals: Annotated[int, "Decimals that are kept."] = 1


def rows(asked):
    target = asked.word(asked.target)
    return asked.words[target], [
        Row(block.name, rounded(asked, block.name)[target] - asked.graph.last("logits")[-1][target])
        for block in asked.graph
        if block.leaf == "resid_post"
    ]


def rounded(asked, name):
    def formula(g, name, own):
        return g.block(name, kept, own, g.at("rounded").input("n", asked.options.decimals))

    return intervened(asked.graph, {name: formula}).last("logits")[-1]


STUDY = Study(
    "round-activations",
    "Round what each layer leaves in the stream, and report the target's logit.",
    Row,
    rows,
    Options,
)
'''


@pytest.fixture
def dropped(tmp_path: Path, monkeypatch):
    """Puts a file into one of the house's folders, for the time of a test."""
    names = []

    def drop(package: ModuleType, name: str, text: str) -> None:
        folder = tmp_path / package.__name__
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(text)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
        names.append(f"{package.__name__}.{name}")

    yield drop
    for name in names:
        sys.modules.pop(name, None)
        package, _, leaf = name.rpartition(".")
        vars(sys.modules[package]).pop(leaf, None)


def test_a_page_is_one_file(dropped, tmp_path: Path) -> None:
    dropped(pages, "twice", PAGE)
    path = tmp_path / "x.xlsx"
    assert cli("build", "cat-sat", "-o", path).code == 0
    file = WorkbookFile(path)
    names = list(file)
    assert names.index("Twice") > names.index("Play")
    assert file["Twice"].cell("B5").formula and isinstance(file["Twice"]["B5"], float)
    report = verify(path, "ironcalc")
    assert report.agrees, report
    shown = [cell.value for cell in file["Start"].cells.values()]
    assert "the first logit, twice" in shown


def test_an_architecture_is_one_file(dropped, tmp_path: Path) -> None:
    dropped(architectures, "bigram", ARCHITECTURE)
    folder = tmp_path / "model"
    folder.mkdir()
    rng = np.random.default_rng(0)
    held = {name: rng.normal(size=(5, 3)).astype(np.float32) for name in ("words_in", "words_out")}
    save_file(held, folder / "model.safetensors")
    config = {"model_type": "bigram", "vocab_size": 5, "width": 3}
    (folder / "config.json").write_text(json.dumps(config))
    logits = told("run", folder, "--ids", "1,4", "--show", "logits")["blocks"]["logits"]
    expected = held["words_in"][[1, 4]].astype(float) @ held["words_out"].T.astype(float)
    np.testing.assert_allclose(logits, expected, atol=1e-12)
    assert cli("build", folder, "--ids", "1,4", "-o", tmp_path / "x.xlsx").code == 0
    report = verify(tmp_path / "x.xlsx", "ironcalc")
    assert report.agrees, report


def test_a_workbook_is_one_file(dropped, tmp_path: Path) -> None:
    dropped(workbooks, "halves", WORKBOOK)
    path = tmp_path / "x.xlsx"
    assert "a number, and its half" in cli("list").out
    assert cli("build", "halves", "-o", path).code == 0
    sheet, file = InIronCalc(path), WorkbookFile(path)
    computed = file["Halves"].cells.items()
    ((at, cell),) = ((at, c) for at, c in computed if c.formula and not isinstance(c.value, str))
    assert cell.value == 1.5
    with sheet.typed({("Halves", at[0] - 2, at[1]): 4.0}):
        assert sheet["Halves", *at] == 2.0
    assert "2" in cli("run", "halves", "--set", "number[0,0]=4").out


def test_a_study_is_one_file(dropped, tmp_path: Path) -> None:
    """Its command and options, the table, JSON, CSV, files of prompts, Python."""
    dropped(studies, "rounded", STUDY)
    command = ("round-activations", "dialogue-game", "--decimals", 0)
    assert "Round what each layer leaves in the stream" in cli("--help").out.replace("\n", " ")
    found = told(*command)["rows"]
    assert [row["block"] for row in found] == ["blocks.0.resid_post", "blocks.1.resid_post"]
    graph = cf.graph("dialogue-game")
    last = intervened(graph, {"blocks.1.resid_post": rounded_to_whole_numbers}).last("logits")[-1]
    target = graph.values["logits"][-1].argmax()
    change = float(last[target] - graph.values["logits"][-1, target])
    assert found[1]["change"] == pytest.approx(change, abs=1e-12) and change
    assert f"{change:+.3f}" in cli(*command).out
    assert cli(*command, "--csv").out.splitlines()[0] == "block,change"
    (tmp_path / "prompts.txt").write_text("<BOS> Pietro chiama\n<BOS> 3\n")
    table = cli(*command, "--prompts", tmp_path / "prompts.txt").out.splitlines()
    assert table[0] == "number,prompt,target,block,change" and len(table) == 5
    (first, *_) = cf.study("round-activations", "dialogue-game", ["<BOS> 3"], decimals=0)
    assert table[3].endswith(repr(first["change"]))
    with pytest.raises(cf.InputError, match="decimals must be a whole number"):
        cf.study("round-activations", "dialogue-game", ["<BOS> 3"], decimals="few")


def rounded_to_whole_numbers(graph, name: str, own):
    def cell(x):
        return ROUND(x, 0)

    return graph.block(name, op(x="i,j")(cell), own)


@pytest.mark.parametrize(
    ("package", "text", "lacking", "command"),
    [
        (pages, PAGE, 'AFTER = "Play"', "build cat-sat"),
        (architectures, ARCHITECTURE, 'EPS = "epsilon"', f"info {ROOT}/tests/golden/gpt2"),
        (workbooks, WORKBOOK, 'TOPIC, AFTER, LEVEL = "Sizes", "napkin", 1', "build lacking"),
        (workbooks, WORKBOOK, 'TOPIC, AFTER, LEVEL = "Sizes", "napkin", 1', "list"),
    ],
)
def test_missing_declaration_gets_one_line(
    package: ModuleType, text: str, lacking: str, command: str, dropped, tmp_path: Path
) -> None:
    assert lacking in text
    dropped(package, "lacking", text.replace(lacking, ""))
    code, out, err = cli(*command.split(), cwd=tmp_path)
    name, _, _ = lacking.partition(" ")
    assert code == 2 and out == "" and err.count("\n") == 1
    assert f"lacking.py is {'an' if package is architectures else 'a'} " in err
    assert f"does not declare {name}" in err
    assert not list(tmp_path.glob("*.xlsx"))


# --- tests ------------------------------------------------------------------------------------


def patched(tree: ast.AST) -> Iterator[str]:
    """What a test replaces in modules of the house. Their `__path__` may be longer: then a file
    that lies elsewhere is found by being there."""
    ours = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None)
            for name in node.names:
                if (module or name.name).partition(".")[0] in ROOMS:
                    ours.add(name.asname or name.name.partition(".")[0])
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(attr="setattr" | "delattr"), [target, *rest]):
                what = ast.literal_eval(target) if isinstance(target, ast.Constant) else ""
                name = what or ast.unparse(target)
                found = name.partition(".")[0] in (ROOMS if what else ours)
                if found and not (rest and ast.unparse(rest[0]) == "'__path__'"):
                    yield f"{node.lineno}: {ast.unparse(node)}"
            case ast.Assign([ast.Attribute(ast.Name(name))]) if name in ours:
                yield f"{node.lineno}: {ast.unparse(node)}"


def test_no_test_patches_the_product() -> None:
    """What a test wants otherwise is a parameter; it may replace the environment."""
    files = (ROOT / "tests").rglob("*.py")
    trees = {
        file: ast.parse(file.read_text()) for file in files if "node_modules" not in file.parts
    }
    assert [f"{file.name}:{line}" for file, tree in trees.items() for line in patched(tree)] == []


@pytest.mark.parametrize(
    "text",
    [
        "from cellformer.engine.studies import tsne\ntsne.STEPS = 3",
        "from cellformer.exporters.file import xlsx as x\nmonkeypatch.setattr(x, 'MAX_ROW', 1)",
        "def test():\n    patch.setattr('cellformer.exporters.model.plan.MANY_WORDS', 1)",
    ],
)
def test_patches_of_the_product_are_found(text: str) -> None:
    assert len([*patched(ast.parse(text))]) == 1
