"""`--help`: every option is described, and defaults are the ones that are used."""

import pytest
import typer

from cellformer.command.main import app
from engine.learning.text_training import TextRun

COMMANDS = typer.main.get_command(app).commands


def test_every_option_is_described() -> None:
    for name, command in COMMANDS.items():
        assert command.help.partition("\n")[0].endswith("."), name
        for option in command.params:
            assert option.help and option.help.endswith("."), (name, option.name)


@pytest.mark.parametrize("size", ["n_layers", "n_heads", "d_model", "context", "steps", "batch"])
def test_help_names_the_default_sizes(size: str) -> None:
    help_of = {option.name: option.help for option in COMMANDS["train"].params}
    assert f"(default: {vars(TextRun())[size]})" in help_of[size.removeprefix("n_")]


def test_help_names_the_default_learning_rate() -> None:
    (option,) = (o for o in COMMANDS["train"].params if o.name == "learning_rate")
    assert f"(default: {TextRun().learning_rate})" in option.help
