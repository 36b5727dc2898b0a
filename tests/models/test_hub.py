"""Models of the Hugging Face Hub: from a cache made by hand, and from a server on the loopback.

The library reads its variables when it is imported, which takes it long: one process is asked all
that there is to ask while a Hub answers, one while nobody does, and one that is told not to try.
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
from typing import ClassVar

import pytest
from conftest import GOLDEN, ROOT
from format_writers import write_gguf

pytestmark = pytest.mark.slow

pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER = "fedcba9876543210fedcba9876543210fedcba98"
NOWHERE = "http://127.0.0.1:9"  # the port of `discard`: nobody answers


ASK = """
import sys
from cellformer import names
from cellformer.engine import InputError
for name in sys.argv[1:]:
    try:
        print(names.model(name).kind)
    except InputError as error:
        print(error)
"""


def ask(home: Path, endpoint: str, *names: str, **more: str) -> dict[str, str]:
    """The kind of each model, or the line that says why there is none, by name."""
    hidden = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    said = {"HF_HOME": str(home), "HF_ENDPOINT": endpoint, "PYTHONPATH": str(ROOT), **more}
    command = [sys.executable, "-c", ASK, *names]
    env = hidden | said
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, cwd=home)
    lines = done.stdout.splitlines()
    return dict(zip(names, lines, strict=True))


def cache(home: Path, repo: str, commit: str, folder: Path, revision: str = "main") -> Path:
    """A folder in the library's cache, as if it had been fetched."""
    inside = home / "hub" / ("models--" + repo.replace("/", "--"))
    shutil.copytree(folder, inside / "snapshots" / commit)
    (inside / "refs").mkdir(exist_ok=True)
    (inside / "refs" / revision).write_text(commit)
    return inside / "snapshots" / commit


# --- a server that speaks what the library asks for ----------------------------------------------


class Hub(BaseHTTPRequestHandler):
    """The few endpoints: a model's files, and each of them, with its commit and its hash."""

    repos: ClassVar[dict[str, Path]] = {}
    sent: ClassVar[list[str]] = []  # repositories and their files
    requests: ClassVar[list[str]] = []

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
            self.sent.append(f"{repo}/{file}")
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


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a model in two files of weights, one of two GGUF files, and two that are in the
    cache."""
    served = tmp_path_factory.mktemp("served")
    tiny, packed = served / "tiny", served / "packed"
    shutil.copytree(GOLDEN / "llama", tiny)
    shutil.copy(tiny / "model.safetensors", tiny / "pytorch_model.bin")
    (tiny / "README.md").write_text("A model.")
    packed.mkdir()
    (packed / "a.gguf").write_bytes(b"GGUF")
    (packed / "b.gguf").write_bytes(b"GGUF")
    Hub.repos |= {"some-one/tiny": tiny, "some-one/packed": packed, PLAIN: tiny, WORDED: tiny}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


# --- what is said --------------------------------------------------------------------------------

TINY = "some-one/tiny", "some-one/tiny@main", f"some-one/tiny@{COMMIT}"
BY_HAND = "some-one/tiny_llama.1"
LLAMAS = (BY_HAND, f"{BY_HAND}@main", "a/packed", "a/packed/tiny.gguf", "a/packed/tiny.gguf@main")
GPT2S = (f"{BY_HAND}@v2", f"{BY_HAND}@{OTHER}")
PASTED = (  # as people have them, all of the same model, but the last
    f"https://huggingface.co/{BY_HAND}",
    f"https://huggingface.co/{BY_HAND}/tree/main",
    f"https://huggingface.co/{BY_HAND}/blob/main/config.json?download=true",
    f"huggingface.co/{BY_HAND}/",
    f"hf.co/{BY_HAND}@{COMMIT[:7]}",
    f"{BY_HAND}@{COMMIT[:12]}",
    "models--some-one--tiny_llama.1",
    "hub/models--some-one--tiny_llama.1",
    "hf.co/a/packed:TINY",
    "a/packed:tiny",
    "https://huggingface.co/a/packed/blob/main/tiny.gguf",
    "bert-base-uncased",
    "https://hf.co/bert-base-uncased",
)
PLAIN, WORDED = "some-one/plain", "some-one/worded"  # in the cache, and served
REFUSED = {
    "gated/model": "gated/model is a gated model: ask for access on its Hub page, and set HF_TOKEN",
    "some-one/else": "no file or folder some-one/else, and no model some-one/else on the Hub",
    "some-one/tiny@v9": "some-one/tiny has no revision v9 on the Hub",
    "some-one/packed": "name one of them: some-one/packed/a.gguf, some-one/packed/b.gguf",
    "some-one/packed:Q4_K_M": (
        "no GGUF file with Q4_K_M in its name; its GGUF files are a.gguf, b.gguf"
    ),
    "some-one/packed/c.gguf": "some-one/packed has no file c.gguf on the Hub",
    "some-one/packed/a.gguf": "a.gguf ends in the middle of its header",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds models."""
    home = tmp_path_factory.mktemp("home")
    cache(home, BY_HAND, COMMIT, GOLDEN / "llama")
    cache(home, BY_HAND, OTHER, GOLDEN / "gpt2", "v2")
    packed = tmp_path_factory.mktemp("packed")
    write_gguf(GOLDEN / "llama", packed / "tiny.gguf")
    cache(home, "a/packed", COMMIT, packed)
    cache(home, "google-bert/bert-base-uncased", COMMIT, GOLDEN / "llama")
    cache(home, PLAIN, COMMIT, GOLDEN / "llama")
    folder = cache(home, WORDED, COMMIT, GOLDEN / "llama")
    (folder / "words.json").write_text(json.dumps([f"word{i}" for i in range(17)]))
    return home


