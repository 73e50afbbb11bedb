"""Prompts that begin alike: what they share is computed once, with the values of plain passes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyechart_lab.probe.inside import Inside, Precision, PromptCache, shared
from eyechart_lab.probe.passes import Row, Scene, measure
from eyechart_lab.probe.places import Places
from eyechart_lab.probe.reading import ROUNDING
from lab.tests.keeper import Keeper
from lab.tests.test_probe_hf import WATCHED, changed, opened
from tests.hf_models import write

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # theirs, not ours
MEASURES = ("answer", "collapse", "attention", "residual", "rotary")
ROW = [int(one) for one in np.random.default_rng(3).integers(10, 50, 31)]
BEHIND = [51, 52, 53, 54]


def scene(symbols: int) -> Scene:
    """A prompt of two tokens, a row, and four tokens behind it."""
    row = tuple(range(2, 2 + symbols))
    return Scene((7, 8, *ROW[:symbols], *BEHIND), (55, 56), Places(row, row))


def rows_of(names: Sequence[str] = MEASURES, lengths: Sequence[int] = (5, 17, 30)) -> list[Row]:
    return [Row(scene(length), scene(length + 1), names) for length in lengths]


def values_of(inside: Any, rows: Sequence[Row]) -> list[dict[Any, float]]:
    return [
        {
            (name, one.quantity, one.layer, one.head): one.value
            for name, readings in found.readings.items()
            for one in readings
        }
        for found in measure(inside, rows)
    ]


class Counting:
    """Notes how many positions each pass computes."""

    def __init__(self, inside: Any) -> None:
        self._inside, self.anatomy = inside, inside.anatomy
        self.computed: list[int] = []

    def forward(self, ids: Sequence[int], *args: Any, **options: Any) -> Any:
        trunk: PromptCache | None = options.get("trunk")
        start = 0 if trunk is None else trunk.start(ids, options.get("last", 1))
        self.computed.append(len(ids) - start)
        return self._inside.forward(ids, *args, **options)


def check_family(inside: Any) -> None:
    """Every value of rows that are measured together is that of the row alone, without a trunk."""
    rows = rows_of(MEASURES if inside.anatomy.rotary_base else MEASURES[:-1])
    together = Counting(inside)
    found = values_of(together, rows)
    whole = [len(one.ids) for row in rows for one in (row.scene, row.twin) if one is not None]
    longest = max(whole) + 1  # the longest row has a token of its answer more than its twin
    for passes in np.split(np.array(together.computed), 2):
        assert len(passes) == len(whole)
        assert longest - 1 <= passes[0] <= longest
        assert passes[1:].max() <= len(BEHIND) + 2
    for row, values in zip(rows, found, strict=True):
        alone = Counting(inside)
        alone.anatomy = type(inside.anatomy)(
            **{name: getattr(inside.anatomy, name) for name in inside.anatomy.__slots__}
            | {"shares": False}
        )
        (expected,) = values_of(alone, [row])
        assert values.keys() == expected.keys()
        for key, value in expected.items():
            if key[1].endswith((ROUNDING, "_bfloat16")):
                continue  # another order of the same sums is rounded in another way
            assert values[key] == pytest.approx(value, rel=1e-3, abs=1e-4), key


def check_trunk(inside: Inside, precision: Precision) -> None:
    """Logits, and everything that is shown of the positions behind the common beginning."""
    ids, trunk = (7, 8, *ROW, *BEHIND), PromptCache()
    longer = inside.forward(ids, trunk=trunk, precision=precision)
    np.testing.assert_array_equal(longer, inside.forward(ids, precision=precision))
    branch = (*ids[:20], *BEHIND, 9)
    assert trunk.start(branch) == shared(ids, branch) == 20
    assert trunk.start(ids, last=3) == len(ids) - 3
    found, whole = Keeper(), Keeper()
    logits = inside.forward(branch, found, trunk=trunk, precision=precision, last=2)
    expected = inside.forward(branch, whole, precision=precision, last=2)
    near = 1e-4 if precision == "float32" else 0.05
    np.testing.assert_allclose(logits, expected, atol=near * float(np.ptp(expected)))
    for layer, states in whole.streams.items():
        size = near * float(np.abs(states).max())
        np.testing.assert_allclose(found.streams[layer], states[20:], atol=size)
    for layer, blocks in whole.weights.items():
        weights = np.concatenate(blocks, axis=1)[:, 20:]
        shown = np.concatenate(found.weights[layer], axis=1)
        np.testing.assert_allclose(shown, weights, atol=near)
        np.testing.assert_allclose(found.keys[layer][0], whole.keys[layer][0][20:], atol=near * 30)


def test_nothing_is_computed_for_what_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watcher is shown its own positions, and collapse those of the last symbol and the end."""
    shown: dict[str, set[int]] = {}
    inside = opened(write(tmp_path, "llama"))
    forward = inside.forward

    def spy(ids: Sequence[int], watcher: Any = None, **options: Any) -> Any:
        for event, wanted in watcher.wants.items():
            shown.setdefault(event, set()).add(-1 if wanted is None else len(wanted))
        return forward(ids, watcher, **options)

    monkeypatch.setattr(inside, "forward", spy)
    list(measure(inside, rows_of(["collapse"])))
    assert max(max(counts) for counts in shown.values()) <= 2 * 6
    assert min(min(counts) for counts in shown.values()) > 0


@pytest.mark.parametrize("name", WATCHED)
def test_families_of_hugging_face(tmp_path: Path, name: str) -> None:
    """With grouped heads, windows, soft caps, and without rotary positions."""
    inside = opened(write(tmp_path, name))
    assert inside.anatomy.shares
    check_family(inside)


@pytest.mark.parametrize(
    "change",
    ["rope_scaling=yarn:2", "log_n=8", "softmax_one", "window=8:2", "rerope=9", "dual_chunk=16"],
)
def test_families_and_trunks_under_changes(tmp_path: Path, change: str) -> None:
    inside = changed(write(tmp_path, "llama"), change)
    check_family(inside)
    check_trunk(inside, "float32")
    check_trunk(inside, "bfloat16")


def test_a_model_that_cannot_share_is_measured_plainly(tmp_path: Path) -> None:
    """A state-space model has no keys to go on from."""
    inside = opened(write(tmp_path, "mamba"))
    assert not inside.anatomy.shares
    trunk = PromptCache()
    logits = inside.forward(ROW, trunk=trunk)
    assert trunk.ids == ()
    np.testing.assert_allclose(logits, inside.forward(ROW), atol=1e-5)
