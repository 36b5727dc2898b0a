"""Training a model on a text: its sizes and recipe, checks during training, the best model kept."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from cellformer.engine.cells.errors import InputError
from cellformer.engine.learning import decoders, training
from cellformer.engine.learning.corpus import Corpus
from cellformer.engine.learning.decoders import Decoder
from cellformer.engine.learning.recipe import Recipe
from cellformer.engine.learning.training import Progress
from cellformer.engine.models.model import Model
from cellformer.engine.models.spec import ModelSpec

MOST_WINDOWS = 400  # of the part held out, in a check on the way
WINDOWS_AT_ONCE = 100
SAMPLE_HEAT = 0.8  # the temperature of a sample
MOST_HELD = 2_000_000_000  # numbers that a step holds: 8 GB in torch, 16 in numpy


@dataclass(frozen=True)
class TextRun:
    """A training run: a decoder of an architecture, its vocabulary and sizes, and the number of
    steps."""

    architecture: str = "gpt2"
    n_pieces: int | None = None  # of a BPE learnt from the text; None: characters
    n_layers: int = 4
    n_heads: int = 4
    d_model: int = 128
    d_mlp: int | None = None  # None: four times d_model
    context: int = 64
    steps: int = 2000
    batch: int = 32
    learning_rate: float = 3e-3
    half: bool = False  # weights rounded to float16, which halves their file
    n_checks: int = 10  # evenly spread
    sample_length: int = 200  # tokens that a check writes

    def decoder(self, n_words: int) -> Decoder:
        """The decoder to train. Raises InputError for an unknown architecture, impossible sizes,
        and a model too large to train here."""
        found = decoders.new(
            self.architecture,
            d_vocab=n_words,
            d_model=self.d_model,
            n_ctx=self.context,
            n_layers=self.n_layers,
            n_heads=self.n_heads,
            d_mlp=self.d_mlp or 4 * self.d_model,
        )
        if (n := self._held(found.spec)) > MOST_HELD:
            raise InputError(
                f"one training step would hold {n:,} numbers, but the limit is {MOST_HELD:,}; "
                "choose a smaller --d-model, --d-mlp, --layers, --vocab, --context or --batch"
            )
        return found

    def _held(self, spec: ModelSpec) -> int:
        """Roughly how many numbers a step holds: every weight, its gradient and two moments, and a
        batch's activations, forward and backward. Norms and biases are ignored."""
        width, length = spec.d_model, spec.n_ctx
        hidden = spec.d_mlp * getattr(spec, "n_experts", 1)
        words = (spec.d_vocab + length) * width
        n_weights = words + spec.n_layers * width * (4 * width + 2 * hidden)
        layer = 8 * width + 2 * hidden + 2 * spec.n_heads * length  # computed for a token
        computed = spec.n_layers * layer + 2 * spec.d_vocab
        return 4 * n_weights + 2 * self.batch * length * computed

    @property
    def recipe(self) -> Recipe:
        """The full learning rate for the first half of the steps, then its decay."""
        return Recipe(
            steps=self.steps,
            batch=self.batch,
            embed_scale=0.05,
            learning_rate=self.learning_rate,
            flat=0.5,
            betas=(0.9, 0.99),
            weight_decay=0.1,
        )


@dataclass(frozen=True)
class Check:
    """A check during training: the loss on some of the held-out text, in nats per token, and a
    sample."""

    step: int
    loss: float
    sample: str


def fit(run: TextRun, corpus: Corpus, seed: int) -> Iterator[Progress | Check | Model]:
    """Yield each step's progress, checks now and then and, last, the model of the best check.

    Raises InputError if the loss becomes infinite or undefined.
    """
    trained = run.decoder(len(corpus.words.texts))
    windows = corpus.windows(MOST_WINDOWS)
    every = max(1, run.steps // run.n_checks)
    least, best = np.inf, dict[str, np.ndarray]()
    for step in training.train(trained, run.recipe, corpus.batches, seed):
        if isinstance(step, dict):
            break
        yield step
        done = step.step + 1
        if done % every == 0 or done == run.steps:
            found = loss(trained, step.weights, windows)
            if found < least:
                least, best = found, {name: w.copy() for name, w in step.weights.items()}
            sampled = sample(trained, step.weights, corpus, run.sample_length, seed)
            yield Check(done, found, sampled)
    if not best:
        raise InputError("the loss is no longer a number; try a lower --learning-rate")
    yield training.trained(trained, best, corpus.words, run.half)


def loss(decoder: Decoder, weights: Mapping[str, np.ndarray], windows: np.ndarray) -> float:
    """The mean loss over windows of ids [n_windows, length], in nats per token."""
    logits_of = training.reader(decoder, weights)
    total = 0.0
    for start in range(0, len(windows), WINDOWS_AT_ONCE):
        ids = windows[start : start + WINDOWS_AT_ONCE]
        logits = logits_of(ids[:, :-1])  # [n_windows, length - 1, d_vocab]
        logits -= logits.max(axis=-1, keepdims=True)
        chosen = np.take_along_axis(logits, ids[:, 1:, None], axis=-1)[..., 0]
        total += float((np.log(np.exp(logits).sum(axis=-1)) - chosen).sum())
    return total / windows[:, 1:].size


def sample(
    decoder: Decoder, weights: Mapping[str, np.ndarray], corpus: Corpus, length: int, seed: int
) -> str:
    """A model's continuation of the first held-out token."""
    logits_of, n_ctx = training.reader(decoder, weights), decoder.spec.n_ctx
    rng = np.random.default_rng(seed)  # its own, so that samples leave the training as it is
    ids = corpus.held_out[:1].tolist()
    for _ in range(length):
        seen = ids[-n_ctx:]
        window = np.array([seen + [0] * (n_ctx - len(seen))])  # what follows is not seen
        logits = logits_of(window)[0, len(seen) - 1] / SAMPLE_HEAT
        shares = np.exp(logits - logits.max()).cumsum()
        token = int(np.searchsorted(shares, rng.random() * shares[-1], side="right"))
        ids.append(min(token, decoder.spec.d_vocab - 1))
    return corpus.words.decode(ids)


def figures(model: Model, corpus: Corpus) -> list[tuple[str, str]]:
    """A model's results on the whole held-out text."""
    found = loss(Decoder.of(model), model.weights, corpus.windows())
    each = found * len(corpus.held_out) / corpus.n_characters
    return [
        ("held-out loss, nats per token", f"{found:.4f}"),
        ("nats per character", f"{each:.4f}"),
    ]
