"""The screen of a model's page, in a browser: what one types and clicks, and what is then read."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, default_book
from in_node import call

import cellformer as cf
from cellformer.exporters.compose.book import Book
from cellformer.exporters.web.page import write

MANY = 40  # colours of a page's pictures
PHONE = {"width": 390, "height": 844}
Play = Callable[..., list[Any]]


def golden(name: str) -> Book:
    """The workbook of a golden model, with the ids that it was recorded with."""
    folder = ROOT / "tests" / "golden" / name
    ids = np.load(folder / "golden.npz")["ids"].ravel().tolist()
    return cf.build(folder, ids=ids)


@pytest.fixture(scope="module")
def play(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Play:
    """Takes steps on the page of a workbook; gives what is read. Nothing else is asked for, and
    there is no error."""
    folder: Path = tmp_path_factory.mktemp("pages")

    @cache
    def page(name: str) -> str:
        path = folder / f"{name}.html"
        kind, _, rest = name.partition("-golden-")
        write(golden(rest) if rest else default_book(kind), path)
        return str(path)

    def played(name: str, *steps: list[Any], **view: Any) -> list[Any]:
        found = call("screen.mjs", "played", chromium, page(name), steps, view)
        assert found["errors"] == []
        assert found["requests"] == []
        return found["read"]

    return played


LEDGER, RANKS = ["text", "#ledger"], ["text", ".ranks tbody th"]
HEAD = ["touch", "[data-part='blocks.1.attn.h2']"]


def test_a_head_switched_off_is_told_and_undone(play: Play) -> None:
    """The ledger names the edit, what was said and what is said now."""
    before, after, words, undone = play(
        "dialogue-game", LEDGER, HEAD, LEDGER, RANKS, ["click", "button", "Undo"], LEDGER
    )
    assert "says ‘Tarso’ 99.995 %" in before[0]
    assert after[0].startswith("1 edit: head 1.2 off · said ‘Tarso’, now says ‘vice’ 99.995 %")
    assert words[:2] == ["vice", "Tarso"]
    assert "says ‘Tarso’ 99.995 %" in undone[0]


def test_the_flow_names_the_head_that_decides(play: Play) -> None:
    """Its ribbon, its share and its logit; switched off there, another word is said."""
    about, told, read, off, was = play(
        "dialogue-game",
        ["text", "#flow > p:first-of-type"],
        ["text", ".flow-told"],
        ["press", "Tab"],
        ["focus", ".flow-part[tabindex='0']"],
        ["press", "ArrowRight"],
        ["focused"],
        ["touch", ".flow-part[data-name='MLP 1']"],
        ["touch", ".flow-actions button"],
        ["text", ".flow-told"],
        ["focus", ".flow-part[data-name='head 1.2']"],
        ["touch", ".flow-actions button"],
        ["drawn", ".was"],
    )
    assert about[0].startswith("A small transformer was trained on an Italian calling game")
    assert told[0].startswith("Head 1.2 gives ‘chiama’ 98.9 % of the attention of ‘Paolo’.")
    assert "adds 6.579 to the logit of ‘Tarso’" in told[0]
    assert read.startswith("Head 1.3 gives")
    assert off[0].startswith("MLP 1 is switched off.")
    assert was == ["before: Tarso"]


def test_the_flow_plays_layer_by_layer(play: Play) -> None:
    later, ends, all_of_them = play(
        "dialogue-game",
        ["focus", ".flow-pace input"],
        ["press", "Home", "ArrowRight", "ArrowRight", "ArrowRight"],
        ["drawn", ".column.later > text:first-child"],
        ["text", ".flow-told"],
        ["press", "End"],
        ["drawn", ".column.later > text:first-child"],
    )
    assert later == ["Layer 1 heads", "Layer 1 MLP", "biases"]
    assert ends[0].startswith("MLP 0 works on each word alone.")
    assert all_of_them == []


def test_a_head_opens_in_five_steps(play: Play) -> None:
    """Each has a sentence and a marked cell, which opens; an edit is followed; the last closes."""
    sentence, forth = ["text", ".five .flow-told"], ["click", "button", "Next step"]
    read = play(
        "dialogue-game",
        *(["focus", ".flow-part[data-name='head 1.2']"], ["press", "Enter"], ["focused"]),
        *(sentence, forth, sentence, forth, sentence, ["text", ".five-cell.most"]),
        *(["touch", "[data-part='blocks.1.attn.h2']"], forth, forth, sentence),
        *(["touch", ".five-cell.most"], ["text", "#cell h2"]),
        *(["click", "button", "Done"], ["text", ".five:not([hidden])"], ["focused"]),
    )
    title, (match,), (score,), (share,), (most,), (off,), (cell,), closed, back = read
    assert title == "Head 1.2, step 1 of 5: query and key"
    assert match.startswith("The query of ‘Paolo’ says what it looks for")
    assert match.endswith("without its sign, is that of number 9: −2.386 × 0.834 = −1.991.")
    assert "and add: −12.7." in match
    assert "times 0.250. ‘chiama’ has the highest score" in score
    assert share.endswith("‘Paolo’ gives ‘chiama’ 98.9 % of its attention.")
    assert most.split("\n")[:2] == ["chiama", "98.9 %"]
    assert "It adds 0 to the logit of ‘vice’" in off
    assert cell.startswith("blocks.1.attn.h2.result[3,")
    assert closed == []
    assert back == "Head 1.2 is switched off."


def test_a_head_that_acts_through_later_layers_opens_where_it_does(play: Play) -> None:
    """Head 0.0 takes ‘Pietro’ to ‘chiama’, where head 1.2 reads it."""
    forth = ["click", "button", "Next step"]
    told, shares, output = play(
        "dialogue-game",
        *(["focus", ".flow-part[data-name='head 0.0']"], ["text", ".flow-told"]),
        *(["press", "Enter"], forth, forth, ["text", ".five .flow-told"]),
        *(forth, forth, ["text", ".five .flow-told"]),
    )
    assert told[0].startswith("Head 0.0 gives ‘Pietro’ 99.1 % of the attention of ‘chiama’.")
    assert "and adds 5.758 to it through later layers" in told[0]
    assert "‘chiama’ gives ‘Pietro’ 99.1 % of its attention" in shares[0]
    assert output[0] == (
        "The sum of these values is written to the stream of ‘chiama’. It adds 4.482 to the logit "
        "of ‘Tarso’ through later layers. ‘Pietro’ alone adds 4.496. At all words, the head takes "
        "0.372 from the logit of ‘Tarso’, and adds 5.758 to it through later layers."
    )


def test_steps_of_a_head_that_was_just_switched_off(play: Play) -> None:
    """The button is older than the edit: it must open the numbers of now."""
    forth = ["click", "button", "Next step"]
    (output,) = play(
        "dialogue-game",
        *(
            ["click", "button", "Switch head 1.2 off"],
            ["click", "button", "Open head 1.2 in five steps"],
        ),
        *(forth, forth, forth, forth, ["text", ".five .flow-told"]),
    )[0]
    assert "It adds 0 to the logit of ‘vice’" in output


def test_a_typed_sentence_goes_on(play: Play) -> None:
    """Next word adds one, which the list of tokens shows; an unknown word is told by name."""
    tokens = ["text", ".token-list span"]
    typed, longer, unknown = play(
        "dialogue-game",
        ["fill", "#sentence", "<BOS> Pietro chiama 1"],
        tokens,
        ["click", "button", "Next word"],
        tokens,
        ["fill", "#sentence", "<BOS> Pietr chiama"],
        LEDGER,
    )
    assert typed == ["<BOS>", "Pietro", "chiama", "1"]
    assert len(longer) == 5
    assert unknown == ["‘Pietr’ is not a word of this model; the nearest is ‘Pietro’."]


def test_a_link_repeats_a_state(play: Play) -> None:
    """What stands behind # in the address, opened anew; one that is damaged changes nothing."""
    hash_, edited = play("dialogue-game", HEAD, ["hash"], LEDGER)
    assert "blocks.1.attn.h2.switch=0" in hash_
    again, damaged = play(
        "dialogue-game", ["open", hash_], LEDGER, ["open", "#v1&nonsense"], LEDGER
    )
    assert again[0].split(" · ")[:2] == edited[0].split(" · ")[:2]
    assert "copy the link again" in damaged[0]


