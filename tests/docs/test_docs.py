"""What the documents say is so: snippets run, generated pages are current, examples do as told."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, default_book, script

import cellformer as cf
from cellformer.engine.models import architectures
from cellformer.exporters.checking.verify import ENGINES

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PRINTED = {  # a line of each example's output
    "a_class_is_graded": "6 of 6",
    "a_checkpoint_and_back": "0.0",
    "a_model_of_your_own": "generates",
    "a_worksheet_of_your_own": "a: 0.609, and 0.174 for 0",
    "an_edited_workbook": "blocks.0.attn.h0.W_V[2,2]",
    "an_adapter_beside_its_base": "merged: 0.0",
    "build_a_workbook": "the-dog-sat.xlsx: 21 sheets",
    "change_a_weight": "mat      0.312 -> 0.189",
    "generate_text": "chiama",
    "talk_in_a_template": "<|user|>What is the capital of France?<|end|>",
    "make_a_wish": "now it says Cefa",
    "patch_a_caller": "blocks.0.attn.h0.result at chiama: 48.1%, the gradient says 8.9%",
    "read_the_depth": "after blocks.1.resid_mid   Tarso    0.999",
    "round_the_weights": "blocks.1.attn.h2 alone in 2 bits: lead 3.74",
    "steer_the_caller": "-2: <BOS> Pietro chiama Paolo vice",
    "sweep_a_weight": "-1.0   0.189   word 6",
    "switch_heads_off": "after Pietro chiama Paolo: Tarso",
    "where_an_answer_comes_from": "+9.16; without it the lead changes by -8.88",
    "why_a_head_looks_there": "blocks.0.mlp_out x embed: +1.981",
    "trace_a_cell": "is read by blocks.0.attn.h0.row_max[2,0]",
}


def snippets() -> list[str]:
    """The Python of README that can be run by itself."""
    found = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return [text for text in found if "import cellformer" in text]


def test_readme_is_short_and_runs(tmp_path: Path, monkeypatch, capsys) -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150
    monkeypatch.chdir(tmp_path)
    (snippet,) = snippets()
    exec(compile(snippet, "README", "exec"), {})
    printed = capsys.readouterr().out
    assert printed.startswith("q[2,:]·k[1,:] × scale\n")
    assert printed.rstrip().endswith("[]")
    assert (tmp_path / "folder" / "config.json").is_file()


def test_readme_quotes_the_forward_pass() -> None:
    text = (ROOT / "docs" / "forward.py").read_text()
    function = text[text.index("def forward") : text.index("def layer_norm")].strip()
    assert function in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("prompt", ["<BOS> Pietro chiama Paolo", "<BOS> 3"])
def test_forward_py_equals_the_cells(prompt: str) -> None:
    model = cf.load("dialogue-game")
    ids = model.vocabulary.encode(prompt)
    weights = {name: np.asarray(values) for name, values in model.weights.items()}
    n_layers, n_heads = model.spec.n_layers, model.spec.n_heads
    probs = script("forward", "docs").forward(weights, ids, n_layers, n_heads, model.spec.norm_eps)
    assert np.abs(probs - model.graph(ids).values["probs"]).max() < 1e-12


def test_generated_pages_are_current() -> None:
    ops, command = script("ops"), script("command")
    assert ops.TARGET.read_text() == ops.table(), "python docs/scripts/ops.py"
    assert command.TARGET.read_text() == command.reference(), "python docs/scripts/command.py"
    api = script("api")
    assert api.TARGET.read_text() == api.reference(), "python docs/scripts/api.py"


def test_gate_runs_readme_commands() -> None:
    """Read out of README, where a stranger has them from."""
    install, tests = script("stranger", ".ci").commands((ROOT / "README.md").read_text())
    assert install == "python -m pip install -e . && cellformer open adder"
    first_tier = 'python -m pytest -m "not office and not slow"'
    assert tests == f"python -m pip install -e '.[test]' && {first_tier}"
    runs = re.findall(r"^timed (.*)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert runs[0] == '"$python" .ci/stranger.py'


@pytest.mark.slow
def test_sizes_in_documents_are_current() -> None:
    figures = script("figures")
    found = list(figures.pages())
    assert {"dialogue-game.md", "shakespeare.md"} <= {page.name for page in found}
    for page in found:
        text = page.read_text(encoding="utf-8")
        assert text == figures.current(text, default_book), (
            f"{page.name}: python docs/scripts/figures.py"
        )


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_print_what_they_promise(path: Path, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path))
    assert PRINTED[path.stem] in capsys.readouterr().out


def test_every_architecture_is_documented() -> None:
    page = (ROOT / "docs" / "architectures.md").read_text(encoding="utf-8")
    missing = [name for name in architectures.known() if f"`{name}`" not in page]
    assert not missing, f"docs/architectures.md lacks {missing}"
    assert page == script("architectures").table(), "python docs/scripts/architectures.py"


def test_links_of_documents() -> None:
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), (page.name, target)


def test_readme_counts_the_programs_of_verify() -> None:
    n = sum(not engine.by_name for engine in ENGINES.values())
    number = ("three", "four", "five", "six")[n - 3]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"up to {number} programs must correct them" in " ".join(text.split())


@pytest.mark.slow
def test_installed_wheel(tmp_path: Path) -> None:
    """The wheel, which pip makes and installs, from another folder: README's lines, the command."""
    source, site = tmp_path / "source", tmp_path / "site"  # building leaves folders behind
    for name in ("cellformer", "engine", "exporters", "workbooks"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "install"]
    # with the setuptools that is here, torch's, which need not be fetched
    options = ["--no-build-isolation", "--check-build-dependencies"]
    options += ["--no-deps", "--no-compile", "--target", str(site)]
    built = subprocess.run([*pip, *options, str(source)], capture_output=True, text=True)
    if built.returncode and not os.environ.get("CI"):
        pytest.skip(f"no wheel could be built here: {built.stderr.strip().splitlines()[-1]}")
    assert not built.returncode, built.stderr
    top = {path.name for path in site.iterdir() if path.suffix != ".dist-info"} - {"bin"}
    assert top == {"cellformer"}
    assert (site / "cellformer" / "exporters" / "checking" / "javascript.cjs").is_file()
    for name in ("engine", "exporters", "workbooks"):  # a user's own packages
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("mine = True\n")
    environment = os.environ | {"PYTHONPATH": str(site)}
    (snippet,) = snippets()
    code = f"""{snippet}
import engine, exporters, runpy, sys, workbooks
assert engine.mine and exporters.mine and workbooks.mine
from cellformer import engine
print(cf.__file__, engine.__file__)
sys.argv = ["cellformer", "build", "zero-layer", "-o", "z.xlsx"]
runpy.run_module("cellformer", run_name="__main__")  # as python -m does
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    assert done.stdout.count(str(site)) == 2
    assert (tmp_path / "z.xlsx").is_file()
