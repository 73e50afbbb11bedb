"""What the end of a prompt holds of the answer: maps and directions against closed forms, and a
state that is put into a pass against the embedded model in NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from eyechart.harness.errors import COMPLETE
from eyechart.providers.base import ModelSettings
from eyechart.providers.tiny.folder import SHIPPED
from eyechart.providers.tiny.runtime import TinyModel
from eyechart_lab.probe.inside import Inside, PromptCache, ReplacedState, Watcher
from eyechart_lab.probe.measures.catalogue import QUANTITIES
from eyechart_lab.probe.measures.readout import (
    FOLDS,
    ReadAnswers,
    best_layers,
    cosines,
    held_out,
    random_cosine,
    random_largest,
)
from eyechart_lab.probe.measures.ridge import RIDGES, Ridges
from eyechart_lab.probe.measures.states import States
from eyechart_lab.probe.reading import ROUNDING, SampleReading
from eyechart_lab.probe.readout import FEW, ONE_ANSWER, ReadRow, measure_readout
from lab.tests.keeper import Keeper
from tests.conftest import Lab
from tests.hf_models import write

Floats = NDArray[Any]
IDS = [int(one) for one in np.random.default_rng(0).integers(5, 300, 24)]
OTHER = [int(one) for one in np.random.default_rng(1).integers(5, 300, 21)]


def counted(rows: int, width: int, noise: float = 0.0) -> tuple[Floats, ReadAnswers]:
    """States in which counts stand in one direction among noise of size 1, and the counts."""
    draw = np.random.default_rng(5)
    counts = draw.integers(3, 30, rows).astype(float)
    direction = np.linalg.qr(draw.normal(size=(width, 1)))[0][:, 0]
    states = draw.normal(size=(rows, width))
    states += np.outer(counts - states @ direction, direction)
    states += noise * draw.normal(size=states.shape)
    return states, ReadAnswers(counts[:, None], np.arange(rows) % FOLDS)


@pytest.mark.parametrize(("rows", "width"), [(40, 12), (12, 40)])
def test_maps_solve_the_normal_equations(rows: int, width: int) -> None:
    """With fewer rows than columns, and with more; a direction gives what is read."""
    draw = np.random.default_rng(2)
    x, y, new = (
        draw.normal(size=(rows, width)),
        draw.normal(size=(rows, 2)),
        draw.normal(size=(3, width)),
    )
    maps = Ridges(x, y)
    read = maps.read(new)
    for place, ridge in enumerate(RIDGES):
        scaled = (x - x.mean(axis=0)) / x.std(axis=0)
        square = scaled.T @ scaled + (rows * ridge + 1e-9) * np.eye(width)
        weights = np.linalg.solve(square, scaled.T @ (y - y.mean(axis=0)))
        expected = y.mean(axis=0) + (new - x.mean(axis=0)) / x.std(axis=0) @ weights
        np.testing.assert_allclose(read[place], expected, rtol=1e-4, atol=1e-6)
        along = (new - x.mean(axis=0)) @ maps.directions(place).T + y.mean(axis=0)
        np.testing.assert_allclose(read[place], along, atol=1e-6)


def test_a_count_in_the_states_is_read_and_noise_is_not() -> None:
    states, answers = counted(60, 20)
    found = held_out(states, answers, [states + 100])
    assert answers.right(found.read).all()
    assert answers.r2(found.read).mean() > 0.999
    assert not answers.right(found.others[0]).any()
    noise = np.random.default_rng(6).normal(size=states.shape)
    read = held_out(noise, answers).read
    assert answers.r2(read).mean() < 0.1
    assert answers.right(read).mean() < 0.2


def test_no_row_is_read_by_a_map_that_was_fitted_to_it() -> None:
    """States that tell each row from all others say nothing of a row that is held out."""
    _, answers = counted(60, 20)
    read = held_out(np.eye(60), answers).read
    assert answers.r2(read).mean() < 0.05


def test_few_rows_show_it_in_what_is_drawn() -> None:
    """Fewer rows than the states are wide cannot show what stands in them for certain."""

    def drawn(rows: int) -> float:
        states, answers = counted(rows, 64)
        return float(
            np.mean([one.right(held_out(states, one).read) for one in answers.like(states)])
        )

    assert drawn(200) > 0.95
    assert drawn(30) < 0.4
    states, answers = counted(20, 4)
    assert not list(answers.like(np.zeros_like(states)))


def test_symbols_are_read() -> None:
    draw = np.random.default_rng(3)
    symbols = draw.integers(0, 3, 90)
    answers = ReadAnswers(np.eye(3)[symbols], np.arange(90) % FOLDS)
    states = np.eye(3)[symbols] @ draw.normal(size=(3, 16)) + 0.05 * draw.normal(size=(90, 16))
    assert answers.right(held_out(states, answers).read).mean() > 0.95
    noise = draw.normal(size=(90, 16))
    assert answers.right(held_out(noise, answers).read).mean() < 0.6
    assert all(one.targets.shape == (90, 3) for one in answers.like(noise))


def test_the_best_layer_is_chosen_without_the_fold_that_it_reads() -> None:
    """A layer that reads one fold alone is chosen for the others, and not for that fold."""
    _, answers = counted(50, 8)
    wrong = np.broadcast_to(answers.targets + 5, (FOLDS, 50, 1)).copy()
    lucky = wrong.copy()
    lucky[:, answers.folds == 2] = answers.targets[answers.folds == 2]
    lucky[:, answers.folds != 2] += 1
    assert best_layers([wrong, lucky], answers).tolist() == [1, 1, 0, 1, 1]


def test_cosines_of_random_directions() -> None:
    """The closed form against draws; rows that are alike have a smaller largest cosine."""
    draw = np.random.default_rng(4)
    for width in (3, 128):
        directions = draw.normal(size=(20_000, width))
        size = np.abs(directions[:, 0]) / np.linalg.norm(directions, axis=1)
        assert random_cosine(width) == pytest.approx(size.mean(), rel=0.02)
    assert random_cosine(3) == pytest.approx(0.5)
    rows = draw.normal(size=(9, 128)).astype(np.float32)
    alike = (rows[:1] + 0.01 * rows).astype(np.float32)
    assert random_largest(alike, is_one=True) == pytest.approx(random_cosine(128), rel=0.1)
    # the mean of the largest of nine, of normal numbers of size 1/√128
    nine = np.abs(draw.normal(size=(20_000, 9))).max(axis=1).mean() / math.sqrt(128)
    assert random_largest(rows, is_one=True) == pytest.approx(nine, rel=0.1)
    assert random_largest(rows, is_one=False) == pytest.approx(nine, rel=0.1)


def test_cosines_of_known_directions() -> None:
    rows = np.array([[2, 0], [3, 3], [0, -1]], np.float32)
    found = cosines(np.array([[5.0, 0.0]]), rows)
    np.testing.assert_allclose(found, [1, math.sqrt(0.5), 0], atol=1e-7)
    own = cosines(np.array([[1.0, 0.0], [1.0, -1.0], [0.0, 0.0]]), rows)
    np.testing.assert_allclose(own, [1, 0, 0], atol=1e-7)


class Counter3:
    """A model of one layer whose end says the number of ones of its prompt, up to 9: tokens 0 to 9
    are digits, 11 is a one and 12 a mark at the end. Its stream before the layer is the embedding,
    and after it the count's own direction.
    """

    anatomy = type("Anatomy", (), {"shares": False})

    def forward(
        self,
        ids: Sequence[int],
        watcher: Watcher | None = None,
        *,
        replaced: ReplacedState | None = None,
        **_: Any,
    ) -> Floats:
        size = 13
        before = np.eye(size, dtype=np.float32)[[ids[-1]]]
        count = min(9, list(ids).count(11))
        if replaced is not None and replaced.layer == 0:
            before = replaced.state[None]
        after = np.eye(size, dtype=np.float32)[[count]] + before
        if replaced is not None and replaced.layer == 1:
            after = replaced.state[None]
        if watcher is not None:
            at = np.array([len(ids) - 1])
            watcher.residual(0, at, before)
            watcher.residual(1, at, after)
        return self.unembedded(after)

    def unembedded(self, states: Floats) -> Floats:
        logits = states.copy()
        logits[:, 12] = 0
        return logits

    def output_rows(self, tokens: Sequence[int]) -> Floats:
        return np.eye(13, dtype=np.float32)[list(tokens)]


def rows_of(counts: Sequence[int]) -> list[ReadRow]:
    return [
        ReadRow((11,) * one + (10,) * (9 - one) + (12,), (one,), index, 9, one)
        for index, one in enumerate(counts)
    ]


def _by_quantity(
    rows: Sequence[Sequence[SampleReading]],
) -> dict[tuple[str, int | None], list[SampleReading]]:
    found: dict[tuple[str, int | None], list[SampleReading]] = {}
    for one in (one for row in rows for one in row):
        found.setdefault((one.quantity, one.layer), []).append(one)
    return found


def test_a_model_that_counts() -> None:
    """Its last layer holds the count, ranks it first and follows a state that is put in; its
    embedding does none of it.
    """
    counts = [1 + (index * 7) % 9 for index in range(45)]
    digits = list(range(1, 10))
    found = measure_readout(cast("Inside", Counter3()), rows_of(counts), digits)
    means = _by_quantity(found.rows)
    value = {key: float(np.mean([one.value for one in every])) for key, every in means.items()}
    names = {name.removesuffix(ROUNDING) for name, _ in value}
    assert names == set(QUANTITIES["readout"])
    assert value["readable", 1] == value["best_readable", None] == value["best_layer", None] == 1
    assert value["r2", 1] > 0.99
    assert value["readable", 0] == value["position_readable", None] < 0.3
    assert value["readable_rounding", 1] == 0
    assert (value["rank", 1], value["ranked_first", 1]) == (1, 1)
    assert value["ranked_first", 0] == 0
    assert (value["stays", 0], value["follows", 0]) == (1, 0)
    assert (value["stays", 1], value["follows", 1]) == (0, 1)
    assert value["same_token", None] == 1  # all nine answers are equally common
    assert value["control_readable", 1] > 0.95
    assert value["control_readable", 0] == 0
    assert value["random_cosine", None] == pytest.approx(random_cosine(13))
    assert len(means["cosine", 1]) == 1
    assert 0.2 < value["cosine", 1] < 0.4  # (1 … 9) − 5 with each digit: mean 20 / 9 / √60


def test_a_model_that_says_a_symbol() -> None:
    """Each symbol's direction is compared with its own row of the output matrix."""
    rows = [replace(row, count=None) for row in rows_of([1 + index % 4 for index in range(40)])]
    found = measure_readout(cast("Inside", Counter3()), rows, [])
    value = {
        (name, layer): float(np.mean([one.value for one in every]))
        for (name, layer), every in _by_quantity(found.rows).items()
    }
    assert value["readable", 1] == value["best_readable", None] == 1
    assert value["readable", 0] == value["position_readable", None] < 0.4
    assert value["r2", 1] > 0.99
    assert value["control_readable", 1] > 0.9
    assert value["cosine", 1] > 0.8  # 1 at its own of four symbols, -1/3 at the others: √3 / 2
    assert value["follows", 1] == 1


