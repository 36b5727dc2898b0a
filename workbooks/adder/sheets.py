"""The sheets of the adder: Add, with every weight beside the sum, and Looks, with its attention."""

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression, Nth, expression
from cellformer.engine.cells.functions import AND, IF, LEN, MIN
from cellformer.engine.cells.language import worded
from cellformer.engine.models.forward import Forward
from cellformer.engine.studies.part_names import said
from cellformer.exporters.assemble.block_list import stack
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import When, between
from cellformer.exporters.compose.sentences import quote, sentence, sureness
from cellformer.workbooks.adder import sums
from cellformer.workbooks.adder.machine import COLUMNS, MOST, N_TOKENS, column
from cellformer.workbooks.adder.sums import PLACES
from cellformer.workbooks.adder.trained import BLOCK, HEADS, KEYS

TYPE_ROW, PLACE_ROW, SWITCH_ROW, MLP_ROW = 4, 11, 20, 16
PLACE_COL, WEIGHT_COL, STEP = 1, 15, 5  # a table of weights has four columns, and one is free
ACROSS = (f"{BLOCK}.ln2.out", "ln_final.out")  # what is multiplied with rows of weights
MEANINGS = {  # of the tables around the pass
    "typed.text": "the typed text",
    "typed.read": "the digits, ones last; -1 for any other character",
    "typed.least": "below 0 if a character is not a digit",
    "fits": "1 if both are numbers of at most eleven digits",
    "likeliest": "the digit with the largest logit after each token, which is the next token",
    "probe": "the direction in which the residual stream stores both digits and the carry",
    "probe.shift": "the number that makes the probe's values begin at 0",
    "probe.held": "the position of each token's vector, after attention, along the probe's direction",
    "best": "the probability of the likeliest digit",
    "row": "the token after which the model writes each digit of the sum, counted from 1",
    "value": "the two numbers as the model reads them",
}
TO_TRY = (
    "Type ‘0’: which digits are wrong without this part?",
    "Then change a weight: the sum becomes wrong.",
)
PRINTED = 46  # rows of the sheet Inside that a handout shows
GAINS = ("first", "query", "key", "MLP", "last")  # what each norm is of
TABLES = {  # row and place in the row -> a table of weights, what it is, whether it is turned
    (4, 0): ("W_E", "embedding, by digit", False),
    (4, 1): (f"{HEADS[0]}.W_Q", "queries of head 0.0", False),
    (4, 2): (f"{KEYS}.W_K", "keys of both heads", False),
    (4, 3): (f"{HEADS[0]}.W_O", "output of head 0.0", False),
    (10, 1): (f"{HEADS[1]}.W_Q", "queries of head 0.1", False),
    (10, 2): (f"{KEYS}.W_V", "values of both heads", False),
    (10, 3): (f"{HEADS[1]}.W_O", "output of head 0.1", False),
    (16, 0): (f"{BLOCK}.mlp.W_gate", "MLP: gate, transposed", True),
    (16, 1): (f"{BLOCK}.mlp.W_in", "MLP: in, transposed", True),
    (16, 2): (f"{BLOCK}.mlp.W_out", "MLP: out", False),
    (16, 3): (f"{BLOCK}.ln1.w", "gains of norms", False),
    (18, 3): (f"{BLOCK}.attn.q_norm", "", False),
    (19, 3): (f"{BLOCK}.attn.k_norm", "", False),
    (20, 3): (f"{BLOCK}.ln2.w", "", False),
    (21, 3): ("ln_final.w", "", False),
}


def add_sheet(w: Workbook, g: Forward) -> None:
    """The first sheet: two typed numbers, their sum digit by digit, and all weights."""
    ws = w.sheet(
        "Add",
        "type two numbers in the yellow cells; a transformer predicts each digit of the sum",
        widths={0: 17}
        | dict.fromkeys(range(PLACE_COL, PLACE_COL + COLUMNS), 3.6)
        | {WEIGHT_COL - 2: 1.5, WEIGHT_COL - 1: 2.5}
        | {WEIGHT_COL + k: 1 if k % STEP == STEP - 1 else 4.6 for k in range(4 * STEP - 1)},
    )
    typed(ws, g)
    places(ws, g)
    switches(ws, g)
    weights(ws, g)


