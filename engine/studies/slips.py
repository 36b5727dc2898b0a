"""Slips: common mistakes of people who compute a cell by hand, each as the formula that results.

A slip is a rewriting of the cell's formula: a part left out or the wrong way round, another line of
cells read, or another block. It is looked for in the formula itself, and if it has no place there,
in the formula with those of the cells that it reads put in, once or twice. So no workbook lists
slips: they follow from what its cells compute, and as formulas they follow every edit.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, get_args

from cellformer.engine.cells.access import Rect, reads
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import (
    Area,
    Call,
    Constant,
    Expression,
    Function,
    Negative,
    Operation,
    Read,
    rebuilt,
    steps,
)
from cellformer.engine.cells.functions import (
    AVERAGE,
    COUNT,
    ERF,
    EXP,
    IFERROR,
    LN,
    MAX,
    ROUND,
    SQRT,
    SUM,
    SUMPRODUCT,
    TANH,
    VARP,
    added,
    dot,
)
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.op import Op
from cellformer.engine.models import ops
from cellformer.engine.models.spec import Activation

MOST_WRITTEN = 40  # products that a formula spells one by one
MOST_PARTS = 400  # of a formula into which others were put
DEPTH = 2  # how often formulas of cells are put in
NORMS = (ops.affine, ops.normalize, ops.divide_rows, ops.gain_above_one)
ACTIVATIONS = tuple(getattr(ops, name) for name in get_args(Activation))
ADDING_UP = (SUM, SUMPRODUCT, AVERAGE)
# what stands for what, where a name has it as a part: Q and K of W_Q and W_K, q and k of q_h1
INSTEAD = {"q": "k", "k": "q", "v": "k", "Q": "K", "K": "Q", "V": "K"}
LETTER = re.compile(r"(?<![A-Za-z])([qkvQKV])(?![A-Za-z])")
BIAS = re.compile(r"(?<![A-Za-z])(b|bias|b_[A-Za-z]+)(?![A-Za-z])")
POSITION = re.compile(r"(?:^|\.)(?:pos_embed|W_pos|encoding)$")
SCALE = re.compile(r"scale|sqrt|(?:^|\.)d_|temperature")


class Slip(NamedTuple):
    """A slip: the key of its sentence in `TOLD`, and the cell's formula with the slip in it."""

    kind: str
    formula: Expression


TOLD = {
    "mask": "the mask was forgotten: later tokens count, too",
    "later": "later entries of the table were counted, too",
    "scale": "the scale was forgotten",
    "factor": "a factor was forgotten",
    "scale twice": "a multiplication and a division were mixed up",
    "queries": "keys and queries were mixed up",
    "tokens": "the two words are swapped: the query belongs to the other word",
    "transposed": "a table was transposed: use the table’s column, not its row",
    "axis": "the sum runs along the wrong axis",
    "norm": "the norm was forgotten",
    "position": "the position was forgotten",
    "bias": "the bias was forgotten",
    "activation": "the activation function was forgotten",
    "exponential": "the exponential was forgotten",
    "logarithm": "the logarithm has base 2; use the natural logarithm",
    "division": "the division was forgotten",
    "order": "a difference has the wrong sign: swap its two terms",
    "root": "the square root was forgotten",
    "sample": "the variance was divided by n − 1; divide it by n",
    "average": "a sum was used instead of the mean",
    "minus": "the minus sign was forgotten",
    "one less": "the sum lacks its last product",
    "a term": "a term of the sum was forgotten",
    "last term": "the last term of the sum was forgotten",
    "row": "this number belongs to the cell below, in this table",
    "row before": "this number belongs to the cell above, in this table",
    "column": "this number belongs to the cell to the right, in this table",
    "column before": "this number belongs to the cell to the left, in this table",
    "rounded": "the inputs of this formula were rounded to one decimal first",
}


@dataclass(frozen=True)
class Asked:
    """A cell whose formula is rewritten."""

    graph: Graph
    block: Block
    i: int
    j: int

    @property
    def formula(self) -> Expression:
        """The formula of the cell, over the cells that it reads."""
        return bare(self.block.formula(self.i, self.j))


Change = Callable[[Expression], Expression | None]  # a part with the slip; None: it has no place
Rewriting = Callable[[Asked, Expression], Expression | None]


def slips(graph: Graph, block: Block, i: int, j: int) -> Iterator[Slip]:
    """The slips that a cell's formula leaves room for."""
    asked = Asked(graph, block, i, j)
    opened = [asked.formula]
    while len(opened) <= DEPTH:
        deeper = put_in(graph, opened[-1])
        if deeper is None:
            break
        opened.append(deeper)
    for kind, rewriting in REWRITINGS.items():
        for formula in opened if kind in LOOKED_FOR_BELOW else opened[:1]:
            if (found := rewriting(asked, formula)) is not None:
                yield Slip(kind, found)
                break


