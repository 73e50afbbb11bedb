"""Long texts on a page: their middle is left out, which is said, and the answer stays marked."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from typing import Any

import pytest

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.plan.plan import plan
from eyechart.harness.plan.resolved_model import resolve_model
from eyechart.harness.report.page.cut_texts import MOST
from eyechart.harness.report.page.packed_samples import FIELDS, pack_samples
from eyechart.harness.report.page.section import sections
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.spec import Settings
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import Request
from tests.conftest import Lab, right

LONG = 10 * MOST


def texts(lab: Lab, script: Any, wanted: RunRequest | None = None) -> list[dict[str, Any]]:
    """The texts of a page's samples, each by field."""
    wanted = wanted or lab.wanted(samples=2, lengths=[3])
    lab.asked(wanted, script)
    (section,) = sections([read_run(wanted.folder)])
    packed = pack_samples([(section.name, run) for run in section.runs])
    chunks = (json.loads(gzip.decompress(b64decode(chunk))) for chunk in packed.chunks)
    return [dict(zip(FIELDS, row, strict=True)) for chunk in chunks for row in chunk]


@pytest.mark.parametrize(("before", "after"), [(LONG, 0), (LONG, LONG), (0, LONG)])
def test_a_long_reply_is_cut(lab: Lab, before: int, after: int) -> None:
    """The page says how much is left out, and where the whole reply is."""

    def script(request: Request) -> str:
        return f"{'a ' * (before // 2)}\n{right(request)}\n{'b ' * (after // 2)}"

    for text in texts(lab, script):
        reply = text["reply"]
        assert reply[text["start"] : text["end"]] == text["target"]
        counts = re.findall(
            r"\[… ([0-9,]+) characters left out; the run's samples\.jsonl has them …\]", reply
        )
        assert len(counts) == (before > 0) + (after > 0)
        left_out = sum(int(count.replace(",", "")) for count in counts)
        whole = len(script_text(before, after, text["target"]))
        kept = len(re.sub(r"\[… .*? …\]", "", reply))
        assert kept + left_out == whole
        assert kept <= MOST


def script_text(before: int, after: int, target: str) -> str:
    return f"{'a ' * (before // 2)}\nFinal answer: {target}\n{'b ' * (after // 2)}"


def test_a_reply_without_an_answer_is_cut(lab: Lab) -> None:
    """Its beginning and its end are shown."""
    for text in texts(lab, lambda _request: f"begins {'x' * LONG} ends"):
        assert text["reply"].startswith("begins x")
        assert text["reply"].endswith("x ends")
        assert len(text["reply"]) < MOST + 100


def test_a_short_reply_is_whole(lab: Lab) -> None:
    """Nothing is said of it."""
    for text in texts(lab, right):
        assert text["reply"] == f"Final answer: {text['target']}"


def test_a_long_prompt_is_cut_once(lab: Lab) -> None:
    """The page says how much is left out, and how to see the whole prompt."""
    name = "context/ones"
    task = open_task(name, built_in_files()[name], trial=False)
    planned = plan(task, lengths=[5], samples=2, axes={"context": ["tokens_32k"]})
    wanted = RunRequest(planned, resolve_model("scripted/test"), Settings(), lab.out)
    for text in texts(lab, right, wanted):
        parts = re.split(
            r"\[… ([0-9,]+) characters left out; 'bench samples --full' prints them …\]",
            text["prompt"],
        )
        start, count, end = parts
        assert len(start + end) == MOST
        assert int(count.replace(",", "")) > 100_000
