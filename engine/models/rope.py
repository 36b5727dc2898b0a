"""Rotary positions (RoPE) as a config.json describes them (Su et al. 2021), and the scalings that
extend a model beyond the length of its training.

Each pair of features rotates at its own frequency, theta^(-2i/d_rotary). A scaling reduces them:

    linear     all by the same factor (Chen et al. 2023)
    llama3     the low ones; those between low and high in part (Llama Team 2024)
    yarn       likewise, with another ramp, and larger cosines and sines (Peng et al. 2023)
    longrope   each by a factor of its own (Ding et al. 2024), which the config lists
    proportional  all by the same factor; the slowest pairs do not turn at all (Gemma 4)
    dynamic    none within the length of training, and no prompt here is longer
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, log, pi, sqrt
from typing import Any, NamedTuple

import numpy as np

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.fields import LARGEST
from cellformer.engine.models.foreign import FULL, ORIGINAL, WINDOWED, Config

LONGEST = "max_position_embeddings"
OF_IMAGES = ("mrope_section", "mrope_interleaved")  # how positions of pictures turn


class Rotary(NamedTuple):
    """The rotary positions of a head's features."""

    theta: float
    d_rotary: int  # features that turn
    n_ctx: int  # the longest prompt that turns so
    frequencies: tuple[float, ...] = ()  # of the pairs, in radians a token; (): by theta alone
    factor: float = 1.0  # of all cosines and sines

    @property
    def fields(self) -> dict[str, Any]:
        """The speeds of the pairs' rotation, as fields of ModelSpec."""
        names = ("rope_theta", "rope_frequencies", "rope_factor")
        return dict(zip(names, (self.theta, self.frequencies, self.factor), strict=True))


def read(
    c: Config,
    d_head: int,
    base: str = "rope_theta",
    part: str = "",
    default_part: float = 1.0,
    default_theta: float = 10000.0,
    default_original: int | None = None,
) -> Rotary:
    """Rotary positions of heads of `d_head` features, from the newer or the older form of a config.

    In the older form, `base` and `part` are the names of theta and of the share of rotary features.
    An architecture without a `part` rotates all features, whatever the config says, as its
    reference does; only "proportional" positions have a share in every architecture.
    """
    given = said(c)
    c.ignore("rope_parameters", "partial_rotary_factor", ORIGINAL, base)
    if not isinstance(given, dict):
        raise InputError(f"{c.path}: rope_scaling is {given!r}, but it must be a JSON object")
    kind = given.get("rope_type", given.get("type", "default"))
    kind = "longrope" if kind == "su" else kind  # its first name
    values = ({ORIGINAL: default_original} if default_original else {}) | given
    older = {"rope_theta": c.get(base, float, default_theta)}
    if part or kind != "default":
        share_of = part or "partial_rotary_factor"
        older["partial_rotary_factor"] = c.get(share_of, float, default_part)
    for name, value in older.items():
        if value <= 0:  # wherever another one stands, too
            raise InputError(
                f"{c.path}: {name} is {value!r}, but it must be positive; correct the file"
            )
        values.setdefault(name, value)
    scaling = Scaling(c, kind, values)
    theta, share = scaling.number("rope_theta"), scaling.number("partial_rotary_factor", 1.0)
    if not 0 <= share <= 1:
        raise InputError(
            f"{c.path}: partial_rotary_factor is {share!r}; it must be from 0 to 1, because "
            "d_rotary is part of d_head"
        )
    turning = int(d_head * share) if part or kind != "default" else d_head
    if kind == "proportional":  # the pairs that do not turn are among its frequencies
        turning = d_head
    if share != 1 and not part and turning + turning % 2 != d_head:
        raise InputError(
            f"{c.path}: partial_rotary_factor = {share!r} does not fit {kind!r}, which rotates "
            "all features of a head; delete partial_rotary_factor"
        )
    return scaling.scaled(theta, turning)


def said(c: Config, default: Mapping[str, Any] | None = None) -> Any:
    """The rotary positions that a config describes, in its older or its newer field."""
    return c.look("rope_scaling") or c.look("rope_parameters") or default or {}


def of_text(turns: Any) -> Any:
    """Rotary positions for text alone, whose tokens have one place and not three: without the
    options that say which pairs turn by the place within a picture."""
    if not isinstance(turns, dict):
        return turns
    kept = {name: value for name, value in turns.items() if name not in OF_IMAGES}
    return {name: "default" if value == "mrope" else value for name, value in kept.items()}


