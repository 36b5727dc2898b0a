"""The stranger's run: README's install and its tests, where there is nothing but Python.

    python3 .ci/stranger.py

The commands are read out of README. They run in a copy of the files that git knows, in a new
virtual environment, with a home that is empty, without a screen, and with a path on which no office
program stands, and no Node.js: what a computer has on which nobody has worked on this project.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
LEFT = "adder.xlsx"  # by the first command
SAID = "no spreadsheet program was found"
SHELL = ("sh", "bash", "cat", "env", "head", "ls", "true", "uname")  # all that is on the path
# What the way to a package registry may need, which is the network's and not the project's.
NETWORK = re.compile(r"PIP_\w+|\w*(PROXY|CERT\w*|CA_BUNDLE|CA_CERTS)", re.IGNORECASE)


def commands(readme: str) -> tuple[str, str]:
    """README's command that installs and opens a workbook, and the one that runs the tests."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    blocks = [block for language, block in fenced if not language]
    (tests,) = [block for block in blocks if "pytest" in block]
    return blocks[0].strip(), tests.strip()


def copy(target: Path) -> None:
    """The files that git knows, as they are now; all of a folder that is no clone."""
    known = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    try:
        listed = subprocess.run(known, cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        shutil.copytree(ROOT, target)
        return
    for name in listed.decode().rstrip("\0").split("\0"):
        if not (ROOT / name).is_file():
            continue  # it was deleted, and that is not yet committed
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target / name)


def environment(folder: Path) -> dict[str, str]:
    """A new virtual environment, and next to nothing beside it."""
    venv.create(folder / "venv", with_pip=True)
    for path in (folder / "home", folder / "bin"):
        path.mkdir()
    for name in SHELL:
        if found := shutil.which(name):
            (folder / "bin" / name).symlink_to(found)
    path = os.pathsep.join((str(folder / "venv" / "bin"), str(folder / "bin")))
    kept = {name: value for name, value in os.environ.items() if NETWORK.fullmatch(name)}
    own = Path.home() / ".config" / "pip" / "pip.conf"
    kept |= {"PIP_CONFIG_FILE": str(own)} if own.is_file() else {}
    kept["PIP_QUIET"] = "1"
    return {**kept, "HOME": str(folder / "home"), "PATH": path, "LANG": "C.UTF-8"}


def timed(command: str, folder: Path, found: dict[str, str], **more: object) -> int:
    """Run a line of README; its exit code."""
    print(f"$ {command}", flush=True)
    began = time.monotonic()
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=found, **more)
    print(f"{time.monotonic() - began:.0f} s: {command}, as a stranger", flush=True)
    return done.returncode


def main() -> None:
    """Run both; exit code 1 where one does not do what README says."""
    install, tests = commands((ROOT / "README.md").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy(folder / "clone")
        found = environment(folder)
        with open(folder / "said", "w+", encoding="utf-8") as said:
            code = timed(install, folder / "clone", found, stderr=said)
            said.seek(0)
            told = said.read()
        print(told, end="")
        if code != 2 or SAID not in told or not (folder / "clone" / LEFT).is_file():
            sys.exit(f"README's install left no {LEFT}, or did not say that nothing opens it")
        (folder / "clone" / LEFT).unlink()
        if timed(tests, folder / "clone", found):
            sys.exit("README's tests fail where there is nothing but Python")


if __name__ == "__main__":
    main()