def bare(formula: Expression) -> Expression:
    """A formula without the IFERROR around it."""
    if isinstance(formula, Call) and formula.function is IFERROR:
        return bare(formula.arguments[0])
    return formula


def put_in(graph: Graph, formula: Expression) -> Expression | None:
    """A formula in which single computed cells are replaced by their own formulas; None: there are
    none, or too many."""

    def change(part: Expression) -> Expression:
        block = _block(part)
        if block is None or part.rect.size > 1 or not block.computed:  # type: ignore[attr-defined]
            return part
        at = part.rect.top, part.rect.left  # type: ignore[attr-defined]
        return bare(block.formula(*at)) if block.has(*at) else part

    made = rebuilt(formula, change)
    return None if made.key == formula.key or len(steps(made)) > MOST_PARTS else made


def outermost(part: Expression, change: Change) -> Expression | None:
    """A formula with a change of the outermost part that allows it; None: no part does."""
    found = change(part)
    if found is not None:
        return found
    for k, inner in enumerate(part.parts):
        made = outermost(inner, change)
        if made is not None:
            return part.of(*part.parts[:k], made, *part.parts[k + 1 :])
    return None


def throughout(formula: Expression, change: Change) -> Expression | None:
    """A formula with a change of every part that allows it; None: no part does."""
    applied = False

    def each(part: Expression) -> Expression:
        nonlocal applied
        found = change(part)
        applied |= found is not None
        return part if found is None else found

    made = rebuilt(formula, each)
    return made if applied else None


def _either(one: Expression | None, other: Expression | None) -> Expression | None:
    return other if one is None else one


def _block(part: Expression) -> Block | None:
    return part.grid if isinstance(part, Area) and isinstance(part.grid, Block) else None


# --- what is left out, or the wrong way round: of single parts ---------------------------------


def _calls(part: Expression, *functions: Function) -> bool:
    return isinstance(part, Call) and part.function in functions


def _is_factor(part: Expression, scale: bool) -> bool:
    """Whether a factor is a scale (a root, or one number for the whole block with that name); or,
    without `scale`, another number."""
    block = _block(part)
    if block is not None:
        return block.shape == (1, 1) and bool(SCALE.search(block.name)) == scale
    return _calls(part, SQRT) if scale else isinstance(part, Constant)


def _sums(part: Expression) -> bool:
    """Whether a part adds products up, or is a cell of such a block. A scale belongs to such a
    sum."""
    return any(_calls(inner, SUMPRODUCT) for inner, _ in steps(part)) or isinstance(part, Area)


def _without_factor(scale: bool, turned: bool = False) -> Rewriting:
    """A sum of products without its scale; or, `turned`, divided where it is multiplied."""

    def change(part: Expression) -> Expression | None:
        match part:
            case Operation("*" | "/" as sign, x, by) if _is_factor(by, scale) and _sums(x):
                return Operation("/" if sign == "*" else "*", x, by) if turned else x
            case Operation("*", by, x) if _is_factor(by, scale) and _sums(x):
                return Operation("/", x, by) if turned else x
        return None

    return _of(change)


def _call(function: Function, made: Callable[..., Expression | None]) -> Rewriting:
    """The rewriting of the outermost call of a function, from its arguments."""
    return _of(lambda part: made(*part.parts) if _calls(part, function) else None)


def _operation(sign: str, made: Callable[..., Expression | None]) -> Rewriting:
    """The rewriting of the outermost operation with a sign, from its two sides."""

    def change(part: Expression) -> Expression | None:
        return made(*part.parts) if isinstance(part, Operation) and part.sign == sign else None

    return _of(change)


def _unbiased(term: Expression, other: Expression) -> Expression | None:
    block = _block(other)
    biased = block is not None and block.kind != "computed" and BIAS.search(block.leaf)
    return term if biased else None


def _of_a_sample(numbers: Expression, *more: Expression) -> Expression | None:
    n = COUNT(numbers)
    return None if more else Operation("/", VARP(numbers) * n, n - 1)


def _unsigned(part: Expression) -> Expression | None:
    match part:
        case Negative(term) | Operation("-", Constant(0.0), term):
            return term
    return None


def _terms_left(which: slice) -> Rewriting:
    """The rewriting of the outermost sum to some of its terms."""

    def change(part: Expression) -> Expression | None:
        terms = _terms(part)
        return added(terms[which]) if len(terms) > 1 else None

    return _of(change)