def typed(ws: Composer, g: Forward) -> None:
    """The two numbers, each with a message about it; the sum twice, and the verdict."""
    row, fits = TYPE_ROW, g["fits"][0, 0]
    ws.lay(g["typed"], (row, 0), "number large")
    ws.lay(g["sums"], (row + 2, 0), "sum large")
    written, right = g["sums"][0, 0], g["sums"][1, 0]

    def said(i: int, _: int) -> Expression:
        text = g["typed.text"][i, 0]
        fault = sentence(
            "{typed} is not a whole number of up to ten digits: type only digits", typed=quote(text)
        )
        many = sentence("{n} digits: the sheet has room for ten or eleven", n=LEN(text))
        usual = sentence("← type a number" if i == 0 else "← type another number, up to ten digits")
        kinds = IF(g["typed.least"][i, 0] < 0, fault, IF(LEN(text) > MOST, many, usual))
        return IF(LEN(text) == 0, sentence("← type a whole number here"), kinds)

    ws.show("said", (row, PLACE_COL), said, "note", (2, 1))
    both = "= the sum that the model writes, digit by digit", "= your spreadsheet's sum, with +"
    ws.sheet.down(row + 2, PLACE_COL, both, "note")
    verdict = IF(fits == 0, "", IF(written == right, worded("right"), worded("wrong")))
    found = g.table("verdict", (1, 1), lambda *_: verdict)
    ws.lay(found, (row + 4, 0), "status")
    ws.dress(
        found[0, 0],
        When("right", found[0, 0] == worded("right")),
        When("differs", found[0, 0] == worded("wrong")),
    )
    ws.show("why", (row + 4, PLACE_COL), why(g, found), "note")
    ws.lay(g["places"], (row + 5, 0), "digit grey")
    ws.show("room", (row + 5, PLACE_COL), room(g), "note")


def why(g: Forward, verdict: Block) -> Expression:
    """A sentence about the result."""
    least = MIN(g["sure"][0, column(PLACES) :].as_range)
    right = sentence("The model was at least {p} sure of each digit.", p=sureness(least))
    wrong = IF(
        g["places"][0, 0] == MOST,
        sentence("The model was trained on ten digits, not eleven."),
        sentence("The orange digits are wrong."),
    )
    is_right, is_wrong = (verdict[0, 0] == worded(x) for x in ("right", "wrong"))
    return IF(is_right, right, IF(is_wrong, wrong, ""))


def room(g: Forward) -> Expression:
    """The meaning of the number of digits, and the rest of the sentence if it is too large."""
    return IF(
        g["places"][0, 0] == MOST,
        sentence("digits move the second number too far, so the heads miss its digits."),
        sentence("digits of each number are read, with zeros in front."),
    )


def places(ws: Composer, g: Forward) -> None:
    """The sum as on paper, place by place: the carry, both digits, the written digit, its
    probability."""
    row, col = PLACE_ROW, PLACE_COL
    ws.sheet.put(row - 1, 0, "Add from right to left, as on paper: one step per digit", "block")
    ws.sheet.put(row, 0, "step", "row label")
    ws.sheet.across(row, col, range(COLUMNS, 0, -1), "label number")
    rows = {
        ("carry",): (g["carry"], "digit carry"),
        ("first number", "second number"): (g["digits"], "digit"),
        ("the model adds up",): (g["total"], "digit total"),
        ("the model writes",): (g["written"], "digit written"),
        ("probability",): (g["sure"], "digit sure"),
        ("right is",): (g["right"], "digit grey"),
    }
    unused = When("stale", g["places"][0, 0].fixed == PLACES)
    for labels, (block, style) in rows.items():
        ws.lay(block, (row + 1, col), style)
        ws.dress(block[:, 0], unused)
        for label in labels:
            row += 1
            ws.sheet.put(row, 0, label, "row label")
    ws.dress(g["written"].area, When("differs", g["written"][0, 0] != g["right"][0, 0]))
    ws.dress(g["sure"].area, "scale")


