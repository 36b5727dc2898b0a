"""Weights in a file beside the page: it asks for them, refuses others, and then computes, in slices
between which the page can be used."""

from pathlib import Path

from conftest import default_book
from in_node import call

from exporters.web import page


def test_the_page_asks_for_its_weights(chromium: str, tmp_path: Path) -> None:
    html, weights = page.write(default_book("dialogue-game"), tmp_path / "x.html", most_inside=1000)
    short, other = tmp_path / "short.weights", tmp_path / "other.weights"
    short.write_bytes(weights.read_bytes()[:-1])
    other.write_bytes(b"z" + weights.read_bytes())
    files = [str(file) for file in (other, short, weights)]
    found = call("weights.mjs", "given", chromium, str(html), files)
    asked, refused, broken, opened, edited = found
    assert "Choose it, or drop it here" in asked
    assert refused.startswith("other.weights does not hold this page's weights")
    assert broken == "short.weights is not whole: copy it again"
    assert "says ‘Tarso’ 99.995 %" in opened
    assert "head 1.2 off · said ‘Tarso’, now says ‘vice’" in edited
