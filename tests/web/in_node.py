"""The page's modules in Node.js: one process, which calls their functions as tests ask it to."""

import atexit
import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
WEB = HERE.parents[1] / "exporters" / "web"


class JavaScriptError(Exception):
    """What a function threw: its message, and where."""

    def __init__(self, message: str, stack: str):
        super().__init__(message)
        self.add_note(stack)


class Node:
    """A Node.js that has started and waits for calls."""

    def __init__(self) -> None:
        self._program = subprocess.Popen(
            ["node", str(HERE / "serve.mjs")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def __call__(self, module: str, name: str, *given: Any) -> Any:
        """What a function returns, as JSON carries it: of a module of the page, or a .mjs beside
        this file. Raises JavaScriptError for what it throws."""
        path = (HERE if module.endswith(".mjs") else WEB) / module
        asked = {"module": str(path), "call": name, "given": given}
        assert self._program.stdin and self._program.stdout
        self._program.stdin.write(json.dumps(asked) + "\n")
        self._program.stdin.flush()
        said = json.loads(self._program.stdout.readline())
        if "error" in said:
            raise JavaScriptError(said["error"], said["stack"])
        return said["value"]

    def close(self) -> None:
        """End it."""
        self._program.communicate()


@cache
def _node() -> Node:
    """The one Node.js, which starts when it is first asked for."""
    started = Node()
    atexit.register(started.close)
    return started


def call(module: str, name: str, *given: Any) -> Any:
    """What a function of a module returns: see `Node`."""
    return _node()(module, name, *given)