def switches(ws: Composer, g: Forward) -> None:
    """The parts that can be switched off."""
    row = SWITCH_ROW
    ws.sheet.put(row, 0, "Switches: 1 is on, 0 is off", "block")
    parts = {said(head): head for head in HEADS} | {said(f"{BLOCK}.mlp"): f"{BLOCK}.mlp"}
    for k, (text, part) in enumerate(parts.items(), 1):
        ws.sheet.put(row + k, 0, text, "row label")
        ws.lay(
            g[f"{part}.switch"],
            (row + k, PLACE_COL),
            "switch",
            rule=between(-1, 2, "1 is on, 0 is off."),
        )
    ws.sheet.down(row + 1, PLACE_COL + 2, TO_TRY, "note")


def weights(ws: Composer, g: Forward) -> None:
    """All weights."""
    for (row, k), (name, text, turned) in TABLES.items():
        col = WEIGHT_COL + k * STEP
        if text:
            ws.sheet.put(row, col, text, "small label")
        ws.lay(g[name], (row + 1 if text else row, col), "weight small", turned, dress="diverging")
    ws.sheet.down(MLP_ROW + 1, WEIGHT_COL + 4 * STEP - 1, GAINS, "small label")
    ws.sheet.down(TYPE_ROW + 1, WEIGHT_COL - 1, range(len(sums.DIGITS)), "label number")


def looks_sheet(w: Workbook, g: Forward) -> None:
    """Add the attention of each head at each step."""
    ws = w.sheet(
        "Looks",
        "where each head looks at each step: the darker a cell, the more the head reads that digit",
        "Columns are tokens: the first number (a), the second number (b), and the digits of the "
        "sum so far (s). Each number begins with its ones digit. Rows are steps.",
        "Both heads look 22 and 10 tokens back, at the two digits of the same place. Head 0.0 "
        "also reads a little of the digits of the previous place.",
        "So the model computes a + b + (a' + b' - s') / 10. The mark ' means the previous place. "
        "In that place, a' + b' is larger than s' by ten times the carry.",
        widths={0: 12, 1: 5} | dict.fromkeys(range(2, 2 + N_TOKENS), 3.1),
    )
    row, n = ws.cursor + 1, g["places"][0, 0]
    ws.show("roles", (row, 2), lambda _, t: role(n, t), "label", (1, N_TOKENS))
    ws.lay(g["tokens"], (row + 1, 2), "digit", turned=True)
    ws.sheet.put(row + 1, 1, "token", "row label")
    ws.sheet.put(row + 1, 0, "writes", "row label")
    ws.cursor = row + 2
    for k, head in enumerate(HEADS):
        ws.sheet.put(ws.cursor, 0, said(head), "block")
        pattern, top = g[f"{head}.pattern"], ws.cursor + 1

        def look(i: int, t: int, pattern: Block = pattern) -> Expression:
            after = g["row"][0, column(i)]
            return IF(AND(after > t, n >= i), Nth(pattern[:, t].fixed.as_range, after), 0)

        ws.lay(
            g.table(f"looks.{head}", (COLUMNS, N_TOKENS), look),
            (top, 2),
            "tile small",
            dress="scale",
        )
        ws.show(
            f"writes.{k}",
            (top, 1),
            lambda i, _: g["written"][0, column(i)] + 0,
            "digit written",
            (COLUMNS, 1),
        )
        ws.sheet.down(top, 0, (worded("step {n}", n=i) for i in range(1, COLUMNS + 1)), "row label")
        ws.cursor = top + COLUMNS + 1


def role(n: Expression, t: int) -> Expression:
    """The role of a token: a digit of a number, or of the sum; a point between them."""
    second = IF(AND(n + 2 < t, n * 2 + 3 > t), "b", IF(AND(n * 2 + 3 < t, n * 3 + 5 > t), "s", "·"))
    return IF(AND(expression(t) > 0, n >= t), "a", second)


def inside_sheet(w: Workbook, g: Forward) -> None:
    """Every other block, in the order of computation."""
    ws = w.sheet(
        "Inside",
        "every step of the calculation, from tokens to digits, with its formula",
        "Rows or columns 0 to 36 are the tokens. Each block has its formula above it. The "
        "weights are on the sheet Add.",
    )
    ws.widths({1: 15})  # the sum in one number
    for block in [*g]:
        if block.name not in w.book.places:
            stack(
                ws, block, {}, "", across=block.name in ACROSS, meaning=MEANINGS.get(block.name, "")
            )
    ws.sheet.print_area = Rect(0, PRINTED, 0, PLACES)  # not 70 pages
