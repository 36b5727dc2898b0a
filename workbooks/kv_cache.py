"""kv-cache: what is computed when a token is added, what is kept, and how large that grows.

Look at the steps: each new token has its own query, key and value computed; keys and values of the
others are kept. Suggestion another prompt, fewer heads of keys and values, fewer bytes.
"""

import numpy as np

from exporters.book import Book, Chart, Series
from exporters.by_hand import Comparison, Table, Workbook, Worksheet
from exporters.story import Story, Suggestion

TOPIC = "Sizes"
TITLE = "kv-cache: what each new token computes, and what is kept"
STEPS = ("prefill", "step 1", "step 2", "step 3")
N_TOKENS = 8  # rows shown: a prompt of up to five tokens, and three more
PROMPT = 4
MODELS = ("GPT-2 small", "the essay's 7B", "its heads in groups")
SIZES = ("layers L", "tokens T", "heads of K and V", "numbers per head d_k", "bytes per number")
SIZE = np.array([[12, 32, 32], [1024, 32768, 32768], [12, 32, 8], [64, 128, 128], [2, 2, 2]], float)
CONTEXTS = 1024.0 * 2 ** np.arange(8)
COUNTED = ("tokens", "new", "with the cache", "without", "share")
BELOW = 14  # rows that the chart takes


def state(prompt: int, step: int, token: int, what: str) -> str:
    """What a token's query or key and value are in a step: new, kept, gone or not there yet."""
    made = max(0, token - prompt + 1)  # the step that computes them; 0 is the prefill
    if made > step:
        return ""
    return "new" if made == step else "gone" if what == "Q" else "kept"


