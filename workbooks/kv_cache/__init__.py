"""kv-cache: what a conversation costs in memory and money, and what is kept from token to token.

Look at the price on Cache, then at the steps: only the new token's query, key and value are computed;
keys and values of the others are kept. Try fewer heads of keys and values, fewer bytes.
"""

from collections.abc import Callable

from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import ABS, IF, MAX
from cellformer.engine.cells.language import worded
from cellformer.exporters.assemble.worksheets import Comparison, Workbook, near
from cellformer.exporters.compose.book import Book, Chart, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.sentences import rounded, sentence
from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.workbooks.kv_cache import cost, numbers
from cellformer.workbooks.kv_cache.cost import BYTES, D_K, GB, GIB, HEADS, LAYERS, TOKENS

TOPIC, AFTER, LEVEL = "Attention", "attention-by-columns", 2
TITLE = "kv-cache: what a conversation costs in memory and money, and why"
STEPS = ("prefill", "step 1", "step 2", "step 3")
N_TOKENS = 8  # rows shown: a prompt of up to five tokens, and three more
PROMPT = 4
DEEPSEEK_V3 = {"layers": 61, "heads": 128, "numbers per head": 128, "latent": 512, "rotary key": 64}


def book() -> Book:
    """The workbook."""
    w = Workbook("kv-cache")
    w.book.opens_on = "Cache"
    cost.add(w)
    sizes, gigabytes = w["sizes"], w["cache"]
    ws = w.sheet(
        "Steps", "what each step computes: first the whole prompt, then one token at a time"
    )
    count(ws, steps(ws), sizes)
    numbers.add(w)
    ws = w.sheet(
        "Latent", "one small latent instead of keys and values: multi-head latent attention"
    )
    latents(ws, sizes)
    w.compare(
        [
            Comparison(
                "KV cache of the 7B model, GB",
                17,
                gigabytes[0, 1],
                "17,179,869,184 bytes are 17.18 GB (of 10^9 bytes), or 16 GiB (of 2^30 bytes)",
                0,
            )
        ],
        "QKV Attention, section 4",
    )
    difference = gigabytes[0, 1] * GB - gigabytes[1, 1] * GIB
    w.checks(
        [
            ("GB and GiB give the same number of bytes", ABS(difference) < 1),
            ("the last result is the same with and without the cache", near(w["z_gap"].fixed, 0)),
        ]
    )
    return w.done(story(w))


def steps(ws: Composer) -> Area:
    """Add the new, kept and dropped numbers of each step; returns the cell of the prompt's
    length."""
    prompt = ws.typed("prompt", PROMPT, ["tokens in the prompt"], style="input setting")
    ws.heading(
        "Queries are used once; keys and values are kept for later tokens",
        "a token's row is computed in step max(0, token - prompt + 1)",
        style="equation",
    )
    tokens = left = ws.typed("token", [[k] for k in range(N_TOKENS)], cols=["token"], style="count")
    for what, old in (("Q", "gone"), ("K, V", "kept")):
        for step, name in enumerate(STEPS):
            left = ws.computed(
                f"{what[0]}_{step}",
                (N_TOKENS, 1),
                state(tokens, prompt, step, old),
                cols=[f"{what}, {name}"],
                beside=left,
            )
            ws.mark(left, "generated", left[0] == worded("new"))
    ws.widths({0: 20} | {col: 11.5 if col % 3 == 1 else 1 for col in range(1, 26)})
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
        "Cells that each step computes, for the first model of sheet Cache",
        "cells = L h (3 new d_k + scores); a token scores its own key and all earlier keys",
        style="equation",
    )
    layers, heads, d_k = sizes[LAYERS, 0], sizes[HEADS, 0], sizes[D_K, 0]

    def with_cache(i: int, _: int) -> Expression:
        last, first = tokens[i], tokens[i] - new[i]
        n_scores = (last * (last + 1) - first * (first + 1)) / 2
        return layers * heads * (3 * new[i] * d_k + n_scores)

    def without(i: int, _: int) -> Expression:
        n_scores = tokens[i] * (tokens[i] + 1) / 2
        return layers * heads * (3 * tokens[i] * d_k + n_scores)

    n = (len(STEPS), 1)
    thousands = "thousands"
    tokens = ws.computed("count_0", n, lambda i, _: prompt + i, STEPS, ["tokens"], style=thousands)
    new = ws.computed(
        "count_1",
        n,
        lambda i, _: prompt if i == 0 else expression(1),
        cols=["new"],
        style=thousands,
        beside=tokens,
    )
    kept = ws.computed(
        "count_2", n, with_cache, cols=["with the cache"], style=thousands, beside=new
    )
    again = ws.computed("count_3", n, without, cols=["without"], style=thousands, beside=kept)
    ws.computed(
        "count_4", n, lambda i, _: kept[i] / again[i], cols=["share"], style="percent", beside=again
    )


