"""The public names of `import cellformer`: those that Tab shows, each with an example that runs."""

import doctest
import pydoc
import re
from pathlib import Path

import pytest

import cellformer as cf
from cellformer.engine.cells import functions


def test_dir_shows_the_public_names_alone() -> None:
    names = [name for name in dir(cf) if not name.startswith("_")]
    assert sorted(names) == cf.__all__ and len(names) > 25
    assert cf.__version__ and "__version__" in dir(cf)
    for name in names:
        assert getattr(cf, name).__doc__, name


@pytest.mark.parametrize("name", cf.__all__)
def test_the_example_of_each_name_runs(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = pydoc.getdoc(getattr(cf, name))
    example = doctest.DocTestParser().get_doctest(told, {"cf": cf}, name, None, None)
    assert example.examples, f"help(cellformer.{name}) has no example"
    runner = doctest.DocTestRunner(verbose=False)
    assert runner.run(example).failed == 0


def test_every_function_of_formulas_is_public() -> None:
    found = {name for name, x in vars(functions).items() if isinstance(x, functions.Function)}
    assert {name for name in dir(cf.f) if name.isupper()} == found


def test_examples_import_cellformer_alone() -> None:
    for example in Path(__file__).parents[2].joinpath("examples").glob("*.py"):
        assert not re.search(r"cellformer\.(engine|exporters|workbooks)", example.read_text()), (
            example
        )