def _terms(part: Expression) -> list[Expression]:
    """The terms of a sum."""
    if isinstance(part, Operation) and part.sign == "+":
        return [*_terms(part.left), part.right]
    return [part]


def _one_less(part: Expression) -> Expression | None:
    """A sum of products without the last."""
    lines = _calls(part, SUMPRODUCT) and all(map(_is_line, part.parts))
    return Call(SUMPRODUCT, tuple(map(_shorter, part.parts))) if lines else None


def _is_line(part: Expression) -> bool:
    return isinstance(part, Area) and min(part.shape) == 1 and max(part.shape) > 1


def _shorter(line: Any) -> Area:
    rect = line.rect
    cut = {"bottom": rect.bottom - 1} if line.shape[0] > 1 else {"right": rect.right - 1}
    return _at(line, **cut).as_range


def _at(line: Area, **edges: int) -> Area:
    """An area with other edges."""
    return Area(line.grid, line.rect._replace(**edges), line.stays, line.range)


# --- what is read instead -----------------------------------------------------------------------


def _instead(asked: Asked, formula: Expression) -> Expression | None:
    """Keys for queries, and the like: another block of the same shape."""
    for letters in ("qQ", "kK", "vV"):
        made = throughout(formula, _reading(partial(_sibling, asked.graph, letters)))
        if made is not None:
            return _once(made, _one_by_one)
    return None


def _two_lines(part: Expression) -> list[Area]:
    """The two lines whose products a part adds up; none for another part."""
    lines = [line for line in part.parts if isinstance(line, Area) and _is_line(line)]
    return lines if _calls(part, SUMPRODUCT) and len(lines) == len(part.parts) == 2 else []


def _one_by_one(part: Expression) -> Expression | None:
    """A sum of products of two lines, spelt, since blocks may lie on their sheets in two ways."""
    sizes = {line.rect.size for line in _two_lines(part)}
    return dot(*_two_lines(part)) if len(sizes) == 1 and max(sizes) <= MOST_WRITTEN else None


def _sibling(graph: Graph, letters: str, block: Block) -> Block | None:
    """The block of the same shape whose name has another letter."""
    for match in LETTER.finditer(block.name):
        name = f"{block.name[: match.start()]}{INSTEAD[match[1]]}{block.name[match.end() :]}"
        other = graph.blocks.get(name)
        if match[1] in letters and other is not None and other.shape == block.shape:
            return other
    return None


def _reading(instead: Callable[[Block], Block | None]) -> Change:
    """The change of an area to the same cells of another block."""

    def change(part: Expression) -> Expression | None:
        block = _block(part)
        other = None if block is None else instead(block)
        return None if other is None else replace(part, grid=other)  # type: ignore[type-var]

    return change


def _swapped(part: Expression) -> Expression | None:
    """Row i of one table with row j of another: row j with row i."""
    match _two_lines(part):
        case [Area(grid=Block() as one) as a, Area(grid=Block() as other) as b]:
            down = a.shape[0] > 1
            i, j = (a.rect.left, b.rect.left) if down else (a.rect.top, b.rect.top)
            alike = one.shape == other.shape and a.shape == b.shape
            if alike and one is not other and i != j and _whole_line(a) and _whole_line(b):
                return SUMPRODUCT(_line_of(a, j, down), _line_of(b, i, down))
    return None


def _whole_line(line: Area) -> bool:
    grid = line.grid
    return isinstance(grid, Block) and max(line.shape) == grid.shape[0 if line.shape[0] > 1 else 1]


def _line_of(line: Area, k: int, down: bool) -> Area:
    """The k-th column of an area's block, or its k-th row."""
    return _at(line, left=k, right=k + 1) if down else _at(line, top=k, bottom=k + 1)


def _transposed(asked: Asked, formula: Expression) -> Expression | None:
    """A row of a square table for its column; or the cell on the other side of the diagonal."""
    return _either(outermost(formula, _across), outermost(formula, partial(_mirrored, asked)))


def _across(part: Expression) -> Expression | None:
    lines = _two_lines(part)
    for line, other in zip(lines[::-1], lines, strict=True):
        block = line.grid
        if not isinstance(block, Block) or block.partial or not _whole_line(line):
            continue
        if block.shape[0] == block.shape[1] <= MOST_WRITTEN:
            top, bottom, left, right = line.rect
            return dot(Area(block, Rect(left, right, top, bottom)), other)
    return None


