"""Formulas as JavaScript: an op's formula printed as a function over typed arrays, a kernel.

A kernel computes a rectangle of its block in place:

    kernel(out, x, top, bottom, left, right, mask)

`out` and each operand x[k] are {v, s, rows, cols}: values row by row, and the length of a row;
`mask.keys(i, n)` and `mask.queries(i, n)` are the spans that the query, or key, i sees. What a
formula takes from a line of cells becomes a loop, which stands as far outside as it can: before
all rows, before a row, or in each cell. A function's column `javascript` says how it is written;
one without it is computed cell by cell, as in tables. Blocks with the same kernel share it.

The page of a large model holds some weights packed, as they stand in their file. Such an operand
has no `v`: `x[k].at(i, j)` decodes a cell, and `times` gives all products of rows with a packed
matrix at once (exporters/web/products.js).
"""

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from math import isfinite, isnan

from cellformer.engine.cells.access import ALONG, shift
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import (
    Call,
    Constant,
    Expression,
    Held,
    Negative,
    Nth,
    Operation,
    Read,
)

ROW, COLUMN = frozenset("i"), frozenset("j")
CELL = ROW | COLUMN
SEEN = {"≤i": "keys", "≥i": "queries"}  # what a mask is asked for
COMPARISONS = {"=": "===", "<>": "!==", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


@dataclass(frozen=True)
class Term:
    """A number as JavaScript, and which of the row i and the column j it follows."""

    text: str
    follows: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Line:
    """The cells of operand k that a cell reads along an axis, as JavaScript."""

    k: int
    at: tuple[str, str]
    axis: int
    packed: bool = False

    @property
    def code(self) -> str:
        return self.at[self.axis]

    @property
    def span(self) -> tuple[str, str]:
        """The first place, and the one after the last."""
        if self.code in SEEN:
            return f"p{self.k}[0]", f"p{self.k}[1]"
        return "0", f"x{self.k}.{'cols' if self.axis else 'rows'}"

    @property
    def is_row(self) -> bool:
        """Whether it is the row of the cell itself."""
        return self.at == ("i", ":")

    @property
    def count(self) -> Term:
        """The number of its cells."""
        first, last = self.span
        return Term(last if first == "0" else f"({last}-{first})", self.follows)

    def entry(self, place: str) -> str:
        """The cell at a place."""
        return _cell(self.k, self.at, place, self.packed)

    @property
    def follows(self) -> frozenset[str]:
        return _follows(self.at)


def _follows(at: tuple[str, str]) -> frozenset[str]:
    """Whether the cells read depend on the row, or on the column."""
    named = {"j" if code[0] == "~" else "i" if shift(code) else code[-1] for code in at}
    return frozenset(named & CELL)


def _cell(k: int, at: tuple[str, str], place: str = "", packed: bool = False) -> str:
    row, col = (_index(code, place) for code in at)
    if packed:
        return f"x{k}.at({row},{col})"
    if shift(at[0]):  # 0 where there is no such row
        return f"({row}>=0&&{row}<x{k}.rows?v{k}[({row})*s{k}+{col}]:0)"
    return f"v{k}[{row}*s{k}+{col}]" if row != "0" else f"v{k}[{col}]"


def _index(code: str, place: str) -> str:
    if code in ALONG:
        return place
    if code[0] == "~":
        apart, n = code[1:].split("/")
        return f"partner(j,{apart},{n})"
    return code[1:] if code[0] == "@" else code


@dataclass
class Writer:
    """Collects the statements of a kernel; the column `javascript` of functions asks it for
    loops."""

    block: Block
    packed: Set[str] = frozenset()  # the names of weights that the page holds packed
    once: list[str] = field(default_factory=list)  # before all rows
    by_row: list[str] = field(default_factory=list)
    by_cell: list[str] = field(default_factory=list)
    n: int = 0

    def term(self, text: str, *of: Term | Line) -> Term:
        """A term made of others."""
        return Term(text, frozenset().union(*(x.follows for x in of)))

    def name(self) -> str:
        """A new name."""
        self.n += 1
        return f"t{self.n}"

    def gathered(self, start: str, joined: str, *xs: Term | Line) -> Term:
        """All given cells and all cells of lines, joined one by one: `{0}+{1}` is their sum."""
        found = Term(start)
        for x in xs:
            if isinstance(x, Line):
                found = self.loop(found.text, joined.format("$", x.entry("r")), x, found)
            else:
                found = self.term(joined.format(found.text, x.text), found, x)
        return found

    def loop(self, start: str, step: str, line: Line, *others: Term | Line) -> Term:
        """A number that begins with `start` and, for each place r of a line, becomes `step`, in
        which $ is the number so far. A number for each column is held in an array."""
        follows = line.follows.union(*(x.follows for x in others))
        name, (first, last) = self.name(), line.span
        body = f"for(let r={first};r<{last};r++)"
        if follows == COLUMN:
            each = f"{name}[j]"
            looped = f"{body}{each}={step.replace('$', each)};"
            self.once.append(
                f"const {name}=new Float64Array(right);"
                f"for(let j=left;j<right;j++){{{each}={start};{looped}}}"
            )
            return Term(each, COLUMN)
        where = self.by_cell if follows == CELL else self.by_row if follows else self.once
        where.append(f"let {name}={start};{body}{name}={step.replace('$', name)};")
        return Term(name, follows)

    def sum(self, *xs: Term | Line) -> Term:
        return self.gathered("0", "({}+{})", *xs)

    def count(self, *xs: Term | Line) -> Term:
        """The number of cells."""
        counts = [x.count if isinstance(x, Line) else Term("1") for x in xs]
        return counts[0] if len(counts) == 1 else self.sum(*counts)

    def mean(self, *xs: Term | Line) -> Term:
        total, n = self.sum(*xs), self.count(*xs)
        return self.term(f"({total.text}/{n.text})", total, n)

    def variance(self, x: Line) -> Term:
        """The variance of a whole population."""
        mean, n = self.mean(x), self.count(x)
        squares = self.loop("0", f"$+({x.entry('r')}-{mean.text})**2", x, mean)
        return self.term(f"({squares.text}/{n.text})", squares, n)

    def products(self, *xs: Line) -> Term:
        """The sum of the products along lines. A matrix that is read down its columns is gone
        through row by row, as it lies in memory; one that is packed, as a whole."""
        lines = sorted(xs, key=lambda x: x.code not in SEEN)  # which end with the row
        x, w = sorted(xs, key=lambda x: x.packed) if len(xs) == 2 else (xs[0], xs[0])
        if x.is_row and not x.packed and w.packed and w.at in ((":", "j"), ("j", ":")):
            name = self.name()
            self.once.append(f"const {name}=times(x{x.k},x{w.k},{w.axis},top,bottom,left,right);")
            return Term(f"{name}[(i-top)*(right-left)+j-left]", CELL)
        for x, w in (lines, lines[::-1]) if len(lines) == 2 else ():
            if w.axis == 0 and w.at[1] == "j" and "j" not in x.follows and not w.packed:
                name, (first, last) = self.name(), lines[0].span
                self.once.append(f"const {name}=new Float64Array(right);")
                self.by_row.append(
                    f"{name}.fill(0,left,right);for(let r={first};r<{last};r++)"
                    f"{{const a={x.entry('r')},p=r*s{w.k};"
                    f"for(let j=left;j<right;j++){name}[j]+=a*v{w.k}[p+j];}}"
                )
                return Term(f"{name}[j]", CELL)
        product = "*".join(x.entry("r") for x in lines)
        return self.loop("0", f"$+{product}", lines[0], *lines[1:])

    def rank(self, x: Term, line: Line, place: Term, places: Line) -> Term:
        """The number of cells before one: larger ones, or equal ones at earlier places."""
        other = line.entry("r")
        earlier = f"({other}==={x.text}&&{places.entry('r')}<{place.text})"
        return self.loop("0", f"$+({other}>{x.text}||{earlier}?1:0)", line, x, place, places)

    def nth(self, line: Line, at: Term, first: int) -> Term:
        """The cell of a line that an id picks, NaN if there is none."""
        start, stop = line.span
        name = self.name()
        place = f"Math.trunc({at.text})" + (f"-{first}" if first else "")
        found = self.term(name, line, at)
        if "j" in found.follows:
            found = Term(name, CELL)
        where = self.by_cell if "j" in found.follows else self.by_row
        where.append(
            f"const {name}p={place},{name}="
            f"{name}p>={start}&&{name}p<{stop}?{line.entry(f'{name}p')}:NaN;"
        )
        return found

    def chosen(self, condition: Term, then: Term, otherwise: Term = Term("0")) -> Term:
        """One or the other."""
        text = f"({condition.text}?{then.text}:{otherwise.text})"
        return self.term(text, condition, then, otherwise)

    def cell_by_cell(self, function: str, *xs: Term | Line) -> Term:
        """A function as tables compute it; an error is NaN."""
        given = [_range(x) if isinstance(x, Line) else x.text for x in xs]
        return self.term(f"numberOf({', '.join([repr(function), *given])})", *xs)


def _range(line: Line) -> str:
    first, last = line.span
    across = _index(line.at[1 - line.axis], "")
    return f"lineOf(x{line.k},{line.axis},{first},{last},{across})"


def kernel(block: Block, packed: Set[str] = frozenset()) -> str:
    """The kernel of a block, and of all blocks with the same text: a function without a name.
    `packed` names the weights that the page holds packed."""
    assert block.op is not None
    writer, operands = Writer(block, packed), [(b, at) for _, at, b in block.sources]
    found: list[Term | Line] = []
    uses = Counter(k for _, of in block.steps for k in of)
    for k, (part, of) in enumerate(block.steps):
        made = _printed(part, [found[n] for n in of], writer, operands)
        if of and uses[k] > 1 and isinstance(made, Term):
            made = _named(made, writer)
        found.append(made)
    last = found[-1]
    assert isinstance(last, Term)
    return _function(block, writer, last)


def _named(term: Term, writer: Writer) -> Term:
    """A term that is used more than once."""
    if term.follows == COLUMN:  # loops before all rows may need it
        return term
    name = writer.name()
    by = writer.by_cell if "j" in term.follows else writer.by_row if term.follows else writer.once
    by.append(f"const {name}={term.text};")
    return Term(name, term.follows)


def _function(block: Block, writer: Writer, value: Term) -> str:
    views = "".join(
        f",x{k}=x[{k}]" + ("" if b.name in writer.packed else f",v{k}=x{k}.v,s{k}=x{k}.s")
        for k, (_, _, b) in enumerate(block.sources)
    )
    spans = [
        f"const p{k}=mask.{SEEN[code]}(i,x{k}.{'cols' if axis else 'rows'});"
        for k, (_, at, _) in enumerate(block.sources)
        for axis, code in enumerate(at)
        if code in SEEN
    ]
    first, last = "left", "right"
    if block.partial:
        spans.append("const seen=mask.keys(i,out.cols);")
        first, last = "Math.max(left,seen[0])", "Math.min(right,seen[1])"
    return "".join(
        (
            "(out,x,top,bottom,left,right,mask)=>{",
            f"const o=out.v,so=out.s{views};",
            *writer.once,
            "for(let i=bottom-1;i>=top;i--){"
            if block.recurs < 0
            else "for(let i=top;i<bottom;i++){",
            *spans,
            *writer.by_row,
            f"for(let j={first};j<{last};j++){{",
            *writer.by_cell,
            f"o[i*so+j]={value.text};",
            "}}}",
        )
    )


def _printed(
    part: Expression,
    of: Sequence[Term | Line],
    writer: Writer,
    operands: Sequence[tuple[Block, tuple[str, str]]],
) -> Term | Line:
    """One part of a formula, given its own parts."""
    match part:
        case Read():
            k = operands.index(part.key)
            packed = operands[k][0].name in writer.packed
            if part.axis is not None:
                return Line(k, part.at, part.axis, packed)
            return Term(_cell(k, part.at, packed=packed), _follows(part.at))
        case Constant():
            return Term(number(part.number))
        case Held():
            return of[0]
        case Negative():
            return writer.term(f"(-{_text(of[0])})", *of)
        case Operation():
            return writer.term(_operation(part.sign, *map(_text, of)), *of)
        case Nth():
            line, at = of
            assert isinstance(line, Line) and isinstance(at, Term)
            return writer.nth(line, at, part.first)
        case Call():
            return _called(part, of, writer)
    raise TypeError(f"{type(part).__name__} has no JavaScript version")


def _called(part: Call, of: Sequence[Term | Line], writer: Writer) -> Term:
    spelt = part.function.javascript
    if isinstance(spelt, str) and not any(isinstance(x, Line) for x in of):
        return writer.term(spelt.format(*[_text(x) for x in of]), *of)
    if callable(spelt):
        found: Term | None = spelt(writer, *of)
        if found is not None:
            return found
    return writer.cell_by_cell(part.function.name, *of)


def _operation(sign: str, a: str, b: str) -> str:
    if sign == "^":
        return f"Math.pow({a},{b})"
    return f"({a}{COMPARISONS[sign]}{b}?1:0)" if sign in COMPARISONS else f"({a}{sign}{b})"


def _text(x: Term | Line) -> str:
    assert isinstance(x, Term), "only functions of lines can contain a line"
    return x.text


def number(x: float) -> str:
    """A number as JavaScript."""
    if isnan(x):
        return "NaN"
    if not isfinite(x):
        return "Infinity" if x > 0 else "(-Infinity)"
    text = repr(float(x)).removesuffix(".0")
    return f"({text})" if text[0] == "-" else text
