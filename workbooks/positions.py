"""positions: where a word stands, told by clock hands, by a learned table, and by rotation.

Each pair of dimensions is a hand of a clock, fast ones and slow ones, as binary digits are. Look at
the frequency map, at the shift by one matrix, and at the diagonals of rotary scores. Try base 16.
"""

import numpy as np

from exporters.book import Book, Chart, Series
from exporters.by_hand import Comparison, Table, Workbook, near
from exporters.story import Story, Suggestion

TOPIC = "Words and positions"
TITLE = "positions: clock hands, a learned table, and rotation"
D_MODEL, T, BITS, BASE, K_SHIFT = 8, 16, 4, 10000.0, 3.0  # d_head is d_model: one head
SENTENCE, N = ("the", "cat", "saw", "the", "dog"), 5  # one word twice: places 0 and 3
E = np.random.default_rng(1).normal(size=(4, D_MODEL)).round(1)[[0, 1, 2, 0, 3]]
W_POS = np.random.default_rng(2).normal(0, 0.5, (N, D_MODEL)).round(1)
Q, K = np.random.default_rng(3).normal(size=(2, D_MODEL)).round(1)
M, N_KEY, GRID = 5.0, 2.0, 10  # the places of the query and the key, and how many follow
WAVE = ("SIN", "COS")  # of even dimensions, and of odd ones
PLACES, DIMS = np.arange(T), [f"dim {j}" for j in range(D_MODEL)]


def frequencies(base: float = BASE) -> np.ndarray:
    """How far each hand turns from one place to the next, in radians: [d_model / 2]."""
    return base ** (-np.arange(0, D_MODEL, 2) / D_MODEL)


def encoding(places: np.ndarray) -> np.ndarray:
    """The sine and the cosine of each hand at some places: [places, d_model]."""
    angles = np.outer(places, frequencies())
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(-1, D_MODEL)


def rotated(x: np.ndarray, places: np.ndarray) -> np.ndarray:
    """A query or key [d_head] with each of its pairs turned by its place: [places, d_head]."""
    turned = (x[::2] + 1j * x[1::2]) * np.exp(1j * np.outer(places, frequencies()))
    return np.stack([turned.real, turned.imag], axis=-1).reshape(-1, D_MODEL)


def positioned(kind: int) -> np.ndarray:
    """X0 of the sentence with no positions, sinusoids, or learned ones (0 to 2): [n, d_model]."""
    return E + (np.zeros((N, D_MODEL)), encoding(PLACES[:N]), W_POS)[kind]


def hands(w: Workbook) -> tuple[Table, Table, Table, Table]:
    """Sinusoids: frequencies, wavelengths, places, P; and the binary digits of the places."""
    ws = w.sheet("Hands", "each pair of dimensions is a hand of a clock, at a speed of its own")
    ws.widths({0: 19})
    base = ws.table("base", BASE, rows=["base"], style="input setting")
    ws.heading("Frequencies: from fast hands to slow ones")
    ws.text("frequency of pair i = 1 / base^(2i / d_model)   [d_model / 2]", style="equation")
    f = frequencies()
    freq = ws.table("frequencies", f, lambda _, j: f"1/{base.at()}^({2 * j}/{D_MODEL})",
                    ["radians per place"], [f"pair {i}" for i in range(len(f))])  # fmt: skip
    waves = ws.table("waves", 1 / f, lambda _, j: f"1/{freq.at(0, j)}", ["wavelength / 2π"])
    ws.heading("Frequency map: a row is P_t, the vector of place t. Beside it, t in binary digits")
    ws.text("P[t, 2i] = sin(t × frequency i)   P[t, 2i + 1] = cos(t × frequency i)   [T, d_model]",
            "digit b of t = floor(t / 2^b) mod 2   [T, 4]: ones flip fast, eights slowly, as hands do",
            style="equation")  # fmt: skip
    t = ws.table("places", PLACES[:, None], cols=["place t"], style="input setting")
    P = ws.table("encoding", encoding(PLACES), lambda i, j:
                 f"{WAVE[j % 2]}({t.at(i)}*{freq.at(0, j // 2)})", cols=DIMS, beside=t)  # fmt: skip
    bits = ws.table("bits", PLACES[:, None] // 2 ** np.arange(BITS) % 2, lambda i, b:
                    f"MOD(INT({t.at(i)}/{2**b}),2)", cols=["ones", "twos", "fours", "eights"],
                    style="activation count", beside=P)  # fmt: skip
    ws.shade(P.rect, "diverging")
    ws.shade(bits.rect, "scale")
    for left, title, pair in ((0, "Fast hands: two sines", (0, 2)), (8, "Slow hands", (4, 6))):
        lines = [Series(DIMS[j], t.part(), P.part(cols=slice(j, j + 1))) for j in pair]
        ws.chart(Chart(ws.cursor, left, "line", title, lines, (520, 300), ("place", ""), number="0.0"))  # fmt: skip
    return freq, waves, t, P


