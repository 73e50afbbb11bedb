"""Changes of a model's attention that can be switched on when it is asked, without training:
`changed/CHANGE/MODEL`, see `eyechart_lab.probe.changed`.

    rope_base=20000         another base of the rotary positions; Su et al. 2021, arXiv 2104.09864
    rope_scaling=linear:2   positions divided by 2; Chen et al. 2023, arXiv 2306.15595
    rope_scaling=ntk:2      base times 2^(d / (d - 2)): the slowest pair turns half as fast
    rope_scaling=dynamic_ntk:2   as ntk, by a factor that grows with the tokens so far, from 1 at
                            those of the training; emozilla 2023
    rope_scaling=yarn:2     slow pairs as linear:2, fast ones unchanged, and a temperature; Peng et
                            al. 2023, arXiv 2309.00071
    dual_chunk=512          distances within chunks of 3/4 of the 512 tokens of the training; An et
                            al. 2024, arXiv 2402.17463. With +rope_scaling=yarn:4 as in Qwen2
    rerope=512              distances of 512 or more are 512; Su 2023, kexue.fm/archives/9708
    leaky_rerope=512:16     from 512 on they grow 16 times as slowly
    log_n=512               scores times max(1, ln n / ln 512) for a position that sees n tokens;
                            Chiang & Cholak 2022, arXiv 2202.12172
    softmax_one             1 is added to the sum of exponentials: softmax off by one; Miller 2023
    window=64:4             only the last 64 positions and the first 4 are attended to; Xiao et al.
                            2023, arXiv 2309.17453
    kv=int4                 keys and values rounded to 4 or 8 bits, each token's in each head by
                            itself, as a quantised cache keeps them; Liu et al. 2024, arXiv
                            2402.02750, round values so, and keys by channel

Several are joined by `+`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from eyechart.providers.base import SetupError
from eyechart.providers.close_match import closest
from eyechart.providers.in_process.model_files import one_line
from eyechart_lab.probe.distances import Chunks, Distances, Rectified

_EXAMPLES: Mapping[str, str] = {
    "rope_base": "rope_base=20000",
    "rope_scaling": "rope_scaling=yarn:2",
    "dual_chunk": "dual_chunk=512",
    "rerope": "rerope=512",
    "leaky_rerope": "leaky_rerope=512:16",
    "log_n": "log_n=512",
    "softmax_one": "softmax_one",
    "window": "window=64:4",
    "kv": "kv=int8",
}
_KV_BITS: Mapping[str, int] = {"int8": 8, "int4": 4}
_SCALINGS = ("linear", "ntk", "dynamic_ntk", "yarn")
_NUMBER = re.compile(r"\d+(\.\d+)?([eE]\d+)?")
_LARGEST = 1e12
_MOST_DIGITS = 10
"""A whole number has fewer digits."""
_LEAST_FACTOR = 1e-9
"""A scaling is above this; far below it, angles are no float32 numbers."""
_PAIR = 2
_FAST_TURNS, _SLOW_TURNS = 32, 1
"""Number of turns in the window from which a pair is fast, or below which it is slow, in YaRN."""


@dataclass(frozen=True, slots=True)
class Intervention:
    """Changes of attention; the defaults change nothing."""

    rope_base: float | None = None
    scaling: str = ""
    """`linear`, `ntk`, `dynamic_ntk` or `yarn`; empty for none."""
    factor: float = 1.0
    """Factor of the scaling."""
    dual_chunk: int | None = None
    """Tokens of the training, of which chunks of dual chunk attention have 3/4."""
    rerope: tuple[int, float | None] | None = None
    """The window of ReRoPE, and how many times as slowly distances grow beyond it in the leaky one;
    `None` if they do not grow."""
    log_n: float | None = None
    softmax_one: bool = False
    window: tuple[int, int] | None = None
    """Number of the last positions, and of the first positions, that are attended to."""
    kv: int | None = None
    """Bits of each number of a key or a value."""

    @property
    def is_rotary(self) -> bool:
        """Whether the rotary positions change."""
        return self.rope_base is not None or bool(self.scaling) or self.turns_again

    @property
    def turns_again(self) -> bool:
        """Whether queries and keys are turned a second time, by their places in the pass."""
        return self.distances is not None or self.scaling == "dynamic_ntk"

    @property
    def distances(self) -> Distances | None:
        """What changes the distances of pairs; `None` if nothing does."""
        if self.dual_chunk is not None:
            return Chunks(self.dual_chunk)
        if self.rerope is None:
            return None
        window, slower = self.rerope
        return Rectified(window, slower or math.inf)

    def facts(self) -> dict[str, object]:
        """The changes, for a manifest; empty if nothing changes."""
        changed = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }
        return {"intervention": changed} if changed else {}

    def frequencies(
        self, base: float, width: int, window: int, tokens: int = 0
    ) -> NDArray[np.float32]:
        """(width / 2,): the angle by which each pair is turned from one position to the next, in
        float32 as models compute it; `window` is that of the model's training, and `tokens` the
        number so far, which only dynamic NTK needs.
        """
        own = base if self.rope_base is None else self.rope_base
        if self.scaling in ("ntk", "dynamic_ntk"):
            if width == _PAIR:
                raise SetupError(
                    f"intervention rope_scaling={self.scaling} needs heads with more than one "
                    "pair of numbers, and those of this model have one; use rope_scaling=linear"
                )
            factor = self.factor
            if self.scaling == "dynamic_ntk":
                factor = max(1.0, factor * tokens / window - (factor - 1))
            own *= factor ** (width / (width - 2))
        exponents = np.arange(0, width, 2, dtype=np.float32) / width
        plain: NDArray[np.float32] = (1.0 / own**exponents).astype(np.float32)
        if self.scaling == "linear":
            return plain / np.float32(self.factor)
        if self.scaling != "yarn":
            return plain

        def pair_of(turns: float) -> float:
            """The pair, as a fraction, that makes this number of turns in the window."""
            return width * math.log(window / (turns * 2 * math.pi)) / (2 * math.log(own))

        first = max(math.floor(pair_of(_FAST_TURNS)), 0)
        last = min(math.ceil(pair_of(_SLOW_TURNS)), width - 1)
        pairs = np.arange(width // 2, dtype=np.float32)
        slow = np.clip((pairs - first) / max(last - first, 0.001), 0, 1)
        mixed: NDArray[np.float32] = (
            slow * plain / np.float32(self.factor) + (1 - slow) * plain
        ).astype(np.float32)
        return mixed

    def hides(self, positions: NDArray[np.intp], keys: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether each of `positions` may not attend to each of `keys`; later positions are not
        considered. Both are broadcast.
        """
        if self.window is None:
            return positions < 0
        last, first = self.window
        return (positions - keys >= last) & (keys >= first)

    @property
    def rotary_size(self) -> float:
        """The factor of cosines and sines: YaRN's temperature."""
        if self.scaling != "yarn" or self.factor <= 1:
            return 1.0
        return 0.1 * math.log(self.factor) + 1

    def temperature(self, seen: NDArray[np.intp]) -> NDArray[np.float32]:
        """The factor of the scores of positions that see this many tokens."""
        if self.log_n is None:
            return np.ones(seen.shape, np.float32)
        share = np.log(np.maximum(seen, 1)) / math.log(self.log_n)
        times: NDArray[np.float32] = np.maximum(share, 1).astype(np.float32)
        return times


