"""The options of a forced choice: one is right, none begins another, and the same come again."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from eyechart.harness.errors import PlanError
from eyechart.harness.plan.forced_choice import ForcedChoice
from eyechart.harness.plan.plan import plan
from eyechart.harness.plan.warnings import warnings
from eyechart.harness.score.answer_type import MOST_OPTIONS, PlainAnswerForm
from eyechart.harness.score.answers import TYPES
from eyechart.harness.score.judge import judge
from eyechart.harness.task.catalogue import Task, built_in_files, open_task

if TYPE_CHECKING:
    from pathlib import Path

    from eyechart.harness.score.answer_type import AnswerForm
    from eyechart.harness.score.verdict import Target
    from tests.conftest import Lab


def options(
    kind: str, target: Target, *accept: str, others: tuple[str, ...] = (), **fields: Any
) -> tuple[str, ...]:
    """The options of a target, checked by the rules that hold for all."""
    form = PlainAnswerForm(kind, ("Final answer:",), **fields)
    found, again = (
        TYPES[kind].options(target, form, accept, others=others, rng=Random(7)) for _ in range(2)
    )
    assert found == again
    check(found, target, form, accept)
    return found


def check(
    found: tuple[str, ...], target: Target, form: AnswerForm, accept: tuple[str, ...] = ()
) -> None:
    """As replies, the first option is right and all others are wrong, also against one another."""
    kind = TYPES[form.type]
    for option in found:
        values = [(target, accept), *((kind.meant(one, form), ()) for one in found[1:])]
        for place, (value, others) in enumerate(values):
            verdict = judge(
                text=f"{form.phrase[0]} {option}",
                finish_reason="stop",
                refusal=None,
                failure=None,
                target=value,
                answer=form,
                accept=others,
            )
            right = place == found.index(option)
            assert verdict.outcome == ("correct" if right else "incorrect"), (option, value)
    for one in found:
        assert [other for other in found if other.startswith(one)] == [one]


@pytest.mark.parametrize("name", sorted(built_in_files()))
def test_every_task_has_options(name: str) -> None:
    """Of the same number at all lengths but the shortest, whatever the condition: every third row
    of all conditions and lengths is looked at.
    """
    task = open_task(name, built_in_files()[name])
    choice = ForcedChoice(task, seed=0)
    for sample in list(plan(task, samples=1))[::3]:
        found = choice.options(sample)
        assert len(found) >= 2
        check(found, sample.target, task.spec.answer, sample.accept)
        if task.spec.answer.type == "integer" and abs(int(sample.target)) > 10:
            assert len(found) == MOST_OPTIONS


def test_numbers_lie_around_the_right_one() -> None:
    """N ± 1, 2, 5, 10 and the round numbers; of a count none is below 0."""
    assert options("integer", 314) == tuple(
        map(str, (314, 315, 313, 316, 312, 319, 309, 324, 304, 310, 320))
    )
    assert set(options("integer", 20)) >= {"19", "21", "18", "22", "15", "25", "10", "30"}
    assert options("integer", 3)[:4] == ("3", "4", "2", "5")
    assert not [one for one in options("integer", 3) if one.startswith("-")]
    assert "-1" in options("integer", -3)


def test_no_number_begins_another_one() -> None:
    """1 is never less probable than 11, so it is no option beside it."""
    assert "1" not in options("integer", 11)
    assert "11" not in options("integer", 1)
    assert len(options("integer", 0)) == 10


@pytest.mark.parametrize(
    ("target", "tolerance", "second"),
    [(2.5, None, "2.6"), (3.0, None, "4"), (0.25, 0.1, "1.25"), (-1.5, None, "-1.4")],
)
def test_decimals_are_beyond_the_tolerance(
    target: float, tolerance: float | None, second: str
) -> None:
    """A step is one in the last decimal place, or the next that is more than twice the
    tolerance.
    """
    found = options("number", target, tolerance=tolerance)
    assert found[1] == second
    assert len(found) == MOST_OPTIONS


def test_texts_have_one_change() -> None:
    """A word of the text instead of another, two neighbours exchanged, or a character."""
    text = "river lamp  stone\nriver"
    found = options("text", text)
    assert len(found) == MOST_OPTIONS
    for other in found[1:]:
        assert "  " in other
        pairs = zip(text.split(), other.split(), strict=True)
        assert 1 <= sum(one != two for one, two in pairs) <= 2
    for single in ("flower", "7b2f-91", '"so"', "*ab*", "so so"):
        assert len(options("text", single)) == MOST_OPTIONS
    assert set(options("text", "a b")) == {"a b", "b a", "a a", "b b"}
    assert len(options("code", "ab-01")) == MOST_OPTIONS
    assert len(options("code", "ab-01", case=False)) == MOST_OPTIONS


def test_lists_have_one_change() -> None:
    """Of a list without order no option has the same items."""
    assert len(options("list", "red, blue, green, white")) == MOST_OPTIONS
    assert len(options("list", "red, blue, red", ordered=False)) == 3
    assert len(options("list", "red")) == MOST_OPTIONS


def test_choices_and_symbols_have_all_options() -> None:
    """Without those that are right too; letters stand for their options."""
    colours = ("red", "green", "blue")
    assert options("choice", "blue", options=colours) == ("blue", "red", "green")
    assert options("choice", "blue", "red", options=colours) == ("blue", "green")
    assert options("choice", "blue", options=colours, letters=True) == ("C", "A", "B")
    assert options("symbol", "b", "c", others=("a", "b", "c", "d")) == ("b", "a", "d")
    assert options("symbol", "1", others=("1",)) == ("1", "7")
    letters = tuple(f"{one}{two}" for one in "abcdefg" for two in "uvwxyz")
    assert len(options("symbol", "au", others=letters)) == 26


def test_a_choice_needs_a_wrong_answer(tmp_path: Path) -> None:
    """A text without letters and digits has none."""
    (tmp_path / "signs.yaml").write_text(
        "version: 1\ntitle: Signs\nitems: i.jsonl\nprompt: 'Say {{ said }} after {{ phrase }}'\n"
        "answer: text\n"
    )
    (tmp_path / "i.jsonl").write_text('{"variables": {"said": "-"}, "target": "-", "length": 1}\n')
    task = open_task("signs", tmp_path / "signs.yaml")
    (sample,) = plan(task)
    with pytest.raises(PlanError, match="no wrong answer is known"):
        ForcedChoice(task, seed=0).options(sample)


def test_the_phrase_comes_before_the_option() -> None:
    """Unless the prompt ends with it."""
    task = open_task("counting/ones", built_in_files()["counting/ones"])
    sample = next(iter(plan(task, samples=1)))
    assert ForcedChoice(task, seed=0).opening(sample) == "Final answer:"


def test_the_value_of_a_key_stands_among_the_values_of_the_others() -> None:
    """All options are words of the prompt, so that no value is right because it was seen."""
    task = open_task("memory/key_values", built_in_files()["memory/key_values"])
    choice = ForcedChoice(task, 0)
    counts = {}
    for sample in plan(task, lengths=(2, 8, 32), exact=True, samples=3, axes={"asked": ["one"]}):
        found = choice.options(sample)
        assert found[0] == sample.target
        assert set(found) <= set(sample.prompt.replace(",", " ").split())
        counts[sample.length] = len(found)
    assert counts == {2: 2, 8: 8, 32: MOST_OPTIONS}


def test_words_of_the_question_are_no_options() -> None:
    """A row of one word stands among words with one character replaced, as before."""
    task = open_task("copying/verbatim", built_in_files()["copying/verbatim"])
    choice = ForcedChoice(task, 0)
    asked = list(plan(task, lengths=(1,), samples=9, axes={"content": ["words"]}))
    for sample in asked:
        others = choice.options(sample)[1:]
        assert len(others) == MOST_OPTIONS - 1
        assert not set(others) & set(sample.prompt.split())
    assert asked


BEGIN_ALIKE = """version: 1
title: Colours
items: i.jsonl
prompt: 'Which colour is {{ thing }}? Write "{{ phrase }}" and then it.'
answer: {type: choice, options: OPTIONS}
"""


def colours(folder: Path, options: list[str], *items: dict[str, object], letters: str = "") -> Task:
    """A choice of these options, with a sample for each of the items."""
    text = json.dumps(options) + letters
    folder = folder / str(len(list(folder.iterdir())))  # an items file is read once
    folder.mkdir()
    (folder / "colours.yaml").write_text(BEGIN_ALIKE.replace("OPTIONS", text))
    lines = [
        json.dumps({"variables": {"thing": str(index)}, "length": 1} | item)
        for index, item in enumerate(items)
    ]
    (folder / "i.jsonl").write_text("\n".join(lines))
    return open_task("mine/colours", folder / "colours.yaml")


def test_options_that_begin_with_the_right_one_are_named(tmp_path: Path) -> None:
    """With the remedy; letters are all asked."""
    alike = ["red", "redder", "red wine"]
    task = colours(tmp_path, alike, {"target": "red"}, {"target": "redder"})
    first, second = plan(task)
    choice = ForcedChoice(task, 0)
    with pytest.raises(PlanError) as caught:
        choice.options(first)
    said = (
        "mine/colours@1|-|length=1|seed=0|index=0: a choice needs a wrong answer, and beside 'red' "
        "none can be asked: 'redder', 'red wine' are left out, since a text is never more probable "
        "than its own beginning; write 'letters: true' under 'answer'"
    )
    assert str(caught.value) == said
    assert f"by likelihood it cannot be read: {said}" in list(warnings(task))
    assert choice.options(second) == ("redder", "red wine")
    assert choice.shortfall(second).startswith("2 of its 3 options (chance 50%): 'red' is left out")
    task = colours(
        tmp_path, alike, {"target": "red"}, {"target": "redder"}, letters=", letters: true"
    )
    assert ForcedChoice(task, 0).shortfall(first) == ""
    assert list(warnings(task)) == []


def test_a_check_and_a_dry_run_say_how_many_options_are_asked(tmp_path: Path, lab: Lab) -> None:
    """Of the right answer that has the fewest, and which ones are left out."""
    many = ["red", *(f"c{number}" for number in range(1, 200))]
    task = colours(tmp_path, many, {"target": "c15"}, {"target": "red"})
    said = (
        "10 of its 200 options (chance 10%): 'c10', 'c11', 'c12' and 187 more are left out, since "
        "a text is never more probable than its own beginning; give answers of which none is the "
        "beginning of another"
    )
    (line,) = warnings(task)
    assert line == f"mine/colours: read by likelihood, the target 'red' is one of {said}"
    task = colours(tmp_path, many, {"target": "red"}, {"target": "c15"})
    command = ("--task", task.path, "--model", "tiny", "--read", "likelihood", "--dry-run")
    assert f"by likelihood, the first sample over {said}" in " ".join(
        lab.bench_run(*command).out.split()
    )


def test_a_long_list_has_26_options(tmp_path: Path) -> None:
    """Further right answers are none of them."""
    many = [f"{first}{second}" for first in "abcdef" for second in "uvwxyz"]
    task = colours(tmp_path, many, {"target": "au", "accept": ["av"]}, {"target": "fz"})
    (line,) = warnings(task)
    assert line.endswith("'au' is one of 26 of its 35 options (chance 4%): more are never asked")
    few = colours(tmp_path, ["a", "b", "c"], {"target": "a", "accept": ["b"]}, {"target": "c"})
    assert list(warnings(few)) == []