@pytest.fixture(scope="module")
def answered(home: Path, endpoint: str) -> dict[str, str]:
    """What is said of models while the Hub answers."""
    return ask(home, endpoint, *REFUSED, TINY[0], PLAIN, WORDED)


@pytest.fixture(scope="module")
def unanswered(home: Path, answered: dict[str, str]) -> dict[str, str]:
    """The same with what is then in the cache, while nobody answers."""
    assert answered[TINY[0]] == "llama"
    return ask(home, NOWHERE, *TINY, *LLAMAS, *GPT2S, *PASTED, f"{BY_HAND}@v3", "no/where")


def test_cached_model_needs_no_network(unanswered: dict[str, str]) -> None:
    assert {unanswered[name] for name in LLAMAS} == {"llama"}
    assert {unanswered[name] for name in GPT2S} == {"gpt2"}
    missing = f"{BY_HAND}@v3"
    line = f"no model {missing} in the cache. cellformer cannot reach the Hub (ConnectError)"
    assert line in unanswered[missing]
    line = "there is no file or folder no/where, and no model no/where in the cache."
    assert line in unanswered["no/where"]


def test_names_as_people_paste_them(unanswered: dict[str, str]) -> None:
    assert {name: unanswered[name] for name in PASTED} == dict.fromkeys(PASTED, "llama")


def test_offline_is_one_line(home: Path) -> None:
    said = ask(home, NOWHERE, "no/where", HF_HUB_OFFLINE="1")
    assert (
        said["no/where"]
        == "the cache does not have no/where, and HF_HUB_OFFLINE prevents the download; "
        "unset HF_HUB_OFFLINE"
    )


def test_download_once_and_only_needed_files(unanswered: dict[str, str]) -> None:
    sent = {file for file in Hub.sent if file.startswith("some-one/tiny/")}
    assert sent == {"some-one/tiny/config.json", "some-one/tiny/model.safetensors"}
    assert {unanswered[name] for name in TINY} == {"llama"}


def test_cached_tokenizer_is_not_downloaded(answered: dict[str, str]) -> None:
    assert answered[PLAIN] == answered[WORDED] == "llama"
    asked = "\n".join(Hub.requests)
    assert PLAIN in asked, "there may be a tokenizer, and it is asked for"
    assert WORDED not in asked


def test_failed_download_is_one_line(answered: dict[str, str]) -> None:
    for name, message in REFUSED.items():
        assert message in answered[name]
