"""two-layers: two heads, two layers and an MLP on `the cat sat`: follow the shapes.

Look at sheet Study: every step with its shape, and the way to its cells. Suggestion another last word: the
words before it do not notice. The weights are fitted in `_two_layers`; the source prints none.
"""

import numpy as np

from engine import Model, ModelSpec, WordList
from engine.cells.evaluator import Evaluator
from engine.models.generate import Passage
from exporters import layout
from exporters.book import Book
from exporters.story import Printed, Story, Suggestion
from exporters.transformer import assemble
from workbooks import _two_layers as fitted

TOPIC = "A whole model"
TITLE = "two-layers: two heads, two layers, an MLP: every shape from token ids to a distribution"
PROMPT = " ".join(fitted.PROMPT)
FIRST, SECOND = "blocks.0", "blocks.1"
HEAD_1, HEAD_2 = f"{FIRST}.attn.h0", f"{FIRST}.attn.h1"
CAT, SAT, DOG = 1, 2, fitted.WORDS.index("dog")  # positions, and the likeliest next word


def model() -> Model:
    """The fitted weights; each head has its lane of the columns of W_Q, W_K, W_V, rows of W_O."""
    spec = ModelSpec(
        d_vocab=10, d_model=6, n_ctx=8, n_layers=2, n_heads=2, d_head=3, d_mlp=8,
        activation="relu", position="learned",
    )  # fmt: skip
    W_E, W_pos = fitted.embeddings(spec.n_ctx)
    weights = {"W_E": W_E, "W_pos": W_pos, "W_U": fitted.unembedding(W_E)}
    for n, layer in enumerate(fitted.layers()[0]):
        weights |= {f"blocks.{n}.mlp.W_in": layer.W_1, f"blocks.{n}.mlp.W_out": layer.W_2}
        for h, lane in enumerate(fitted.HEADS):
            head = f"blocks.{n}.attn.h{h}"
            weights |= {f"{head}.{w}": getattr(layer, w)[:, lane] for w in ("W_Q", "W_K", "W_V")}
            weights[f"{head}.W_O"] = layer.W_O[lane]
    return Model(spec, weights, WordList(fitted.WORDS))


def build(model: Model, passage: Passage) -> Book:
    """The workbook of a forward pass; the printed tables only for the source's own prompt."""
    same = passage.ids == model.vocabulary.encode(PROMPT)
    tables = printed() if same else ()
    return assemble("two-layers", model, passage, story(), tables, HEADINGS, study)


def story() -> Story:
    """What the start sheet says; what its edits do is computed here."""
    whole = model()
    graph = whole.graph(whole.vocabulary.encode(PROMPT))
    sharp, off = (f"{FIRST}.attn.sqrt_d_head", 0, 0), (f"{SECOND}.mlp.switch", 0, 0)
    after_cat, after_sat = ("probs", CAT, DOG), ("probs", SAT, DOG)
    looks = (f"{HEAD_2}.pattern", SAT, 0)

    def then(watch: tuple[str, int, int], *edit: tuple[tuple[str, int, int], float]) -> float:
        run = Evaluator(graph)
        for cell, value in edit:
            run.set(*cell, value)
        return run.cell(*watch).value

    big = ("tokens", SAT, 0), float(fitted.WORDS.index("big"))
    return Story(
        title=TITLE,
        source="After L. Erzegovesi, Transformers and QKV Attention: A Primer (2026), section 6.",
        about=[
            "Ten words, d_model = 6, two heads of 3, a ReLU MLP of 8, two layers: no norms and no biases.",
            "The source prints what each step gives, to two decimals, and no weight. The weights here are the smallest",
            "that give its tables: least squares, step by step. Where two rounded tables miss each other by 0.01, each gives half.",
            "Of layer 2 it prints the write-backs and sums: the patterns, queries, values and W_in there are chosen. So are",
            "W_pos and the vectors of the seven other words; W_U is the embedding, changed least for the printed logits.",
            "The source calls ReLU the only nonlinearity. It is not: the softmax of attention is one too.",
        ],
        look=[
            "Study: the table of shapes, each step with the way to its cells.",
            "Block 0 and Block 1: the stream keeps 6 columns; the heads work in 3, the MLP in 8.",
            "A head stands alone, with its own W_Q, W_K, W_V and W_O: the source has the two side by side, in 6 columns.",
            "Printed: all that the source prints, and how far the cells are from it: 0.005 at most, but for one probability.",
        ],
        tries=[
            Suggestion(f"Choose `big`: after `cat` nothing moves, `dog` stays at {then(after_cat):.1%}. After the last word "
                f"it goes from {then(after_sat):.1%} to {then(after_sat, big):.1%}.",
                SAT, "big", after_cat, then(after_cat, big)),
            Suggestion("Type 0.1, what scores are divided by: head 2 looks from `sat` at `the` with "
                f"{then(looks, (sharp, 0.1)):.2f} instead of {then(looks):.2f}.",
                sharp, 0.1, looks, then(looks, (sharp, 0.1))),
            Suggestion(f"Type 0, layer 2's MLP off: `dog` falls from {then(after_sat):.1%} to {then(after_sat, (off, 0)):.1%}.",
                off, 0.0, after_sat, then(after_sat, (off, 0))),
        ],
    )  # fmt: skip