def test_line_breaks_of_a_sentence_survive(play: Play) -> None:
    """A text of two lines is typed and read as such."""
    text = "ROMEO:\nI w"
    value, tokens = play(
        "shakespeare",
        ["fill", "#sentence", text],
        ["value", "#sentence"],
        ["text", ".token-list span"],
    )
    assert value == text
    assert len(tokens) == len(text)


def test_layers_over_the_picture_tell_which_part_matters(play: Play) -> None:
    """What each part adds to Tarso: of the heads, 1.2 by far; and what a switched head changes."""
    told = ["text", ".of-head .told"]
    credits_, changes = play(
        "dialogue-game",
        ["choose", ".shows select", "credit"],
        told,
        ["choose", ".shows select", "change"],
        HEAD,
        told,
    )
    shares = [float(text.split()[0].replace("−", "-")) for text in credits_]
    assert np.argmax(shares) == 6
    assert shares[6] > 5 * sorted(shares)[-2]
    assert changes == ["unchanged"] * 8


def test_the_tour_points_into_the_picture(play: Play) -> None:
    """Its second stop is the embedding; the fifth an MLP. It ends."""
    step = ["touch", ".steps button:last-child"]
    second, where, fifth, ended = play(
        "dialogue-game",
        *(step, step, ["text", "#tour h2"], ["text", ".pointed .name"]),
        *(step, step, step, ["text", ".pointed .onoff"]),
        *(step, step, step, step, ["text", "#tour h2"]),
    )
    assert second[0] == "Tour, 2 of 8: the embedding"
    assert where == ["each token"]
    assert fifth == ["MLP 0"]
    assert ended[0] == "Tour"


