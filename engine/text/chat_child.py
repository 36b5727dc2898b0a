"""Rendering chat templates, in a process of its own: `chat_template` starts it and ends it.

A template comes with a model's files and is not trusted. It is rendered in Jinja's sandbox, with
the names and filters that transformers gives it (`utils/chat_template_utils.py` there), and under
limits of time, memory and output; no file can be written. From standard input come JSON [template,
special tokens, conversations]; to standard output go pairs [text, fault], one for each
conversation.
"""

import json
import sys
from contextlib import suppress
from datetime import datetime
from typing import Any

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

LONGEST = 1_000_000  # characters of a conversation as a text
SECONDS, BYTES = 3, 1_000_000_000  # of processor and memory


class Generation(jinja2.ext.Extension):
    """The tags {% generation %}, which mark the model's messages and do not change the text."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Any) -> Any:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_as_it_is"), [], [], body).set_lineno(line)

    def _as_it_is(self, caller: Any) -> Any:
        return caller()


class Dict:
    """`dict` in a template, without the attributes of a class."""

    def __call__(self, *args: Any, **named: Any) -> dict[Any, Any]:
        return dict(*args, **named)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


class Namespace(jinja2.utils.Namespace):
    """`namespace` in a template, without names that begin with an underscore."""

    def __init__(*args: Any, **named: Any) -> None:
        self, *rest = args
        attributes = dict(*rest, **named)
        for name in attributes:
            _check_name(name)
        jinja2.utils.Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"a namespace must not have a field {name!r}")


def raise_exception(message: str) -> None:
    """The function that templates call to refuse a conversation."""
    raise jinja2.exceptions.TemplateError(message)


def tojson(
    x: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as it is; Jinja's own filter escapes HTML."""
    return json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def environment() -> ImmutableSandboxedEnvironment:
    """Jinja's sandbox with transformers' additions."""
    found = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    found.filters["tojson"] = tojson
    found.globals["raise_exception"] = raise_exception
    found.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    found.globals["dict"], found.globals["namespace"] = Dict(), Namespace
    return found


def limit() -> None:
    """Limit this process, where the system can."""
    with suppress(ImportError):
        import resource

        limits = ((resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_AS, BYTES))
        for kind, most in (*limits, (resource.RLIMIT_FSIZE, 0)):
            with suppress(ValueError, OSError):
                resource.setrlimit(kind, (most, most))


def rendered(template: Any, tokens: dict[str, str], messages: Any) -> str:
    """A conversation as a text, up to where the model's answer begins."""
    found, length = [], 0
    said = {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": True}
    for part in template.generate(**tokens, **said):
        found.append(part)
        length += len(part)
        if length > LONGEST:
            raise jinja2.exceptions.TemplateError(
                f"the template writes more than {LONGEST:,} characters"
            )
    return "".join(found)


def fault(error: BaseException) -> str:
    """A failure in a line."""
    said = " ".join(str(error).split()).rstrip(".") or "no reason is given"
    if isinstance(error, jinja2.exceptions.TemplateSyntaxError):
        return f"its line {error.lineno}: {said}"
    plain = isinstance(error, jinja2.exceptions.TemplateError)
    return said if plain else f"{type(error).__name__}: {said}"


def answers(source: str, tokens: dict[str, str], conversations: Any) -> list[tuple[str, str]]:
    """Each conversation's text and "", or "" and the reason why there is none."""
    try:
        template = environment().from_string(source)
    except Exception as error:
        return [("", fault(error))] * len(conversations)
    found = []
    for messages in conversations:
        try:
            found.append((rendered(template, tokens, messages), ""))
        except Exception as error:
            found.append(("", fault(error)))
    return found


if __name__ == "__main__":
    given = json.load(sys.stdin)
    limit()
    json.dump(answers(*given), sys.stdout)