def counts(prompt: int, size: np.ndarray) -> np.ndarray:
    """For each step: tokens, new ones, cells of Q, K, V and scores with the cache, and without."""
    layers, _, heads, d_k, _ = size
    step = np.arange(len(STEPS))
    total = prompt + step
    new = np.where(step == 0, prompt, 1)
    old = total - new

    def cells(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Of the tokens from a to b: Q, K and V, and a score for every key up to oneself."""
        return layers * heads * (3 * (b - a) * d_k + (b * (b + 1) - a * (a + 1)) / 2)

    kept, again = cells(old, total), cells(np.zeros_like(old), total)
    return np.stack([total, new, kept, again, kept / again], axis=1)


def gigabytes(size: np.ndarray) -> np.ndarray:
    """2 L T h d_k bytes, in 10^9: [models]."""
    return 2 * size.prod(axis=0) / 1e9


def book() -> Book:
    """The workbook."""
    w = Workbook("kv-cache")
    ws = w.sheet("Steps", "what is computed in each step: a prompt at once, then a token at a time")
    prompt = steps(ws)
    sizes, gb = cache(w)
    count(ws, prompt, sizes)
    latent = latents(w, sizes)
    w.compare([
        Comparison("KV cache of the 7B model, GB", 17, gb, 0, 1,
                   "17,179,869,184 bytes are 17.18 GB of 10^9, and 16 GiB of 2^30", 0),
        Comparison("what a latent saves, as a factor", 10, latent, 2, 0,
                   "printed: an order of magnitude; of all heads of DeepSeek V3 it is more", 0),
    ])  # fmt: skip
    w.checks([
        ("GB and GiB are the same bytes",
         f"ABS({gb.at(0, 1)}*10^9-{gb.at(1, 1)}*2^30)<1"),
    ])  # fmt: skip
    return w.done(story())


def steps(ws: Worksheet) -> Table:
    """The state of every token's query, and of its key and value, in every step."""
    prompt = ws.table("prompt", PROMPT, None, ["tokens in the prompt"], style="input setting")
    ws.heading("Queries are used once; keys and values are kept for the tokens to come")
    ws.text("a token's row is computed in step max(0, token - prompt + 1)", style="equation")
    tokens = ws.table("token", np.arange(N_TOKENS)[:, None], None, cols=["token"], style="count")
    left = tokens
    for what in ("Q", "K and V"):
        for k, name in enumerate(STEPS):
            values = [[state(PROMPT, k, t, what)] for t in range(N_TOKENS)]
            old = "gone" if what == "Q" else "kept"

            def formula(i: int, j: int, k: int = k, old: str = old) -> str:
                made = f"MAX(0,{tokens.at(i)}-{prompt.at(fixed=True)}+1)"
                return f'IF({made}>{k},"",IF({made}={k},"new","{old}"))'

            table = f"{what[0]}_{k}"
            left = ws.table(table, values, formula, cols=[f"{what}, {name}"], beside=left)
            ws.shade(left.rect, "when generated " + f'{left.at().partition("!")[2]}="new"')
    ws.widths({0: 22} | {col: 13 if col % 3 == 1 else 2 for col in range(1, 26)})
    return prompt


def count(ws: Worksheet, prompt: Table, sizes: Table) -> None:
    """Cells computed in each step, with the cache and without."""
    ws.heading("Cells computed in each step by the first model of sheet Cache")
    ws.text("cells = L h (3 new d_k + scores); a token has a score for every key up to itself",
            style="equation")  # fmt: skip
    layers, heads, d_k = (sizes.at(k, 0) for k in (0, 2, 3))
    found = counts(PROMPT, SIZE[:, 0])
    tables: list[Table] = []

    def formula(i: int, j: int) -> str:
        b, new, kept, again = ([t.at(i) for t in tables] + [""] * 4)[:4]
        scores = f"({b}*({b}+1)-({b}-{new})*({b}-{new}+1))/2"
        return (
            f"{prompt.at()}+{i}",
            prompt.at() if i == 0 else "1",
            f"{layers}*{heads}*(3*{new}*{d_k}+{scores})",
            f"{layers}*{heads}*(3*{b}*{d_k}+{b}*({b}+1)/2)",
            f"{kept}/{again}",
        )[j]

    for j, name in enumerate(COUNTED):
        beside = tables[-1] if tables else None
        style = "percent" if name == "share" else "thousands"
        tables.append(ws.table(f"count_{j}", found[:, j : j + 1],
                               lambda i, _, j=j: formula(i, j), () if beside else STEPS,
                               [name], style=style, beside=beside))  # fmt: skip


def cache(w: Workbook) -> tuple[Table, Table]:
    """The size of the cache, by formula, and how it grows with the context."""
    ws = w.sheet("Cache", "how large keys and values grow")
    ws.widths({0: 24} | dict.fromkeys(range(1, 9), 18))
    ws.text("KV cache = 2 · L · T · h · d_k · bytes; 2 for keys and values", style="equation")
    sizes = ws.table("sizes", SIZE, None, SIZES, MODELS, style="input setting")
    product = [f"2*{'*'.join(sizes.at(i, j) for i in range(5))}" for j in range(3)]
    gb = ws.table("cache", np.stack([gigabytes(SIZE), gigabytes(SIZE) * 1e9 / 2**30]),
                  lambda i, j: f"{product[j]}/{'10^9' if i == 0 else '2^30'}",
                  ("GB of 10^9", "GiB of 2^30"), style="readout")  # fmt: skip
    ws.heading("Against the length of the context")
    contexts = ws.table("contexts", CONTEXTS[:, None], None, cols=["tokens"], style="input setting")
    per_token = [f"2*{'*'.join(sizes.at(i, j) for i in (0, 2, 3, 4))}" for j in range(3)]
    grown = ws.table("grown", CONTEXTS[:, None] * gigabytes(SIZE) / SIZE[1],
                     lambda i, j: f"{per_token[j]}*{contexts.at(i)}/10^9",
                     cols=MODELS, beside=contexts)  # fmt: skip
    series = [
        Series(MODELS[j], contexts.rect, grown.part(slice(None), slice(j, j + 1)))
        for j in range(1, 3)
    ]
    ws.chart(Chart(ws.cursor, 1, "scatter", "GB of keys and values", series,
                   axes=("tokens in the context", "GB"), joined=True, number="#,##0"))  # fmt: skip
    ws.cursor += BELOW + 3
    return sizes, gb


def latents(w: Workbook, sizes: Table) -> Table:
    """DeepSeek V3 keeps one latent per token and layer, and a rotary key that all heads share."""
    ws = w.sheet("Latent", "keys and values as one small latent: multi-head latent attention")
    ws.widths({0: 34, 1: 14})
    values = np.array([61, 128, 128, 512, 64], float)
    rows = ("layers", "heads", "numbers per head", "latent", "rotary key")
    mla = ws.table("latent", values[:, None], None, rows, ["DeepSeek V3"], style="input setting")
    L, h, d, c, r = (mla.at(k) for k in range(5))
    T, b = (sizes.at(k, 1) for k in (1, 4))
    heads, latent = (2 * 61 * 32768 * 128 * 128 * 2 / 1e9, 61 * 32768 * (512 + 64) * 2 / 1e9)
    sizes_of = (f"2*{L}*{T}*{h}*{d}*{b}/10^9", f"{L}*{T}*({c}+{r})*{b}/10^9")
    ws.text("GB at the 7B model's tokens and bytes; the factor between them", style="equation")
    formulas = (*sizes_of, "/".join(f"({size})" for size in sizes_of))
    saved = ws.table("saved", [[heads], [latent], [heads / latent]], lambda i, j: formulas[i],
                     ("all heads' K and V", "latent and rotary key", "factor"))  # fmt: skip
    return saved


def story() -> Story:
    """What the start sheet says; what its edits do is computed here."""
    longer = counts(5, SIZE[:, 0])[3, 4]
    share = counts(PROMPT, SIZE[:, 0])[3, 4]
    grouped, bytes_ = SIZE.copy(), SIZE.copy()
    grouped[2, 1], bytes_[4, 1] = 8, 1
    whole, fewer, short = (gigabytes(size)[1] for size in (SIZE, grouped, bytes_))
    return Story(
        title=TITLE,
        source="After L. Erzegovesi, QKV Attention, sections 3 and 4.",
        about=[
            "A new token asks its own question once; every later token reads its key and value.",
            "So keys and values are kept, and queries are not: it is a KV cache.",
            "The essay's 7B model keeps 17 GB for 32,768 tokens: 17.18 GB of 10^9 bytes, 16 GiB.",
        ],
        look=["Steps: what is new in each. Cache: the formula, the curve. Latent: a smaller way."],
        tries=[
            Suggestion(f"Type 5: with a longer prompt, step 3 computes {longer:.1%} of what it would "
                f"without the cache, instead of {share:.1%}.",
                ("prompt", 0, 0), 5.0, ("count_4", 3, 0), longer),
            Suggestion(f"Type 8: four queries' heads share one of keys and values; {whole:.2f} GB become "
                f"{fewer:.2f}.", ("sizes", 2, 1), 8.0, ("cache", 0, 1), fewer),
            Suggestion(f"Type 1, a byte per number: {whole:.2f} GB become {short:.2f}.",
                ("sizes", 4, 1), 1.0, ("cache", 0, 1), short),
        ],
    )  # fmt: skip
