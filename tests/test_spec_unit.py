"""The unit of a task's lengths, in sentences, on axes and in exports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.plan.selection import open_tasks
from eyechart.harness.spec.unit import length_title, singular
from tests.conftest import Lab
from tests.pages import text_of

TASK = """\
version: 1
title: Words
unit: words
generator: rows.py:ones
lengths: [5, 10, 20]
samples: 8
prompt: "{{ sequence }} {{ phrase }}"
answer: integer
"""


def task(folder: Path, text: str = TASK) -> Path:
    """A task whose rows are words."""
    (folder / "rows.py").write_text(
        "from eyechart import Item\n\n\ndef ones(rng, length):\n"
        "    row = [rng.choice('ab') for _ in range(length)]\n    return Item(row, length)\n"
    )
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("unit", "one"),
    [
        ("symbols", "symbol"),
        ("words", "word"),
        ("entries", "entry"),
        ("boxes", "box"),
        ("batches", "batch"),
        ("classes", "class"),
        ("lines of text", "lines of text"),
    ],
)
def test_one_of_a_unit(unit: str, one: str) -> None:
    """Plain English plurals."""
    assert singular(unit) == one


def test_an_axis_over_several_units_names_none() -> None:
    """One title stands over the lengths of all tasks of a page."""
    assert length_title(["words", "words"]) == "length (words)"
    assert length_title(["words", "tokens"]) == "length"


def test_sentences_name_the_unit(lab: Lab) -> None:
    """Of a run and of a comparison; "symbols" is said nowhere."""
    path = task(lab.folder)
    for far in ("7", "15"):
        lab.bench_ask("--task", path, "--model", f"oracle:{far}", "--out", lab.out)
    runs = sorted(str(run) for run in (lab.out / "runs").glob("oracle/*/*/*"))
    scored = lab.bench("score", *runs)
    compared = lab.bench("compare", *runs)
    assert "words" in scored.out
    assert "words against" in " ".join(compared.out.split())
    assert "symbol" not in scored.out + compared.out
    page = lab.folder / "page.html"
    lab.bench("report", *runs, "-o", page)
    assert "length (words)" in text_of(page)
    assert "symbols)" not in page.read_text(encoding="utf-8").partition("<script")[0]


def test_the_unit_is_no_part_of_the_identity(lab: Lab) -> None:
    """It changes no prompt and no verdict; a run keeps it in its manifest."""
    path = task(lab.folder)
    digest = open_tasks(str(path))[0].spec.digest()
    lab.bench_ask("--task", path, "--model", "oracle:7", "--out", lab.out)
    assert read_run(lab.the_run()).spec.unit == "words"
    task(lab.folder, TASK.replace("unit: words\n", ""))
    assert open_tasks(str(path))[0].spec.digest() == digest


@pytest.mark.parametrize("unit", ["Words", "5", '""', "words!"])
def test_a_unit_is_a_plain_word(lab: Lab, unit: str) -> None:
    """It stands in sentences, so nothing else fits."""
    path = task(lab.folder, TASK.replace("words\n", f"{unit}\n", 1))
    done = lab.bench("tasks", "check", path)
    assert done.code == 2
    assert "unit" in done.err


def test_an_export_names_the_unit(lab: Lab) -> None:
    """In the description and as the unit of the metric."""
    path = task(lab.folder)
    lab.bench_ask("--task", path, "--model", "oracle:7", "--out", lab.out)
    out = lab.folder / "shared"
    lab.bench("export", "every-eval-ever", lab.the_run(), "--no-samples", "-o", out)
    texts = [file.read_text() for file in out.rglob("*.json")]
    assert any('"metric_unit": "words"' in json.dumps(json.loads(text)) for text in texts)
