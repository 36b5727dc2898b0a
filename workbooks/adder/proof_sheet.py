"""The sheets of the proof: Proof shows 200 cases of one digit, Bounds and Cases compute them.

The cells show plain bounds. `cellformer prove` also halves those that are too wide, so a case that
is not proved here is open, and not wrong.
"""

from dataclasses import replace

from cellformer.engine import Model
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression, Nth
from cellformer.engine.cells.functions import (
    AND,
    COUNT,
    COUNTIF,
    FIND,
    IF,
    IFERROR,
    INT,
    LARGE,
    LEN,
    MAX,
    MOD,
    OR,
    SQRT,
    SUM,
    SUMPRODUCT,
    TRIM,
)
from cellformer.engine.cells.language import AsIs, translated, worded
from cellformer.engine.cells.rounding import NEAR
from cellformer.engine.models.forward import Forward
from cellformer.engine.studies.folding import folded
from cellformer.engine.studies.part_names import said
from cellformer.exporters.assemble.block_list import put
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import When
from cellformer.exporters.compose.sentences import rounded, sentence
from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.workbooks.adder import proof, proof_tables, trained
from cellformer.workbooks.adder.machine import COLUMNS, column
from cellformer.workbooks.adder.proof import BASE
from cellformer.workbooks.adder.proof_tables import (
    N_HEADS,
    OF_HEAD,
    OWN_AT,
    PAIRS,
    PROOF,
    TERM,
    UNIT,
    WIDE,
    Asked,
    Formula,
)
from cellformer.workbooks.adder.sums import DIGITS, FIRST, PLACES
from cellformer.workbooks.adder.trained import BLOCK, HEADS

PLACE = 4  # the digit of the sum that is shown first, counted from 1
N_CASES, AT_ONCE = 170_300, 167_100  # of all places, and those that plain bounds prove
ASKED_ROW, GRID_ROW, LEFT = 5, 11, 1
DIGITS_ROW = GRID_ROW + 4  # below the digits of the place before
PANEL = LEFT + PAIRS + 1  # the column of the tables beside the cases
EMPTY, FAULT = -2, -1  # what is read of a cell
A, B, A_BEFORE, B_BEFORE, CARRY, HERE, RIGHT, WRITTEN, ROW = range(9)  # of `proof.sum`
READ = {  # by a head: what it is, and where the token stands
    "the digit of the first number": "a",
    "the digit of the second number": "b",
    "first number, in the place before": "a'",
    "second number, in the place before": "b'",
    "the digit written before": "here",
}
SPREAD = "weights, arranged to give the lower bounds and then the upper bounds"
SCALE = "bounds of the scale of the norm"
MEANINGS = {
    "read": "what is typed on Proof; -2 is an empty cell, -1 is no digit",
    "asked": "the place (counted from 0), the digit before, and the digit of the first number",
    "room": "room for rounding (relative, absolute), and the largest size",
    "fits": "1 if all weights are numbers of less than 1E30, and the settings are as built",
    "gain": "gains of the norms: first, query, key, MLP",
    "eps": "the constant of the norms",
    **dict.fromkeys(("W_K", "W_V", "W_Q0", "W_Q1", "W_O", "W_gate", "W_in"), SPREAD),
    "W_out": "output of the MLP, and its absolute values",
    "word": "the embedding, times the gain of the last norm, divided by 100",
    "digit": "the embedding of each digit",
    "input.scale": SCALE,
    "input": "the input of the heads, for each digit",
    "key.raw": "key of each digit",
    "key.scale": SCALE,
    "key": "key after its norm",
    "key.factor": "middles, radii and sizes of the keys, arranged to give the bounds of scores",
    "value.raw": "value of each digit",
    "value": "the values, with room for the rounding error of a product",
    "value.hull": "the least and the largest value of all digits",
    "own": "the input of the heads, for the digit before",
    "query.raw": "query of each head",
    "query.scale": SCALE,
    "query": "query after its norm",
    "speed": "how fast the rotary positions turn",
    "turn": "cosines and sines of each distance",
    "query.turned": "the query, turned by each distance: middles, sizes, radii",
    "attention.low": "lower bounds of e^score, for each distance and digit",
    "attention.high": "upper bounds of the same numbers",
    "role": "the token at each distance: 1 is always 0, 2 is any digit, 3 is part of the case",
    "others": "what a token with role 1 or 2 adds to both heads: lower bounds, then upper bounds",
    "token": "what each digit adds at the distances 0, 10, 11, 22 and 23",
    "base": "the sum over all tokens that are the same in each case",
    "before": "digits of the place before, their carry, the next carry, and 1 if possible",
    "before.sums": "the sum over these digits and the tokens that are always the same",
    "own.word": "the embedding of the digit before",
    "apart": "the right digit minus each other digit, and the sizes of these differences",
    "apart.stream": "the same differences, arranged to multiply the bounds of the stream",
    "apart.mlp": "the same differences, arranged to multiply the bounds of hidden cells",
    "sum": (
        "the case of the sum on Add: its digits, the right digit, the written digit, and its row"
    ),
    "sum.leads": "the lead of each digit of the sum on Add, before the last norm, divided by 100",
}
LARGE_ONES = (
    "room", "eps", "attention.low", "attention.high", "others", "token", "base", "before.sums", "sums",
    "share",
)  # fmt: skip
OF_CASES = {
    "case": "digit b; 1 if possible",
    "sums": "both heads: sum of e^score, and sum of e^score × value",
    "share": "1 / sum of e^score",
    "mean": "what both heads read: the mean of the values",
    "mid": "residual stream after attention",
    "y.scale": "scale",
    "y": "after the norm",
    "gate": "gate of the MLP",
    "pre": "input of the MLP",
    "act": "SiLU of the gate",
    "post": "hidden cells of the MLP",
    "lead": "lead over each other digit",
    "least": "least lead",
}