def instead(c: Config, turns: Any) -> Config:
    """The config with other rotary positions."""
    return c.otherwise(rope_scaling=None, rope_parameters=turns)


def of_kind(
    c: Config,
    d_head: int,
    kind: str,
    theta: float,
    base: str = "rope_theta",
    scaled: Sequence[str] = (FULL,),
) -> Rotary:
    """Rotary positions in layers of one kind. Newer configs list them by kind; older ones have a
    `base` for each kind, and a scaling for the kinds in `scaled`."""
    by_kind = c.look("rope_parameters") or {}
    if not isinstance(by_kind, dict) or not {*by_kind} <= {FULL, WINDOWED}:
        raise InputError(
            f"{c.path}: rope_parameters is {by_kind!r}; its keys must be {FULL} and {WINDOWED}"
        )
    own = by_kind.get(kind) or {"rope_type": "default"}
    scaling = c.look("rope_scaling") or {}
    values = {
        "rope_parameters": {**own, **(scaling if kind in scaled else {})},
        "rope_theta": c.get(base, float, theta),
        LONGEST: c.get(LONGEST, int),
    }
    return read(Config(c.path, values), d_head)


class Scaling:
    """The options of a scaling. Raises InputError for unknown or invalid ones."""

    def __init__(self, c: Config, kind: object, values: Mapping[str, Any]):
        self.c, self.kind, self.values = c, str(kind), values
        if self.kind not in KINDS:
            raise InputError(
                f"{c.path}: cellformer does not support rope_scaling {kind!r}; it supports "
                f"{', '.join(KINDS)}"
            )
        if unknown := set(values) - {*OF_ALL, *KINDS[self.kind][0]}:
            raise InputError(
                f"{c.path}: rope_scaling {kind!r} has an unknown option, {min(unknown)!r}; if "
                "this option does not change the model, delete it"
            )

    def number(self, name: str, default: float | None = None) -> float:
        """An option that is a positive number."""
        value = self.values.get(name)
        value = default if value is None else value
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not 0 < value <= LARGEST
        ):
            what = f"{name} is {value!r}" if name in OF_ALL else f"its {name} is {value!r}"
            raise InputError(
                f"{self.c.path}: rope_scaling {self.kind!r}: {what}, but it must be positive"
            )
        return float(value)

    def numbers(self, name: str, count: int) -> np.ndarray:
        """An option that is a list of so many positive numbers."""
        value = self.values.get(name)
        if not isinstance(value, list) or len(value) != count:
            raise InputError(
                f"{self.c.path}: rope_scaling {self.kind!r}: {name} must be a list of "
                f"{count} numbers"
            )
        return np.array([Scaling(self.c, self.kind, {name: v}).number(name) for v in value])

    def original(self) -> float:
        """The context length of training, before the extension."""
        if self.c.look(ORIGINAL) is not None:
            return float(self.c.get(ORIGINAL, int))
        return self.number(ORIGINAL, self.c.get(LONGEST, int))

    def stretch(self) -> float:
        """The scaling's factor; by default, the ratio of the new context length to the original
        one."""
        return self.number("factor", self.c.get(LONGEST, int) / self.original())

    def scaled(self, theta: float, d_rotary: int) -> Rotary:
        """The frequencies under this scaling."""
        _, compute = KINDS[self.kind]
        n_ctx = self.c.get(LONGEST, int)
        if self.kind == "longrope":  # beyond the original length every frequency would be another
            n_ctx = min(n_ctx, int(self.original()))
        plain, odd = Rotary(theta, d_rotary, n_ctx), d_rotary % 2
        if not d_rotary or not (compute or odd):
            return plain
        frequencies, factor = frequency(theta, d_rotary), 1.0
        if compute:
            frequencies, factor = compute(self, plain, frequencies)
        return Rotary(theta, d_rotary + odd, n_ctx, tuple(frequencies.tolist()), factor)


