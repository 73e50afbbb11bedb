"""The outcomes: one entry each, and a new one goes through every door."""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.report.charts.looks import SERIES_LIGHT
from eyechart.harness.score.outcomes import OUTCOMES, Outcome
from tests.one_more import with_entry
from tests.pages import text_of

if TYPE_CHECKING:
    from pathlib import Path

STALLED = 'STALLED = "stalled", OutcomeFacts("s", 7, "the reply never ended", failure=True)\n    '
RECORD_IT = """
from pathlib import Path
import json
(file,) = Path("out").rglob("samples.jsonl")
first, *others = map(json.loads, file.read_text().splitlines())
del first["reply"]
first["failure"] = {"kind": "stalled", "type": "Stalled", "message": ""}
file.write_text("".join(json.dumps(line) + "\\n" for line in [first, *others]))
"""
COUNT_IN_INSPECT = """
from pathlib import Path
from importlib.util import find_spec
if find_spec("inspect_ai"):
    from eyechart.harness.satellites.export.inspect_ai.scores import by_outcome
    Path("inspect.txt").write_text(" ".join(by_outcome()([])))
"""
RUN = "out/runs/oracle/50/counting/ones@1-*"
STEPS: list[list[str] | str] = [
    [
        *("run", "--task", "counting/ones", "--model", "oracle:50", "--axis", "separator=none"),
        *("--lengths", "5,10", "--samples", "4", "--out", "out"),
    ],
    RECORD_IT,
    ["score", RUN],
    ["samples", RUN, "--outcome", "stalled", "--json"],
    ["report", RUN, "-o", "page.html"],
    ["leaderboard", RUN, "-o", "board.csv"],
    ["export", "every-eval-ever", RUN, "--model-id", "me/it"],
    ["samples", "--help"],
    COUNT_IN_INSPECT,
]


def test_every_entry_is_told_apart() -> None:
    """By its name, its letter, and its colour where it is scored."""
    letters = {outcome.about.letter for outcome in Outcome}
    assert len(letters) == len(set(OUTCOMES)) == len(OUTCOMES)
    assert set(map(len, letters)) == {1}
    inks = [outcome.about.ink for outcome in Outcome if outcome.about.scored]
    assert len(set(inks)) == len(inks)
    assert set(inks) <= set(range(1, len(SERIES_LIGHT) + 1))
    assert [OUTCOMES[outcome.place] for outcome in Outcome] == list(OUTCOMES)
    assert [Outcome.named(name) for name in OUTCOMES] == list(Outcome)


def test_each_stage_holds_the_next() -> None:
    """What was answered was judged, what was judged is scored, what is scored has a record."""
    for about in (outcome.about for outcome in Outcome):
        assert about.answered <= about.judged <= about.scored <= about.recorded
        assert not (about.failure and about.judged)
    with pytest.raises(KeyError):
        Outcome.named("unknown")


def test_a_new_outcome_is_one_entry(tmp_path: Path) -> None:
    """It has its column, letter, colour and filter, and it is in the exports."""
    said = with_entry(tmp_path, "outcomes", "NOT_RUN = (", STALLED, STEPS)
    assert [code for code, _, _ in said] == [0] * len(said), said
    _, scored, shown, *_, helped = said
    (folder,) = tmp_path.glob(RUN)
    assert "1 correct now stalled" in scored[2]
    assert re.search(r"\| +stalled \| +1 \|", scored[1])
    with (folder / "table.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = ("n", "correct", "stalled", "not_run")
    assert [[row[name] for name in names] for row in rows] == [list("4310"), list("4400")]
    verdicts = json.loads((folder / "verdicts.json").read_bytes())
    assert [cell["outcomes"] for cell in verdicts["cells"]] == ["sccc", "cccc"]
    sample = json.loads(shown[1])
    assert (sample["outcome"], sample["why"]) == ("stalled", "stalled")
    assert "error, stalled." in " ".join(helped[1].split())
    page = text_of(tmp_path / "page.html")
    assert '"stalled":"var(--s7)"' in page
    assert '<i class="block" style="background:var(--s7)"></i>stalled' in page
    (record,) = (tmp_path / "every-eval-ever").rglob("*[0-9a-f].json")
    assert '"stalled": "1"' in record.read_text(encoding="utf-8")
    (samples,) = (tmp_path / "every-eval-ever").rglob("*_samples.jsonl")
    assert '"error":"stalled: stalled"' in samples.read_text(encoding="utf-8")
    counted = tmp_path / "inspect.txt"
    assert not counted.exists() or counted.read_text().endswith("error stalled")
