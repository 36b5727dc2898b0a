"""Ten wishes: `cellformer edit` against plain gradient descent, and in LibreOffice.

    python benchmarks/wishes.py [N]     # the first N alone

Of dialogue-game and of a model that transformers drew. Each is written as a workbook; LibreOffice
computes all of these from values that are all wrong, and the ledger there has to say the word.
Descent is that of the word's cross-entropy by the same weights, cut to the same margin: the best of
four rates. Prices of dialogue-game are over 1,000 fresh turns, of the other over its prompt.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cellformer import names
from cellformer.engine.studies import wish
from cellformer.engine.text.tokenizer import shown
from cellformer.exporters.checking.programs import recompute_in_libreoffice
from cellformer.exporters.checking.verify import compare, poison, read, read_values
from cellformer.exporters.pages import ledger

GPT2 = str(Path(__file__).parents[1] / "tests" / "golden" / "gpt2")
RATES = (0.001, 0.01, 0.1, 1.0)
MOST_STEPS = 1000
HEADS = "wish,only,weights,norm,of theirs,descent,ratio,others first,nats,LibreOffice"


class Case(NamedTuple):
    """A model, a prompt, a word, and the weights that may change."""

    name: str
    prompt: str
    say: str
    only: str = ""

    @property
    def arguments(self) -> list[str]:
        given = "--ids" if self.name == GPT2 else "--prompt"
        only = ["--only", self.only] if self.only else []
        return [self.name, given, self.prompt, "--say", self.say, *only]


CASES = [
    Case("dialogue-game", "<BOS> Pietro chiama Paolo", "Cefa"),
    Case(GPT2, "3,1,4,1,5", "14"),
    Case("dialogue-game", "<BOS> Pietro chiama Paolo", "capo", "blocks.1.attn.h2"),
    Case(GPT2, "3,1,4,1,5", "10", "W_E"),
    Case("dialogue-game", "<BOS> 3 chiama Paolo", "Tarso", "blocks.1.mlp"),
    Case(GPT2, "2,7,1", "5", "blocks.0.attn"),
    Case("dialogue-game", "<BOS> 1 chiama 2 <SEP> 2 chiama", "1", "blocks.0"),
    Case(GPT2, "9,9,9,9", "0", "blocks.1.mlp"),
    Case("dialogue-game", "<BOS> Paolo", "perde", "W_E"),
    Case(GPT2, "6", "1", "blocks.1"),
]


def main() -> None:
    """Make every wish, and print what it took."""
    cases = CASES[: int(sys.argv[1])] if sys.argv[1:] else CASES
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{k}.xlsx" for k in range(len(cases))]
        found = [wished(case, path) for case, path in zip(cases, files, strict=True)]
        wrong = [path.with_stem(f"wrong{k}") for k, path in enumerate(files)]
        for path, copy in zip(files, wrong, strict=True):
            poison(path, copy)
        recomputed = recompute_in_libreoffice(wrong, Path(folder) / "out")
        print(HEADS.replace(",", "\t"))
        for case, path, plain, values in zip(cases, files, found, recomputed, strict=True):
            book = read(path)
            report = compare("libreoffice", book, read_values(values, book))
            line = str(values[ledger.SHEET][ledger.LINE])
            says = report.agrees and line.endswith(f"now says {plain['word']}")
            row(case, plain, "says it" if says else f"FAILS: {report}; {line}")


def wished(case: Case, path: Path) -> dict[str, Any]:
    """What the command prints of a wish; the workbook stands at `path`."""
    command = [sys.executable, "-m", "cellformer", "edit", *case.arguments, "-o", str(path)]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    plain: dict[str, Any] = json.loads(done.stdout)
    return plain


def row(case: Case, plain: dict[str, Any], in_libreoffice: str) -> None:
    """A line of the table."""
    best, price = descent(case, plain["word"]), plain["price"][0]
    of = case.name if case.name != GPT2 else "gpt2"
    print(
        f"{of}: {case.prompt} → {case.say}",
        case.only or "all",
        f"{plain['weights']:,}",
        f"{plain['norm']:.4f}",
        f"{plain['share']:.2%}",
        f"{best:.4f}",
        f"{plain['norm'] / best:.3f}",
        f"{price['changed']:,} of {price['n']:,}",
        f"{price['divergence']:.5f}",
        in_libreoffice,
        sep="\t",
        flush=True,
    )


def descent(case: Case, word: str) -> float:
    """The least norm of plain gradient descent's changes; infinite where no rate leads there."""
    ids = case.name == GPT2
    loaded = names.load(case.name, **{"ids" if ids else "prompt": case.prompt})
    graph, target = loaded.graph, shown(loaded.model.vocabulary.texts).index(word)
    only = [case.only] if case.only else []
    search = wish.Search(graph, -1, target, wish.chosen(graph, only))
    return min(descended(search, rate) for rate in RATES)


def descended(search: wish.Search, rate: float) -> float:
    """The norm of descent at one rate, cut to the margin."""
    delta = np.zeros(sum(w.size for w in search.weights.values()))
    n_rivals = len(search.logits(delta)) - 1
    for _ in range(MOST_STEPS):
        leads, slopes = search.slopes(delta, n_rivals)
        if leads.min() >= wish.MARGIN:
            return float(np.linalg.norm(search.cut(delta, wish.FINE)))
        shares = np.exp(-leads)  # the rivals' probabilities over the word's
        delta = delta + rate * (shares / (1 + shares.sum())) @ slopes
    return np.inf


if __name__ == "__main__":
    main()
