"""A page with pictures, and checksums, for a folder of workbooks that is to be published.

The page needs no network: its pictures are in the folder. `docs/gallery.py` draws them; an
installed package has no docs/, and then the page has none.
"""

import shutil
from hashlib import sha256
from html import escape
from pathlib import Path

import workbooks

PAGE, SUMS, PICTURES = "README.html", "SHA256SUMS", "pictures"
DRAWN = Path(workbooks.__file__).parent.parent / "docs" / "gallery"
HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>cellformer: the workbooks</title>
<style>
body { font-family: Calibri, Carlito, sans-serif; max-width: 60em; margin: 2em auto; }
figure { margin: 0 0 2.5em; } img { max-width: 100%; border: 1px solid #ccc; }
a { font-weight: bold; }
</style></head><body>
<h1>cellformer: the workbooks</h1>
<p>Transformers, and parts of them, as Excel workbooks in which every number is a formula. Open one
in Excel 2010 or later, or in LibreOffice; each begins with its sheet Start. Read them in this
order: each uses what those above it explain. Whether the files are whole:
<code>sha256sum -c SHA256SUMS</code>.</p>
"""


def add(folder: Path, sizes: dict[str, tuple[int, int]]) -> None:
    """Add the page, its pictures, and the checksums of all files; `sizes` has each workbook's
    sheets and formulas."""
    (folder / PICTURES).mkdir(exist_ok=True)
    for name in sizes:
        if (DRAWN / f"{name}.png").exists():
            shutil.copyfile(DRAWN / f"{name}.png", folder / PICTURES / f"{name}.png")
    (folder / PAGE).write_text(page(folder, sizes), encoding="utf-8")
    files = [folder / f"{name}.xlsx" for name in sizes]
    files += [folder / "index.xlsx", folder / PAGE, *(folder / PICTURES).glob("*.png")]
    lines = [
        f"{sha256(file.read_bytes()).hexdigest()}  {file.relative_to(folder).as_posix()}\n"
        for file in sorted(files)
    ]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def page(folder: Path, sizes: dict[str, tuple[int, int]]) -> str:
    """The HTML page: workbooks by topic, each with its title and a picture."""
    parts = [HEAD]
    for topic, listed in workbooks.by_topic().items():
        shown = [name for name in listed if name in sizes]
        parts += [f"<h2>{escape(topic)}</h2>\n"] if shown else []
        for name in shown:
            told = escape(workbooks.title(name).partition(": ")[2])
            n_sheets, n_formulas = sizes[name]
            parts.append(
                f'<figure><figcaption><a href="{name}.xlsx">{name}</a>: {told} '
                f"({n_sheets} sheets, {n_formulas:,} formulas)</figcaption>\n"
            )
            if (folder / PICTURES / f"{name}.png").exists():
                link = f'<a href="{name}.xlsx"><img src="{PICTURES}/{name}.png" alt="{told}"></a>'
                parts.append(link)
            parts.append("</figure>\n")
    return "".join([*parts, "</body></html>\n"])
