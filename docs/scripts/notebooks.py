"""Run the notebooks of examples/, in plain Python, and write what their cells print and show.

python docs/scripts/notebooks.py

A notebook is JSON: cells of text, and of code with their outputs. A code cell's last line, if it is
an expression, is shown as Jupyter would show it: as a picture, as HTML or as text.
"""

import ast
import base64
import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "examples"
LIKE = ("_repr_png_", "image/png"), ("_repr_html_", "text/html")  # what Jupyter asks for


def notebooks() -> list[Path]:
    """The notebooks, by name."""
    return sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path) -> dict[str, Any]:
    """A notebook with the outputs of its cells, run in order in the current folder."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    for count, cell in enumerate(code_cells(notebook), 1):
        cell["execution_count"] = count
        cell["outputs"] = list(outputs("".join(cell["source"]), names, count))
    return notebook


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells of code."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def outputs(source: str, names: dict[str, Any], count: int) -> Iterator[dict[str, Any]]:
    """Run a cell's code: what it prints, and what its last line is."""
    tree, printed, value = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "notebook", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "notebook", "eval"), names)
    if text := printed.getvalue():
        lines = text.splitlines(keepends=True)
        yield {"name": "stdout", "output_type": "stream", "text": lines}
    if value is not None:
        result = {"execution_count": count, "metadata": {}, "output_type": "execute_result"}
        yield {"data": shown(value), **result}


def shown(value: Any) -> dict[str, Any]:
    """A value as a notebook holds it."""
    data: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    for method, kind in LIKE:
        if hasattr(value, method):
            found = getattr(value, method)()
            data[kind] = base64.b64encode(found).decode() if isinstance(found, bytes) else [found]
            break
    return data


def written(notebook: dict[str, Any]) -> str:
    """A notebook as its file has it."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    import os
    import tempfile

    for path in notebooks():
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            text = written(executed(path))
        path.write_text(text, encoding="utf-8")
        print(os.path.relpath(path))
