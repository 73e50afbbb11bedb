"""What a command names, and the warning about rows that are all equal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from eyechart.harness.errors import TaskError
from eyechart.harness.plan.selection import plans, repeats, twins
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.harness.task.catalogue import built_in_files
from eyechart.providers.naming import in_python

if TYPE_CHECKING:
    from eyechart.harness.plan.plan import Plan
    from tests.conftest import Lab


def planned(task: str, **options: Any) -> Plan:
    """The plan of one task."""
    (made,) = plans(RunSettings.read(task=task, **options))
    return made


@pytest.mark.parametrize("failing", [16, 50, 158])
def test_bands_are_tried_at_both_ends_and_at_the_nominal_length(failing: int, lab: Lab) -> None:
    """A length that the task cannot make is known before anything is asked."""
    lab.with_bands()
    (lab.ones.parent / "rows.py").write_text(
        "from eyechart.harness.spec import Item\n\n\ndef ones(rng, length):\n"
        f"    return Item(['1'] * (length - (length == {failing})), length)\n"
    )
    with pytest.raises(TaskError, match=f"at length {failing}"):
        planned(str(lab.ones), lengths="5,50,500")


@pytest.mark.parametrize(
    ("task", "options", "remedy"),
    [
        ("counting/ones", {"lengths": "10,50", "exact": True}, "; without exact the length varies"),
        ("counting/ones", {"exact": True}, "; without exact the length varies"),
        ("counting/ones", {"lengths": "50"}, "; two or more lengths vary"),
        ("counting/sum", {"lengths": "50"}, "; two or more lengths vary"),
        ("counting/ones", {"lengths": "10,11,12"}, "; lengths that are farther apart vary"),
        ("counting/ones", {"lengths": "50", "samples": 1}, None),
        ("counting/ones", {}, None),
        ("counting/ones", {"lengths": "10,50"}, None),
        ("counting/bernoulli", {"lengths": "10,50"}, None),
        ("counting/words", {"lengths": "50"}, None),
    ],
)
def test_equal_rows_are_said(task: str, options: dict[str, Any], remedy: str | None) -> None:
    """Only where all samples of a cell have the same row and the same target."""
    warning = repeats(planned(task, **options))
    if remedy is None:
        assert warning is None
    else:
        assert warning is not None
        assert warning.startswith(f"{task}: at an exact length all rows are equal, so samples")
        assert remedy in in_python(warning)


def test_the_command_says_it_once_for_each_task(lab: Lab) -> None:
    """On stderr, also where nothing is sent."""
    dry: tuple[tuple[str, ...], ...] = ((), ("--dry-run",))
    for more in dry:
        tasks = "counting/ones,counting/bernoulli"
        options = ["--model", "tiny", "--samples", "2", "--lengths", "5,7", "--exact", *more]
        done = lab.bench("run", "--task", tasks, *options, "--out", lab.out)
        assert done.err.count("all rows are equal") == 1, done
        assert "all rows" not in done.out


def test_shown_tasks_have_their_lines(lab: Lab) -> None:
    """Before their prompts."""
    done = lab.bench("tasks", "show", "separators/letters")
    assert "# lines: 10, 12 (11–13), 15 (14–16), 18 (17–19), 22 (20–24)" in done.out


def test_conditions_with_equal_prompts_are_said(lab: Lab) -> None:
    """Nothing is around a row, whatever it would be and where; by name of a pair, once a task."""
    axes = ("--axis", "context=none,tokens_1k", "--axis", "filler=text,blank")
    sizes = ("--lengths", "5,9", "--samples", "2")
    arguments = ("run", "--task", "context/ones", "--model", "tiny", *sizes, *axes, "--dry-run")
    (line,) = lab.bench(*arguments).lines
    assert "context/ones: 1 of 4 conditions have the same prompts as another one, such as " in line
    assert "such as [context=none, filler=blank] as [context=none, filler=text]; --axis " in line


def test_no_built_in_task_asks_the_same_twice() -> None:
    """Unless it is asked to."""
    assert [name for name in built_in_files() if twins(planned(name))] == []