def test_arrow_keys_lead_through_a_presentation(play: Play) -> None:
    """Of the tour alone, in large type, until Esc."""
    title = ["text", "#tour h2"]
    first, third, second, shown, after = play(
        "dialogue-game",
        *(["click", "button", "Present"], title, ["press", "ArrowRight", "ArrowRight"], title),
        *(["press", "ArrowLeft"], title, ["text", "#actions:visible"]),
        *(["press", "Escape"], ["text", "#tour h2:first-child"]),
    )
    assert [text[0][:10] for text in (first, third, second)] == [f"Tour, {k} of" for k in (1, 3, 2)]
    assert shown == []
    assert after[0] == "Tour"


def test_words_without_room_are_counted(play: Play) -> None:
    (said,) = play("dialogue-game", ["fill", "#sentence", "<BOS>" + 17 * " Pietro"], LEDGER)
    assert "the last 2 words are left out: there is room for 16" in said[0]


def test_words_of_the_list_join_the_sentence(play: Play) -> None:
    tokens, told = play(
        "dialogue-game",
        ["touch", ".known summary"],
        ["touch", ".known button:nth-child(15)"],
        ["text", ".token-list span"],
        ["touch", "#tour [data-try='2']"],
        LEDGER,
    )
    assert tokens[4:] == ["Tarso"]
    assert told[0].startswith("1 edit: token 1 is ‘3’ · says")


def test_a_whole_session_by_keyboard(play: Play) -> None:
    """A sentence, the next word, a head off, a picture, a number typed over, undo: no pointer."""
    tokens, said, opened, typed, focused, undone = play(
        "dialogue-game",
        ["press", "Tab", "Tab", "Control+End", *" Tarso", "Enter", "Control+Enter"],
        ["text", ".token-list span"],
        ["focus", "[data-block='blocks.1.attn.h0.pattern']"],
        ["press", "ArrowDown", "Space"],
        LEDGER,
        ["press", "Tab", "Enter"],
        ["text", "#cell h2"],
        ["press", "ArrowLeft", "Enter", "1", "Enter"],
        LEDGER,
        ["press", "Escape"],
        ["focused"],
        ["press", "Control+z", "Control+z"],
        LEDGER,
    )
    assert tokens[4:] == ["Tarso", "<SEP>"]
    assert "head 1.2 off" in said[0]
    assert opened[0].startswith("blocks.1.attn.h2.pattern[")
    assert typed[0].startswith("2 edits: blocks.1.attn.h2.pattern[")
    assert focused.startswith("head 1.2, ")
    assert undone[0].startswith("As built")


def test_pictures_keep_their_colours_in_high_contrast(play: Play) -> None:
    (plain,) = play("cat-sat", ["colours"])
    (forced,) = play("cat-sat", ["colours"], forcedColors="active")
    assert forced == plain > MANY


FRAMES: dict[str, dict[str, str]] = {
    "plain": {"kind": "src"},
    "sandboxed": {"kind": "src", "sandbox": "allow-scripts"},
    "of a blob": {"kind": "blob"},
    "srcdoc": {"kind": "srcdoc"},
    "sandboxed srcdoc": {"kind": "srcdoc", "sandbox": "allow-scripts"},
    "inline allowed": {
        "kind": "src",
        "policy": "default-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'",
    },
}


BROWSERS = [pytest.param(name, marks=pytest.mark.office) for name in ("chromium", "firefox")]


@pytest.fixture(scope="module", params=BROWSERS)
def in_browser(request: pytest.FixtureRequest) -> None:
    call("browsers.mjs", "begin", request.param, request.getfixturevalue(request.param))


