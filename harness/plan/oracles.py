"""What models would reply that know the answer to a sample, or miss it by little."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping

from eyechart.harness.answer import LETTERS, Answer, folded
from eyechart.harness.plan.plan import sample_from_id, task_of_id
from eyechart.harness.spec import Sample
from eyechart.harness.task.catalogue import Task
from eyechart.providers.base import Known

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
"""Ways in which a model that knows the answer may write it."""


def right_replies(sample: Sample, answer: Answer) -> Iterator[tuple[str, str]]:
    """Replies that are right, each with the name of its way to be so. A target with quotation marks
    is not put between such marks, since nobody could say which of them belong to it.
    """
    target = str(sample.target)
    for name, speak in PERFECT.items():
        if name != "quoted" or '"' not in target:
            yield name, speak(answer.phrase, target)
    for name, other in _other_forms(sample, answer):
        yield name, f"{answer.phrase} {other}"


def knower(tasks: Iterable[Task]) -> Callable[[str], Known]:
    """What the built-in model `oracle` knows: the id of a sample of `tasks` -> its length, a right
    reply and a wrong one. Samples are made again from their ids.
    """
    by_name = {task.name: task for task in tasks}

    def known(identifier: str) -> Known:
        task = by_name[task_of_id(identifier)]
        sample, answer = sample_from_id(task, identifier), task.spec.answer
        right = PERFECT["plain"](answer.phrase, str(sample.target))
        wrong = [
            text
            for _, text, _ in wrong_answers(sample, answer)
            if not text.startswith("-") or str(sample.target).startswith("-")
        ]
        chosen = random.Random(f"wrong|{identifier}").choice(wrong) if wrong else ""
        return Known(sample.length, right, f"{answer.phrase} {chosen}")

    return known


def _other_forms(sample: Sample, answer: Answer) -> Iterator[tuple[str, str]]:
    """Further forms of a right answer of each type."""
    target = sample.target
    for other in sample.accept:
        yield f"accepted answer {other!r}", other
    match answer.type:
        case "number":
            yield "scientific", f"{float(target):.16e}"
            allowed = _allowed(target, answer)
            yield "highest within the tolerance", repr(float(target) + allowed)
            yield "lowest within the tolerance", repr(float(target) - allowed)
        case "choice":
            yield "in capitals", str(target).upper()
            if answer.letters:
                letter = LETTERS[(answer.options or ()).index(str(target))]
                yield "letter", letter
                yield "letter in brackets", f"({letter})"
                yield "letter and text", f"{letter}) {target}"
        case "list":
            items = str(target).split(", ")
            quoted = ", ".join(f'"{item}"' for item in items)
            yield "brackets and quotes", f"[{quoted}]"
            yield "bullets", "".join(f"\n- {item}" for item in items)
            if answer.ordered is False:
                yield "other order", ", ".join(reversed(items))


def wrong_answers(sample: Sample, answer: Answer) -> Iterator[tuple[str, str, float | None]]:
    """Answers that miss by little, and the absolute error that they should have."""
    target = sample.target
    match answer.type:
        case "integer":
            yield "one too many", str(int(target) + 1), 1
            yield "one too few", str(int(target) - 1), 1
        case "number":
            yield from _wrong_numbers(float(target), answer)
        case "choice":
            right = {folded(text) for text in (str(target), *sample.accept)}
            for letter, option in zip(LETTERS, answer.options or (), strict=False):
                if folded(option) not in right:
                    yield f"option {option!r}", option, None
                    if answer.letters:
                        yield f"letter {letter}", letter, None
        case "list":
            yield from _wrong_lists(str(target).split(", "), answer)
        case _:
            yield from _wrong_texts(str(target), {str(target), *sample.accept})


def _allowed(target: float | str, answer: Answer) -> float:
    relative = (answer.relative_tolerance or 0.0) * abs(float(target))
    return max(answer.tolerance or 0.0, relative)


def _wrong_numbers(target: float, answer: Answer) -> Iterator[tuple[str, str, float]]:
    missed = 2 * _allowed(target, answer) or abs(target) / 1000 or 0.001
    for name, wrong in (("too high", target + missed), ("too low", target - missed)):
        yield name, repr(wrong), abs(wrong - target)


def _wrong_lists(items: list[str], answer: Answer) -> Iterator[tuple[str, str, None]]:
    if len(items) > 1:
        yield "one item short", ", ".join(items[:-1]), None
    yield "one item long", ", ".join([*items, items[-1]]), None
    turned = items[::-1]
    if answer.ordered is not False and turned != items:
        yield "other order", ", ".join(turned), None


def _wrong_texts(target: str, right: set[str]) -> Iterator[tuple[str, str, None]]:
    if " " not in target:
        yield "other symbol", next(one for one in "7890123456" if one not in right), None
        return
    words = target.split()
    for name, wrong in (("one word short", words[:-1]), ("one word long", [*words, words[-1]])):
        if " ".join(wrong) not in right:
            yield name, " ".join(wrong), None
