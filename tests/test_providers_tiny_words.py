"""The embedded model says where a task has words that it does not know."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.plan.plan import plan
from harness.task.catalogue import built_in_files, open_task
from providers.base import ModelSettings, Request
from providers.tiny.provider import _SHIPPED, _Chat, open_provider

if TYPE_CHECKING:
    from tests.conftest import Lab

ZEBRAS = """\
version: 1
title: Zebras
generator: rows.py:ones
lengths: [3, 5]
samples: 4
prompt: |
  Please tally zebras in this herd. Write "{{ phrase }}" and then the number.
  {{ sequence }}
answer: integer
"""


@pytest.mark.parametrize(("name", "path"), built_in_files().items())
def test_it_knows_the_words_of_every_built_in_task(name: str, path: Path) -> None:
    """Under every condition."""
    chat = _Chat(_SHIPPED)
    task = open_task(name, path, trial=False)
    wanted = plan(
        task, samples=5, lengths=[10, 30], axes={axis: ["all"] for axis in task.spec.axes}
    )
    assert {word for sample in wanted for word in chat.unknown_words(sample.prompt)} == set()


def test_rows_are_no_words() -> None:
    """Nor are digits, or single letters."""
    chat = _Chat(_SHIPPED)
    assert chat.unknown_words("abba xyxy QGN 0110 z how many Zebras été Zebras") == [
        "Zebras",
        "été",
    ]


def test_unknown_words_are_said_once(lab: Lab) -> None:
    """However many samples and tasks have them; the run goes on."""
    for name in ("zebras", "more"):
        (lab.ones.parent / f"{name}.yaml").write_text(ZEBRAS)
    tasks = ",".join(str(lab.ones.parent / f"{name}.yaml") for name in ("zebras", "more"))
    done = lab.bench("run", "--task", tasks, "--model", "tiny", "--out", lab.out)
    assert done.code == 0
    (line,) = done.err.splitlines()
    assert line.startswith("bench: tiny knows only the words of the built-in tasks, and not ")
    assert "'Please', 'tally', 'zebras' and 1 more" in line
    assert "oracle:50" in line


def test_known_words_say_nothing(lab: Lab) -> None:
    """A task of one's own may have them too."""
    done = lab.bench_run("--model", "tiny", task=lab.plain)
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(("model", "lines"), [("tiny", 1), (str(_SHIPPED), 0)])
def test_of_other_models_nothing_is_known(model: str, lines: int) -> None:
    """A model in a folder may know any word; a system prompt is read as well."""
    said: list[str] = []

    async def ask() -> None:
        provider = open_provider(ModelSettings(model, system="Zebras!", notify=said.append))
        await provider.complete(Request("How many ones?", 2, sample_id="x@1|length=1"))
        await provider.aclose()

    asyncio.run(ask())
    assert len(said) == lines