def _mirrored(asked: Asked, part: Expression) -> Expression | None:
    block = _block(part)
    if block is None or part.rect.size > 1 or block.shape[0] != block.shape[1]:  # type: ignore[attr-defined]
        return None
    top, bottom, left, right = part.rect  # type: ignore[attr-defined]
    if top == left or (top, left) != (asked.i, asked.j) or not block.has(left, top):
        return None
    return Area(block, Rect(left, right, top, bottom))


def _other_axis(asked: Asked, formula: Expression) -> Expression | None:
    """A sum down the column in place of the sum along the row, or the other way round."""

    def change(part: Expression) -> Expression | None:
        if not _calls(part, SUM) or len(part.parts) > 1 or not _is_line(part.parts[0]):
            return None
        line = part.parts[0]
        assert isinstance(line, Area)
        block = line.grid
        if not isinstance(block, Block) or block.shape != asked.block.shape:
            return None
        rect = Rect(asked.i, asked.i + 1, 0, block.shape[1])
        if line.shape[1] > 1:
            rect = Rect(asked.j if block.partial else 0, block.shape[0], asked.j, asked.j + 1)
        return SUM(Area(block, rect, "", True)) if rect.size > 1 else None

    return outermost(formula, change)


def _before(left_out: Sequence[Op], asked: Asked, formula: Expression) -> Expression | None:
    """The input of some ops: of the cell's own, or else of all that its formula reads."""

    def before(block: Block) -> Block | None:
        if block.op not in left_out:
            return None
        return before(block.operands[0][2]) or block.operands[0][2]

    own = before(asked.block)
    return throughout(formula, _reading(before)) if own is None else own[asked.i, asked.j]


def _unplaced(asked: Asked, formula: Expression) -> Expression | None:
    """The input of a rotation; or a sum without the position's vector."""

    def drop(one: Expression, other: Expression) -> Expression | None:
        for own, rest in ((other, one), (one, other)):
            block = _block(own)
            if block is not None and POSITION.search(block.name):
                return rest
        return None

    unrotated = _before((ops.rotate,), asked, formula)
    if asked.block.op is ops.rotate:
        return unrotated
    return _either(_operation("+", drop)(asked, formula), unrotated)


def _inactive(asked: Asked, formula: Expression) -> Expression | None:
    """The input of an activation function."""
    if asked.block.op in ACTIVATIONS:
        return asked.block.operands[0][2][asked.i, asked.j]

    def change(part: Expression) -> Expression | None:
        if _calls(part, MAX) and len(part.parts) == 2:
            for own, other in (part.parts, part.parts[::-1]):
                if isinstance(own, Constant) and own.number == 0:
                    return other
        return None

    bent = [part.parts[0] for part, _ in steps(formula) if _calls(part, TANH, ERF)]
    cells = [part for inner in bent for part, _ in steps(inner) if isinstance(part, Area)]
    return cells[0] if cells else outermost(formula, change)


# --- the mask ------------------------------------------------------------------------------------


def _unmasked(_: Asked, formula: Expression) -> Expression | None:
    """Sums that also include masked keys."""

    def change(part: Expression) -> Expression | None:
        if not _calls(part, *ADDING_UP):
            return None
        for k, line in enumerate(part.parts):
            block = _block(line)
            if block is None or not block.partial or line.shape[0] > 1:  # type: ignore[attr-defined]
                continue
            i = line.rect.top  # type: ignore[attr-defined]
            hidden = [j for j in range(block.shape[1]) if not block.has(i, j)]
            if not hidden or len(hidden) > MOST_WRITTEN:
                continue
            if part.function is SUM:  # type: ignore[attr-defined]
                return Call(SUM, (*part.parts, *(beyond(block, i, j) for j in hidden)))
            if part.function is SUMPRODUCT and len(part.parts) == 2:  # type: ignore[attr-defined]
                return _unmasked_mix(block, i, hidden, part.parts[1 - k])
        return None

    return outermost(formula, change)


def _unmasked_mix(
    pattern: Block, i: int, hidden: list[int], values: Expression
) -> Expression | None:
    """The sum of values weighted by shares of all tokens."""
    if pattern.op is not ops.fraction or not isinstance(values, Area) or values.shape[1] > 1:
        return None
    exps, block, col = pattern.operands[0][2], values.grid, values.rect.left
    if not isinstance(block, Block) or len(hidden) > MOST_WRITTEN // 3:
        return None
    seen = range(*pattern.mask.keys(i, pattern.shape[1]))
    terms = {j: exps[i, j] for j in seen} | {j: beyond(exps, i, j) for j in hidden}
    return added(e * block[j, col] for j, e in terms.items()) / SUM(*terms.values())