@pytest.mark.parametrize("frame", FRAMES.values(), ids=list(FRAMES))
def test_a_page_works_in_each_frame(
    in_browser: None, tmp_path: Path, frame: dict[str, str]
) -> None:
    path = tmp_path / "page.html"
    write(default_book("cat-sat"), path)
    touched = "[data-part='blocks.0.attn.h0']"
    found = call("browsers.mjs", "framed", str(path), touched, "#ledger", frame)
    assert found["errors"] == []
    before, after = found["texts"]
    assert before.startswith("As built") and after.startswith("1 edit: head 0.0 off")


def test_a_page_says_what_to_do_where_scripts_are_forbidden(chromium: str, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write(default_book("adder"), path)
    assert "save the page, and open the file" in call(
        "screen.mjs", "forbidden", chromium, str(path)
    )


def test_the_tour_is_near_for_the_keyboard(play: Play) -> None:
    assert play("dialogue-game", ["press", "Tab", "Enter"], ["focused"]) == ["Begin the tour"]


def test_a_finger_finds_each_target_on_a_phone(play: Play) -> None:
    """On the first screen, and with a cell open."""
    picture = ["touch", "[data-block='blocks.0.attn.h1.pattern']"]
    assert play("dialogue-game", ["small"], picture, ["small"], **PHONE) == [[], []]


def test_a_full_text_is_told(play: Play) -> None:
    full = ["fill", "#sentence", "<BOS>" + 15 * " Pietro"]
    (said,) = play("dialogue-game", full, LEDGER)
    assert "no token can follow: this page has room for 16; type a shorter text" in said[0]


def test_a_hint_names_only_what_is_there(play: Play) -> None:
    """Sheets say what adder and digits read: no sentence can be typed."""
    model, hint = ["click", "button", "Model"], ["text", "#hint"]
    (said,) = play("adder", model, hint)[0]
    assert said == "Switch a head off, or click a picture for its numbers."


def test_start_shows_every_line_of_text(play: Play) -> None:
    """Also the first one after each heading."""
    (said,) = play("unrolled", ["text", ".flow"])
    texts = [entry.value for entry in default_book("unrolled").sheets["Start"].entries.values()]
    for begin in ("A very small transformer makes", "The sheet Learn shows the settings"):
        assert any(str(text).startswith(begin) for text in texts) and begin in " ".join(said)


@pytest.mark.parametrize("width", [390, 1366, 1920])
def test_no_label_is_cut(play: Play, width: int) -> None:
    assert play("dialogue-game", ["cut", ".tile .told"], ["wide"], width=width) == [[], 0]


@pytest.mark.parametrize("name", ["cat-sat", "adder", "digits", "superposition", "learn"])
def test_axe_finds_nothing_on_model_and_sheets(play: Play, name: str) -> None:
    """Each in the light and in the dark, on a desk and on a phone."""
    views = [["touch", "#views button:first-child"], ["axe"], ["touch", "#views button:last-child"]]
    steps = [*views, ["axe"]] if name in ("cat-sat", "adder", "digits") else [["axe"]]
    for size in ({}, PHONE):
        for scheme in ("light", "dark"):
            read = play(name, *steps, **size, colorScheme=scheme)
            assert not any(read), (name, size, scheme, read)


def test_it_is_printed_on_one_page(play: Play) -> None:
    """The picture and the next words beside it."""
    assert play("dialogue-game", ["pages"]) == [1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [{}, PHONE], ids=["desk", "phone"])
def test_axe_finds_nothing(play: Play, size: dict[str, int], scheme: str) -> None:
    """On the first screen, after an edit, with a cell open; and nothing is cut."""
    pattern = ["touch", "[data-block='blocks.0.attn.h1.pattern']"]
    read = play(
        *("dialogue-game", ["axe"], HEAD, pattern, ["axe"], ["wide"]),
        **size,
        colorScheme=scheme,
    )
    assert read == [[], [], 0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("cat-sat", "final-step", "fluffy-creature", "induction", "semantic-tiny", "two-layers"),
        *(f"x-golden-{name}" for name in ("bert", "minilm", "mixtral", "gptj", "roberta", "llama")),
    ],
)
def test_each_model_has_its_picture(play: Play, name: str) -> None:
    """With its tokens and its parts; no picture is blank, no canvas is wider than its column."""
    tokens, tiles, cut = play(
        name, ["text", ".token-list span"], ["text", ".part > :first-child"], ["cut", ".part"]
    )
    assert tokens
    assert tiles
    assert cut == []