# --- the study: the table of shapes ------------------------------------------------------------

SHAPES = (  # step, operation, shape as printed, block
    ("token ids", "typed on Play", "[T] = [3]", "tokens"),
    ("h⁰, then h¹", "embedding + positional; then what layer 1 leaves", "3 × 6", "{}.resid_pre"),
    ("Q", "h W_Q, carved into two heads", "3 × 6; 3 × 3, ×2", "{}.attn.{}.q"),
    ("K", "h W_K, carved into two heads", "3 × 6; 3 × 3, ×2", "{}.attn.{}.k"),
    ("V", "h W_V, carved into two heads", "3 × 6; 3 × 3, ×2", "{}.attn.{}.v"),
    ("scores", "Q Kᵀ / √d_k, in each head", "3 × 3 per head", "{}.attn.{}.scores"),
    ("weights", "causal mask, softmax", "3 × 3 per head", "{}.attn.{}.pattern"),
    ("head output; concat", "weights · V; the two side by side", "3 × 3 per head; 3 × 6", "{}.attn.{}.z"),
    ("a head's own share", "head output · its rows of W_O", "", "{}.attn.{}.result"),
    ("write-back", "concat · W_O = the two shares added", "3 × 6", "{}.attn_out"),
    ("h_mid", "h + write-back", "3 × 6", "{}.resid_mid"),
    ("MLP pre-activation", "h_mid W_1", "3 × 8", "{}.mlp.pre"),
    ("MLP activation", "ReLU", "3 × 8", "{}.mlp.post"),
    ("MLP output", "activation · W_2", "3 × 6", "{}.mlp_out"),
    ("h¹, then h²", "h_mid + MLP output", "3 × 6", "{}.resid_post"),
    ("logits", "h² U; the source reads the last row alone", "[V]", "logits"),
    ("distribution", "softmax: the ten printed make 1.00, so V is 10", "[V]", "probs"),
)  # fmt: skip


def study(book: Book) -> None:
    """The source's table of shapes, each row with the ways to its cells."""
    sheet, top = book.sheet("Study"), 5
    layout.dress(book, sheet)
    sheet.purpose = "the table of shapes: every step, as printed and as it stands here"
    sheet.widths = {0: 20, 1: 46, 2: 22, 3: 12} | dict.fromkeys(range(4, 8), 14)
    title = f"From token ids to a distribution: T = {len(book.passage.ids)}, d_model = 6, V = 10"
    sheet.put(top - 1, 0, title, "heading")
    heads = ("step", "operation", "shape as printed", "here", "layer 1", "", "layer 2", "")
    for col, head in enumerate(heads):
        sheet.put(top, col, head, "block")
    for row, (step, operation, printed, name) in enumerate(SHAPES, top + 1):
        for col, text in enumerate((step, operation, printed)):
            sheet.put(row, col, text)
        layers, n_heads = (FIRST, SECOND) if "{}" in name else ("",), name.count("{}") // 2 + 1
        for n, layer in enumerate(layers):
            for h in range(n_heads):
                block = name.format(layer, f"h{h}")
                text = f"head {h + 1}" if n_heads > 1 else block.split(".")[-1]
                sheet.link(row, 4 + 2 * n + h, f"→ {text}", book.area(block))
        rows, cols = book.graph[name.format(FIRST, "h0")].shape
        sheet.put(row, 3, f"{rows} × {cols}" + (", ×2" if n_heads > 1 else ""))


