"""How many rows of a line have an answer that the training had."""

from __future__ import annotations

from pathlib import Path

import pytest

from eyechart.harness.plan.plan import plan
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart_lab.variants.asking import read_csv
from eyechart_lab.variants.ceilings import ceilings, known_answers
from eyechart_lab.variants.reading import read_lab
from eyechart_lab.variants.training.data import TrainingTask

HERE = Path(__file__).parents[2] / "results" / "laboratory"


def learnt(name: str, *, longest: int, lengths: list[int], samples: int = 40) -> TrainingTask:
    """A task, trained from 3 symbols on."""
    task = open_task(name, built_in_files()[name], trial=False)
    axes = {axis: [about.default[0]] for axis, about in task.spec.axes.items()}
    asked = plan(task, lengths=lengths, samples=samples, axes=axes, exact=True)
    return TrainingTask(asked, 1.0, 3, longest)


def shares(*of: TrainingTask) -> dict[int, float]:
    """Length -> share, of the first task."""
    name = of[0].plan.task.name
    return {length: share for (task, _, length), share in ceilings(of).items() if task == name}


def test_a_longer_row_of_ones_has_no_known_answer() -> None:
    """Its count is its length."""
    ones = learnt("counting/ones", longest=8, lengths=[3, 8, 9, 40], samples=2)
    assert known_answers([ones]) == {str(count) for count in range(3, 9)}
    assert shares(ones) == {3: 1, 8: 1, 9: 0, 40: 0}


def test_a_longer_row_of_zeros_and_ones_may_have_one() -> None:
    """Of fewer rows the longer they are."""
    bernoulli = learnt("counting/bernoulli", longest=20, lengths=[10, 24, 30, 60])
    found = shares(bernoulli)
    assert found[10] == 1
    assert 1 > found[24] > found[30] > found[60] == 0


def test_a_model_may_have_learned_an_answer_from_another_task() -> None:
    """The ceiling is that of the whole training."""
    bernoulli = learnt("counting/bernoulli", longest=20, lengths=[30])
    ones = learnt("counting/ones", longest=30, lengths=[5], samples=2)
    assert shares(bernoulli, ones)[30] == 1 > shares(bernoulli)[30]


@pytest.mark.parametrize(
    "name",
    [
        "copying/first_last",
        "bounded/selective",
        "bounded/majority",
        "bounded/modulo",
        "bounded/parity",
        "bounded/neighbors_match",
        "memory/flip_flop",
    ],
)
def test_bounded_tasks_have_no_ceiling(name: str) -> None:
    """Ten ones are the fewest that have all remainders."""
    assert set(shares(learnt(name, longest=12, lengths=[20, 500], samples=5)).values()) == {1}


def test_the_published_rows_have_the_ceilings_of_their_studies() -> None:
    """Those of one study; the answers do not depend on the models."""
    study = HERE / "positions_ones.yaml"
    found = read_lab(study).ceilings
    rows = read_csv(study.with_suffix(".csv"))
    assert {cell.ceiling for cell in rows} == {0.0, 1.0}
    for cell in rows:
        assert cell.ceiling == found[cell.task, cell.condition, cell.length or 0]
