"""The index of the gallery in a browser: how long it is, how it is searched, who can read it."""

import pytest
from in_node import call

from cellformer import release, workbooks

pytestmark = [pytest.mark.usefixtures("node"), pytest.mark.slow]

SCREEN, PHONE = {"width": 1366, "height": 768}, {"width": 390, "height": 844}
MOST_SCREENS = {"screen": 3, "phone": 5}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The index of all workbooks, beside files that only have their names."""
    folder = tmp_path_factory.mktemp("gallery")
    sizes = dict.fromkeys(workbooks.names(), (10, 123_456))
    for name in [*sizes, "index"]:
        for kind in ("html", "xlsx"):
            (folder / f"{name}.{kind}").write_bytes(bytes(123_456))
    (folder / release.PICTURES).mkdir()
    for name in sizes:
        picture = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 3 2"></svg>'
        (folder / release.PICTURES / f"{name}.svg").write_text(picture)
    release.add(folder, sizes)
    return str(folder / release.INDEX)


@pytest.mark.parametrize(("name", "size"), [("screen", SCREEN), ("phone", PHONE)])
def test_the_index_is_short(name: str, size: dict[str, int], index: str, chromium: str) -> None:
    said = call("index.mjs", "opened", chromium, index, size, [])
    assert said["errors"] == [] and said["axe"] == []
    assert said["wide"] == size["width"]
    assert said["high"] < MOST_SCREENS[name] * size["height"]


def test_axe_finds_nothing_in_the_dark(index: str, chromium: str) -> None:
    assert call("index.mjs", "opened", chromium, index, SCREEN, [], "dark")["axe"] == []


def test_a_search_leaves_what_holds_its_words(index: str, chromium: str) -> None:
    searched = ["", "softmax", "Level 1", "LEARNING", "nothing like this"]
    said = call("index.mjs", "opened", chromium, index, SCREEN, searched)
    everything, softmax, first, learning, nothing = said["found"]
    assert everything == [workbooks.path(), ""]
    assert softmax == [["one-head"], "1 found"]
    level_1 = [name for name in workbooks.path() if workbooks.level(name) == 1]
    assert first == [level_1, f"{len(level_1)} found"]
    assert {*learning[0]} >= {*workbooks.by_topic()["Learning"]}
    assert nothing == [[], "0 found"]