def read_intervention(given: str) -> Intervention:
    """The intervention that a text names.

    Raises:
        SetupError: there is no such intervention, or one of its numbers is wrong.
    """
    changes: dict[str, object] = {}
    shown = one_line(repr(given))
    for part in given.split("+"):
        name, _, value = part.strip().partition("=")
        reader = _READERS.get(name)
        if reader is None:
            close = closest(name, _EXAMPLES)
            every = f"{', '.join(_EXAMPLES.values())}, and several joined by '+'"
            known = f"did you mean {_EXAMPLES[close]!r}?" if close else f"known: {every}"
            raise SetupError(f"no intervention {one_line(repr(name))} in {shown}; {known}")
        try:
            read = reader(value)
        except ValueError as error:
            raise SetupError(
                f"intervention {shown}: {name} {error}; one is {_EXAMPLES[name]!r}"
            ) from None
        if set(read) & set(changes):
            raise SetupError(f"intervention {shown} names {name} twice; name it once")
        changes |= read
    if {"dual_chunk", "rerope"} <= set(changes):
        raise SetupError(
            f"intervention {shown}: dual_chunk and ReRoPE both change distances; name one of them"
        )
    return Intervention(**changes)  # type: ignore[arg-type]  # the readers have the fields' types


def _number(given: str, least: float) -> float:
    """A number above `least`."""
    number = float(given) if _NUMBER.fullmatch(given) else 0.0
    if not least < number <= _LARGEST:
        raise ValueError(
            f"wants a number above {least:g} and at most 1e12, not {one_line(repr(given))}"
        )
    return number


def _whole(given: str, least: int) -> int:
    """A whole number that is at least `least`."""
    is_whole = given.isascii() and given.isdecimal() and len(given) < _MOST_DIGITS
    if not is_whole or int(given) < least:
        raise ValueError(f"wants a whole number of {least} or more, not {one_line(repr(given))}")
    return int(given)


def _read_scaling(value: str) -> dict[str, object]:
    kind, _, factor = value.partition(":")
    if kind not in _SCALINGS:
        raise ValueError(f"is linear, ntk, dynamic_ntk or yarn, not {one_line(repr(kind))}")
    return {"scaling": kind, "factor": _number(factor, _LEAST_FACTOR)}


def _read_switch(value: str) -> dict[str, object]:
    if value not in ("", "on"):
        raise ValueError(f"takes no value, not {one_line(repr(value))}")
    return {"softmax_one": True}


def _read_leaky(value: str) -> dict[str, object]:
    window, _, slower = value.partition(":")
    return {"rerope": (_whole(window, 1), _number(slower, 1))}


def _read_window(value: str) -> dict[str, object]:
    last, _, first = value.partition(":")
    texts = (last, first or "0")
    if not all(text.isascii() and text.isdecimal() and len(text) < _MOST_DIGITS for text in texts):
        raise ValueError(f"wants two whole numbers, LAST:FIRST, not {one_line(repr(value))}")
    if int(last) < 1:
        raise ValueError("must keep at least one of the last positions: LAST is 1 or more")
    return {"window": (int(last), int(first or 0))}


def _read_kv(value: str) -> dict[str, object]:
    if value not in _KV_BITS:
        raise ValueError(f"is {' or '.join(_KV_BITS)}, not {one_line(repr(value))}")
    return {"kv": _KV_BITS[value]}


_READERS: Mapping[str, Callable[[str], dict[str, object]]] = {
    "rope_base": lambda value: {"rope_base": _number(value, 1)},
    "rope_scaling": _read_scaling,
    "dual_chunk": lambda value: {"dual_chunk": _whole(value, 2)},
    "rerope": lambda value: {"rerope": (_whole(value, 1), None)},
    "leaky_rerope": _read_leaky,
    "log_n": lambda value: {"log_n": _number(value, 1)},
    "softmax_one": _read_switch,
    "window": _read_window,
    "kv": _read_kv,
}