def latents(ws: Composer, sizes: Area) -> None:
    """DeepSeek V3 keeps one latent per token and layer, and a rotary key that all heads share."""
    ws.widths({0: 36, 1: 14, 2: 2})
    row = ws.cursor
    ws.cursor += 1
    ws.text(
        "The model keeps one short vector for each token, the latent. Weights compute all keys "
        "and values from the latent.",
        "The model also keeps the rotary key, the part of the key that gives the position.",
    )
    ws.cursor += 1
    latent = ws.typed(
        "latent",
        [[n] for n in DEEPSEEK_V3.values()],
        list(DEEPSEEK_V3),
        ["DeepSeek V3"],
        style="input setting",
    )
    L, h, d, c, r = (latent[k] for k in range(len(DEEPSEEK_V3)))
    T, n_bytes = sizes[TOKENS, 1], sizes[BYTES, 1]
    all_heads = 2 * L * T * h * d * n_bytes / GB
    formulas = (all_heads, L * T * (c + r) * n_bytes / GB)
    saved = ws.computed(
        "saved",
        (2, 1),
        lambda i, _: formulas[i],
        ("GB of all heads' keys and values", "GB of latent and rotary key"),
        style="readout",
    )
    ws.computed("factor", (1, 1), saved[0] / saved[1], ["times smaller"], tight=True)
    told = sentence(
        "DeepSeek V3 keeps {small} GB for {thousands} thousand tokens. All keys and values would "
        "need {all} GB.",
        small=rounded(saved[1], 1),
        thousands=rounded(T / 1000, 0),
        all=rounded(saved[0], 0),
    )
    ws.show("claim", (row, 0), told, "heading")
    place = ws.rect(saved)
    labels, top = ws.sheet[place.top : place.bottom, 0], row + 4
    series = [Series("GB", labels, saved)]
    ws.chart(Chart(top, 3, "bar", "GB kept for the same text", series, (520, 200), number="#,##0"))


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    gigabytes = w["cache"][0, cost.OURS]
    return Story(
        title=TITLE,
        source="Based on L. Erzegovesi, Transformers and QKV Attention: A Primer (2026), sections 3 "
        "and 4.",
        about=[
            worded(
                "A chat of 32,768 words and word parts fills {gb:.1f} GB of a graphics card, in "
                "addition to the model. Each user costs {price:.2f} dollars an hour.",
                gb=w.now(gigabytes),
                price=w.now(w["price"][0, cost.OURS]),
            ),
            "A model writes a text token by token. Each new token uses its query once. Every "
            "later token reads its key and its value again.",
            "So the model keeps keys and values, but no queries. This explains the name KV cache.",
            "Why it matters: the cache saves most of the computation. In return, a long "
            "conversation needs much memory.",
        ],
        look=[
            "The sheet Cache computes gigabytes and dollars, and shows how both grow. Type the "
            "numbers of your own model, card and rent.",
            "The sheet Steps shows the new, kept and dropped rows of each step, and the number "
            "of computed cells with and without the cache.",
            "The sheet Numbers shows the numbers in the keys and values, kept from step to step. "
            "Without a cache, the result is the same.",
            "The sheet Latent shows another method. This method keeps one small vector for each "
            "token instead of all keys and values.",
            "Here a GB has 10^9 bytes: the 17.18 GB of the essay's model are 16 GiB of 2^30 "
            "bytes. GPT-2 small reads at most 1,024 tokens.",
        ],
        suggestions=suggestions(w),
    )


def suggestions(w: Workbook) -> list[Suggestion]:
    """Three edits: a longer prompt, shared heads of keys and values, fewer bytes."""
    sizes, share, gigabytes = w["sizes"], w["count_4"][3], w["cache"][0, 1]
    return [
        w.suggestion(
            "Type ‘8’: four query heads share one key-value head. The cache needs {then:.2f} "
            "GB, not {now:.2f}.",
            {sizes[HEADS, 1]: 8.0},
            gigabytes,
        ),
        w.suggestion(
            "Type ‘1’, one byte per number: an hour costs {then:.2f} dollars, not {now:.2f}. The "
            "weights need less memory, too.",
            {sizes[BYTES, 1]: 1.0},
            w["price"][0, cost.OURS],
        ),
        w.suggestion(
            "Type ‘5’ for a longer prompt. With the cache, step 3 computes "
            "{then:.1%} of the cells that it needs without the cache, not {now:.1%}.",
            {w["prompt"][0]: 5.0},
            share,
        ),
    ]
