"""Studies over a file of prompts: the same rows whoever does the work, dies, or is stopped."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep

import pytest
from conftest import GOLDEN, cli, library

import cellformer as cf
from cellformer import studies, work
from cellformer.engine.studies.ablation import Options

WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "mat", "floor", "big"]
PROMPTS = ["the cat sat", "a dog ran", "the dog sat on", "a big cat"]
KINDS = {
    "ablate": {"mean": True},
    "gradient": {"top": 2, "target": "mat"},
    "patch": {"against": "a dog ran"},
    "sweep": {"cell": "blocks.0.attn.h0.W_V[2,2]", "n_steps": 3},
}


class Backwards(Executor):
    """An executor that does its parts in threads of its own, the last one first."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future, object]] = []
        self.n_done = 0

    def submit(self, work, /, *given, **named) -> Future:
        self.waiting.append((Future(), lambda: work(*given, **named)))
        if len(self.waiting) == 1:
            threading.Timer(0.05, self._do).start()
        return self.waiting[-1][0]

    def _do(self) -> None:
        while self.waiting:
            future, compute = self.waiting.pop()
            future.set_result(compute())
            self.n_done += 1


@pytest.mark.parametrize("kind", KINDS)
def test_any_executor_gives_the_same_rows(kind: str) -> None:
    prompts = ["the cat sat", "the dog ran", "a cat ran"]
    alone = cf.study(kind, "cat-sat", prompts, **KINDS[kind])
    assert [*dict.fromkeys(row["prompt"] for row in alone)] == prompts
    backwards = Backwards()
    assert cf.study(kind, "cat-sat", prompts, backwards, **KINDS[kind]) == alone
    assert backwards.n_done == 3
    with ThreadPoolExecutor(2) as threads:
        assert cf.study(kind, "cat-sat", prompts, threads, **KINDS[kind]) == alone


def test_rows_are_those_of_one_prompt() -> None:
    """A table's rows are what the other functions of cellformer compute for that prompt."""
    (*_, row) = cf.study("patch", "cat-sat", PROMPTS[:2], against="the dog sat", target="mat")
    (*_, one) = cf.patch("cat-sat", "the dog sat", prompt="a dog ran", target="mat")
    assert (row["site"], row["logit"], row["recovered"]) == (one.site, one.logit, one.recovered)
    rows = cf.study("sweep", "cat-sat", PROMPTS, **KINDS["sweep"])
    live = cf.Evaluator(cf.graph("cat-sat", PROMPTS[1]))
    live.set("blocks.0.attn.h0.W_V", 2, 2, -1.0)
    assert rows[3]["probability"] == pytest.approx(live["probs"][-1].max(), abs=1e-12)
    assert [row["value"] for row in rows[3:6]] == [-1.0, 0.0, 1.0]