def add(w: Workbook, g: Forward) -> None:
    """Add the sheets."""
    ws = w.sheet(
        "Proof",
        "which cases of a digit are proved, for all values of the other digits",
        "To write a digit, the model mostly reads five digits: two of this place, two of the "
        "place before, and the digit written before. These digits and the carry define a case.",
        widths={0: 25}
        | dict.fromkeys(range(LEFT, LEFT + PAIRS), 4.1)
        | {PANEL - 1: 1.5, PANEL: 29, PANEL + 1: 12, PANEL + 2: 12},
    )
    proof_tables.add(g, ask(ws, g))
    of_sum(g)
    verdict(ws, g)
    grid(ws, g)
    looks(ws, g)
    on_add(ws, g)
    below(ws)
    ws.suggest(*suggestions(), at=(0, LEFT, LEFT + 5))
    bounds_sheet(w, g)
    cases_sheet(w, g)


def told_on_start(story: Story) -> Story:
    """The texts of the start sheet, with the proof."""
    look = (
        "The sheet Proof proves that the model is right, for 200 cases at a time. The bounds "
        "are live: change a weight, and some cases are no longer proved."
    )
    name, _, title = translated(story.title).partition(":")
    return replace(story, title=AsIs(f"{name}-{PROOF}:{title}"), look=[look, *story.look])