def test_what_cannot_be_read_is_said() -> None:
    inside = cast("Inside", Counter3())
    assert measure_readout(inside, rows_of([1, 2, 3]), [1]).why == FEW
    assert measure_readout(inside, rows_of([4] * 20), [1]).why == ONE_ANSWER
    told = [
        ReadRow(row.ids, row.answer, row.index, 2 * (row.count or 0), row.count)
        for row in rows_of([1 + index % 9 for index in range(40)])
    ]
    assert "the length of a row alone says its answer" in measure_readout(inside, told, [1]).why


def test_pairs_differ_at_a_token_that_both_answers_have() -> None:
    """12 and 17 are compared at their second token, and 1 is not compared with 12."""
    from eyechart_lab.probe.readout import _donor

    rows = [
        ReadRow((0,), answer, index, 9, 1)
        for index, answer in enumerate([(1,), (1, 2), (1, 7), (1,)])
    ]
    assert _donor(rows[0], rows) is None
    assert _donor(rows[1], rows) is rows[2]
    assert _donor(rows[2], rows) is rows[1]


class PatchedTiny(TinyModel):
    """The embedded model in NumPy, with its stream kept and a state put into it."""

    streams: list[Floats]
    replaced: ReplacedState | None

    def watched(self, ids: Sequence[int], replaced: ReplacedState | None = None) -> Floats:
        self.streams, self.replaced = [], replaced
        return self.logits(ids)

    def _shown(self, x: Floats) -> None:
        if self.replaced is not None and self.replaced.layer == len(self.streams):
            x[self.replaced.place] = self.replaced.state
        self.streams.append(x.copy())

    def _projected(self, x: Floats, layer: Any, positions: Any) -> Floats:
        self._shown(x)
        return super()._projected(x, layer, positions)

    def _mixed(self, x: Floats, attended: Floats, layer: Any) -> Floats:
        mixed = super()._mixed(x, attended, layer)
        if layer is self._layers[-1]:
            self._shown(mixed)
        return mixed


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_a_state_put_into_the_embedded_model_does_what_it_does_in_numpy() -> None:
    """At each layer and at two places, also where the pass goes on from another one."""
    from eyechart_lab.probe.hf.inside import open_tiny

    inside, known = (
        open_tiny(ModelSettings("tiny", device="cpu")),
        cast("PatchedTiny", PatchedTiny.load(SHIPPED)),
    )
    known.watched(OTHER)
    donor = [stream[-1] for stream in known.streams]
    plain = known.watched(IDS)
    streams, size = known.streams, float(np.ptp(plain))
    last = np.stack([stream[-1] for stream in streams])
    np.testing.assert_allclose(
        inside.unembedded(last), known._normed(last) @ known._head, atol=1e-4 * size
    )
    rows = inside.output_rows([5, 70, 300])
    np.testing.assert_allclose(rows, known._head.T[[5, 70, 300]], atol=1e-5)
    trunk = PromptCache()
    inside.forward(IDS, trunk=trunk)
    for layer, state in enumerate(donor):
        for place in (len(IDS) - 1, 7):
            put_in = ReplacedState(layer, place, state)
            expected = known.watched(IDS, put_in)
            kept = Keeper()
            found = inside.forward(IDS, kept, last=len(IDS), replaced=put_in)
            np.testing.assert_allclose(found, expected, atol=1e-4 * size)
            assert np.abs(expected[-1] - plain[-1]).max() > 1e-3 * size or place == 7
            for number, stream in enumerate(known.streams):
                np.testing.assert_allclose(kept.streams[number], stream, atol=1e-3)
        put_in = ReplacedState(layer, len(IDS) - 1, state)
        (on,) = inside.forward(IDS, trunk=trunk, replaced=put_in)
        np.testing.assert_allclose(on, known.watched(IDS, put_in)[-1], atol=1e-4 * size)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["llama", "gpt2", "gptneox", "gemma2", "mamba"])
