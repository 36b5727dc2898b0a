"""Hostile input gets one line: a part of what `python tests/hostile.py` tries."""

import pkgutil
import subprocess
import sys

import hostile_kinds
import pytest
from conftest import ROOT

pytestmark = pytest.mark.slow

EACH = 2  # inputs of each kind; a hundred by the script's own default
GROUPS = [file.name for file in pkgutil.iter_modules(hostile_kinds.__path__)]


@pytest.mark.parametrize("group", [name for name in GROUPS if name != "cases"])
def test_hostile_input_gets_one_line(group: str) -> None:
    script = ROOT / "tests" / "hostile.py"
    done = subprocess.run(
        [sys.executable, script, str(EACH), group], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{EACH} tried" in done.stdout
