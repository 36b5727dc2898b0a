"""Models of the Hugging Face Hub: from a cache made by hand, and from a server on the loopback.

The library reads its variables when it is imported, so every call is a process of its own.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from conftest import GOLDEN, ROOT
from format_writers import write_gguf

pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER = "fedcba9876543210fedcba9876543210fedcba98"
NOWHERE = "http://127.0.0.1:9"  # the port of `discard`: nobody answers


ASK = """
import sys
from cellformer import names
from engine import InputError
for name in sys.argv[1:]:
    try:
        print(names.model(name).kind)
    except InputError as error:
        print(error)
"""


def ask(home: Path, endpoint: str, *names: str, **more: str) -> list[str]:
    """The kind of each model, or the line that says why there is none."""
    hidden = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    said = {"HF_HOME": str(home), "HF_ENDPOINT": endpoint, "PYTHONPATH": str(ROOT), **more}
    command = [sys.executable, "-c", ASK, *names]
    env = hidden | said
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, cwd=home)
    lines = done.stdout.splitlines()
    assert len(lines) == len(names), done
    return lines


def cache(home: Path, repo: str, commit: str, folder: Path, revision: str = "main") -> Path:
    """A folder in the library's cache, as if it had been fetched."""
    inside = home / "hub" / ("models--" + repo.replace("/", "--"))
    shutil.copytree(folder, inside / "snapshots" / commit)
    (inside / "refs").mkdir(exist_ok=True)
    (inside / "refs" / revision).write_text(commit)
    return inside / "snapshots" / commit


def test_what_is_in_the_cache_needs_no_network(tmp_path: Path) -> None:
    repo = "some-one/tiny_llama.1"
    cache(tmp_path, repo, COMMIT, GOLDEN / "llama")
    cache(tmp_path, repo, OTHER, GOLDEN / "gpt2", "v2")
    (folder := tmp_path / "packed").mkdir()
    write_gguf(GOLDEN / "llama", folder / "tiny.gguf")
    cache(tmp_path, "a/packed", COMMIT, folder)
    llama = (repo, f"{repo}@main", "a/packed", "a/packed/tiny.gguf", "a/packed/tiny.gguf@main")
    gpt2 = (f"{repo}@v2", f"{repo}@{OTHER}")
    *found, missing, nowhere = ask(tmp_path, NOWHERE, *llama, *gpt2, f"{repo}@v3", "no/where")
    assert found == [*["llama"] * len(llama), *["gpt2"] * len(gpt2)]
    assert f"{repo}@v3 is not in the cache, and the Hub cannot be reached" in missing
    line = "there is no file or folder no/where; as a model, no/where is not in the cache"
    assert line in nowhere


def test_offline_one_line_says_so(tmp_path: Path) -> None:
    (line,) = ask(tmp_path, NOWHERE, "no/where", HF_HUB_OFFLINE="1")
    assert line == "no/where is not in the cache, and HF_HUB_OFFLINE is set"


# --- a server that speaks what the library asks for ----------------------------------------------


