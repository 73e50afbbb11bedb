"""What a command names, and the warning about rows that are all equal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import eyechart
from eyechart.harness.errors import PlanError, TaskError
from eyechart.harness.journal.manifest import read_manifest
from eyechart.harness.plan.selection import plans, repeats, twins
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.harness.task.catalogue import built_in_files
from eyechart.providers.naming import in_python
from tests.conftest import right

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
    (lab.ones.parent / "rows.py").write_text(
        "from eyechart.harness.spec import Item\n\n\ndef ones(rng, length):\n"
        f"    return Item(['1'] * (length - (length == {failing})), length)\n"
    )
    with pytest.raises(TaskError, match=f"at length {failing}"):
        planned(str(lab.ones), lengths="5,50,500", spread="bands")


@pytest.mark.parametrize(
    ("task", "options", "remedy"),
    [
        ("counting/ones", {"lengths": "10,50"}, "; spread='bands' varies the length"),
        ("counting/ones", {"spread": "none"}, "; spread='bands' varies the length"),
        ("counting/ones", {"lengths": "50"}, "; two or more lengths with spread='bands' vary"),
        ("counting/sum", {"lengths": "50"}, "; two or more lengths with spread='bands' vary"),
        (
            "counting/ones",
            {"lengths": "10,11,12", "spread": "bands"},
            "; lengths that are farther apart vary the length with spread='bands'",
        ),
        ("counting/ones", {"lengths": "10,11,12"}, "; lengths that are farther apart vary"),
        ("counting/ones", {"lengths": "50", "samples": 1}, None),
        ("counting/ones", {}, None),
        ("counting/ones", {"lengths": "10,50", "spread": "bands"}, None),
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
        options = ["--model", "tiny", "--samples", "2", "--lengths", "5,7", *more]
        done = lab.bench("run", "--task", tasks, *options, "--out", lab.out)
        assert done.err.count("all rows are equal") == 1, done
        assert "all rows" not in done.out


def test_a_wrong_spread_is_one_line(lab: Lab) -> None:
    """For `run` and the exports of tasks."""
    lab.bench_run("--spread", "all").one_line(2, "--spread must be bands, fifth or none, not 'all'")
    for form in ("batch", "lm-eval", "verifiers"):
        command = ["export", form, "--task", lab.ones, "--spread", "all", "-o", lab.folder / "x"]
        model = ["--model", lab.model()] if form == "batch" else []
        lab.bench(*command, *model).one_line(2, "--spread must be bands, fifth or none, not 'all'")


PRESETS = """\
presets:
  paper:
    title: as in a paper
    lengths: [4, 6]
    spread: none
    samples: 3
    axes: {separator: [space]}
  commas: {title: commas alone, axes: {separator: [comma]}}
"""


def with_presets(lab: Lab) -> Lab:
    lab.ones.write_text(lab.ones.read_text() + PRESETS)
    return lab


def test_a_preset_is_under_the_options_and_over_the_task(lab: Lab) -> None:
    """What it leaves out is the task's."""
    task = str(with_presets(lab).ones)
    paper = planned(task, preset="paper")
    assert [str(line) for line in paper.lines] == ["4", "6"]
    assert (paper.samples, [c["separator"] for c in paper.conditions]) == (3, ["space"])
    commas = planned(task, preset="commas")
    assert [str(line) for line in commas.lines] == [str(line) for line in planned(task).lines]
    assert (commas.samples, [c["separator"] for c in commas.conditions]) == (4, ["comma"])
    given = planned(task, preset="paper", lengths="9", samples=1, axes=["separator=none,comma"])
    assert ([str(line) for line in given.lines], given.samples) == (["9"], 1)
    assert [c["separator"] for c in given.conditions] == ["none", "comma"]
    banded = planned(task, preset="paper", spread="bands")
    assert [str(line) for line in banded.lines] == ["4", "6 (5–6)"]