@pytest.fixture
def two_hundred(tmp_path: Path) -> Path:
    drawn = random.Random(7)
    lines = [" ".join(drawn.choices(WORDS, k=drawn.randint(2, 6))) for _ in range(200)]
    (tmp_path / "prompts.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.slow
def test_one_process_two_and_a_cluster_write_the_same_bytes(two_hundred: Path) -> None:
    distributed = library("distributed")
    tables = {}
    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster:
        shares = {"one": [], "two": ["--jobs", 2], "dask": ["--dask", cluster.scheduler_address]}
        for name, share in shares.items():
            command = ("ablate", "cat-sat", "--prompts", "prompts.txt", "-o", f"{name}.csv")
            done = cli(*command, *share, cwd=two_hundred)
            assert done.code == 0 and "prompts: 200" in done.out, done.err
            tables[name] = (two_hundred / f"{name}.csv").read_bytes()
    assert tables["one"] == tables["two"] == tables["dask"]
    assert tables["one"].count(b"\r\n") == 401
    assert not [*two_hundred.glob("*.partial")]


# --- workers that die -----------------------------------------------------------------------------


def square(part: tuple[str, int]) -> int:
    """A part; the first to be 5, or every 7, ends its worker."""
    flag, n = Path(part[0]), part[1]
    if n == 7 or (n == 5 and not flag.exists()):
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    sleep(0.01)
    return n * n


@pytest.mark.slow
def test_the_part_of_a_worker_that_dies_is_done_again(tmp_path: Path) -> None:
    flag, told = str(tmp_path / "died"), []
    parts = [(flag, n) for n in range(7)]
    found = dict(work.done(square, parts, work.Workers(jobs=2), told.append))
    assert found == {n: n * n for n in range(7)}
    assert told == ["a worker died; its part is repeated"]


@pytest.mark.slow
def test_a_part_that_ends_every_worker_is_named(tmp_path: Path) -> None:
    parts, found, told = [(str(tmp_path / "died"), n) for n in (6, 7, 8)], {}, []
    with pytest.raises(
        cf.InputError,
        match="part 7: its worker process ended 3 times, probably because memory ran out",
    ):
        for k, result in work.done(
            square, parts, work.Workers(jobs=2), told.append, lambda part: f"part {part[1]}"
        ):
            found[k] = result
    assert found == {0: 36, 2: 64} and len(told) >= 3


@pytest.mark.slow
def test_a_worker_of_a_cluster_dies(two_hundred: Path) -> None:
    distributed = library("distributed")
    told: list[str] = []
    asked = studies.Task("ablate", "cat-sat")
    prompts = studies.read(two_hundred / "prompts.txt")[:60]
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        workers = work.Workers(client.get_executor(pure=False), alive=client.nthreads)

        def advance(n: int, killed: list[int] = []) -> None:  # noqa: B006
            if not killed and n:
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)

        found = studies.run(asked, prompts, workers, None, False, told.append, advance)
    assert found == studies.run(asked, prompts)


# --- stopped, and gone on with --------------------------------------------------------------------


def test_a_stopped_run_goes_on(tmp_path: Path, capsys) -> None:
    """What was done is kept, whatever line a killed program was writing, and not done again."""
    asked, given = studies.Task("ablate", "cat-sat"), list(map(studies.Prompt, PROMPTS))
    whole, output = tmp_path / "whole.csv", tmp_path / "table.csv"
    studies.run(asked, given, output=whole)
    done: list[int] = []

    def stop(n: int) -> None:
        done.append(n)
        if sum(done) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        studies.run(asked, given, output=output, advance=stop)
    partial = tmp_path / "table.csv.partial"
    assert f"2 of 4 prompts are saved in {partial}" in capsys.readouterr().err
    assert not output.exists() and len(partial.read_text().splitlines()) == 3
    with open(partial, "a") as file:
        file.write("[3, [[4, 'half a li")
    with pytest.raises(cf.InputError, match="continue that run with --resume, or delete the file"):
        studies.run(asked, given, output=output)
    with pytest.raises(cf.InputError, match="has results of another run"):
        studies.run(
            studies.Task("ablate", "cat-sat", options=Options(mean=True)),
            given,
            output=output,
            resume=True,
        )
    done.clear()
    studies.run(asked, given, output=output, resume=True, advance=done.append)
    assert done == [2, 1, 1]
    assert output.read_bytes() == whole.read_bytes() and not partial.exists()


@pytest.mark.slow
def test_a_terminated_command_keeps_what_is_done(two_hundred: Path) -> None:
    command = [sys.executable, "-m", "cellformer", "ablate", "cat-sat", "--prompts", "prompts.txt"]
    command += ["-o", "table.csv", "--jobs", "2"]
    partial, until = two_hundred / "table.csv.partial", monotonic() + 60
    running = subprocess.Popen(command, cwd=two_hundred, stderr=subprocess.PIPE, text=True)
    while not (partial.exists() and partial.read_text().count("\n") > 3) and monotonic() < until:
        sleep(0.01)
    running.terminate()
    assert "are saved in" in running.communicate()[1] and running.returncode == 143
    assert cli(*command[3:], "--resume", cwd=two_hundred).code == 0
    assert cli(*command[3:6], command[6], "-o", "whole.csv", cwd=two_hundred).code == 0
    assert (two_hundred / "table.csv").read_bytes() == (two_hundred / "whole.csv").read_bytes()


