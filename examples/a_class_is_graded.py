"""Make a workbook of exercises for students, fill one in, and mark it."""

import tempfile
from pathlib import Path

import cellformer as cf

with tempfile.TemporaryDirectory() as folder:
    cf.write(cf.exercise("loss"), Path(folder) / "for-students.xlsx")
    filled_in = cf.write(cf.exercise("loss", solved=True), Path(folder) / "filled-in.xlsx")
    (grade,) = cf.grade([filled_in])
    for number, cells in enumerate(grade.exercises, 1):
        print(number, [cell.said for cell in cells])
    print(grade.score, "of", len(grade.exercises))
