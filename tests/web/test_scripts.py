"""The page's scripts: their types, and what lets them stand in one page as one script.

`exporters/web/page.py` joins modules without their imports and the word `export`, and rjsmin
minifies them. The content policy forbids whatever makes code or markup of a text.
"""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import rcssmin
from in_node import WEB

from cellformer.exporters.web.page import BEGIN, IMPORT, MODEL, joined

LOADER = "loader"  # a script of its own, which has the other's names beside its own
KERNELS = WEB.parents[1] / "engine/cells"  # what these call, no module imports
MOST_LINES = 60  # of a function
HERE = Path(__file__).parent

SCRIPTS = {path.stem: path.read_text() for path in sorted(WEB.glob("*.js"))}
IMPORTED = re.compile(r"^import\b|\bimport\s*\(", re.MULTILINE)
EXPORTED = re.compile(r"^export (?:async )?(?:function\*?|class|const) (\w+)", re.MULTILINE)
DEFINED = re.compile(
    r"^(?:export )?(?:async )?(?:function\*?|class|const|let|var)\s+([^=(]+?)\s*(?:[=({;]|extends)",
    re.MULTILINE,
)
COMMENTS = re.compile(r"/\*[\s\S]*?\*/|(?<![:\"'`\\])//.*")
BEGINS = re.compile(
    r"^(?P<indent>(?:  )?)(?!if |for |while |switch |do |try |else )"
    r"(?:export |static |async |get |set )*"
    r"(?:function\*? )?(?P<name>[\w#*]+)\(.*\{$"
)
FORBIDDEN = {
    "makes code of a text": r"\beval\b|\bFunction\(|set(?:Timeout|Interval)\(\s*[\"'`]",
    "makes markup of a text": r"(?:inner|outer)HTML|insertAdjacentHTML|document\.write|srcdoc",
    "is an inline style": r"setAttribute\(\s*[\"']style|\bcssText\b",
    "is an inline handler": r"setAttribute\(\s*[\"']on",
    "asks for something": r"\bfetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|\bimport\(",
}


def code(name: str) -> str:
    """A module without comments."""
    return COMMENTS.sub("", SCRIPTS[name])


@pytest.fixture(scope="session")
def typescript(node: str) -> list[str]:
    """The command that checks types."""
    program = Path(__file__).parents[1] / "node/node_modules/typescript/bin/tsc"
    if not program.is_file():
        pytest.skip("TypeScript is not installed: npm ci --prefix tests/node")
    return [node, str(program)]


def test_types(typescript: list[str]) -> None:
    how = ["--noEmit", "--allowJs", "--checkJs", "--strict"]
    how += ["--target", "es2023", "--module", "nodenext"]
    files = [str(WEB / f"{name}.js") for name in SCRIPTS]
    done = subprocess.run([*typescript, *how, *files], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stdout


def test_no_name_is_defined_twice() -> None:
    names = Counter(x for name in SCRIPTS for x in DEFINED.findall(SCRIPTS[name]))
    assert len(names) > 100 and {x: n for x, n in names.items() if n > 1} == {}
    assert [x for x in names if not x.isidentifier()] == [], "one name each"


@pytest.mark.parametrize("name", SCRIPTS)
def test_imports_stand_at_the_top(name: str) -> None:
    text = code(name)
    found = [*IMPORT.finditer(text)]
    assert len(found) == len(IMPORTED.findall(text)), "import { names } from './x.js';"
    for one in found:
        assert not re.search(r"\w", IMPORT.sub("", text[: one.start()])), f"before {one[0]}"
        assert not re.search(r"\bas\b", one[1]), "a name is the same everywhere"
        assert {x.strip() for x in one[1].split(",") if x.strip()} <= {
            *EXPORTED.findall(SCRIPTS[one[2]])
        }
    exports = re.findall(r"^\s*export\b", text, re.MULTILINE)
    assert len(exports) == len(EXPORTED.findall(text)), "export before function, class, const"


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_first_lines_say_what_a_module_holds(name: str) -> None:
    assert SCRIPTS[name].startswith("// ")


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_template_stands_within_another(name: str) -> None:
    """rjsmin would take the text of the inner one for code."""
    for template in re.findall(r"`[^`]*`", code(name)):
        assert template.count("${") == len(re.findall(r"\$\{[^{}]*\}", template)), template


def test_texts_keep_their_spaces() -> None:
    page = joined([], is_model=True, is_large=True)
    for name in SCRIPTS.keys() - {LOADER}:
        for text in re.findall(r"`[^`]*`", code(name)):
            assert text in page, f"{name}: {text}"
    styles = [path.read_text() for path in WEB.glob("*.css")]
    texts = [text for style in styles for text in re.findall(r'content: ("[^"]*")', style)]
    assert [text for text in texts if not any(text in rcssmin.cssmin(s) for s in styles)] == []
    assert any(", " in text for text in texts)


@pytest.mark.parametrize("why", FORBIDDEN)
def test_script_does_nothing_that(why: str) -> None:
    """It makes no code or markup of a text, and asks for nothing but the weights beside a page."""
    found = [(n, *m) for n in SCRIPTS if (m := re.findall(FORBIDDEN[why], code(n)))]
    allowed = [("nearby", "fetch(")] if why == "asks for something" else []
    assert found == allowed, f"{found} {why}"
    assert "await fetch(encodeURIComponent(beside.name))" in code("nearby")


def test_template_has_no_handlers_styles_or_addresses() -> None:
    html = (WEB / "page.html").read_text()
    assert not re.search(r"\son\w+=|\sstyle=|\ssrc=|<link|javascript:", html)
    for path in WEB.glob("*.css"):
        assert not re.search(r"@import|url\((?!data:)|expression\(", path.read_text()), path.name


@pytest.mark.slow
def test_modules_stand_in_one_order_in_every_run() -> None:
    """Texts have other hashes in every run of Python, and so sets other orders."""
    code = "from cellformer.exporters.web.page import joined; print(joined([], True))"
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] and len(runs[0]) > 10_000