def beyond(block: Block, i: int, j: int) -> Expression:
    """The formula of a cell that the mask leaves blank, as if it were there."""

    def area(part: Expression) -> Expression:
        if not isinstance(part, Read):
            return part
        of = part.block
        rect = reads(part.at, Rect(i, i + 1, j, j + 1), of.shape, of.mask)
        if of.partial and rect.size == 1 and not of.has(rect.top, rect.left):
            return beyond(of, rect.top, rect.left)
        return Area(of, rect)

    return rebuilt(block.shared, area)


def _to_the_end(_: Asked, formula: Expression) -> Expression | None:
    """Sums over whole lines of a worksheet's table, where they end before."""

    def longer(part: Expression) -> Expression | None:
        if not _calls(part, *ADDING_UP) or not all(map(_is_line, part.parts)):
            return None
        if any(_whole_line(x) or x.grid.op is not None for x in part.parts):  # type: ignore[attr-defined, arg-type]
            return None
        made = tuple(map(_lengthened, part.parts))
        alike = len({max(x.shape) for x in made}) == 1
        return Call(part.function, made) if alike else None  # type: ignore[attr-defined]

    return outermost(formula, longer)


def _lengthened(line: Any) -> Area:
    """The whole line of a block that a line is a part of."""
    rows, columns = line.grid.shape
    down = line.shape[0] > 1
    return _at(line, top=0, bottom=rows) if down else _at(line, left=0, right=columns)


# --- other cells, and numbers rounded before -----------------------------------------------------


def _beside(down: int, right: int) -> Rewriting:
    def rewriting(asked: Asked, _: Expression) -> Expression | None:
        at = asked.i + down, asked.j + right
        return asked.block[at] if asked.block.has(*at) else None

    return rewriting


def _rounded_before(_: Asked, formula: Expression) -> Expression | None:
    """The formula over numbers of one decimal."""
    if sum(area.rect.size for area in formula.areas()) > MOST_WRITTEN:
        return None

    def change(part: Expression) -> Expression | None:
        if _calls(part, SUMPRODUCT) and all(map(_is_line, part.parts)):
            lines = [x.cells for x in part.parts]  # type: ignore[attr-defined]
            if len({len(cells) for cells in lines}) > 1 or len(lines) != 2:
                return None
            return added(ROUND(a, 1) * ROUND(b, 1) for a, b in zip(*lines, strict=True))
        if _calls(part, SUM, AVERAGE) and all(_is_line(x) for x in part.parts):
            cells = [ROUND(cell, 1) for x in part.parts for cell in x.cells]  # type: ignore[attr-defined]
            return Call(part.function, tuple(cells))  # type: ignore[attr-defined]
        return ROUND(part, 1) if isinstance(part, Area) and part.rect.size == 1 else None

    return _once(formula, change)


def _once(part: Expression, change: Change) -> Expression:
    """A formula with every outermost part changed that a change applies to."""
    found = change(part)
    if found is not None:
        return found
    inner = [_once(x, change) for x in part.parts]
    return part.of(*inner) if inner else part


def _of(change: Change) -> Rewriting:
    """The rewriting of the outermost part that a change applies to."""
    return lambda _, formula: outermost(formula, change)


# in the order in which they are named where two give the same number
REWRITINGS: dict[str, Rewriting] = {
    "mask": _unmasked,
    "later": _to_the_end,
    "scale": _without_factor(scale=True),
    "queries": _instead,
    "tokens": _of(_swapped),
    "transposed": _transposed,
    "axis": _other_axis,
    "norm": partial(_before, NORMS),
    "position": _unplaced,
    "bias": _operation("+", _unbiased),
    "activation": _inactive,
    "exponential": _call(EXP, lambda x: x),
    "logarithm": _call(LN, lambda x: LN(x) / LN(2)),
    "root": _call(SQRT, lambda x: x),
    "sample": _call(VARP, _of_a_sample),
    "average": _call(AVERAGE, SUM),
    "minus": _of(_unsigned),
    "division": _operation("/", lambda x, _: x),
    "order": _operation("-", lambda x, y: Operation("-", y, x)),
    "scale twice": _without_factor(scale=True, turned=True),
    "factor": _without_factor(scale=False),
    "last term": _terms_left(slice(-1)),
    "a term": _terms_left(slice(1, None)),
    "one less": _of(_one_less),
    "row": _beside(1, 0),
    "row before": _beside(-1, 0),
    "column": _beside(0, 1),
    "column before": _beside(0, -1),
    "rounded": _rounded_before,
}
LOOKED_FOR_BELOW = ("mask", "axis", "norm", "position")  # in what a cell reads, too