@pytest.mark.slow
def test_models_of_a_folder(tmp_path: Path) -> None:
    for name in ("gpt2", "llama"):
        (tmp_path / "models").mkdir(exist_ok=True)
        (tmp_path / "models" / name).symlink_to(GOLDEN / name)
    for jobs in (1, 2):
        options = ("-o", f"by{jobs}", "--ids", "1,2,3", "--jobs", jobs)
        done = cli("build", "models", "--all", *options, cwd=tmp_path)
        assert done.code == 0 and f"by{jobs}: 2 workbooks, " in done.out, done.err
    for name in ("gpt2.xlsx", "llama.xlsx"):
        assert (tmp_path / "by1" / name).read_bytes() == (tmp_path / "by2" / name).read_bytes()


def test_parquet_has_the_rows_and_the_same_bytes(tmp_path: Path) -> None:
    parquet = library("pyarrow.parquet")
    rows = cf.study("sweep", "cat-sat", PROMPTS, output=tmp_path / "1.parquet", **KINDS["sweep"])
    threads = ThreadPoolExecutor(2)
    cf.study("sweep", "cat-sat", PROMPTS, threads, tmp_path / "2.parquet", **KINDS["sweep"])
    assert parquet.read_table(tmp_path / "1.parquet").to_pylist() == rows
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()


# --- files, and mistakes --------------------------------------------------------------------------


def test_prompts_of_a_csv_have_targets_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(
        'prompt,target,against\n"the cat sat",dog,a dog ran\na cat,,the dog\n'
    )
    done = cli("patch", "cat-sat", "--prompts", "p.csv", cwd=tmp_path)
    rows = list(csv.DictReader(done.out.splitlines()))
    assert {row["target"] for row in rows if row["prompt"] == "the cat sat"} == {"dog"}
    assert {row["against"] for row in rows} == {"a dog ran", "the dog"}


def test_a_table_as_json(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("the cat\na dog\n")
    command = ("ablate", "cat-sat", "--prompts", "p.txt")
    found = json.loads(cli(*command, "--json", cwd=tmp_path).out)["result"]
    rows = cf.study("ablate", "cat-sat", ["the cat", "a dog"])
    assert [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]] == rows
    printed, asked = cli(*command, cwd=tmp_path).out, cli(*command, "--csv", cwd=tmp_path).out
    assert list(csv.reader(printed.splitlines())) == list(csv.reader(asked.splitlines()))


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ("ablate cat-sat --prompts none.txt", "there is no file none.txt"),
        ("ablate cat-sat --prompts p.txt --prompt cat", "leave out --prompt"),
        ("ablate cat-sat --prompts p.txt -o x.txt", "must end in .csv or .parquet"),
        ("ablate cat-sat --prompts p.txt --resume", "name the table of that run with -o"),
        (
            "ablate cat-sat --jobs 2",
            "--jobs works only with many prompts or workbooks: give a file",
        ),
        ("ablate cat-sat --prompts bad.txt", "prompt 2, 'the kat': 'kat' is not in the vocabulary"),
        ("ablate cat-sat --prompts blank.txt", "has no prompts"),
        ("ablate cat-sat --prompts no.csv", "has no column named prompt"),
        ("sweep cat-sat nothing[0,0] --prompts p.txt", "prompt 1, 'the cat': no block is named"),
        (
            "patch cat-sat --prompts p.txt",
            "no text to copy values from; give a text with --against",
        ),
        ("patch cat-sat", "give the text that supplies the values: --against"),
        (
            "build cat-sat --jobs 2",
            "--jobs works only with many prompts or workbooks: build them with --all",
        ),
        ("build --all --prompt cat", "Combine --all only with -o"),
        ("build cat-sat --all", "cat-sat is not a folder of models"),
        ("build . --all", "contains no models"),
        ("ablate cat-sat --prompts p.txt --jobs 2 --dask tcp://x:1", "give only one of them"),
    ],
)
def test_mistakes_get_one_line(arguments: str, remedy: str, tmp_path: Path) -> None:
    for name, text in {
        "p.txt": "the cat\n",
        "bad.txt": "the cat\nthe kat\n",
        "blank.txt": "\n",
    }.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "no.csv").write_text("text\nthe cat\n")
    done = cli(*arguments.split(), cwd=tmp_path)
    assert done.code == 2 and done.err.count("\n") == 1 and remedy in done.err, done.err
    assert {path.name for path in tmp_path.iterdir()} == {"p.txt", "bad.txt", "blank.txt", "no.csv"}
