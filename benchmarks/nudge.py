"""A nudge in LibreOffice against torch: five rates and three sentences, typed over wrong values.

    python benchmarks/nudge.py FOLDER [NAME ...] [--python /usr/bin/python3]

Each model's workbook is built with --nudge, every cached value of it is made wrong, and LibreOffice
computes it anew; then rates and sentences are typed on its sheets. The loss after the step is held
against transformers, which knows nothing of the cells, and SGD as torch has it. FOLDER keeps the
workbooks. The second Python is the one that has LibreOffice's `uno` module.
"""

import argparse
import copy
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

import cellformer as cf
from cellformer import names, workbooks
from cellformer.engine.models.generate import passage
from cellformer.engine.studies.nudge import LOSS_AFTER, RATE
from cellformer.exporters.checking.verify import poison
from cellformer.exporters.model.model_book import ModelBook

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"
RATES = (-0.05, 0.01, 0.1, 0.5, 2.0)
SENTENCES = ((1, 9, 4, 3), (3, 8), (2, 3, 5, 7, 11, 13))
N_TOKENS = 8
Logits = Callable[[torch.Tensor], torch.Tensor]  # of ids [1, n_tokens]


@contextmanager
def in_float64() -> Iterator[None]:
    """Have transformers compute norms and angles so, too: it takes float32 there, whatever a
    model's numbers are."""
    before = torch.float32, torch.Tensor.float
    torch.float32, torch.Tensor.float = torch.float64, torch.Tensor.double
    yield
    torch.float32, torch.Tensor.float = before


def of_transformers(folder: Path) -> tuple[dict[str, torch.Tensor], Logits]:
    """The weights of a checkpoint, and its logits, as transformers has them."""
    single = AutoModelForCausalLM.from_pretrained(folder)
    with in_float64():
        model = AutoModelForCausalLM.from_config(single.config, dtype=torch.float64).eval()
    model.load_state_dict(single.state_dict())
    model.set_experts_implementation("eager")  # the other takes no float64

    def logits(ids: torch.Tensor) -> torch.Tensor:
        with in_float64():
            return model(ids).logits

    return dict(model.named_parameters()), logits


def after_step(
    weights: dict[str, torch.Tensor], logits: Logits, ids: Sequence[int], rate: float
) -> float:
    """The loss of a sentence after one step against it; the weights are put back."""
    tokens, before = torch.tensor([ids]), copy.deepcopy(weights)

    def loss() -> torch.Tensor:
        return torch.nn.functional.cross_entropy(logits(tokens)[0, :-1], tokens[0, 1:])

    for w in weights.values():
        w.grad = None
    loss().backward()
    sgd = torch.optim.SGD(weights.values(), lr=abs(rate), maximize=rate < 0)
    sgd.step()
    found = float(loss().detach())
    with torch.no_grad():
        for name, w in weights.items():
            w.copy_(before[name])
    return found


def in_libreoffice(book: ModelBook, path: Path, python: str) -> list[dict[str, Any]]:
    """What the loss is in the workbook for every sentence and rate."""
    poison(cf.write(book, path), path.with_suffix(".wrong.xlsx"))
    texts = [" ".join(book.labels["vocab"][i] for i in ids) for ids in SENTENCES]
    edits = [
        [(*book.cell("sentence", 0, 0), text), (*book.cell(RATE, 0, 0), rate)]
        for text in texts
        for rate in RATES
    ]
    job = {"path": str(path.with_suffix(".wrong.xlsx")), "edits": edits, "afresh": True}
    file = path.with_suffix(".json")
    file.write_text(json.dumps(job | {"watched": [book.cell(LOSS_AFTER, 0, 0)]}))
    driver = Path(__file__).with_name("edits_in_libreoffice.py")
    subprocess.run([python, driver, file], check=True, env=dict(os.environ))
    return json.loads(file.with_suffix(".answers.json").read_text())


def main() -> None:
    """Every model: the largest difference, and what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=["dialogue-game", "llama", "mixtral"])
    parser.add_argument("--python", default="/usr/bin/python3")
    asked = parser.parse_args()
    asked.folder.mkdir(exist_ok=True)
    for name in asked.names:
        golden = GOLDEN / name
        path, ids = (str(golden), "1,2,3") if golden.is_dir() else (name, None)
        loaded = names.load(path, ids=ids)
        words = passage(loaded.model, loaded.ids, N_TOKENS)
        book = loaded.book(loaded.model, words, studies={"nudge": True})
        assert isinstance(book, ModelBook)
        answers = in_libreoffice(book, asked.folder / f"{name}.xlsx", asked.python)
        torchs = of_transformers(golden if golden.is_dir() else workbooks.find(name).FOLDER)
        wanted = [after_step(*torchs, ids, rate) for ids in SENTENCES for rate in RATES]
        found = [answer["numbers"][0] for answer in answers]
        gaps = [abs(a - b) / max(1, abs(b)) for a, b in zip(found, wanted, strict=True)]
        n_errors = sum(bool(answer["errors"]) for answer in answers)
        slowest = max(answer["seconds"] for answer in answers)
        print(
            f"{name}: {len(found)} losses from {min(wanted):.3f} to {max(wanted):.3f}, largest "
            f"difference {max(gaps):.1e}, {n_errors} with errors, slowest edit {slowest:.2f} s"
        )


if __name__ == "__main__":
    main()