def test_states_that_are_put_in(tmp_path: Path, name: str) -> None:
    """A state's own changes nothing; the last layer's gives the other prompt's answer; all
    embeddings of another prompt make it that prompt; a row of the output matrix gives a logit.
    """
    from eyechart_lab.probe.hf.inside import open_inside

    inside = open_inside(ModelSettings(str(write(tmp_path, name)), device="cpu"))
    kept, other = (States([len(ids) - 1], frozenset(["residual"])) for ids in (IDS, OTHER))
    (own,), (its,) = inside.forward(IDS, kept), inside.forward(OTHER, other)
    size, layers = float(np.ptp(own)), inside.anatomy.layers
    end = len(IDS) - 1
    for layer in range(layers + 1):
        mine = ReplacedState(layer, end, kept.streams[layer][0])
        np.testing.assert_allclose(inside.forward(IDS, replaced=mine)[0], own, atol=1e-4 * size)
    taken = ReplacedState(layers, end, other.streams[layers][0])
    np.testing.assert_allclose(inside.forward(IDS, replaced=taken)[0], its, atol=1e-4 * size)
    again = inside.forward(IDS)[0]
    np.testing.assert_allclose(again, own, atol=1e-4 * size)  # nothing of it stays
    lens = inside.unembedded(kept.streams[layers])[0]
    assert lens.argsort().tolist()[-5:] == own.argsort().tolist()[-5:]
    if name != "gemma2":  # whose logits have a soft cap
        np.testing.assert_allclose(lens, own, atol=1e-4 * size)
    tokens = [5, 9, 200]
    products = inside.output_rows(tokens).astype(float) @ kept.streams[layers][0].astype(float)
    found = (
        lens[tokens] - inside.unembedded(np.zeros_like(kept.streams[layers]))[0][tokens]
    ).astype(float)
    np.testing.assert_allclose(found / found[0], products / products[0], rtol=1e-3)
    if inside.anatomy.shares:
        trunk = PromptCache()
        inside.forward(IDS, trunk=trunk)
        early = ReplacedState(0, 3, kept.streams[0][0])
        with pytest.raises(ValueError, match="before the positions"):
            inside.forward(IDS, trunk=trunk, replaced=early)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_the_end_of_each_prompt_is_read(lab: Lab) -> None:
    """Each row has its values; what is there is not measured again, and more rows are all read
    again.
    """
    asked = (
        *("probe", "--out", lab.out, "--model", "tiny", "--task", "counting/density"),
        *("--axis", "separator=none", "--axis", "zeros=among", "--axis", "strategy=direct"),
        *("--measure", "readout"),
    )
    few = lab.bench(*asked, "--lengths", "10")
    assert "readout is left out: a line needs 10 rows" in few.err
    assert lab.bench(*asked, "--lengths", "10,14", "--samples", "15").code == COMPLETE
    (folder,) = (lab.out / "probes" / "tiny" / "counting").iterdir()
    lines = (folder / "measured.jsonl").read_bytes().splitlines()
    assert len(lines) == 30
    rows = pd.read_csv(folder / "probe.csv").to_dict("records")
    value = {(row["quantity"], row["length"], row["layer"]): row["value"] for row in rows}
    assert value["r2", 10, 2] > 0.9
    assert value["r2", 10, 0] < 0.1
    assert value["stays", 14, 0] == value["follows", 14, 4] == 1
    assert {row["n"] for row in rows if row["quantity"] == "ranked_first"} == {15}
    lab.bench(*asked, "--lengths", "10", "--samples", "12")
    assert len((folder / "measured.jsonl").read_bytes().splitlines()) == 30
    lab.bench(*asked, "--lengths", "10", "--samples", "16")
    assert len((folder / "measured.jsonl").read_bytes().splitlines()) == 46
    table = pd.read_csv(folder / "probe.csv")
    assert set(table[table["length"] == 10]["n"]) <= {1, *range(8, 17)}
