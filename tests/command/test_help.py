"""`--help`: every option is described, and defaults are the ones that are used."""

import subprocess
import sys
from pathlib import Path

import pytest

from cellformer.command.group import HOMES, command
from cellformer.engine.learning.text_training import TextRun

COMMANDS = {name: command(name) for name in HOMES}


def test_every_option_is_described() -> None:
    for name, described in COMMANDS.items():
        assert described.help.partition("\n")[0].endswith("."), name
        for option in described.params:
            assert option.help and option.help.endswith("."), (name, option.name)


@pytest.mark.parametrize("size", ["n_layers", "n_heads", "d_model", "context", "steps", "batch"])
def test_help_names_the_default_sizes(size: str) -> None:
    help_of = {option.name: option.help for option in COMMANDS["train"].params}
    assert f"(default: {vars(TextRun())[size]})" in help_of[size.removeprefix("n_")]


def test_help_of_all_imports_no_command() -> None:
    code = "import sys; from cellformer.command.group import begin; begin()(['--help'])"
    code = f"import atexit; atexit.register(lambda: print(*sys.modules)); {code}"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *lines, modules = said.stdout.splitlines()
    assert {"numpy", "cellformer.engine", "cellformer.exporters"}.isdisjoint(modules.split())
    texts = " ".join(" ".join(lines).replace("│", " ").split())
    for name, described in COMMANDS.items():
        assert f"{name} {described.help.partition(chr(10))[0]}" in texts


def test_list_imports_no_workbook() -> None:
    code = "import sys; from cellformer.command.group import begin; begin()(['list'])"
    code = f"import atexit; atexit.register(lambda: print(*sys.modules)); {code}"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *lines, modules = said.stdout.splitlines()
    assert any("cat-sat" in line for line in lines)
    heavy = ("cellformer.workbooks.", "cellformer.engine.models", "cellformer.exporters.file")
    assert not [name for name in modules.split() if name.startswith(heavy)]


def test_building_without_options_imports_no_library_of_the_terminal(tmp_path: Path) -> None:
    code = "import sys; from cellformer.command.group import begin; "
    code += "begin()(['build', 'cat-sat', '-o', 'x.xlsx'], standalone_mode=False)"
    code += "; print(*sys.modules)"
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    line, modules = told.stdout.splitlines()
    assert line.startswith("x.xlsx: 22 sheets")
    assert {"pydantic", "rich.console", "tokenizers"}.isdisjoint(modules.split())


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, cellformer; print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "typer", "rich", "matplotlib"}
    heavy |= {"cellformer.engine", "cellformer.exporters"}
    assert heavy.isdisjoint(said.stdout.split())


def test_help_names_the_default_learning_rate() -> None:
    (option,) = (o for o in COMMANDS["train"].params if o.name == "learning_rate")
    assert f"(default: {TextRun().learning_rate})" in option.help
