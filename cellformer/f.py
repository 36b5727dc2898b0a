"""The functions of formulas, for tables of a `cf.Workbook`.

    >>> from cellformer.f import SUM
    >>> w = cf.Workbook("shares")
    >>> ws = w.sheet("Shares", "two numbers, and their shares")
    >>> x = ws.typed("x", [[2.0, 1.0]])
    >>> share = ws.computed("share", (1, 2), lambda i, j: x[i, j] / SUM(x))
    >>> round(w.now(share[0, 0]), 3)
    0.667

Each takes cells, numbers and other formulas, and returns a formula.
"""

from cellformer.engine.cells.functions import ABS as ABS
from cellformer.engine.cells.functions import ACOS as ACOS
from cellformer.engine.cells.functions import AND as AND
from cellformer.engine.cells.functions import AVERAGE as AVERAGE
from cellformer.engine.cells.functions import CHOOSE as CHOOSE
from cellformer.engine.cells.functions import COS as COS
from cellformer.engine.cells.functions import COUNT as COUNT
from cellformer.engine.cells.functions import COUNTIF as COUNTIF
from cellformer.engine.cells.functions import ERF as ERF
from cellformer.engine.cells.functions import EXACT as EXACT
from cellformer.engine.cells.functions import EXP as EXP
from cellformer.engine.cells.functions import FIND as FIND
from cellformer.engine.cells.functions import IF as IF
from cellformer.engine.cells.functions import IFERROR as IFERROR
from cellformer.engine.cells.functions import INDEX as INDEX
from cellformer.engine.cells.functions import INT as INT
from cellformer.engine.cells.functions import ISNUMBER as ISNUMBER
from cellformer.engine.cells.functions import LARGE as LARGE
from cellformer.engine.cells.functions import LEFT as LEFT
from cellformer.engine.cells.functions import LEN as LEN
from cellformer.engine.cells.functions import LN as LN
from cellformer.engine.cells.functions import LOG10 as LOG10
from cellformer.engine.cells.functions import LOWER as LOWER
from cellformer.engine.cells.functions import MATCH as MATCH
from cellformer.engine.cells.functions import MAX as MAX
from cellformer.engine.cells.functions import MID as MID
from cellformer.engine.cells.functions import MIN as MIN
from cellformer.engine.cells.functions import MOD as MOD
from cellformer.engine.cells.functions import NOT as NOT
from cellformer.engine.cells.functions import OR as OR
from cellformer.engine.cells.functions import ORDER as ORDER
from cellformer.engine.cells.functions import PI as PI
from cellformer.engine.cells.functions import POWER as POWER
from cellformer.engine.cells.functions import RAND as RAND
from cellformer.engine.cells.functions import RANK as RANK
from cellformer.engine.cells.functions import REPT as REPT
from cellformer.engine.cells.functions import RIGHT as RIGHT
from cellformer.engine.cells.functions import ROUND as ROUND
from cellformer.engine.cells.functions import SIN as SIN
from cellformer.engine.cells.functions import SQRT as SQRT
from cellformer.engine.cells.functions import SUBSTITUTE as SUBSTITUTE
from cellformer.engine.cells.functions import SUM as SUM
from cellformer.engine.cells.functions import SUMIF as SUMIF
from cellformer.engine.cells.functions import SUMPRODUCT as SUMPRODUCT
from cellformer.engine.cells.functions import TANH as TANH
from cellformer.engine.cells.functions import TRIM as TRIM
from cellformer.engine.cells.functions import TRUE as TRUE
from cellformer.engine.cells.functions import UNICHAR as UNICHAR
from cellformer.engine.cells.functions import UNICODE as UNICODE
from cellformer.engine.cells.functions import VARP as VARP
from cellformer.engine.cells.functions import N as N