HEADINGS = {
    "embed": "Step 1: embedding + positional",
    f"{HEAD_1}.q": "Step 2: Q, K and V of head 1",
    f"{HEAD_1}.scores": "Step 3: attention inside head 1",
    f"{HEAD_2}.q": "Step 2: Q, K and V of head 2",
    f"{HEAD_2}.scores": "Step 3: attention inside head 2",
    f"{FIRST}.attn_out": "Steps 4 and 5: both heads' shares, added to the stream",
    f"{FIRST}.mlp.pre": "Step 6: the MLP",
    f"{SECOND}.resid_pre": "Step 7: layer 2, same shapes, new weights",
    "logits": "Step 8: read out the last word",
}


def printed() -> tuple[Printed, ...]:
    """Every table of the section. Where a sum of printed tables misses the printed sum, a note."""
    q, z = fitted.Q.tolist(), fitted.CONCAT.tolist()
    tables = [
        Printed("Step 1: h⁰", fitted.H0.tolist(), f"{FIRST}.resid_pre"),
        *(Printed(f"Step 2: Q, head {h + 1}", [row[lane] for row in q], f"{FIRST}.attn.h{h}.q")
          for h, lane in enumerate(fitted.HEADS)),
        Printed("Step 3: scores, head 1", fitted.SCORES_1.tolist(), f"{HEAD_1}.scores"),
        Printed("Step 3: weights, head 1", fitted.PATTERN_1.tolist(), f"{HEAD_1}.pattern",
                note="The last row is printed 0.34, 0.33, 0.32, which adds up to 0.99: rounding."),
        Printed("Step 3: weights, head 2", fitted.PATTERN_2.tolist(), f"{HEAD_2}.pattern"),
        *(Printed(f"Step 4: concat, head {h + 1}", [row[lane] for row in z], f"{FIRST}.attn.h{h}.z")
          for h, lane in enumerate(fitted.HEADS)),
        Printed("Step 6: pre", fitted.PRE.tolist(), f"{FIRST}.mlp.pre"),
        Printed("Step 6: act", np.maximum(fitted.PRE, 0).tolist(), f"{FIRST}.mlp.post"),
    ]  # fmt: skip
    x = fitted.H0
    rounding = "In {} of 18 cells the printed terms miss it by 0.01: rounding, halved here."
    for n in range(2):
        for names, write, total in (
            (("attn_out", "resid_mid"), fitted.ATTN[n], fitted.MID[n]),
            (("mlp_out", "resid_post"), fitted.MLP[n], fitted.POST[n]),
        ):
            missed = int(np.sum(np.abs(x + write - total) > 0.005))
            notes = ("", rounding.format(missed) if missed else "")
            for name, table, note in zip(names, (write, total), notes, strict=True):
                block = f"blocks.{n}.{name}"
                tables.append(Printed(f"Layer {n + 1}: {name}", table.tolist(), block, note=note))
            x = total
    return (
        *tables,
        Printed("Step 8: logits of the last word", [fitted.LOGITS.tolist()], "logits", rows=[SAT]),
        Printed("Step 8: probabilities", [fitted.PROBS.tolist()], "probs", rows=[SAT],
                note="`the` is printed 0.04: its printed logit, -0.48, gives 0.0348; -0.47 would give 0.0351."),
    )  # fmt: skip
