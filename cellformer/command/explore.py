"""Commands that evaluate a model and print: run, trace, ablate, sweep, generate, info."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from cellformer import budget, names
from cellformer.command import printing, prompting, results
from cellformer.command.answer import Answer
from cellformer.command.build import plain_forecast, with_digits
from cellformer.command.cells import Cells
from cellformer.command.console import console, line
from cellformer.command.options import (
    Ablate,
    Adapter,
    AnswerLanguage,
    Beyond,
    Chat,
    Ids,
    Lens,
    Mean,
    MinP,
    Name,
    NoSpecial,
    Prompt,
    PromptFile,
    RepetitionPenalty,
    Second,
    Seed,
    Sets,
    Show,
    Stop,
    System,
    Target,
    Temperature,
    Tokens,
    TopK,
    TopP,
)
from cellformer.engine import Evaluator, Graph, InputError, Model
from cellformer.engine.cells import finite
from cellformer.engine.cells.arrays import ranked
from cellformer.engine.cells.errors import nearest
from cellformer.engine.cells.texts import readable
from cellformer.engine.models import encoding
from cellformer.engine.models import prompt as prompts
from cellformer.engine.models.architectures.mixtral import MoeSpec
from cellformer.engine.models.choosing import Sampling
from cellformer.engine.models.generate import Step, passage
from cellformer.engine.models.generate import generate as steps
from cellformer.engine.studies import ablation
from cellformer.engine.studies import lens as lenses
from cellformer.engine.studies.forecast import Forecast, forecast, kv_numbers, parameters
from cellformer.engine.studies.study import word_of
from cellformer.engine.text.tokenizer import shown, stream, until
from cellformer.exporters.edits.edited import Edited, EditedModel
from cellformer.exporters.model.plan import for_model
from cellformer.names import needs_words

FEW = 40  # tokens to generate


def run(
    name: Name,
    prompt: Prompt = None,
    second: Second = None,
    ids: Ids = None,
    no_special: NoSpecial = False,
    tokens: Tokens = None,
    sets: Sets = None,
    ablate: Ablate = None,
    mean: Mean = False,
    target: Target = None,
    lens: Lens = False,
    show: Show = None,
    adapter: Adapter = None,
    chat: Chat = False,
    system: System = None,
    file: PromptFile = None,
    force: Beyond = False,
) -> Answer:
    """Evaluate a model and rank the next words, before and after any changes to cells.

    With --target, also print what each head, MLP and embedding adds to that word's logit. With
    --tokens, continue the prompt in cells; --set can then change `choose`, `temperature`, `top_k`,
    `top_p` and `sentence`. An encoder ranks the words for the mask in the prompt. A sentence
    encoder prints the vector of the prompt, or with --second the cosine of the two sentences. An
    encoder-decoder reads the prompt with its encoder, and ranks the words that can begin its
    answer.
    """
    asked: dict[str, object] = {"prompt": prompt, "second": second, "ids": ids}
    asked |= {"chat": chat, "system": system, "file": file, "tokens": tokens, "mean": mean}
    asked |= {"no_special": no_special, "lens": lens, "adapter": adapter}
    if names.is_workbook(name):
        names.check_keeps(name, **asked)
        return _run_opened(names.opened(name), sets, ablate, target, show)
    if names.is_worksheet(name):
        names.check_takes(name, **asked, ablate=ablate, target=target)
        return _run_opened(names.opened(name), sets, None, None, show)
    prompt, said = prompting.text(prompt, file), prompting.system(chat, system, no_special)
    loaded = names.load(name, prompt, ids, not no_special, (), second, force, adapter, said)
    budget.of_passes(loaded.model, tokens or len(loaded.ids), force)
    if target is not None or lens:
        needs_words(loaded)
    model = loaded.model
    if mean:
        model = ablation.with_averages(model, list(filter(None, (loaded.ids, loaded.second))))
    graph = continued(model, loaded, tokens)
    row = loaded.place_of_answer
    wanted = None if target is None else word_of(model, target, graph, row)
    views = _views(graph, wanted, row) if lens or wanted is not None else None
    live = Evaluator(graph)
    _ablate(live, ablate, mean)
    Cells(graph, partial(loaded.built, tokens)).set(live, sets)
    finite.check(graph, live)
    continues = tokens is not None and model.spec.gives == "next word"
    ids_now = live["tokens"][:, 0].astype(int).tolist() if continues else loaded.ids
    if "prompt.ended" in graph.blocks:
        ids_now = ids_now[: len(ids_now) - int(live["prompt.ended"].sum())]
    ran = Ran(model, live, ids_now, loaded.second, row, wanted, views, lens, bool(sets or ablate))
    return ran.answer(_shown(graph, show))


@dataclass(frozen=True)
class Ran:
    """The results of running a model, to print."""

    model: Model
    live: Evaluator
    ids: list[int]
    second: list[int]
    row: int  # whose words are ranked
    wanted: int | None  # the target
    views: lenses.Views | None
    lens: bool
    changed: bool

    def answer(self, blocks: Sequence[str]) -> Answer:
        """It as an answer, with the values of some blocks."""
        rows = "words" if not blocks else lambda: printing.block_rows(self.live, blocks)
        return Answer(lambda: self.tell(blocks), lambda: self.result(blocks), rows)

    def tell(self, blocks: Sequence[str]) -> None:
        """Print blocks, ranked words, lens and attribution."""
        for given in filter(None, (self.model.read, self.ids, self.second)):
            printing.prompt(readable(_spelt(self.model, given)), len(given))
        for block in blocks:
            printing.block(self.live.graph, self.live, block)
        if "probs" not in self.live.graph.blocks:
            return printing.vectors(self.live, self.changed)
        words = printing.output_words(self.model)
        head = "next word" if self.model.spec.gives == "next word" else "word"
        printing.ranking(words, self.live, self.changed, self.wanted, self.row, head)
        if self.lens and self.views:
            target = int(self.live.graph.inputs["target"][0, 0])
            printing.lens(words, self.live, self.views, target)
        if self.wanted is not None and self.views:
            printing.attribution(words, self.live, self.views)

    def result(self, blocks: Sequence[str]) -> results.Run:
        """The same as JSON."""
        live, words = self.live, printing.output_words(self.model)
        ranks = "probs" in live.graph.blocks
        found: results.Run = {
            "prompt": _spelt(self.model, self.model.read or self.ids),
            "ids": list(self.ids),
            "words": printing.ranked_words(words, live, self.wanted, self.row) if ranks else [],
            "blocks": {block: _rows(live[block]) for block in blocks},
        }
        if self.lens and self.views:
            target = int(live.graph.inputs["target"][0, 0])
            found["lens"] = printing.lens_stages(words, live, self.views, target)
        if self.wanted is not None and self.views:
            found["attribution"] = printing.shares(live, self.views)
        if "vector" in live.graph.blocks:
            found["vector"] = live["vector"][0].tolist()
        if "cosine" in live.graph.blocks:
            found["cosine"] = float(live["cosine"][0, 0])
        return found


def _shown(graph: Graph, patterns: Sequence[str] | None) -> list[str]:
    """The blocks that --show names, by pattern or by name. Raises InputError."""
    found: dict[str, None] = {}
    for text in patterns or ():
        blocks = graph.find(text) if set("*?[") & set(text) else [graph[text]]
        if not blocks:
            raise InputError(f"no block has a name like {text!r}; {nearest(text, graph.blocks)}")
        found |= dict.fromkeys(block.name for block in blocks)
    return list(found)


AsTable = Annotated[
    bool,
    typer.Option(
        "--table",
        help="Also print a table of the tokens, with the number of cells computed for each token.",
    ),
]


def generate(
    name: Name,
    prompt: Prompt = None,
    ids: Ids = None,
    no_special: NoSpecial = False,
    n: Annotated[
        int | None,
        typer.Option(
            "-n",
            help=f"Number of tokens to generate (default: {FEW}, or fewer if the context has no "
            "room).",
        ),
    ] = None,
    temperature: Temperature = 0.0,
    top_k: TopK = 0,
    top_p: TopP = 1.0,
    min_p: MinP = 0.0,
    repetition_penalty: RepetitionPenalty = 1.0,
    seed: Seed = 0,
    chat: Chat = False,
    system: System = None,
    file: PromptFile = None,
    answer_language: AnswerLanguage = None,
    stop: Stop = None,
    ignore_eos: Annotated[
        bool, typer.Option("--ignore-eos", help="Do not stop at an end-of-text token.")
    ] = False,
    as_table: AsTable = False,
    adapter: Adapter = None,
    force: Beyond = False,
) -> Answer:
    """Print a prompt and its continuation, token by token, up to an end-of-text token.

    Each token takes one new row of every block, as with a KV cache. With --chat, only the answer is
    printed. An encoder-decoder reads the prompt with its encoder, and only its answer is printed.
    """
    prompt, said = prompting.text(prompt, file), prompting.system(chat, system, no_special)
    stops = prompting.stops(stop)
    loaded = names.load(name, prompt, ids, not no_special, (), None, force, adapter, said)
    loaded = prompting.answering_in(loaded, answer_language)
    vocabulary, room = loaded.model.vocabulary, loaded.model.spec.n_ctx - len(loaded.ids)
    n_tokens = max(1, min(FEW, room)) if n is None else n
    budget.of_passes(loaded.model, len(loaded.ids) + n_tokens, force)
    sampling = Sampling(temperature, top_k, top_p, min_p, repetition_penalty)
    found = steps(loaded.model, loaded.ids, n_tokens, sampling, seed)
    done: list[Step] = []
    parts = _written(loaded, _until(found, () if ignore_eos else vocabulary.ends, done), stops)

    def tell() -> None:
        for text in parts:
            printing.text(text)
        printing.text("\n")
        if as_table:
            printing.steps(shown(vocabulary.texts), done)

    return Answer(tell, lambda: _generated(loaded, "".join(parts), done), "tokens")


def _written(loaded: names.Loaded, tokens: Iterable[int], stops: Sequence[str]) -> Iterator[str]:
    """A prompt and its continuation, or in a conversation the answer alone, part by part."""
    vocabulary = loaded.model.vocabulary
    given = [] if loaded.chat or loaded.model.read else loaded.ids
    begun = len(vocabulary.decode(given)) if given and stops else 0  # it may hold such a text
    return until(stream(vocabulary, chain(given, tokens)), stops, begun)


def _generated(loaded: names.Loaded, text: str, done: Sequence[Step]) -> results.Generate:
    """A continuation as JSON."""
    vocabulary = loaded.model.vocabulary
    texts = shown(vocabulary.texts)
    return {
        "prompt": loaded.chat.text
        if loaded.chat
        else vocabulary.decode(loaded.model.read or loaded.ids),
        "text": text,
        "ids": [step.token for step in done],
        "tokens": [
            {
                "token": texts[step.token],
                "id": step.token,
                "cells": step.n_cells,
                "full_pass": step.n_full,
            }
            for step in done
        ],
    }


def info(
    name: Name,
    tokens: Annotated[
        int, typer.Option("--tokens", min=1, help="Prompt length for the size estimate, in tokens.")
    ] = 8,
    force: Beyond = False,
) -> Answer:
    """Show a model's sizes, parameters and KV cache, and estimate the size of its workbook."""
    model = names.model(name)
    spec = model.spec
    n_tokens = min(tokens, spec.n_ctx)
    budget.of_passes(model, n_tokens, force)
    labels = ["d_vocab", "d_model", "n_layers", "n_heads", "d_head", "d_mlp", "n_ctx"]
    labels += (
        ["n_experts", "n_chosen", "d_expert"] if isinstance(spec, MoeSpec) and spec.writes else []
    )
    counts, expected = (
        parameters(model),
        forecast(with_digits(model), n_tokens, for_model(model).readout),
    )
    found: results.Info = {
        "architecture": model.kind,
        "sizes": {label: getattr(spec, label) for label in labels},
        "parts": [
            {"part": part, "parameters": count, "share": count / sum(counts.values())}
            for part, count in counts.items()
        ],
        "kv_cache": kv_numbers(model) if spec.gives == "next word" else None,
        "tokens": n_tokens,
        "forecast": plain_forecast(expected),
    }
    return Answer(lambda: _info(found, expected), lambda: found, "parts")