def shift(w: Workbook, freq: Table, t: Table, P: Table) -> Table:
    """One matrix that moves every place by k, and what is left between it and the formula: 0."""
    ws = w.sheet("Shift", "one matrix moves every place by k: relative position is a linear map")
    ws.widths({0: 9, **dict.fromkeys(range(1, 31), 6.5)})
    k = ws.table("shift", K_SHIFT, rows=["shift k"], style="input setting")
    ws.heading("W_k turns each pair by k × its frequency, and mixes no pair with another")
    ws.text("block i = [cos a, sin a; -sin a, cos a], a = k × frequency i", style="equation")
    cos, sin = np.cos(K_SHIFT * frequencies()), np.sin(K_SHIFT * frequencies())
    W = np.kron(np.diag(cos), np.eye(2)) + np.kron(np.diag(sin), [[0, 1], [-1, 0]])
    W_k = ws.table("W_k", W, lambda i, j: f"{'-' if j < i else ''}{WAVE[(i + j + 1) % 2]}"
                   f"({k.at()}*{freq.at(0, i // 2)})" if i // 2 == j // 2 else "0", cols=DIMS)  # fmt: skip
    ws.heading("Every place moved by W_k; the same by the formula; the difference")
    ws.text("W_k · P_t = P_(t+k), whatever t is   [T, d_model]", style="equation")
    ws.text("The slides print W · P_t = W · P_(t+k). W_k can be undone, so P_t would be P_(t+k).")
    now, later = encoding(PLACES), encoding(PLACES + K_SHIFT)
    moved = ws.table("moved", now @ W.T, lambda i, j: f"SUMPRODUCT({P.row(i)},{W_k.row(j)})",
                     [f"row {i}" for i in PLACES], DIMS, "W_k · P_t   [T, d_model]")  # fmt: skip
    found = ws.table("later", later, lambda i, j:
                     f"{WAVE[j % 2]}(({t.at(i)}+{k.at()})*{freq.at(0, j // 2)})",
                     (), DIMS, "P_(t+k)", beside=moved)  # fmt: skip
    gap = ws.table("gap", now @ W.T - later, lambda i, j: f"{moved.at(i, j)}-{found.at(i, j)}",
                   (), DIMS, "difference", beside=found)  # fmt: skip
    for table in (W_k, moved, found):
        ws.shade(table.rect, "diverging")
    return gap


def learned(w: Workbook, P: Table) -> None:
    """Positions that are added to the words: none, the sinusoids, or a typed table."""
    ws = w.sheet("Learned", "positions added to words: none, sinusoids, or a table of weights")
    ws.widths({0: 24})
    kind = ws.table("kind", 2, rows=["0 none, 1 sine, 2 learned"], style="input setting")
    words = ws.table("words", E, None, SENTENCE, DIMS, "E: words   [n, d_model]", "weight")
    W_pos = ws.table("W_pos", W_POS, None, range(N), DIMS, "W_pos: places   [n, d_model]", "weight")
    ws.text("X0 = E + the positions chosen: what layer 0 reads   [n, d_model]", style="equation")
    X0 = ws.table("stream", positioned(2), lambda i, j: f"{words.at(i, j)}+IF({kind.at()}=1,"
                  f"{P.at(i, j)},IF({kind.at()}=2,{W_pos.at(i, j)},0))", SENTENCE, DIMS)  # fmt: skip
    ws.text("One word at two places: without positions it is one vector, and the order is lost.")
    apart = positioned(2)[0] - positioned(2)[3]
    gap = ws.table("two_the", apart, lambda _, j: f"{X0.at(0, j)}-{X0.at(3, j)}", ["X0[0] - X0[3]"])
    length = f"SQRT(SUMPRODUCT({gap.all()},{gap.all()}))"
    ws.table("distance", np.linalg.norm(apart), length, ["distance"])


def rotary(w: Workbook, freq: Table) -> Table:
    """RoPE: a query and a key at many places; their scores when both stand s places on."""
    ws = w.sheet("Rotary", "q and k are turned by their places: a score depends on the distance")
    ws.widths({0: 14, **dict.fromkeys(range(1, 12), 7.5)})
    m_n = ws.table("m_n", [M, N_KEY], rows=["places m, n"], style="input setting")
    x = ws.table("q_k", [Q, K], None, ["q   [d_head]", "k   [d_head]"], DIMS)
    ws.text("pair (a, b) → (a cos - b sin, a sin + b cos) of place × frequency", style="equation")
    at = np.add.outer([M, N_KEY], np.arange(GRID))
    steps = [f"{place} + {s}" for place in ("q, m", "k, n") for s in range(GRID)]
    places = ws.table("turned_places", at.reshape(-1, 1), lambda i, _:
                      f"{m_n.at(0, i // GRID)}+{i % GRID}", steps, ["place"], style="count")  # fmt: skip

    def turn(i: int, j: int) -> str:
        a, b = x.at(i // GRID, j - j % 2), x.at(i // GRID, j - j % 2 + 1)
        angle = f"({places.at(i)}*{freq.at(0, j // 2)})"
        return f"{a}*SIN{angle}+{b}*COS{angle}" if j % 2 else f"{a}*COS{angle}-{b}*SIN{angle}"

    q, k = rotated(Q, at[0]), rotated(K, at[1])
    turned = ws.table("turned", np.vstack([q, k]), turn, (), DIMS, beside=places)
    ws.heading("Scores of the query at every place (rows) with the key at every place (columns)")
    ws.text("score = (q turned by m) · (k turned by n) = q · (k turned by n - m)", style="equation")
    scores = ws.table("scores", q @ k.T, lambda i, j: f"SUMPRODUCT({turned.row(i)},{turned.row(GRID + j)})",
                      steps[:GRID], steps[GRID:], style="attention")  # fmt: skip
    ws.shade(scores.rect, "diverging")
    ws.text("Down the diagonal both stand s places on, and the distance is what it was.")
    return ws.table("diagonal", np.diag(q @ k.T), lambda _, s: scores.at(s, s), ["score, s on"])


def book() -> Book:
    """The workbook."""
    w = Workbook("positions")
    freq, waves, t, P = hands(w)
    gap = shift(w, freq, t, P)
    learned(w, P)
    diagonal = rotary(w, freq)
    far, paper = BASE ** (1 - 2 / D_MODEL), BASE ** (1 - 2 / 512)
    w.compare([
        Comparison("fastest hand: wavelength / 2π", 1, waves, decimals=0),
        Comparison("slowest hand: wavelength / 2π", BASE, waves, 0, 3, decimals=0, note="the paper "
                   f"prints 10000; it is base^((d-2)/d): {far:.0f} for d = 8, {paper:.0f} for its 512"),
    ])  # fmt: skip
    w.checks([
        ("W_k moves every place by k", near(gap.all(), 0)),
        ("q and k, both s places on, score alike", near(diagonal.all(), diagonal.at())),
    ])  # fmt: skip
    return w.done(story())


def story() -> Story:
    """What the start sheet says; what its edits do is computed here."""
    far = float(np.vdot(rotated(Q, np.array([M + 1000])), rotated(K, np.array([N_KEY + 1000]))))
    apart = [float(np.linalg.norm(X0[0] - X0[3])) for X0 in map(positioned, range(3))]
    wave, doubled = 1 / frequencies()[-1], 1 / frequencies(16)[-1]
    return Story(
        title=TITLE,
        source="After lecture slides and A Gentle Introduction to Transformers; Vaswani et al. 2017, section 3.5.",
        about=[
            "Attention sees a set of words; order must be told. A vector P_t is added to the word at place t, or q and k are turned.",
            "One number per place grows without bound, or its steps shrink (1 - 1/t). Many hands, each at its own speed, stay",
            "between -1 and 1, tell many places apart, and move by one matrix: what binary digits do in steps.",
            "The slides say that RoPE turns E_t. It turns q and k, by the same angle at the same place, and only for the scores.",
        ],
        look=[
            "Hands: the frequency map beside binary digits. Shift: W_k, and the difference, 0 everywhere; type any k.",
            "Learned: the same word at two places. Rotary: scores by place, the same along each diagonal.",
        ],
        tries=[
            Suggestion(f"Type 16: each wavelength is twice the last, as binary's are; the slowest falls from {wave:.0f} to {doubled:.0f}.",
                ("base", 0, 0), 16, ("waves", 0, 3), doubled),
            Suggestion(f"Type 0, no positions: the two `the`, {apart[2]:.2f} apart, are one vector, {apart[0]:.0f} apart. "
                f"Type 1, sinusoids: {apart[1]:.2f}.", ("kind", 0, 0), 0, ("distance", 0, 0), apart[0]),
            Suggestion(f"Type {M + 1000:.0f}, and {N_KEY + 1000:.0f} beside it: q and k go 1000 places on, and the score is {far:.3f} as before.",
                ("m_n", 0, 0), M + 1000, ("scores", 0, 0), far, ((("m_n", 0, 1), N_KEY + 1000),)),
        ],
    )  # fmt: skip