def test_every_module_is_in_the_page_and_every_export_is_used() -> None:
    page = joined([], is_model=True, is_large=True)
    users = [*HERE.glob("*.mjs"), *HERE.glob("test_*.py"), *KERNELS.glob("*.py")]
    elsewhere = BEGIN + "".join(path.read_text() for path in users)
    for name, text in SCRIPTS.items():
        assert name == LOADER or all(
            re.search(rf"[ *]{x}\b", page) for x in DEFINED.findall(text)
        ), name
        others = elsewhere + "".join(SCRIPTS[other] for other in SCRIPTS if other != name)
        unused = [x for x in EXPORTED.findall(text) if not re.search(rf"\b{x}\b", others)]
        assert unused == [], f"{name}.js exports what nothing else uses"


def test_pages_of_worksheets_leave_out_what_only_a_model_shows() -> None:
    page = joined([], is_model=False)
    kept = {*re.findall(r"(?:function\*?|class|const) (\w+)", page)}
    only = {name for name in SCRIPTS if not kept & {*EXPORTED.findall(SCRIPTS[name])}}
    assert only >= {MODEL, "flow", "credits", "steps", "picture", "tour", "sentence", "ranking"}
    assert len(page) < 0.75 * len(joined([], is_model=True))


def test_small_pages_leave_out_what_only_a_large_one_needs() -> None:
    small, large = joined([], is_model=True), joined([], is_model=True, is_large=True)
    defined = [{*re.findall(r"(?:function\*?|class|const) (\w+)", page)} for page in (small, large)]
    for name in ("large", "products", "weightsfile", "nearby"):
        names = {*EXPORTED.findall(SCRIPTS[name])}
        assert names and names <= defined[1] and not names & defined[0]
    assert "WebAssembly" in large and "WebAssembly" not in small


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_name_is_used(name: str) -> None:
    words = Counter(re.findall(r"[\w$]+", code(name)))
    exported = {*EXPORTED.findall(SCRIPTS[name])}
    assert [x for x in DEFINED.findall(SCRIPTS[name]) if words[x] < 2 and x not in exported] == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_functions_of_scripts_fit_on_a_screen(name: str) -> None:
    lines = SCRIPTS[name].splitlines()
    for at, line in enumerate(lines):
        if found := BEGINS.match(line):
            end = next(
                k for k in range(at, len(lines)) if lines[k].startswith(f"{found['indent']}}}")
            )
            assert end + 1 - at <= MOST_LINES, f"{found['name']} has {end + 1 - at} lines"
