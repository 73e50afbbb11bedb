from __future__ import annotations

import gc
import weakref

import pytest

from eyechart.harness.analysis.length import equal_samples
from eyechart.harness.analysis.length.curve import Curve
from eyechart.harness.analysis.length.effective_length import effective_length
from eyechart.harness.analysis.length.equal_samples import kept_for_equal_samples
from eyechart.harness.analysis.length.fit import fit
from eyechart.harness.settings.judging import THRESHOLD
from tests.curves import shares


class Counted:
    """A function of samples, and how often it was computed."""

    def __init__(self) -> None:
        self.computed = 0
        self.of = kept_for_equal_samples(self._compute)

    def _compute(self, samples: Curve, share: float = 0.5, *, longest: float = 0) -> list[float]:
        self.computed += 1
        return [float(samples.correct.sum()), share, longest]


def test_equal_samples_are_computed_once() -> None:
    """Whichever curve holds them; other samples and other arguments have a result of their own."""
    counted = Counted()
    first = counted.of(shares(100, 70, 30))
    assert counted.of(shares(100, 70, 30)) is first
    assert counted.computed == 1
    others = [
        counted.of(shares(100, 70, 40)),
        counted.of(shares(100, 70, 30), 0.6),
        counted.of(shares(100, 70, 30), longest=9),
    ]
    assert counted.computed == 4
    assert first not in others
    assert others[1][1] == 0.6
    assert others[2][2] == 9


def test_those_asked_for_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most `MOST_KEPT`."""
    monkeypatch.setattr(equal_samples, "MOST_KEPT", 2)
    counted, samples = Counted(), shares(100, 50)
    for share in (0.1, 0.2, 0.1, 0.3, 0.1):
        counted.of(samples, share)
    assert counted.computed == 3
    counted.of(samples, 0.2)
    assert counted.computed == 4


def test_the_samples_are_not_kept() -> None:
    """A condition of a hundred thousand rows holds megabytes."""
    counted, samples = Counted(), shares(100, 50)
    counted.of(samples)
    seen = weakref.ref(samples)
    del samples
    gc.collect()
    assert seen() is None


def test_a_fit_and_an_effective_length_are_kept() -> None:
    """Each for its threshold."""
    first, second = shares(100, 90, 20), shares(100, 90, 20)
    assert fit(first, THRESHOLD) is fit(second, THRESHOLD)
    found = effective_length(first, THRESHOLD)
    assert effective_length(second, THRESHOLD) is found
    assert effective_length(second, 0.5).threshold == 0.5