def _info(found: results.Info, expected: Forecast) -> None:
    """Print a model's sizes."""
    table = Table(box=None, show_header=False)
    table.add_row("architecture", found["architecture"])
    for label, size in found["sizes"].items():
        table.add_row(label, f"{size:,}")
    console.print(table)
    console.print()
    table = Table("part", "parameters", "share", box=None)
    for part in found["parts"]:
        table.add_row(part["part"], f"{part['parameters']:,}", f"{part['share']:.1%}")
    table.add_row("all", f"{sum(part['parameters'] for part in found['parts']):,}", "")
    console.print(table)
    console.print()
    if (cache := found["kv_cache"]) is not None:
        console.print(
            f"KV cache: {cache:,} numbers per token, {2 * cache:,} bytes with 16-bit numbers"
        )
    line(f"workbook of {found['tokens']} tokens: {expected}")


# --- shared ------------------------------------------------------------------------


def continued(model: Model, loaded: names.Loaded, n_tokens: int | None) -> Graph:
    """The graph of a prompt; with `n_tokens`, of the prompt and its continuation.

    The graph of an encoder then has `n_tokens` positions, and its tokens follow the sentences.
    """
    if n_tokens is None:
        return replace(loaded, model=model).graph
    words = passage(model, loaded.ids, n_tokens, second=loaded.second, chat=loaded.chat)
    if model.spec.gives == "next word":
        return prompts.graph(model, words)
    graph = encoding.graph(model, words)
    encoding.follow(graph, words, model)
    return graph


