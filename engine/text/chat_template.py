"""Chat templates: how a model wants a conversation to be written.

A template is a Jinja program that comes with the model: as `chat_template` of its
tokenizer_config.json, as chat_template.jinja, or in the metadata of a GGUF file. It is rendered in
a child process (`chat_child`), since it is not trusted. `pieces` finds what it writes around a
system text and around what a person says, so that cells can do the same.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from cellformer.engine.cells.arguments import explained_class
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.fields import content_of, json_object

FILE, FOLDER, KEY = "chat_template.jinja", "additional_chat_templates", "chat_template"
LONGEST = 500_000  # characters of a template; those of 2026 have 20,000
PATIENCE = 20  # seconds, of which a child takes one to begin
BESIDE = "leave out --chat, and write the conversation into --prompt yourself"
Message = Mapping[str, str]  # "role" and "content"


@dataclass(frozen=True)
class Pieces:
    """The template's text around our texts: `opening` system `middle` you `closing`, or, without
    a system text, `without` you `closing`. After an answer comes `following`, then `you` again."""

    without: str
    closing: str
    opening: str | None = None  # None: the template takes no system text
    middle: str = ""
    answering: str = ""  # between what you said and an answer, where both are in the past
    following: str | None = None  # None: earlier turns are not written one after another
    system: str = ""  # the text that the template has by itself
    strips_system: bool = False  # whether white space at its ends is taken away
    strips_you: bool = False
    strips_answer: bool = False


@explained_class
@dataclass(frozen=True)
class ChatTemplate:
    """A template, and the special tokens that it may name: `bos_token`, ...

    >>> source = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    >>> template = cf.ChatTemplate(source)
    >>> template.write("Hello")
    '<|user|>Hello'
    """

    source: str
    tokens: tuple[tuple[str, str], ...] = ()

    def write(self, you: str, system: str = "", earlier: Sequence[Message] = ()) -> str:
        """A conversation as the model's text, up to the start of its answer; an empty system
        text counts as none. Raises InputError if a template or a text gives none."""
        for name, text in (("--system", system), ("--prompt", you)):
            check(text, name)
        (found,) = self._rendered([[*of_system(system), *earlier, of_user(you)]])
        text, fault = found
        if fault:
            refused = system and not self._rendered([[*earlier, of_user(you)]])[0][1]
            remedy = "leave out --system" if refused else BESIDE
            raise InputError(f"the model's chat template reports: {fault}; {remedy}")
        return text

    @cached_property
    def pieces(self) -> Pieces:
        """The template's text around our texts. Raises InputError if it changes the texts."""
        return _pieces(self)

    def _rendered(self, conversations: Sequence[Sequence[Message]]) -> list[tuple[str, str]]:
        """Each conversation's text, and why there is none. Raises InputError for a template that
        has no end, or ends its process."""
        if len(self.source) > LONGEST:
            raise InputError(
                f"the model's chat template has {len(self.source):,} characters, but the limit "
                f"is {LONGEST:,}; {BESIDE}"
            )
        given = json.dumps([self.source, dict(self.tokens), conversations])
        child = Path(__file__).with_name("chat_child.py")
        try:
            done = subprocess.run(
                [sys.executable, "-P", str(child)],
                input=given.encode(),
                capture_output=True,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired:
            raise InputError(
                f"the model's chat template did not finish within {PATIENCE} seconds; {BESIDE}"
            ) from None
        try:
            answers = json.loads(done.stdout)
        except ValueError:
            raise InputError(
                "the model's chat template needs more time or memory than cellformer allows; "
                f"{BESIDE}"
            ) from None
        return [(text, fault) for text, fault in answers]


def check(text: str, name: str) -> None:
    """Raise InputError for a text with characters that no cell can hold."""
    for character in text:
        if (character < " " and character not in "\n\t") or "\ud800" <= character <= "\udfff":
            raise InputError(f"{name} contains the control character {character!r}; delete it")


def of_system(text: str) -> list[Message]:
    """The message with a system text; none if it is empty."""
    return [{"role": "system", "content": text}] if text else []


def of_user(text: str) -> Message:
    """The message of what a person says."""
    return {"role": "user", "content": text}


def of_model(text: str) -> Message:
    """The message of what the model said."""
    return {"role": "assistant", "content": text}


# --- where it stands ----------------------------------------------------------------------------


def of_folder(folder: Path, values: Mapping[str, Any]) -> ChatTemplate | None:
    """The template of a checkpoint's folder, where `values` are the fields of its
    tokenizer_config.json; None if it has none. A file of its own comes first, as in
    transformers."""
    source = values.get(KEY) or json_object(folder / "chat_template.json").get(KEY)
    if (folder / FILE).is_file():
        source = _text(folder / FILE)
    elif (folder / FOLDER / "default.jinja").is_file():
        source = _text(folder / FOLDER / "default.jinja")
    if isinstance(source, list):  # several by name
        named = [each for each in source if isinstance(each, dict)]
        own = [each.get("template") for each in named if each.get("name") == "default"]
        source = own[-1] if own else None
    tokens = {name: content_of(value) for name, value in values.items() if name.endswith("_token")}
    return of_text(source, {name: token for name, token in tokens.items() if token is not None})


def of_text(source: Any, tokens: Mapping[str, str]) -> ChatTemplate | None:
    """A template from its text, which may be missing."""
    if not isinstance(source, str) or not source:
        return None
    return ChatTemplate(source, tuple(sorted(tokens.items())))


def save(template: ChatTemplate, folder: Path) -> None:
    """Write a template's files, for `of_folder` to read."""
    (folder / FILE).write_text(template.source, encoding="utf-8", newline="")
    config = folder / "tokenizer_config.json"
    config.write_text(json.dumps(dict(template.tokens)), encoding="utf-8")


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a UTF-8 text; download the file again") from None


# --- what it writes around texts ----------------------------------------------------------------

MARKS = ("qzsystemqz", "qzyouqz", "qzanswerqz", "qzagainqz")
PROBES = (  # texts that templates are known to change
    *("a", " a ", "\n a\tb \n", "A b  c", "É<b>&\"'\\n{{x}}{% y %}", "a\n\nb", "Q: 1 + 1 = ?"),
    *("<think>a</think>b", "<tool_response>a</tool_response>", "[INST] a [/INST]", "* a *", "<s>a"),
)


def _pieces(template: ChatTemplate) -> Pieces:
    """The pieces, found by rendering marks, and checked by rendering PROBES."""
    system, you, answer, again = MARKS
    asked = [[of_user(you)], [*of_system(system), of_user(you)]]
    asked += [[of_user(you), of_model(answer), of_user(again)]]
    n_marks, n = len(asked), len(PROBES)
    asked += [[of_user(x)] for x in PROBES]
    asked += [[*of_system(x), of_user(you)] for x in PROBES]
    asked += [[of_user(x), of_model(answer), of_user(again)] for x in PROBES]
    asked += [[of_user(you), of_model(x), of_user(again)] for x in PROBES]
    turns = [of_user("a"), of_model("b"), of_user("c"), of_model("d"), of_user("e")]
    asked += [[*of_system("f"), *turns]]
    found = template._rendered(asked)
    (plain, fault), (whole, no_system), (longer, _) = found[:n_marks]
    if fault:
        raise InputError(f"the model's chat template reports: {fault}; {BESIDE}")
    if plain.count(you) != 1:
        raise changed()
    without, _, closing = plain.partition(you)
    texts = [text for text, _ in found[n_marks:]]
    of_you, of_systems, of_past, of_answers = (texts[k * n : (k + 1) * n] for k in range(4))
    strips = _strips([(without, x, closing) for x in PROBES], of_you)
    if strips is None:
        raise changed()
    found_here = Pieces(without, closing, strips_you=strips)
    if not no_system:
        found_here = _with_system(found_here, whole, of_systems)
    return _with_earlier(found_here, longer, of_past, of_answers, texts[-1])


def changed() -> InputError:
    """The error for a template that no formulas can follow."""
    return InputError(
        "the model's chat template changes the typed text in a way that formulas cannot follow; "
        "use `cellformer generate --chat`, or leave out --chat"
    )


def _strips(wanted: Sequence[tuple[str, str, str]], texts: Sequence[str]) -> bool | None:
    """Whether a template strips the middle one of three texts; None if it does something else."""
    for strips in (False, True):
        joined = [before + (x.strip() if strips else x) + after for before, x, after in wanted]
        if joined == list(texts):
            return strips
    return None


def _with_system(found: Pieces, whole: str, texts: Sequence[str]) -> Pieces:
    """The pieces, with the pieces around a system text. Raises InputError if the template
    changes that text."""
    system, you, *_ = MARKS
    opening, _, rest = whole.partition(system)
    middle, _, closing = rest.partition(you)
    if (whole.count(system), whole.count(you), closing) != (1, 1, found.closing):
        raise changed()
    strips = _strips([(opening, x, middle + you + closing) for x in PROBES], texts)
    if strips is None:
        raise changed()
    own = ""
    if found.without.startswith(opening) and found.without.endswith(middle):
        own = found.without[len(opening) : len(found.without) - len(middle)]
    kept = own if own == own.strip() else ""
    return replace(found, opening=opening, middle=middle, system=kept, strips_system=strips)


def _with_earlier(
    found: Pieces, longer: str, past: Sequence[str], answers: Sequence[str], turns: str
) -> Pieces:
    """The pieces, with the pieces around an earlier turn, if the template writes earlier turns
    one after another."""
    _, you, answer, again = MARKS
    if any(longer.count(mark) != 1 for mark in (you, answer, again)):
        return found
    without, _, rest = longer.partition(you)
    answering, _, rest = rest.partition(answer)
    following, _, closing = rest.partition(again)
    end = answer + following + again + closing
    begin = without + you + answering
    strips = _strips([(begin, x, following + again + closing) for x in PROBES], answers)
    alike = _strips([(without, x, answering + end) for x in PROBES], past)
    many = found.without if found.opening is None else f"{found.opening}f{found.middle}"
    many += f"a{answering}b{following}c{answering}d{following}e{found.closing}"
    whole = (without, closing) == (found.without, found.closing)
    if not whole or strips is None or alike != found.strips_you or turns not in (many, ""):
        return found
    return replace(found, answering=answering, following=following, strips_answer=strips)