class Hub(BaseHTTPRequestHandler):
    """The few endpoints: a model's files, and each of them, with its commit and its hash."""

    repos: dict[str, Path]
    asked: list[str]  # the files that were sent
    requests: list[str]

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""

    def answer(self, body: bool) -> None:
        self.requests.append(self.path)
        path = self.path.partition("?")[0]
        if path.startswith("/api/models/gated/") or path.startswith("/gated/"):
            return self.refuse(403, "GatedRepo")
        if path.startswith("/api/models/"):
            return self.listing(path.removeprefix("/api/models/"), body)
        repo, _, rest = path[1:].partition("/resolve/")
        revision, _, file = rest.partition("/")
        folder = self.repos.get(repo)
        if folder is None:
            return self.refuse(401, "RepoNotFound")
        if revision not in ("main", COMMIT):
            return self.refuse(404, "RevisionNotFound")
        if not (folder / file).is_file():
            return self.refuse(404, "EntryNotFound")
        if body:
            self.asked.append(file)
        self.send((folder / file).read_bytes(), body)

    def listing(self, path: str, body: bool) -> None:
        owner, name, *rest = path.split("/")
        folder = self.repos.get(f"{owner}/{name}")
        if folder is None:
            return self.refuse(401, "RepoNotFound")
        if rest[1:2] not in ([], ["main"], [COMMIT]):
            return self.refuse(404, "RevisionNotFound")
        files = [p for p in sorted(folder.iterdir()) if p.is_file()]
        if "tree" in rest:
            found: object = [
                {"type": "file", "path": p.name, "size": p.stat().st_size, "oid": digest(p)}
                for p in files
            ]
        else:
            siblings = [{"rfilename": p.name} for p in files]
            found = {"id": f"{owner}/{name}", "sha": COMMIT, "siblings": siblings}
        self.send(json.dumps(found).encode(), body, "application/json")

    def send(self, data: bytes, body: bool, kind: str = "application/octet-stream") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def refuse(self, code: int, reason: str) -> None:
        self.send_response(code)
        self.send_header("X-Error-Code", reason)
        self.send_header("X-Error-Message", reason)
        self.send_header("Content-Length", "0")
        self.end_headers()


def digest(path: Path) -> str:
    return hashlib.sha1(path.read_bytes()).hexdigest()


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    """A server with a model in two files of weights, and one of two GGUF files."""
    tiny, packed = tmp_path / "served" / "tiny", tmp_path / "served" / "packed"
    shutil.copytree(GOLDEN / "llama", tiny)
    shutil.copy(tiny / "model.safetensors", tiny / "pytorch_model.bin")
    (tiny / "README.md").write_text("A model.")
    packed.mkdir()
    (packed / "a.gguf").write_bytes(b"GGUF")
    (packed / "b.gguf").write_bytes(b"GGUF")
    Hub.repos, Hub.asked = {"some-one/tiny": tiny, "some-one/packed": packed}, []
    Hub.requests = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_a_model_is_fetched_once_with_what_it_needs_alone(endpoint: str, tmp_path: Path) -> None:
    assert ask(tmp_path, endpoint, "some-one/tiny") == ["llama"]
    assert sorted(set(Hub.asked)) == ["config.json", "model.safetensors"]
    names = "some-one/tiny", "some-one/tiny@main", f"some-one/tiny@{COMMIT}"
    assert ask(tmp_path, NOWHERE, *names) == ["llama"] * 3


def test_a_model_with_its_tokenizer_in_the_cache_is_not_asked_for(
    endpoint: str, tmp_path: Path
) -> None:
    folder = cache(tmp_path, "some-one/tiny", COMMIT, GOLDEN / "llama")
    assert ask(tmp_path, endpoint, "some-one/tiny") == ["llama"]
    assert Hub.requests, "there may be a tokenizer, and it is asked for"
    Hub.requests.clear()
    (folder / "words.json").write_text(json.dumps([f"word{i}" for i in range(17)]))
    assert ask(tmp_path, endpoint, "some-one/tiny") == ["llama"]
    assert not Hub.requests


REFUSED = {
    "gated/model": "gated/model is gated: ask for access on its page, and set HF_TOKEN",
    "some-one/else": "no file or folder some-one/else, and no model some-one/else on the Hub",
    "some-one/tiny@v9": "some-one/tiny has no revision v9 on the Hub",
    "some-one/packed": "name one of them: some-one/packed/a.gguf, some-one/packed/b.gguf",
    "some-one/packed/c.gguf": "some-one/packed has no c.gguf on the Hub",
    "some-one/packed/a.gguf": "a.gguf ends within its header",
}


def test_what_cannot_be_fetched_gives_one_line(endpoint: str, tmp_path: Path) -> None:
    for line, message in zip(ask(tmp_path, endpoint, *REFUSED), REFUSED.values(), strict=True):
        assert message in line