def _spelt(model: Model, ids: Sequence[int]) -> str:
    """A prompt as text; an encoder's with its mask."""
    found = encoding.text_of(model.reader, ids) if model.spec.gives != "next word" else None
    return found[0] if found else model.reader.decode(ids)


def _until(found: Iterable[Step], ends: Sequence[int], done: list[Step]) -> Iterator[int]:
    """The tokens of steps, up to one in `ends`; each step is appended to `done`."""
    for step in found:
        done.append(step)
        yield step.token
        if step.token in ends:
            return


def _views(graph: Graph, target: int | None, row: int) -> lenses.Views:
    """Lens and attribution at a token, for the target and the most likely other word."""
    order = ranked(graph.values["logits"][row])
    wanted = order[0] if target is None else target
    rival = next((v for v in order if v != wanted), wanted)
    return lenses.add_lens(graph, row % graph["tokens"].shape[0], wanted, rival)


def _ablate(live: Evaluator, off: Sequence[str] | None, mean: bool) -> None:
    """Apply --ablate and --mean."""
    for change in [ablation.off(live.graph, part) for part in off or ()]:
        for (block, i, j), value in change.items():
            live.set(block, i, j, value)
    if mean and "mean_ablation" in live.graph.blocks:
        live.set("mean_ablation", 0, 0, 1.0)


