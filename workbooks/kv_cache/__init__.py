"""kv-cache: what is computed when a token is added, what is kept, and how the cache grows.

Look at the steps: only the new token's query, key and value are computed; keys and values of the
others are kept. Try another prompt, fewer heads of keys and values, fewer bytes.
"""

from collections.abc import Callable

from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import ABS, IF, MAX
from cellformer.engine.cells.language import worded
from cellformer.exporters.assemble.worksheets import Comparison, Workbook, near
from cellformer.exporters.compose.book import Book, Chart, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.workbooks.kv_cache import numbers

TOPIC, AFTER, LEVEL = "Attention", "attention-by-columns", 2
TITLE = "kv-cache: what each new token computes, and what is kept"
STEPS = ("prefill", "step 1", "step 2", "step 3")
N_TOKENS = 8  # rows shown: a prompt of up to five tokens, and three more
PROMPT = 4
MODELS = ("GPT-2 small", "the essay's 7B", "its heads in groups")
SIZES = {
    "layers L": (12, 32, 32),
    "tokens T": (1024, 32768, 32768),
    "heads of K and V": (12, 32, 8),
    "numbers per head d_k": (64, 128, 128),
    "bytes per number": (2, 2, 2),
}
LAYERS, TOKENS, HEADS, D_K, BYTES = range(len(SIZES))
DEEPSEEK_V3 = {"layers": 61, "heads": 128, "numbers per head": 128, "latent": 512, "rotary key": 64}
CONTEXTS = [[1024 * 2**k] for k in range(8)]
GB, GIB = expression(10) ** 9, expression(2) ** 30
BESIDE = 4, 5  # where the chart begins: right of the sizes


def book() -> Book:
    """The workbook."""
    w = Workbook("kv-cache")
    ws = w.sheet("Steps", "what is computed in each step: a prompt at once, then a token at a time")
    prompt = steps(ws)
    numbers.add(w)
    sizes, gigabytes = cache(w.sheet("Cache", "how large keys and values grow"))
    count(ws, prompt, sizes)
    ws = w.sheet("Latent", "keys and values as one small latent: multi-head latent attention")
    latents(ws, sizes)
    w.compare(
        [
            Comparison(
                "KV cache of the 7B model, GB",
                17,
                gigabytes[0, 1],
                "17,179,869,184 bytes are 17.18 GB of 10^9, and 16 GiB of 2^30",
                0,
            )
        ],
        "QKV Attention, section 4",
    )
    difference = gigabytes[0, 1] * GB - gigabytes[1, 1] * GIB
    w.checks(
        [
            ("GB and GiB are the same bytes", ABS(difference) < 1),
            ("with the cache and without, the last result is the same", near(w["z_gap"].fixed, 0)),
        ]
    )
    return w.done(story(w))


def steps(ws: Composer) -> Area:
    """Add what is new, kept and dropped in each step; returns the cell of the prompt's length."""
    prompt = ws.typed("prompt", PROMPT, ["tokens in the prompt"], style="input setting")
    ws.heading(
        "Queries are used once; keys and values are kept for the tokens to come",
        "a token's row is computed in step max(0, token - prompt + 1)",
        style="equation",
    )
    numbers = [[k] for k in range(N_TOKENS)]
    tokens = left = ws.typed("token", numbers, cols=["token"], style="count")
    for what, old in (("Q", "gone"), ("K and V", "kept")):
        for step, name in enumerate(STEPS):
            left = ws.computed(
                f"{what[0]}_{step}",
                (N_TOKENS, 1),
                state(tokens, prompt, step, old),
                cols=[f"{what}, {name}"],
                beside=left,
            )
            ws.mark(left, "generated", left[0] == worded("new"))
    ws.widths({0: 20} | {col: 11.5 if col % 3 == 1 else 2 for col in range(1, 26)})
    return prompt


def state(tokens: Area, prompt: Area, step: int, old: str) -> Callable[[int, int], Expression]:
    """The state of each token's row in a step: absent, new, or kept or dropped."""

    def formula(i: int, _: int) -> Expression:
        made = MAX(0, tokens[i] - prompt.fixed + 1)  # in this step; 0 is the prefill
        return IF(made > step, "", IF(made == step, worded("new"), worded(old)))

    return formula


def count(ws: Composer, prompt: Area, sizes: Area) -> None:
    """Add the number of cells computed in each step, with the cache and without."""
    ws.heading(
        "Cells computed in each step by the first model of sheet Cache",
        "cells = L h (3 new d_k + scores); a token has a score for every key up to itself",
        style="equation",
    )
    layers, heads, d_k = sizes[LAYERS, 0], sizes[HEADS, 0], sizes[D_K, 0]

    def n_new(i: int, _: int) -> Expression:
        return prompt if i == 0 else expression(1)

    def with_cache(i: int, _: int) -> Expression:
        last, first = tokens[i], tokens[i] - new[i]
        n_scores = (last * (last + 1) - first * (first + 1)) / 2
        return layers * heads * (3 * new[i] * d_k + n_scores)

    def without(i: int, _: int) -> Expression:
        n_scores = tokens[i] * (tokens[i] + 1) / 2
        return layers * heads * (3 * tokens[i] * d_k + n_scores)

    def share(i: int, _: int) -> Expression:
        return kept[i] / again[i]

    n = (len(STEPS), 1)
    thousands = "thousands"
    tokens = ws.computed("count_0", n, lambda i, _: prompt + i, STEPS, ["tokens"], style=thousands)
    new = ws.computed("count_1", n, n_new, cols=["new"], style=thousands, beside=tokens)
    kept = ws.computed(
        "count_2", n, with_cache, cols=["with the cache"], style=thousands, beside=new
    )
    again = ws.computed("count_3", n, without, cols=["without"], style=thousands, beside=kept)
    ws.computed("count_4", n, share, cols=["share"], style="percent", beside=again)


