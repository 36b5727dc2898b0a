"""What `verify` lets programs do: nothing of the folder it stands in is run, a crash is a line."""

import os
import signal
import stat
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import xlsxwriter
from conftest import cli, needs

from cellformer.exporters.checking import verify
from cellformer.exporters.checking.programs import program
from cellformer.exporters.checking.verify import Engine, Values

SCRIPT = "#!/bin/sh\ntouch {}\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A workbook of one formula."""
    return written(tmp_path / "one.xlsx", "=1+1", 2)


def written(path: Path, formula: str, value: float = 1) -> Path:
    with xlsxwriter.Workbook(path) as book:
        book.add_worksheet().write_formula(0, 0, formula, None, value)
    return path


@pytest.fixture
def left(tmp_path: Path, monkeypatch) -> Iterator[Path]:
    """The folder for temporary files, in which nothing is left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def asked(monkeypatch, answer) -> None:
    """Have an engine `odd` that answers so."""

    def recompute(path: Path, book: verify.FormulaCells) -> Values:
        return answer(book)

    monkeypatch.setitem(verify.ENGINES, "odd", Engine(lambda: True, recompute, ""))


def killed(number: int):
    return lambda book: os.kill(os.getpid(), number)


def unreadable(book: verify.FormulaCells) -> Values:
    raise verify.UnreadableError("it knows no sheets")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (lambda book: book.formulas, 0, "agrees    1 cells"),
        (lambda book: {}, 1, "DISAGREES 1 cells"),
        (killed(signal.SIGSEGV), 3, "skipped: it crashed (SIGSEGV, signal 11)"),
        (killed(signal.SIGKILL), 3, "skipped: it crashed (SIGKILL, signal 9)"),
        (lambda book: os._exit(7), 3, "skipped: it ended without a result (exit code 7)"),
        (lambda book: 1 / 0, 3, "skipped: it failed (ZeroDivisionError: division by zero)"),
        (unreadable, 3, "skipped: it knows no sheets"),
        (
            lambda book: time.sleep(60),
            3,
            "skipped: it takes longer than 1 s; allow more time with --timeout",
        ),
    ],
)
def test_program_that_dies_is_one_line(
    answer, code: int, said: str, path: Path, left: Path, monkeypatch
) -> None:
    asked(monkeypatch, answer)
    done = cli("verify", path, "--engine", "odd", "--timeout", "1")
    assert said in done.out and done.code == code and done.err == ""


def test_nothing_is_verified_without_programs(path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")
    for library in ("ironcalc", "formualizer", "formulas"):
        monkeypatch.setitem(sys.modules, library, None)
    done = cli("verify", path)
    assert done.code == 3 and "agrees" not in done.out


@pytest.mark.slow
def test_children_of_a_program_end_with_it(path: Path, tmp_path: Path, monkeypatch) -> None:
    """It would otherwise go on to compute, and hold its copy of the workbook."""
    late = tmp_path / "late"
    asked(monkeypatch, lambda book: os.system(f"sleep 2; touch {late}"))
    assert cli("verify", path, "--engine", "odd", "--timeout", "1").code == 3
    time.sleep(2)
    assert not late.exists()


def test_ironcalc_dies_of_deep_nesting(tmp_path: Path, left) -> None:
    needs("ironcalc")
    deep = written(tmp_path / "deep.xlsx", f"={'(' * 4_000}1{')' * 4_000}")
    done = cli("verify", deep, "--engine", "ironcalc")
    assert done.code == 3 and "skipped: it crashed (SIG" in done.out, done


@pytest.mark.parametrize(
    ("part", "found", "put", "said"),
    [
        ("sheet1", "1+1", "+".join("1" * 100_000), "a formula has 199,999 bytes"),
        (
            "sheet1",
            "</sheetData>",
            "</sheetData>" + 30_000 * '<mergeCell ref=""/>',
            "30,000 merged",
        ),
        ("sharedStrings", "<si>", 1_100_000 * "<si><t>a</t></si>" + "<si>", "1,100,001 shared"),
    ],
)
def test_oversized_workbooks_are_refused(
    part: str, found: str, put: str, said: str, tmp_path: Path, left
) -> None:
    one, large = tmp_path / "one.xlsx", tmp_path / "large.xlsx"
    with xlsxwriter.Workbook(one) as book:
        sheet = book.add_worksheet()
        sheet.write_string(1, 1, "a text")
        sheet.write_formula(0, 0, "=1+1", None, 2)
    with zipfile.ZipFile(one) as old, zipfile.ZipFile(large, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            text = old.read(name).decode()
            new.writestr(name, text.replace(found, put, 1) if part in name else text)
    began = time.monotonic()
    done = cli("verify", large)
    assert done.code == 2 and said in done.err, done.err
    assert time.monotonic() - began < 60


def test_working_folder_is_not_run(tmp_path: Path, monkeypatch) -> None:
    """Programs and modules in the folder."""
    here, marker = tmp_path / "here", tmp_path / "was-run"
    here.mkdir()
    for name in ("soffice", "libreoffice", "ssconvert"):
        (here / name).write_text(SCRIPT.format(marker))
        (here / name).chmod(stat.S_IRWXU)
    for name in ("ironcalc", "formualizer", "formulas", "sitecustomize", "numpy"):
        (here / f"{name}.py").write_text(f"open({str(marker)!r}, 'w')")
    path = written(here / "one.xlsx", "=1+1", 2)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.environ['PATH']}")
    for name in ("gnumeric", "libreoffice"):
        done = cli("verify", "one.xlsx", "--engine", name, cwd=here)
        assert done.code in (0, 3), (name, done)
    assert path.is_file() and not marker.exists()


def test_program_of_the_working_folder_is_ignored(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "ssconvert").write_text(SCRIPT.format("x"))
    (tmp_path / "ssconvert").chmod(stat.S_IRWXU)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".")
    assert program("ssconvert") == ""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program("ssconvert") == str(tmp_path / "ssconvert")


def test_temporary_files_of_a_program_are_removed(path: Path, left: Path, monkeypatch) -> None:
    def answer(book: verify.FormulaCells) -> Values:
        Path(tempfile.gettempdir(), "left").write_text("")
        os.system("touch $TMPDIR/too")
        return book.formulas

    asked(monkeypatch, answer)
    monkeypatch.setenv("TMPDIR", str(left))
    assert cli("verify", path, "--engine", "odd").code == 0


def test_formulas_without_a_value_are_named(path, tmp_path: Path) -> None:
    """They claim nothing: programs are compared where the file has a value, an empty text too."""
    needs("ironcalc")
    target = tmp_path / "two.xlsx"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for part in old.namelist():
            more = b'<c r="B1"><f>A1*3</f></c><c r="C1" t="str"><f>""</f><v></v></c></row>'
            new.writestr(part, old.read(part).replace(b"</row>", more))
    done = cli("verify", target, "--engine", "ironcalc")
    assert done.code == 0, done
    assert "formulas that are not compared, because the file has no value for them: 1" in done.out
    assert "agrees    2 cells" in done.out


@pytest.mark.parametrize(
    ("engine", "formula", "said"),
    [
        (
            "formualizer",
            "BAHTTEXT(1)",
            "'#NAME?' when recomputed; it cannot compute cells with BAHTTEXT",
        ),
        ("formualizer", "1/0", "'#DIV/0!' when recomputed"),
        ("betteroffice", "ERF(A2)", "it cannot compute cells with ERF"),
    ],
)
def test_functions_that_a_program_lacks_are_named(
    engine: str, formula: str, said: str, tmp_path: Path
) -> None:
    """BetterOffice keeps the number of the file where it lacks a function."""
    if not verify.ENGINES[engine].installed():
        pytest.skip(f"{engine} is not installed; {verify.ENGINES[engine].remedy}")
    with xlsxwriter.Workbook(tmp_path / "one.xlsx") as book:
        sheet = book.add_worksheet()
        sheet.write_formula(0, 0, f"={formula}", None, 1)
        sheet.write_number(1, 0, 0.5)
        sheet.write_formula(2, 0, "=SUM(A1:A2)+EXP(A2)", None, 1.5)
        sheet.write_formula(3, 0, "=EXP(SUM(0))", None, 1)
    done = cli("verify", tmp_path / "one.xlsx", "--engine", engine)
    assert done.code == 1 and said in done.out, done.out


@pytest.mark.slow
@pytest.mark.parametrize("engine", [name for name, e in verify.ENGINES.items() if e.by_name])
def test_programs_that_are_asked_by_name_alone(engine: str, path: Path, tmp_path: Path) -> None:
    if not verify.ENGINES[engine].installed():
        pytest.skip(f"{engine} is not installed; {verify.ENGINES[engine].remedy}")
    assert verify.verify(path, engine).agrees
    assert not verify.verify(written(tmp_path / "wrong.xlsx", "=1+1", 3), engine).agrees


@pytest.mark.slow
def test_programs_by_name_are_never_asked_unnamed(path: Path, monkeypatch) -> None:
    def recompute(path: Path, book: verify.FormulaCells) -> Values:
        return {}

    for name, engine in list(verify.ENGINES.items()):
        other = Engine(lambda: True, recompute, "", by_name=True)
        monkeypatch.setitem(verify.ENGINES, name, other if engine.by_name else engine)
    done = cli("verify", path)
    assert not any(name in done.out for name, e in verify.ENGINES.items() if e.by_name)
    assert done.code == 0, done
