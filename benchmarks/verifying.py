"""How long a large workbook takes to be verified, and its edits to be found.

    python benchmarks/verifying.py FILE.xlsx ...

For each: seconds on the clock, and of the processor with all the programs that are started, for
`verify` in every engine, `diff` and `import`. A machine with other work shows the latter alone.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def taken(*args: str) -> str:
    """How long the command takes."""
    start, before = time.perf_counter(), os.times()
    done = subprocess.run([sys.executable, "-m", "cellformer", *args], capture_output=True)
    after, seconds = os.times(), time.perf_counter() - start
    spent = after.children_user + after.children_system
    spent -= before.children_user + before.children_system
    failed = f", exit code {done.returncode}" if done.returncode else ""
    return f"{seconds:.1f} s, {spent:.1f} s of the processor{failed}"


if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(f"{path}: {Path(path).stat().st_size / 1e6:.1f} MB")
        with tempfile.TemporaryDirectory() as folder:
            print("  diff:  ", taken("diff", path), flush=True)
            print("  import:", taken("import", path, "-o", f"{folder}/model"), flush=True)
        print("  verify:", taken("verify", path), flush=True)
