"""What a stranger's type checker says of scripts that use the public names: the examples."""

import subprocess
import sys

import pytest
from conftest import ROOT


@pytest.mark.slow
def test_examples_pass_strict_mypy() -> None:
    pytest.importorskip("mypy", reason="pip install 'cellformer[dev]'")
    scripts = sorted(map(str, (ROOT / "examples").glob("*.py")))
    asked = ["--strict", "--ignore-missing-imports", "--follow-imports", "silent", *scripts]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *asked], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0 and len(scripts) > 10, done.stdout