def cache(ws: Composer) -> tuple[Area, Area]:
    """Add the size of the cache, by formula, and its growth; returns the sizes and the
    gigabytes."""
    ws.widths({0: 24} | dict.fromkeys(range(1, 9), 18))
    ws.text("KV cache = 2 · L · T · h · d_k · bytes; 2 for keys and values", style="equation")
    sizes = ws.typed("sizes", list(SIZES.values()), list(SIZES), MODELS, style="input setting")

    def size(i: int, j: int) -> Expression:
        L, T, h, d_k, n_bytes = (sizes[k, j] for k in range(len(SIZES)))
        return 2 * L * T * h * d_k * n_bytes / (GB, GIB)[i]

    def size_at(i: int, j: int) -> Expression:
        L, _, h, d_k, n_bytes = (sizes[k, j] for k in range(len(SIZES)))
        return 2 * L * h * d_k * n_bytes * contexts[i] / GB

    n_models = len(MODELS)
    units = ("GB of 10^9", "GiB of 2^30")
    gigabytes = ws.computed("cache", (2, n_models), size, units, style="readout")
    ws.heading("Against the length of the context")
    contexts = ws.typed("contexts", CONTEXTS, cols=["tokens"], style="input setting")
    shape = (len(CONTEXTS), n_models)
    grown = ws.computed("grown", shape, size_at, cols=MODELS, beside=contexts)
    ws.chart(
        Chart(
            *BESIDE,
            "scatter",
            "GB of keys and values",
            [Series(MODELS[j], contexts, grown[:, j]) for j in (1, 2)],
            (530, 250),
            axes=("tokens in the context", "GB"),
            joined=True,
            number="#,##0",
        )
    )
    return sizes, gigabytes


def latents(ws: Composer, sizes: Area) -> None:
    """DeepSeek V3 keeps one latent per token and layer, and a rotary key that all heads share."""
    ws.widths({0: 34, 1: 14})
    values = [[n] for n in DEEPSEEK_V3.values()]
    latent = ws.typed("latent", values, list(DEEPSEEK_V3), ["DeepSeek V3"], style="input setting")
    L, h, d, c, r = (latent[k] for k in range(len(DEEPSEEK_V3)))
    T, n_bytes = sizes[TOKENS, 1], sizes[BYTES, 1]
    all_heads = 2 * L * T * h * d * n_bytes / GB
    small = L * T * (c + r) * n_bytes / GB
    ws.text("GB at the 7B model's tokens and bytes; the factor between them", style="equation")
    formulas = (all_heads, small, all_heads / small)
    rows = ("all heads' K and V", "latent and rotary key", "factor")
    ws.computed("saved", (3, 1), lambda i, _: formulas[i], rows)


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    return Story(
        title=TITLE,
        source="After L. Erzegovesi, Transformers and QKV Attention: A Primer (2026), sections 3 and 4.",
        about=[
            "A model writes a text token by token. Each new token asks its own question, the query, once. But its key and its value are",
            "read again by every token that comes later. So keys and values are kept, and queries are not: hence the name KV cache.",
            "Why it matters: keeping them saves most of the computing, and costs memory that grows with the length of the text.",
            "The essay's model of 7 billion weights keeps 17 GB for 32,768 tokens: 17.18 GB of 10^9 bytes, which are 16 GiB of 2^30.",
        ],
        look=[
            "Numbers: keys and values themselves, kept from step to step, and the same result without a cache.",
            "Steps: what is new, kept and gone in each step, and how many cells are computed with the cache and without it.",
            "Cache: its size by formula, and how it grows. (GPT-2 small is in the table for comparison: it ends at 1,024 tokens.)",
            "Latent: another way, which keeps one small vector for each token instead of all its keys and values.",
        ],
        suggestions=suggestions(w),
    )


def suggestions(w: Workbook) -> list[Suggestion]:
    """Three edits: a longer prompt, shared heads of keys and values, fewer bytes."""
    sizes, share, gigabytes = w["sizes"], w["count_4"][3], w["cache"][0, 1]
    return [
        w.suggestion(
            "Type 5: with a longer prompt, step 3 computes {then:.1%} of what it would without the cache, instead of {now:.1%}.",
            {w["prompt"][0]: 5.0},
            share,
        ),
        w.suggestion(
            "Type 8: four queries' heads share one of keys and values; {now:.2f} GB become {then:.2f}.",
            {sizes[HEADS, 1]: 8.0},
            gigabytes,
        ),
        w.suggestion(
            "Type 1, a byte per number: {now:.2f} GB become {then:.2f}.",
            {sizes[BYTES, 1]: 1.0},
            gigabytes,
        ),
    ]
