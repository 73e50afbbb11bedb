"""What lost replies may hide, and what exact lengths with one step do not show."""

from __future__ import annotations

import json
import re

from eyechart.harness.analysis.findings.of_run import findings
from eyechart.harness.analysis.findings.served import LOST, REPEATED, STEPS
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.journal.manifest import find_runs
from eyechart.harness.settings.spelling import as_option
from eyechart.providers.base import BadRequestError, Request
from eyechart.providers.naming import spelled
from tests.conftest import Lab, right

FAILS_BEYOND, LOST_BEYOND = 120, 30


def answer(request: Request) -> str | Exception:
    """Right to a length; of every other longer row than another length the reply is lost."""
    row = request.prompt.splitlines()[-1]
    symbols = row.count("0") + row.count("1")
    if symbols > LOST_BEYOND and sum(map(ord, row)) % 2:
        return BadRequestError("400")
    return right(request) if symbols <= FAILS_BEYOND else "Final answer: 0"


def kinds(lab: Lab, *arguments: str) -> dict[str, str]:
    """Kind -> text of the findings of a run."""
    lab.bench_ask("--model", lab.fake(answer), "--keep-going", *arguments, task=lab.plain)
    found = findings(read_run(lab.the_run()))
    return {one.kind: spelled(str(one), as_option) for one in found}


def test_lost_replies_may_hide_a_shorter_length(lab: Lab) -> None:
    """Half of them are lost from 31 symbols on, and 120 are counted."""
    found = kinds(lab, "--lengths", "11,20,30,40,60,80,110,160", "--samples", "30")
    assert re.search(r"length, 1\d\d to 1\d\d symbols, would begin at 30\.", found[LOST.name])
    assert STEPS.name not in found


def test_exact_lengths_with_one_step(lab: Lab) -> None:
    """Of one that has another step nothing is said. A task that can have bands is told so."""
    asked = "--exact", "--lengths", "5,10,20", "--samples", "4"
    found = kinds(lab, *asked)
    assert "are multiples of 5" in found[STEPS.name]
    assert found[STEPS.name].endswith("may be answered worse.")
    assert LOST.name not in found
    assert STEPS.name not in kinds(lab, "--exact", "--lengths", "21", "--samples", "4")
    banded = lab.plain.with_name("banded.yaml")
    banded.write_text(lab.plain.read_text().replace("spread: none\n", ""))
    lab.bench_ask("--model", lab.fake(answer), *asked, task=banded)
    (folder,) = [one for one in find_runs(lab.out) if "banded" in str(one)]
    (said,) = [str(one) for one in findings(read_run(folder)) if one.kind == STEPS.name]
    remedy = "may be answered worse. Remedy: leave out --exact: bands have all lengths."
    assert spelled(said, as_option).endswith(remedy)


def test_equal_prompts_are_said_before_and_after(lab: Lab) -> None:
    """Of ready items: as the check of the task says it. Each item once is no finding."""
    for name, copies in (("again", 5), ("once", 1)):
        rows = [
            {"variables": {"row": "1" * length}, "target": length, "length": length}
            for length in (3, 6, 12)
            for _ in range(copies)
        ]
        folder = lab.ones.parent
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
        task = folder / f"{name}.yaml"
        task.write_text(
            f"version: 1\ntitle: x\nitems: {name}.jsonl\nanswer: integer\n"
            "prompt: 'How many ones? {{ row }} {{ phrase }}'\n"
        )
        out = lab.folder / name
        done = lab.bench("run", "--task", task, "--model", "oracle:4", "--out", out)
        assert done.code == 0
        assert ("the same prompt as in line 1" in done.err) == (copies > 1)
        (run,) = find_runs(out)
        said = {one.kind: one.sentence for one in findings(read_run(run))}
        if copies > 1:
            assert said[REPEATED.name].startswith("The 5 samples at 3 symbols have only 1 prompt:")
        else:
            assert REPEATED.name not in said
