"""The embedded model says where a task has words that it does not know."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.plan.plan import plan
from eyechart.harness.task.catalogue import Task, built_in_files, open_task
from eyechart.providers.base import ModelSettings, Request
from eyechart.providers.tiny.chat import Chat
from eyechart.providers.tiny.folder import SHIPPED
from eyechart.providers.tiny.provider import open_provider
from eyechart_lab.variants.embedded.examples import KNOWN, LATER

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


def unknown(task: Task, axes: dict[str, list[str]]) -> set[str]:
    """Words of the prompts of some conditions of a task that the model does not know."""
    chat = Chat(SHIPPED)
    wanted = plan(task, samples=2, lengths=[10, 30], axes=axes)
    words = {word for sample in wanted for word in chat.unknown_words(sample.prompt)}
    return {word for word in words if len(set(word)) > 1}  # a doubled symbol of a row is no word


@pytest.mark.parametrize("name", KNOWN)
def test_it_knows_the_words_of_its_tasks(name: str) -> None:
    """Under every condition, also with the row before the question, but for the pairs of words that
    it was not trained on.
    """
    task = open_task(name, built_in_files()[name], trial=False)
    every = {axis: ["all"] for axis in task.spec.axes}
    trained = {"pair": [LATER["pair"]]} if "pair" in every else {}
    assert unknown(task, every | trained) == set()
    assert bool(unknown(task, every)) == bool(trained)


def test_it_does_not_know_other_tasks() -> None:
    """It was not trained on them, and says so."""
    others = {name: path for name, path in built_in_files().items() if name.startswith("memory/")}
    assert others
    for name, path in others.items():
        assert name not in KNOWN
        assert unknown(open_task(name, path, trial=False), {})


def test_rows_are_no_words() -> None:
    """Nor are digits, or single letters."""
    chat = Chat(SHIPPED)
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
    assert line.startswith(
        "bench: tiny knows only the words of the tasks it was trained on, and not "
    )
    assert "'Please', 'tally', 'zebras' and 1 more" in line
    assert "oracle:50" in line


def test_known_words_say_nothing(lab: Lab) -> None:
    """A task of one's own may have them too."""
    done = lab.bench_run("--model", "tiny", task=lab.plain)
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(("model", "lines"), [("tiny", 1), (str(SHIPPED), 0)])
def test_of_other_models_nothing_is_known(model: str, lines: int) -> None:
    """A model in a folder may know any word; a system prompt is read as well."""
    said: list[str] = []

    async def ask() -> None:
        provider = open_provider(ModelSettings(model, system="Zebras!", notify=said.append))
        await provider.complete(Request("How many ones?", 2, sample_id="x@1|length=1"))
        await provider.aclose()

    asyncio.run(ask())
    assert len(said) == lines
