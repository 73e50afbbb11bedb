"""Whether replies became worse, or better, in the course of a run."""

from __future__ import annotations

import pytest

from eyechart.harness.analysis.samples.drift import drift
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.providers.base import Request
from tests.conftest import Lab, right


@pytest.mark.parametrize(
    ("changes_at", "words"),
    [(99, None), (12, "became worse"), (-12, "became better")],
    ids=["never", "worse", "better"],
)
def test_a_server_that_changes_in_mid_run_is_said(
    lab: Lab, changes_at: int, words: str | None
) -> None:
    """In the terminal and on the page, by the rows that were asked later."""

    def reply(request: Request) -> str:
        index = int(request.sample_id.rpartition("index=")[2])
        late = index >= abs(changes_at)
        is_wrong = late if changes_at > 0 else not late
        return "Final answer: 9999" if is_wrong and index % 4 else right(request)

    done = lab.bench_run("--model", lab.fake(reply), "--samples", "24", "--lengths", "3,5,9")
    found = drift(read_run(lab.the_run()))
    assert (found is None) == (words is None)
    printed = " ".join(done.out.split())
    page = lab.folder / "page.html"
    assert lab.bench("report", lab.the_run(), "-o", page).code == 0
    for text in (printed, page.read_text()):
        assert ("in the course of the run" in text) == (words is not None)
        assert words is None or words in text
    assert ("--fresh asks everything again" in printed) == (words is not None)


def test_few_rows_show_no_change(lab: Lab) -> None:
    """Seven rows have too few orders."""

    def wrong_later(request: Request) -> str:
        return right(request) if "index=0" in request.sample_id else "Final answer: 9999"

    lab.bench_ask("--model", lab.fake(wrong_later), "--samples", "7")
    assert drift(read_run(lab.the_run())) is None