def ask(ws: Composer, g: Forward) -> Asked:
    """The three cells that choose the cases; the sum on Add gives the digits that are not
    typed."""
    typed = ws.typed_at(f"{PROOF}.typed", (ASKED_ROW, LEFT), [[PLACE], [""], [""]], "dial")
    ws.sheet.down(
        ASKED_ROW,
        0,
        ("digit of the sum", "digit written before it", "digit of the first number"),
        "row label",
    )
    place = typed[0, 0]

    def known(i: int, _: int) -> Expression:
        if i == 0:
            return IF(AND(place > 0, place < PLACES + 2, INT(place) == place), place, 0)
        text = TRIM(typed[i, 0] & "")
        digit = IFERROR(FIND(text, DIGITS) - 1, FAULT)
        return IF(LEN(text) == 0, EMPTY, IF(LEN(text) == 1, digit, FAULT))

    read = g.table(f"{PROOF}.read", (3, 1), known)

    def asked(_: int, k: int) -> Expression:
        if k == 0:
            return MAX(read[0, 0], 1) - 1
        place = g[f"{PROOF}.asked"][0, 0]
        row, earlier, end = (g["right"][0, :], 1, 0) if k == 1 else (g["digits"][0, :], 0, PLACES)
        of_sum = Nth(row.as_range, COLUMNS + earlier - place)
        return IF(place == end, 0, IF(read[k, 0] < 0, of_sum, read[k, 0]))

    found = g.table(f"{PROOF}.asked", (1, 3), asked)
    for i in range(3):
        ws.show(f"said.{i}", (ASKED_ROW + i, LEFT + 1), told(i, read[i, 0], found), "note")
    return Asked(*(found[0, k].fixed for k in range(3)))


def told(i: int, read: Expression, asked: Block) -> Expression:
    """The remark beside a cell that chooses the cases."""
    if i == 0:
        fault = sentence("← type a whole number from 1 to 11")
        return IF(
            read == 0,
            fault,
            sentence("← the place, counted from the right: 1 is the ones, 11 the last"),
        )
    end, none = (
        (0, sentence("← there is no digit before the ones"))
        if i == 1
        else (PLACES, sentence("← both numbers have only ten digits"))
    )
    empty = sentence(
        "← empty, so {d} is used, as in the sum on Add. You can type a digit", d=asked[0, i]
    )
    usual = IF(
        read == EMPTY, empty, sentence("← to use the digit of the sum on Add, delete this number")
    )
    fault = sentence("← type one digit, from 0 to 9")
    return IF(asked[0, 0] == end, none, IF(read == FAULT, fault, usual))


def of_sum(g: Forward) -> None:
    """Add the case of the sum on Add: its digits, its row in the list of cases (0: it is none of
    them), its bound, and the lead itself."""
    place, here, a = g[f"{PROOF}.asked"][0, :].cells

    def at(row: Area, earlier: int = 0) -> Expression:
        found = Nth(row.as_range, COLUMNS + earlier - place)
        return IF(place == 0, 0, found) if earlier else found

    def number(_: int, k: int) -> Expression:
        own, digits, right = g[f"{PROOF}.sum"], g["digits"], g["right"][0, :]
        if k < ROW:
            first, second, written = digits[0, :], digits[1, :], g["written"][0, :]
            rows = ((first, 0), (second, 0), (first, 1), (second, 1), (g["carry"][0, :], 1))
            return at(*(*rows, (right, 1), (right, 0), (written, 0))[k])
        among = AND(
            g["fits"][0, 0] == 1, g["places"][0, 0] == PLACES, own[0, HERE] == here, own[0, A] == a
        )
        row = own[0, RIGHT] * PAIRS + own[0, CARRY] * BASE + own[0, A_BEFORE] + 1
        return IF(among, row, 0)

    own = g.table(f"{PROOF}.sum", (1, ROW + 1), number)

    def lead(k: int, _: int) -> Expression:
        logits, stream = g["logits"][FIRST + k, :].as_range, g[f"{BLOCK}.resid_post"][FIRST + k, :]
        right = Nth(logits, g["right"][0, column(k)] + 1)
        other = IF(right == MAX(logits), LARGE(logits, 2), MAX(logits))
        scale = SQRT(SUMPRODUCT(stream, stream) / WIDE + g[f"{PROOF}.eps"][0, 0])
        return (right - other) * scale / UNIT

    leads = g.table(f"{PROOF}.sum.leads", (PLACES + 1, 1), lead)

    def both(_: int, k: int) -> Expression:
        row = own[0, ROW]
        if k == 0:
            return IF(row > 0, Nth(g[f"{PROOF}.least"].area.as_range, MAX(row, 1)), "–")
        follows = OR(place == 0, at(g["written"][0, :], 1) == own[0, HERE])
        return IF(AND(row > 0, follows), Nth(leads.area.as_range, place + 1), "–")

    g.table(f"{PROOF}.sum.lead", (1, 2), both)


