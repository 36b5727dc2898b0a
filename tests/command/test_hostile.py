"""Hostile input gets one line: a part of what `python tests/hostile.py` tries."""

import subprocess
import sys

import pytest
from conftest import ROOT

pytestmark = pytest.mark.slow

EACH = 2  # inputs of each kind; a thousand by the script's own default


def test_hostile_input_gets_one_line() -> None:
    script = ROOT / "tests" / "hostile.py"
    done = subprocess.run([sys.executable, script, str(EACH)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(f"{EACH} tried") == 18
