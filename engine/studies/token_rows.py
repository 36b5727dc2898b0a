"""The option `--rows tokens`: tables have a row for each token, in models of every size."""

from cellformer.engine.cells.errors import InputError
from cellformer.engine.studies.addition import Addition, Given, Option

ROWS = Option("rows", str, "tokens: tables have a row for each token, as documents do.")


def _asked(given: Given) -> bool:
    if given.options["rows"] != "tokens":
        raise InputError(f"--rows {given.options['rows']!r}: say tokens, or leave it out")
    return True


ADDITION = Addition(
    "rows",
    (ROWS,),
    _asked,
    "--rows tokens",
    instead="leave it out",
    apart=("nudge", "why", "against", "steer", "quantize"),  # whose blocks are not laid out so
    facts=lambda _: {"token_rows": True},
    read=lambda facts, *_: True if facts.get("token_rows") is True else None,
)