def holds(g: Forward) -> Expression:
    """Whether the lead in the typed sum is not below the bound of its case."""
    bound, lead = g[f"{PROOF}.sum.lead"][0, :].cells
    return OR(COUNT(bound, lead) < 2, IFERROR(lead - bound, 0) > -NEAR)


def verdict(ws: Composer, g: Forward) -> None:
    """The number of proved cases, and what to do about others."""
    least, possible = (g[f"{PROOF}.{name}"] for name in ("least", "case"))
    counts = (SUM(possible[:, 1].as_range), COUNTIF(least.area.as_range, ">0"))
    counted = g.table(f"{PROOF}.counts", (1, 2), lambda _, k: counts[k])
    ws.lay(counted, (ASKED_ROW + 1, PANEL + 1), "count", turned=True)
    ws.sheet.down(ASKED_ROW + 1, PANEL, ("cases", "proved"), "row label")
    n, proved = counted[0, :].cells
    row = ASKED_ROW + 3
    found = ws.show(
        "verdict", (row, 0), sentence("{k} of {n} cases proved", k=proved, n=n), "status"
    )
    ws.dress(found, When("right", proved == n), When("differs", proved < n))
    every = sentence(
        "In each case, the model writes the right digit for all values of the other digits."
    )
    some = sentence(
        "{m} cases are open: these bounds do not show whether they are right. Save the file, "
        "and run ‘cellformer prove’ with its name: the command narrows the bounds, and looks "
        "for a wrong sum.",
        m=n - proved,
    )
    unfit = sentence(
        "This sheet proves nothing now. A setting on the sheet Inside was changed, or a weight "
        "is not a number below 1E30."
    )
    text = IF(g[f"{PROOF}.fits"][0, 0] == 0, unfit, IF(proved == n, every, some))
    ws.show("means", (row, LEFT + 1), text, "note")


def grid(ws: Composer, g: Forward) -> None:
    """The least lead of each case: a row for each digit of the second number, and a column for
    the digits of the place before. Marks show the case of the sum on Add."""
    before, least, own = (g[f"{PROOF}.{name}"] for name in ("before", "least", "sum"))
    a = g[f"{PROOF}.asked"][0, 2].fixed
    row = GRID_ROW
    ws.sheet.put(row - 1, 0, "Least lead (÷ 100)", "block")

    def mark(_: int, i: int) -> Expression:
        same = AND(before[i, 0] == own[0, A_BEFORE], before[i, 2] == own[0, CARRY])
        return IF(AND(own[0, ROW] > 0, same), "▼", "")

    ws.show("column", (row - 1, LEFT), mark, "status", (1, PAIRS))

    def digits(c: int) -> Formula:
        return lambda _, i: before[i, c] + 0

    labels = (
        "carry into the place before",
        "first number in that place",
        "second number in that place",
        "carry",
    )
    ws.sheet.down(row, 0, labels, "row label")
    for k, c in enumerate((2, 0, 1, 3)):
        ws.show(
            f"before.{k}",
            (row + k, LEFT),
            digits(c),
            "digit carry" if c > 1 else "digit",
            (1, PAIRS),
        )

    def label(b: int, _: int) -> Expression:
        here = AND(own[0, ROW] > 0, own[0, B] == b)
        return IF(here, sentence("▶ second number: {n}", n=b), sentence("second number: {n}", n=b))

    ws.show("row", (DIGITS_ROW, 0), label, "row label", (BASE, 1))

    def lead(b: int, i: int) -> Expression:
        right = MOD(a + before[i, 3] + b, BASE)
        return Nth(least.area.fixed.as_range, right * PAIRS + i + 1)

    table = g.table(f"{PROOF}.grid", (BASE, PAIRS), lead)
    ws.lay(table, (DIGITS_ROW, LEFT), "lead")
    first = table[0, 0]
    ws.dress(
        table.area,
        When("stale", LEN(first) == 0),
        When("right", AND(COUNT(first) == 1, first > 0)),
        When("differs", AND(LEN(first) > 0, OR(COUNT(first) == 0, first <= 0))),
    )
    ws.sheet.put(DIGITS_ROW + BASE, 0, "green: proved", "note")
    text = "orange: open, not proved here. Such a case may be right or wrong."
    ws.sheet.put(DIGITS_ROW + BASE, LEFT, text, "note")


