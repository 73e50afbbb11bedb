"""Replies that a model would give if it knew the answer to a sample, or missed it by little."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping

from eyechart.harness.plan.plan import sample_from_id, task_of_id
from eyechart.harness.spec import Sample
from eyechart.harness.spec.answer import Answer
from eyechart.harness.task.catalogue import Task
from eyechart.providers.base import OracleAnswer

Speak = Callable[[str, str], str]

PERFECT: Mapping[str, Speak] = {
    "plain": lambda phrase, answer: f"{phrase} {answer}",
    "after reasoning": lambda phrase, answer: (
        "Let me go through the row: 3 here, then 4 more, with a 9 that I had to check.\n\n"
        f"{phrase} {answer}"
    ),
    "bold": lambda phrase, answer: f"**{phrase} {answer}**",
    "bold phrase": lambda phrase, answer: f"**{phrase}** {answer}",
    "in a sentence": lambda phrase, answer: f"Having looked at all of it. {phrase} {answer}.",
    "boxed": lambda phrase, answer: f"{phrase} $\\boxed{{{answer}}}$",
    "boxed text": lambda phrase, answer: f"{phrase} \\boxed{{\\text{{{answer}}}}}",
    "code": lambda phrase, answer: f"{phrase} `{answer}`",
    "quoted": lambda phrase, answer: f'{phrase} "{answer}"',
    "after thinking": lambda phrase, answer: (
        f"<think>Is it 12? {phrase} 13, no.</think>\n{phrase} {answer}"
    ),
}
"""Ways to write a right answer."""


def right_replies(sample: Sample, answer: Answer) -> Iterator[tuple[str, str]]:
    """Right replies, each with the name of its way of writing.

    A target with quotation marks is not put in quotes, since nobody could say which marks belong to
    it.
    """
    target = str(sample.target)
    for name, speak in PERFECT.items():
        if name != "quoted" or '"' not in target:
            yield name, speak(answer.first_phrase, target)
    for phrase in answer.phrase[1:]:
        yield f"phrase {phrase!r}", f"{phrase} {target}"
    others = ((f"accepted answer {other!r}", other) for other in sample.accept)
    for name, other in (*others, *answer.kind.right_forms(sample.target, answer)):
        yield name, f"{answer.first_phrase} {other}"


def knower(tasks: Iterable[Task]) -> Callable[[str], OracleAnswer]:
    """The knowledge of the built-in model `oracle`: the id of a sample of `tasks` -> its length, a
    right reply and a wrong one, and the right replies of its earlier turns. Samples are made again
    from their ids.
    """
    by_name = {task.name: task for task in tasks}

    def known(identifier: str) -> OracleAnswer:
        task = by_name[task_of_id(identifier)]
        sample, answer = sample_from_id(task, identifier), task.spec.answer
        targets = (*sample.turn_targets, sample.target)
        *earlier, right = (PERFECT["plain"](answer.first_phrase, str(target)) for target in targets)
        wrong = [
            text
            for _, text, _ in answer.kind.wrong(sample.target, answer, sample.accept)
            if not text.startswith("-") or str(sample.target).startswith("-")
        ]
        chosen = random.Random(f"wrong|{identifier}").choice(wrong) if wrong else ""
        return OracleAnswer(sample.length, right, f"{answer.first_phrase} {chosen}", tuple(earlier))

    return known
