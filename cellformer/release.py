"""An index with pictures, and checksums, for a folder of workbooks and pages to publish.

All links are relative, so that any static host serves the folder as it is, and it opens from disk.
`docs/scripts/gallery.py` draws the pictures; an installed package has no docs/,
and then there are none.
"""

import shutil
from hashlib import sha256
from html import escape
from pathlib import Path

from cellformer import workbooks

INDEX, SUMS, PICTURES = "index.html", "SHA256SUMS", "pictures"
DRAWN = Path(workbooks.__file__).parent.parent / "docs" / "gallery"
HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>cellformer: the gallery</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; }
body { font-family: Calibri, Carlito, sans-serif; max-width: 60em; margin: 2em auto;
  padding: 0 1em; }
figure { margin: 0 0 2.5em; } figcaption { margin-bottom: .5em; } figcaption span { opacity: .75; }
img { max-width: 100%; border: 1px solid #888; }
</style></head><body>
<h1>cellformer: the gallery</h1>
<p>Transformers and parts of transformers. Every number is live: on a page for the browser,
and in an Excel workbook (Excel 2010 or later, or LibreOffice). Page and workbook have the same
cells, names and values. Read the workbooks in this order: later ones use earlier explanations.
To check that the files are complete: <code>sha256sum -c SHA256SUMS</code>.</p>
"""


def add(folder: Path, sizes: dict[str, tuple[int, int]]) -> None:
    """Add the index, its pictures, and the checksums of all files; `sizes` has each workbook's
    sheets and formulas."""
    (folder / PICTURES).mkdir(exist_ok=True)
    for name in sizes:
        if (DRAWN / f"{name}.png").exists():
            shutil.copyfile(DRAWN / f"{name}.png", folder / PICTURES / f"{name}.png")
    (folder / INDEX).write_text(index(folder, sizes), encoding="utf-8")
    files = [folder / f"{name}{suffix}" for name in sizes for suffix in (".html", ".xlsx")]
    files += [folder / "index.xlsx", folder / INDEX, *(folder / PICTURES).glob("*.png")]
    lines = [
        f"{sha256(file.read_bytes()).hexdigest()}  {file.relative_to(folder).as_posix()}\n"
        for file in sorted(files)
    ]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def index(folder: Path, sizes: dict[str, tuple[int, int]]) -> str:
    """The index: workbooks by topic, each with its title, its two files and a picture."""
    parts = [HEAD]
    for topic, listed in workbooks.by_topic().items():
        shown = [name for name in listed if name in sizes]
        parts += [f"<h2>{escape(topic)}</h2>\n"] if shown else []
        parts += [_entry(folder, name, *sizes[name]) for name in shown]
    return "".join([*parts, "</body></html>\n"])


def _entry(folder: Path, name: str, n_sheets: int, n_formulas: int) -> str:
    """A workbook's title, its two files with their sizes, and a picture that leads to its page."""
    told = escape(workbooks.title(name).partition(": ")[2])
    sizes = {kind: _size(folder / f"{name}.{kind}") for kind in ("html", "xlsx")}
    caption = (
        f"<figure><figcaption><strong>{name}</strong>: {told}<br>\n"
        f'<a href="{name}.html">open in the browser</a> <span>({sizes["html"]})</span> · '
        f'<a href="{name}.xlsx">{name}.xlsx</a> '
        f"<span>({sizes['xlsx']}, {n_sheets} sheets, {n_formulas:,} formulas)</span></figcaption>\n"
    )
    picture = f'<a href="{name}.html"><img src="{PICTURES}/{name}.png" alt="{told}"></a>'
    drawn = (folder / PICTURES / f"{name}.png").exists()
    return f"{caption}{picture if drawn else ''}</figure>\n"


def _size(file: Path) -> str:
    size = file.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} KB"