def looks(ws: Composer, g: Forward) -> None:
    """The share of attention of each token of the typed sum's case: from a bound to a bound."""
    row, own = GRID_ROW, g[f"{PROOF}.sum"]
    ws.sheet.put(row - 1, PANEL, "What each head reads, in %", "block")
    ws.sheet.across(row - 1, PANEL + 1, [said(head) for head in HEADS], "label")
    ws.sheet.down(row, PANEL, [*READ, "all other tokens together"], "row label")
    which = {"a": A, "b": B, "a'": A_BEFORE, "b'": B_BEFORE, "here": HERE}

    def weight(i: int, c: int) -> Expression:
        if i == len(READ):
            return SUM(g[f"{PROOF}.others"][:, c].as_range)
        name = list(READ.values())[i]
        top = list(OWN_AT).index(name) * BASE
        return Nth(g[f"{PROOF}.token"][top : top + BASE, c].as_range, own[0, which[name]] + 1)

    def share(i: int, h: int) -> Expression:
        low, high = (end * TERM + h * OF_HEAD for end in (0, 1))
        least, most = (
            Nth(g[f"{PROOF}.sums"][:, c].as_range, MAX(own[0, ROW], 1)) for c in (low, high)
        )
        ends = weight(i, low) / most, weight(i, high) / least
        text = sentence(
            "{low} to {high}", low=rounded(100 * ends[0], 1), high=rounded(100 * ends[1], 1)
        )
        return IF(own[0, ROW] > 0, text, "–")

    ws.show("reads", (row, PANEL + 1), share, "status", (len(READ) + 1, N_HEADS))


def on_add(ws: Composer, g: Forward) -> None:
    """The typed sum at this digit: what it adds, what the model writes, and by how much the right
    digit leads."""
    row, own, leads = GRID_ROW + len(READ) + 3, g[f"{PROOF}.sum"], g[f"{PROOF}.sum.lead"]
    ws.sheet.put(row - 1, PANEL, "The sum on Add, at this digit", "block")
    labels = (
        "both digits, and the carry",
        "right is",
        "the model writes",
        "lead (÷ 100), at least",
        "lead (÷ 100)",
    )
    ws.sheet.down(row, PANEL, labels, "row label")
    carry = MOD(own[0, RIGHT] - own[0, A] - own[0, B], BASE)
    added = sentence("{a} + {b} + {c}", a=own[0, A], b=own[0, B], c=carry)
    ws.show("adds", (row, PANEL + 1), added, "status")
    right = ws.show("right", (row + 1, PANEL + 1), own[0, RIGHT] + 0, "digit grey")
    written = ws.show("written", (row + 2, PANEL + 1), own[0, WRITTEN] + 0, "digit written")
    ws.dress(written, When("differs", written != right))
    ws.lay(leads, (row + 3, PANEL + 1), "lead", turned=True)


def below(ws: Composer) -> None:
    """Sentences below the cases."""
    ws.cursor = DIGITS_ROW + BASE + 2
    ws.text(
        "All other tokens can be any digits. The sheet computes the least and the most that "
        "they can add. These bounds give bounds on the model’s vector, and then on each lead.",
        worded(
            "A case is proved if its lead is above 0. All places together have {n:,} cases. "
            "With the weights as built, the bounds on this sheet prove {k:,} cases.",
            n=N_CASES,
            k=AT_ONCE,
        ),
        "‘cellformer prove adder’ proves all cases, because it halves bounds that are too "
        "wide. Each digit is right if all digits before it are right, so every sum is right.",
        (
            "Change a weight on Add, and some cases become open. The sheet never proves a case "
            "whose sum is wrong."
        ),
    )


