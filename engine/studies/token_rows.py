"""A row for each token: tables lie as documents print them, whatever the size of the model."""

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
    facts=lambda _: {"token_rows": True},
    read=lambda facts, *_: True if facts.get("token_rows") is True else None,
)