def frequency(theta: float, d_rotary: int) -> np.ndarray:
    """The frequency of every pair without scaling, in radians per token: [d_rotary / 2]. An odd
    number of features is rounded up afterwards, as in the reference."""
    exponents = -2 * np.arange((d_rotary + 1) // 2) / max(d_rotary, 1)
    return np.asarray(theta**exponents)


# --- the scalings: frequencies [d_rotary / 2] as scaled, and the factor of cosines and sines ------


def linear(s: Scaling, r: Rotary, plain: np.ndarray) -> tuple[np.ndarray, float]:
    """Chen et al. 2023: positions divided by the factor."""
    return plain / s.number("factor"), 1.0


def proportional(s: Scaling, r: Rotary, plain: np.ndarray) -> tuple[np.ndarray, float]:
    """Gemma 4: only a share of the pairs turns, the fastest ones."""
    turns = np.arange(len(plain)) < int(s.number("partial_rotary_factor", 1.0) * r.d_rotary // 2)
    return np.where(turns, plain / s.number("factor", 1.0), 0.0), 1.0


def llama3(s: Scaling, r: Rotary, plain: np.ndarray) -> tuple[np.ndarray, float]:
    """Llama 3: depends on how many times a pair rotates within the length of training."""
    low, high = s.number("low_freq_factor"), s.number("high_freq_factor")
    turns = s.original() * plain / (2 * pi)
    kept = np.clip((turns - low) / (high - low), 0, 1)
    return plain * (kept + (1 - kept) / s.number("factor")), 1.0


def yarn(s: Scaling, r: Rotary, plain: np.ndarray) -> tuple[np.ndarray, float]:
    """Peng et al. 2023, section 3.2: a ramp over the pairs, from unchanged to divided."""
    if "factor" not in s.values:
        raise InputError(f"{s.c.path}: rope_scaling 'yarn' has no factor; add it")
    if r.d_rotary % 2:
        raise InputError(
            f"{s.c.path}: rope_scaling 'yarn' needs an even number of rotary features, but a head "
            f"has {r.d_rotary}"
        )
    factor, original = s.stretch(), s.original()

    def pair_that_turns(times: float) -> float:
        """The (fractional) index of the pair that rotates so many times within the length of
        training."""
        return r.d_rotary * log(original / (times * 2 * pi)) / (2 * log(r.theta))

    first = pair_that_turns(s.number("beta_fast", 32.0))
    last = pair_that_turns(s.number("beta_slow", 1.0))
    if s.values.get("truncate", True):
        first, last = floor(first), ceil(last)
    first, last = max(first, 0), min(last, r.d_rotary - 1)
    last += 0.001 if first == last else 0
    slowed = np.clip((np.arange(len(plain)) - first) / (last - first), 0, 1)
    return plain * (1 - slowed + slowed / factor), yarn_factor(s, factor)


def yarn_factor(s: Scaling, factor: float) -> float:
    """Yarn's factor of cosines and sines, if the config does not set it."""

    def grown(by: float) -> float:
        return 0.1 * by * log(factor) + 1 if factor > 1 else 1.0

    if s.values.get("attention_factor") is not None:
        return s.number("attention_factor")
    if s.values.get("mscale") and s.values.get("mscale_all_dim"):
        return grown(s.number("mscale")) / grown(s.number("mscale_all_dim"))
    return grown(1.0)


def longrope(s: Scaling, r: Rotary, plain: np.ndarray) -> tuple[np.ndarray, float]:
    """Ding et al. 2024: within the original length, the short factors."""
    _, short = (s.numbers(name, len(plain)) for name in ("long_factor", "short_factor"))
    factor = s.stretch()
    grown = sqrt(1 + log(factor) / log(s.original())) if factor > 1 else 1.0
    return plain / short, s.number("attention_factor", grown)


OF_ALL = ("rope_type", "type", "rope_theta", "partial_rotary_factor")
YARN = ("attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate")
Compute = Callable[[Scaling, Rotary, np.ndarray], tuple[np.ndarray, float]]
KINDS: dict[str, tuple[tuple[str, ...], Compute | None]] = {  # options, and what is computed
    "default": ((ORIGINAL,), None),
    "dynamic": (("factor", ORIGINAL), None),
    "linear": (("factor",), linear),
    "proportional": (("factor",), proportional),
    "llama3": (("factor", "low_freq_factor", "high_freq_factor", ORIGINAL), llama3),
    "yarn": (("factor", ORIGINAL, *YARN), yarn),
    "longrope": (("factor", "attention_factor", "short_factor", "long_factor", ORIGINAL), longrope),
}