def _run_opened(
    opened: Edited,
    sets: Sequence[str] | None,
    ablate: Sequence[str] | None,
    target: str | None,
    show: Sequence[str] | None,
) -> Answer:
    """A workbook as in its file: a model's next words, or the tables of a workbook without a
    model, and their changes."""
    found, graph, live = opened.book, opened.book.graph, opened.live()
    _ablate(live, ablate, False)
    Cells(graph, lambda: found).set(live, sets)
    changed = bool(sets or ablate or opened.values)
    if isinstance(opened, EditedModel):
        finite.check(graph, live)
        row = opened.position if opened.model.spec.gives == "next word" else 0
        wanted = None if target is None else word_of(opened.model, target, graph, row)
        ran = Ran(opened.model, live, opened.ids, [], row, wanted, None, False, changed)
        return ran.answer(_shown(graph, show))
    blocks = _shown(graph, show)

    def tell() -> None:
        for block in blocks:
            printing.block(graph, live, block)
        if changed:
            printing.changes(live)
        elif not blocks:
            printing.tables(found)

    def result() -> results.Run:
        return {
            "prompt": None,
            "ids": [],
            "words": [],
            "blocks": {block: _rows(live[block]) for block in blocks},
            "tables": printing.listed_tables(found),
            "changes": list(printing.changed_cells(live)),
        }

    rows = (lambda: printing.block_rows(live, blocks)) if blocks else "changes"
    return Answer(tell, result, rows if changed or blocks else "tables")


def _rows(values: np.ndarray) -> list[list[float | str | None]]:
    """Rows for JSON, which has no -inf or nan: blank cells are null."""
    return [
        [x if isinstance(x, str) or np.isfinite(x) else None for x in row]
        for row in values.tolist()
    ]
