"""What the site has besides docs/: README as its start, the pages of the root, sources that are
linked to, and a page for each workbook of the gallery to try in place.

mkdocs calls these functions (`hooks` of mkdocs.yml). The workbooks are those of the folder
`gallery`, or of $GALLERY, which `cellformer build --all` writes; without it the gallery has its
pictures alone.
"""

import ast
import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PAGES = {"README.md": "index.md", "benchmarks/README.md": "benchmarks/README.md"}
PAGES |= {name: name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")}
EXAMPLES, FILES = "examples.md", "try/files"
LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)]*)?\))")
PICTURE = re.compile(r"!\[([\w-]+)\]\((gallery/\1\.png)\)")


def gallery() -> Path:
    """The folder that `cellformer build --all` wrote."""
    return ROOT / os.environ.get("GALLERY", "gallery")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the root, the sources that pages link to, and the workbooks."""
    for source, target in PAGES.items():
        files.append(File.generated(config, target, abs_src_path=str(ROOT / source)))
    files.append(File.generated(config, EXAMPLES, content=_examples()))
    for file in list(files.documentation_pages()):
        text = file.content_string
        for _, link, _ in LINK.findall(text):
            path = _source(file.src_uri, link)
            if path is not None and files.get_file_from_path(_page(path)) is None:
                files.append(_shown(path, config))
    for file in [gallery() / "index.html", *sorted(gallery().glob("pictures/*.svg"))]:
        if file.exists():
            target = f"{FILES}/{file.relative_to(gallery()).as_posix()}"
            files.append(File.generated(config, target, abs_src_path=str(file)))
    for page in sorted(gallery().glob("*.html")):
        if page.stem != "index" and (book := page.with_suffix(".xlsx")).exists():
            files.append(File.generated(config, f"try/{page.stem}.md", content=_trial(page.stem)))
            for each in (page, book):
                target = f"{FILES}/{each.name}"
                files.append(File.generated(config, target, abs_src_path=str(each)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links to what stands elsewhere in the repository lead to its page of the site."""
    uri = page.file.src_uri

    def moved(link: re.Match[str]) -> str:
        found = _on_site(uri, link[2], files)
        return link[0] if found is None else f"{link[1]}{found}{link[3]}"

    def tried(picture: re.Match[str]) -> str:
        trial = f"try/{picture[1]}.md"
        there = uri == "gallery.md" and files.get_file_from_path(trial)
        return f"[{picture[0]}]({trial})<br>[try it here]({trial})" if there else picture[0]

    found = PICTURE.sub(tried, LINK.sub(moved, markdown))
    index = f"{FILES}/index.html"
    if uri == "gallery.md" and files.get_file_from_path(index):
        title, rest = found.split("\n", 1)
        found = f"{title}\n\n[Search all pages, by topic and level]({index})\n{rest}"
    return found


def _examples() -> str:
    """The page that lists the scripts of examples/."""
    parts = ["# Examples\n\nEach runs by itself, and in the tests.\n"]
    for path in sorted((ROOT / "examples").glob("*.py")):
        told = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        first = " ".join(told.split("\n\n")[0].split())
        parts.append(f"- [{path.stem.replace('_', ' ')}](../examples/{path.name}): {first}")
    return "\n".join(parts) + "\n"


def _trial(name: str) -> str:
    """The page of a workbook: its page within this one, and its file."""
    return (
        f"---\nhide: [navigation, toc]\n---\n# {name}\n\n[The whole window](files/{name}.html) · "
        f"[{name}.xlsx](files/{name}.xlsx), the same cells for Excel and "
        "LibreOffice · [all workbooks](../gallery.md)\n\n"
        f'<iframe class="workbook" src="../files/{name}.html" title="{name}"></iframe>\n'
    )


def _path(uri: str, link: str) -> str:
    """What a page links to, as a path in the repository."""
    sources = {target: source for source, target in PAGES.items()}
    here = sources.get(uri, f"docs/{uri}")
    return posixpath.normpath(posixpath.join(posixpath.dirname(here), link))


def _source(uri: str, link: str) -> str | None:
    """The file of the repository that a page links to and docs/ has not as a page, if it does."""
    path = _path(uri, link)
    if (ROOT / path / "__init__.py").is_file():
        path += "/__init__.py"
    other = path.endswith(".py") or not path.startswith("docs/")
    return path if other and path not in PAGES and (ROOT / path).is_file() else None


def _page(path: str) -> str:
    """Where a file of the repository stands on the site: Python as a page."""
    name = f"{path.removesuffix('.py')}.md" if path.endswith(".py") else path
    return f"source/{name}".replace("__init__", "package")


def _shown(path: str, config: Any) -> File:
    """A file of the repository, on the site."""
    if not path.endswith(".py"):
        return File.generated(config, _page(path), abs_src_path=str(ROOT / path))
    code = (ROOT / path).read_text(encoding="utf-8")
    return File.generated(config, _page(path), content=f"# {path}\n\n````python\n{code}````\n")


def _on_site(uri: str, link: str, files: Files) -> str | None:
    """The link from a page to what it links to in the repository; None if it needs no change."""
    path = _path(uri, link)
    source = _source(uri, link)
    target = PAGES.get(path) or (_page(source) if source else path.removeprefix("docs/"))
    target = EXAMPLES if path == "examples" else target
    if files.get_file_from_path(target) is None:
        return None
    return posixpath.relpath(target, posixpath.dirname(uri) or ".")
