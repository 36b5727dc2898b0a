"""The data of a book's page in a folder, for Node: what `page.mjs` opens."""

import json
from pathlib import Path

from in_node import WEB

from cellformer.exporters.compose.book import Book
from cellformer.exporters.web import data

KERNELS = """import {{ partner }} from "{web}/access.js";
import {{ erf }} from "{web}/functions.js";
import {{ lineOf, numberOf }} from "{web}/kernels.js";
export const KERNELS = [{kernels}];
"""


def write(book: Book, folder: Path) -> str:
    """Write a book's data; returns the folder as Node takes it."""
    folder.mkdir(parents=True, exist_ok=True)
    page = data.of_book(book)
    (folder / "data.json").write_text(json.dumps(page.data))
    (folder / "weights").write_bytes(page.weights)
    kernels = KERNELS.format(web=WEB.as_uri(), kernels=",".join(page.kernels))
    (folder / "kernels.mjs").write_text(kernels)
    return str(folder)