def test_a_preset_changes_no_sample_and_no_run(lab: Lab) -> None:
    """A file with presets has the digest, and so the folder, of the one without."""
    before = lab.wanted()
    after = with_presets(lab).wanted()
    assert (after.folder, list(after.plan)) == (before.folder, list(before.plan))


def test_the_command_runs_a_preset(lab: Lab) -> None:
    """The tasks without it are named and left out; a name that no task has is one line."""
    tasks = f"{with_presets(lab).ones},{lab.plain}"
    options = ("--preset", "paper", "--model", lab.fake(right), "--out", lab.out)
    done = lab.bench("run", "--task", tasks, *options)
    assert done.code == 0
    assert "left out, as they have no preset 'paper': lab/plain" in done.err
    manifest = read_manifest(lab.the_run())
    assert {cell.condition.label for cell in manifest.cells} == {"separator=space"}
    assert [(cell.length, cell.samples) for cell in manifest.cells] == [(4, 3), (6, 3)]
    shown = lab.bench("run", "--task", lab.ones, *options, "--dry-run")
    assert "lengths     4, 6\n" in shown.out
    wrong = lab.bench("run", "--task", tasks, "--preset", "papre", "--model", "tiny")
    wrong.one_line(2, "no preset 'papre'", "did you mean 'paper'?")
    named = lab.bench("tasks", "show", lab.ones)
    assert "# --preset paper, 6 requests: as in a paper\n" in named.out


def test_other_commands_take_presets(lab: Lab) -> None:
    """Python, both exports, and a file with defaults."""
    with_presets(lab)
    run = eyechart.run(lab.ones, lab.fake(right), preset="paper", out=lab.out)
    assert {row["length"] for row in run.cells.to_dict("records")} == {4, 6}
    with pytest.raises(PlanError, match="task 'lab/ones' has no preset 'x'; it has paper, commas"):
        eyechart.run(lab.ones, "tiny", preset="x", out=lab.out)
    batch = lab.folder / "batch.jsonl"
    asked = ("-t", lab.ones, "-m", "gpt-4o", "--preset", "paper", "--out", lab.out)
    lab.bench("export", "batch", *asked, "-o", batch)
    assert len(batch.read_text().splitlines()) == 6
    files = lab.bench("export", "lm-eval", "-t", lab.ones, "--preset", "paper", "-o", lab.out / "x")
    assert files.err.startswith("6 samples in 2 tasks")
    lab.monkeypatch.chdir(lab.folder)
    (lab.folder / "bench.toml").write_text('preset = "commas"\n')
    done = lab.bench("run", "--task", lab.ones, "--model", "tiny", "--dry-run", "--out", lab.out)
    assert "separator=comma" in done.out
    assert "separator=none" not in done.out


def test_shown_tasks_have_their_lines(lab: Lab) -> None:
    """Before their prompts."""
    done = lab.bench("tasks", "show", "separators/letters")
    assert "# lines: 10, 12 (11–13), 15 (14–16), 18 (17–19), 22 (20–24)" in done.out


def test_conditions_with_equal_prompts_are_said(lab: Lab) -> None:
    """Nothing is around a row, whatever it would be and where; by name of a pair, once a task."""
    axes = ("--axis", "context=none,tokens_1k", "--axis", "filler=text,blank")
    sizes = ("--lengths", "5,9", "--spread", "bands", "--samples", "2")
    arguments = ("run", "--task", "context/ones", "--model", "tiny", *sizes, *axes, "--dry-run")
    (line,) = lab.bench(*arguments).lines
    assert "context/ones: 1 of 4 conditions have the same prompts as another one, such as " in line
    assert "such as [context=none, filler=blank] as [context=none, filler=text]; --axis " in line


def test_no_built_in_task_asks_the_same_twice() -> None:
    """Unless it is asked to."""
    assert [name for name in built_in_files() if twins(planned(name))] == []
