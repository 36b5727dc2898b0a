"""Open a large workbook in LibreOffice, recompute it from wrong caches, edit its last token.

    /usr/bin/python3 benchmarks/libreoffice_large.py gpt2.xlsx [FACTS.json]

Runs under the Python that has LibreOffice's `uno` module (Debian: python3-uno). Every cached value
is made wrong first. Prints, as JSON: seconds on the clock and of the processor to open, for a hard
recalculation and for an edit of the last token, peak memory, and the largest gap between the
recomputed logits and the file's.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import uno  # noqa: F401  it makes com.sun.star importable
from com.sun.star.beans import PropertyValue
from office import connect

CELL = re.compile(rb"(<c\b[^>]*><f\b(?:[^>]*/>|.*?</f>))<v>(.*?)</v>")
NUMBER = re.compile(rb'<c r="([A-Z]+\d+)" s="\d+"><f>[^<]*</f><v>([^<]*)</v>')  # no text
WRONG = b"-987654321.5"


def poison(source: Path, target: Path) -> dict[str, list[bytes]]:
    """Copy the workbook with every cached value wrong; the true ones of the sheet Readout."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", 8, True, 1) as new:
        names = re.findall(r'<sheet name="([^"]+)"', old.read("xl/workbook.xml").decode())
        true: dict[str, list[bytes]] = {}
        for part in old.namelist():
            data = old.read(part)
            if part.startswith("xl/worksheets/sheet") and b"<f" in data:
                number = int(re.search(r"(\d+)\.xml", part)[1])
                if names[number - 1] == "Readout":
                    true = {at.decode(): float(value) for at, value in NUMBER.findall(data)}
                data = CELL.sub(rb"\1<v>" + WRONG + rb"</v>", data)
            new.writestr(part, data)
    return true


def process(profile: str) -> Path:
    """What the system says of the LibreOffice of a profile."""
    ours = ["pgrep", "-f", f"soffice.bin.*{profile}"]  # others may run beside it
    pid = subprocess.run(ours, capture_output=True, text=True).stdout
    return Path(f"/proc/{pid.strip()}")


def memory(which: str, profile: str) -> float:
    """Its resident memory in GB: VmRSS now, VmHWM at its peak."""
    status = (process(profile) / "status").read_text()
    return int(re.search(which + r":\s+(\d+)", status)[1]) / 1e6


def now(profile: str) -> tuple[float, float]:
    """Seconds on the clock, and of its processor."""
    fields = (process(profile) / "stat").read_text().rpartition(")")[2].split()
    return time.perf_counter(), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def taken(start: tuple[float, float], profile: str) -> dict[str, float]:
    """The seconds since then."""
    clock, processor = now(profile)
    return {"clock": clock - start[0], "processor": processor - start[1]}


def logits(book: object, where: str) -> list[float]:
    """The logits, by their defined name."""
    area = book.NamedRanges.getByName("logits").Content.replace("$", "")
    sheet, _, cells = area.rpartition(".")
    found = book.Sheets.getByName(sheet.strip("'")).getCellRangeByName(cells).DataArray
    return [row[0] for row in found]


def main() -> None:
    """Open, recompute, compare, edit."""
    source, found = Path(sys.argv[1]), {}
    with tempfile.TemporaryDirectory() as folder:
        true = poison(source, Path(folder) / "wrong.xlsx")
        pipe = f"cellformer{time.time_ns()}"
        profile = f"-env:UserInstallation=file://{folder}/profile"
        accept = f"--accept=pipe,name={pipe};urp;"
        office = subprocess.Popen(["soffice", profile, "--headless", "--norestore", accept])
        desktop = connect(pipe)
        hidden = PropertyValue(Name="Hidden", Value=True)
        start = now(folder)
        url = (Path(folder) / "wrong.xlsx").as_uri()
        book = desktop.loadComponentFromURL(url, "_blank", 0, (hidden,))
        found["open"] = taken(start, folder)
        found["memory after opening"] = memory("VmRSS", folder)
        start = now(folder)
        book.calculateAll()
        found["recalculate"] = taken(start, folder)
        area = book.NamedRanges.getByName("logits").Content.replace("$", "").split(".")[-1]
        col, top = re.match(r"([A-Z]+)(\d+)", area).groups()
        live = logits(book, area)
        wanted = [true[f"{col}{int(top) + k}"] for k in range(len(live))]
        found["logits"] = len(live)
        found["largest gap"] = max(abs(a - b) for a, b in zip(live, wanted, strict=True))
        tokens = book.NamedRanges.getByName("tokens").Content.replace("$", "")
        sheet, _, cells = tokens.rpartition(".")
        row = book.Sheets.getByName(sheet.strip("'")).getCellRangeByName(cells)
        last = row.getCellByPosition(row.Columns.Count - 1, 0)
        times = []
        for token in (5, 6, 7):
            start = now(folder)
            last.Value = token
            after = logits(book, area)
            times.append(taken(start, folder))
        found["edit"] = sorted(times, key=lambda edit: edit["processor"])[1]
        found["moved"] = max(abs(a - b) for a, b in zip(after, live, strict=True))
        found["memory"], found["peak memory"] = memory("VmRSS", folder), memory("VmHWM", folder)
        book.close(True)
        desktop.terminate()
        office.wait(60)
    print(json.dumps(found, indent=2))
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(json.dumps(found, indent=2) + "\n")


main()
