"""An index, and checksums, for a folder of workbooks and pages to publish.

The index lists the workbooks by topic in learning order: a small picture, what one learns, the
level, the two files. A search field filters them. All links are relative, so that any static host
serves the folder as it is, and it opens from disk.
"""

from hashlib import sha256
from html import escape
from pathlib import Path

from cellformer import workbooks
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file import miniature

INDEX, SUMS, PICTURES = "index.html", "SHA256SUMS", "pictures"
SHEETS = {  # that the pictures show; of other workbooks it is the sheet after Start
    "adder": "Looks",
    "cat-sat": "Block 0",
    "dialogue-game": "Heads",
    "final-step": "Two searches",
    "fluffy-creature": "Block 0",
    "induction": "Block 1",
    "learn": "Step 1 Forward",
    "loss": "Scoring",
    "microgpt": "Part 4 Forward",
    "new-york": "Contexts",
    "positions": "Shift",
    "sampling": "Draws",
    "semantic-tiny": "Probes",
    "shakespeare": "Heads",
    "stories": "Neighbours",
    "superposition": "Toy model",
    "tool-call": "Heads",
    "two-layers": "Heads",
    "unrolled": "Step 5",
}
STYLE = """
:root { color-scheme: light dark; --line: #8888; --soft: light-dark(#555, #bbb);
  background: light-dark(#fff, #121212); color: light-dark(#111, #eee); }
a { color: light-dark(#0550ae, #9ecbff); }
body { font: 15px/1.35 Calibri, Carlito, sans-serif; max-width: 86em; margin: 0 auto;
  padding: 0 1em; }
h1 { font-size: 1.5em; margin: .5em 0 .2em; }
h2 { font-size: 1.1em; margin: .9em 0 .3em; }
h3 { font-size: 1em; margin: 0; }
p, ul { margin: 0; padding: 0; }
ul { list-style: none; }
header ul { display: flex; flex-wrap: wrap; gap: 0 1.5em; margin: .3em 0; }
input { font: inherit; padding: .25em .5em; width: 18em; max-width: 100%; box-sizing: border-box; }
main ul { display: grid; gap: .7em 1em;
  grid-template-columns: repeat(auto-fill, minmax(24em, 1fr)); }
main li { display: flex; gap: .7em; }
img { width: 132px; height: 88px; border: 1px solid var(--line); flex: none; background: #fff; }
small { font-size: .87em; color: var(--soft); }
footer { margin: 1.5em 0; color: var(--soft); }
[hidden] { display: none !important; }
@media (max-width: 30em) {
  main ul { grid-template-columns: 1fr; }
  img { width: 72px; height: 48px; }
}
"""
SCRIPT = """
const field = document.getElementById("search");
const cards = [...document.querySelectorAll("main li")];
function filter() {
  const wanted = field.value.trim().toLowerCase();
  for (const card of cards) {
    const topic = card.closest("section").querySelector("h2");
    card.hidden = !`${topic.textContent} ${card.textContent}`.toLowerCase().includes(wanted);
  }
  for (const topic of document.querySelectorAll("section"))
    topic.hidden = !topic.querySelector("li:not([hidden])");
  const n = cards.filter((card) => !card.hidden).length;
  document.getElementById("found").textContent = wanted ? `${n} found` : "";
}
field.addEventListener("input", filter);
field.parentElement.hidden = false;
filter();
"""


def picture(folder: Path, name: str, book: Book) -> None:
    """Write the small picture of a workbook."""
    sheet = SHEETS.get(name, list(book.sheets)[1])
    (folder / PICTURES).mkdir(exist_ok=True)
    (folder / PICTURES / f"{name}.svg").write_text(miniature.svg(book, sheet), encoding="utf-8")


def add(folder: Path, sizes: dict[str, tuple[int, int]]) -> None:
    """Add the index and the checksums of all files; `sizes` has each workbook's sheets and
    formulas."""
    (folder / INDEX).write_text(index(folder, sizes), encoding="utf-8")
    files = [folder / f"{name}{suffix}" for name in sizes for suffix in (".html", ".xlsx")]
    files += [folder / PICTURES / f"{name}.svg" for name in sizes]
    lines = [
        f"{sha256(file.read_bytes()).hexdigest()}  {file.relative_to(folder).as_posix()}\n"
        for file in sorted([*files, folder / "index.xlsx", folder / INDEX])
    ]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def index(folder: Path, sizes: dict[str, tuple[int, int]]) -> str:
    """The index: workbooks by topic, each with its title, its level, its two files, a picture."""
    levels = "".join(
        f"<li><strong>Level {level}</strong>: {escape(what)}</li>"
        for level, what in workbooks.LEVELS.items()
    )
    topics = [
        f"<section><h2>{escape(topic)}</h2>\n<ul>\n{''.join(shown)}</ul></section>\n"
        for topic, listed in workbooks.by_topic().items()
        if (shown := [_card(folder, name, *sizes[name]) for name in listed if name in sizes])
    ]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>cellformer: the gallery</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<style>{STYLE}</style></head><body>
<header><h1>cellformer: the gallery</h1>
<p>Each is a transformer, or a part of one, and every number in it is live. Open it as a page in
your browser, or as a workbook in Excel or LibreOffice. Read them in this order: later ones use
earlier explanations.</p>
<ul>{levels}</ul>
<p hidden><label for="search">Search</label> <input id="search" type="search"
placeholder="softmax, or level 1"> <small id="found" role="status"></small></p></header>
<main>
{"".join(topics)}</main>
<footer>To check that the files are complete: <code>sha256sum -c {SUMS}</code></footer>
<script>{SCRIPT}</script></body></html>
"""


def _card(folder: Path, name: str, n_sheets: int, n_formulas: int) -> str:
    """A workbook: its picture, its title, its level, its two files with their sizes."""
    told = escape(workbooks.title(name).partition(": ")[2])
    sizes = {kind: _size(folder / f"{name}.{kind}") for kind in ("html", "xlsx")}
    begin = "start here · " if name == workbooks.first() else ""
    counts = f"{n_sheets} sheets, {n_formulas:,} formulas"
    return (
        f'<li><a href="{name}.html" tabindex="-1" aria-hidden="true">'
        f'<img src="{PICTURES}/{name}.svg" alt="" width="132" height="88"></a><div>'
        f'<h3><a href="{name}.html">{name}</a></h3><p>{told}</p>\n'
        f"<small>{begin}level {workbooks.level(name)} · page {sizes['html']} · "
        f'<a href="{name}.xlsx" title="{counts}" aria-label="{name}, the workbook">workbook</a> '
        f"{sizes['xlsx']}</small></div></li>\n"
    )


def _size(file: Path) -> str:
    size = file.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} KB"