def suggestions() -> list[Suggestion]:
    """Edits, with the number of cases that stay proved."""
    model = trained.load()
    some, few = proved(model, 1), proved(folded(model, {("W_E", 9, 0): 0.0}), 3)
    watch, last = (f"{PROOF}.counts", 0, 1), 2 * BASE
    return [
        Suggestion(
            worded(
                "Type ‘1’: this sheet proves {k} of {n} cases. The other {m} cases stay open "
                "here, but ‘cellformer prove adder’ proves them, too.",
                k=some,
                n=proof_tables.CASES,
                m=proof_tables.CASES - some,
            ),
            (f"{PROOF}.typed", 2, 0),
            1.0,
            watch,
            float(some),
        ),
        Suggestion(
            worded(
                (
                    "Type ‘11’ for the last digit. It has only {n} cases, and all of them are proved."
                ),
                n=last,
            ),
            (f"{PROOF}.typed", 0, 0),
            float(PLACES + 1),
            watch,
            float(last),
        ),
        Suggestion(
            worded(
                "This is one number of the vector for the digit 9. Type ‘0’: this sheet then "
                "proves only {k} cases.",
                k=few,
            ),
            ("W_E", 9, 0),
            0.0,
            watch,
            float(few),
        ),
    ]


def proved(model: Model, a: int) -> int:
    """The number of proved cases of the place that is shown first, after a 0, with a digit of the
    first number."""
    every, bounds = proof.cases(PLACE - 1), proof.Bounds(model)
    some = every.of((every.written == 0) & (every.a == a))
    return int((bounds.lead(bounds.box(some), some.right) > 0).sum())


def style(name: str) -> str:
    """The style of a table: some numbers are very large, or very small."""
    return "bound large" if name in LARGE_ONES else "bound"


def bounds_sheet(w: Workbook, g: Forward) -> None:
    """Every table that is about all cases."""
    ws = w.sheet(
        "Bounds",
        "bounds on what each token can add, for the digits on the sheet Proof",
        "In a table of vectors, the lower bounds come first, then the upper bounds, then the "
        "sizes. Every bound leaves room for rounding errors: 10^-12 of the size of its terms.",
    )
    ws.cursor += 1
    for name, meaning in MEANINGS.items():
        block = g[f"{PROOF}.{name}"]
        rows, cols = block.shape
        ws.text(AsIs(f"{block.name}   [{rows} × {cols}]   {translated(meaning)}"), style="equation")
        put(ws, block, ws.cursor, 1, {}, style=style(name))
        ws.cursor += rows + 1
    ws.sheet.prints = "first page"


def cases_sheet(w: Workbook, g: Forward) -> None:
    """The pass in each case, from left to right."""
    ws = w.sheet(
        "Cases",
        (
            "the model’s forward pass with bounds, from left to right: each row is a case of "
            "the sheet Proof"
        ),
        widths={0: 10, 1: 8},
    )
    top, left, rows = ws.cursor + 1, 3, range(proof_tables.CASES)
    ws.sheet.across(top - 1, 0, ("right digit", "column"), "head")
    ws.sheet.down(top, 0, [n // PAIRS for n in rows], "row number")
    ws.sheet.down(top, 1, [n % PAIRS + 1 for n in rows], "row number")
    for name, meaning in OF_CASES.items():
        block = g[f"{PROOF}.{name}"]
        put(ws, block, top, left, {}, style=style(name))
        ws.sheet.put(top - 1, left, meaning, "block")
        left += block.shape[1] + 1
    ws.sheet.frozen = (top, 2)
    ws.sheet.prints = "first page"
