"""What the generators of built-in tasks show: the row, and the answer that follows from it."""

from __future__ import annotations

import csv
import json
import random
import re
import uuid
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.face.options.study import study_runs
from eyechart.harness.plan.plan import make_sample
from eyechart.harness.score.judge import judge
from eyechart.harness.spec import Condition, Line
from eyechart.harness.study.reading import find_study, read_study
from eyechart.harness.task.catalogue import Task, built_in_files, open_task
from eyechart.providers.tiny.chat import Chat
from eyechart.providers.tiny.folder import SHIPPED

if TYPE_CHECKING:
    from eyechart.harness.spec import Item, Sample

FAR = 10_000


@cache
def opened(name: str) -> Task:
    return open_task(name, built_in_files()[name], trial=False)


def usual(task: Task, **chosen: str) -> Condition:
    """The first default value of each axis, with some chosen."""
    axes = task.spec.default_conditions()
    assert chosen.keys() <= axes.keys()
    return Condition({axis: chosen.get(axis, names[0]) for axis, names in axes.items()})


def drawn(name: str, length: int, index: int = 0, **chosen: str) -> Item:
    task = opened(name)
    rng = random.Random(f"0|{name}|{index}")
    return task.draw(rng, usual(task, **chosen), length, index)


def shown(name: str, length: int, **chosen: str) -> Sample:
    task = opened(name)
    return make_sample(task, usual(task, **chosen), Line.exact(length), 0, 0)


@pytest.mark.parametrize("name", sorted(built_in_files()))
def test_a_line_of_ten_thousand_is_made_at_once(name: str) -> None:
    """Twice the same, with a prompt that grows with its length."""
    far = shown(name, FAR)
    assert far == shown(name, FAR)
    assert far.length == FAR
    assert len(far.prompt) > FAR


@pytest.mark.parametrize(("ignored", "share"), [("few", 0.1), ("most", 0.8), ("nearly_all", 0.98)])
def test_a_flip_flop_holds_what_was_set_last(ignored: str, share: float) -> None:
    """Whatever is skipped in between; reads show it as well."""
    item = drawn("memory/flip_flop", FAR, ignored=ignored)
    held = ""
    for step in item.symbols:
        kind, bit = step.split()
        held = bit if kind == "set" else held
        assert kind == "skip" or bit == held
    assert item.target == held
    kinds = Counter(step.split()[0] for step in item.symbols)
    assert kinds["skip"] / FAR == pytest.approx(share, abs=0.02)
    assert kinds["set"] / FAR == pytest.approx((1 - share) / 2, abs=0.02)


@pytest.mark.parametrize(
    ("position", "first"), [("start", 0), ("quarter", 24), ("middle", 48), ("end", 96)]
)
def test_keys_are_asked_for_where_the_position_says(position: str, first: int) -> None:
    """Four neighbours of a hundred, in turn; keys are all different, and a row has what it has."""
    orders = set()
    for index in range(20):
        item = drawn("memory/key_values", 100, index, position=position, asked="four")
        pairs = [pair.split(": ") for pair in item.symbols]
        assert len({key for key, _ in pairs}) == 100
        asked = item.variables["keys"]
        assert isinstance(asked, list)
        places = [[key for key, _ in pairs].index(key) for key in asked]
        assert sorted(places) == list(range(first, first + 4))
        assert item.target == [pairs[place][1] for place in places]
        orders.add(tuple(places))
    assert len(orders) == 4
    assert len(drawn("memory/key_values", 2, asked="four").target) == 2  # type: ignore[arg-type]


def test_keys_are_nested() -> None:
    """A longer list begins with the shorter one, under all conditions with the same pairs."""
    rows = [drawn("memory/key_values", length).symbols for length in (5, 50, 500)]
    assert list(rows[2][:50]) == list(rows[1])
    assert list(rows[1][:5]) == list(rows[0])


def test_a_running_sum_adds_what_the_dictionary_has() -> None:
    """With ten words or a hundred; the hundred have the ten with their values."""
    dictionaries = {}
    for entries, size in (("ten", 10), ("hundred", 100)):
        item = drawn("memory/running_sum", 50, entries=entries)
        listed = item.variables["dictionary"]
        assert isinstance(listed, list)
        values = {word: int(value) for word, value in (one.split(": ") for one in listed)}
        assert len(values) == size
        assert all(-99 <= value <= 99 for value in values.values())
        assert item.target == sum(values[word] for word in item.symbols)
        dictionaries[size] = values
    assert dictionaries[10].items() <= dictionaries[100].items()


def test_a_running_sum_in_turns_is_the_same_sum_in_parts() -> None:
    """So many words a turn; a longer row begins with the shorter one."""
    for keys, size in (("one", 1), ("five", 5)):
        item, longer = (drawn("turns/running_sum", length, keys=keys) for length in (4, 9))
        listed = item.variables["dictionary"]
        assert isinstance(listed, list)
        values = {word: int(value) for word, value in (one.split(": ") for one in listed)}
        turns = [turn.split(", ") for turn in item.symbols]
        assert [len(turn) for turn in turns] == [size] * 4
        assert item.target == sum(values[word] for turn in turns for word in turn)
        assert list(longer.symbols[:4]) == list(item.symbols)
    sample = shown("turns/running_sum", 4, keys="five")
    assert [message.rpartition("\n")[2] for message in sample.messages] == [
        f"Words: {turn}" for turn in item.symbols
    ]


def test_letters_are_counted_in_all_words() -> None:
    """Whole or spelled."""
    whole = shown("spelling/letters_in_words", 30, spelling="whole")
    spelled = shown("spelling/letters_in_words", 30, spelling="hyphens")
    found = re.search(r"the letter (.) in", whole.prompt)
    assert found is not None
    row = whole.prompt.rpartition("Words: ")[2]
    assert whole.target == spelled.target == row.count(found[1])
    assert spelled.prompt.rpartition("Words: ")[2].replace("-", "") == row


def test_records_are_what_they_are_called() -> None:
    """Every content is of its form, and the target is the row."""
    rows = {
        content: drawn("copying/verbatim", 50, content=content)
        for content in opened("copying/verbatim").spec.axes["content"].values
    }
    for content, item in rows.items():
        assert item.target == (" " if content == "words" else "\n").join(item.symbols)
        assert len(set(item.symbols)) > 20
    assert all(json.loads(line).keys() >= {"id", "price"} for line in rows["json"].symbols)
    assert {len(fields) for fields in csv.reader(rows["csv"].symbols)} == {4}
    assert {uuid.UUID(text).version for text in rows["uuids"].symbols} == {4}
    assert all(re.fullmatch(r"-?\d\.\d{10}", text) for text in rows["decimals"].symbols)
    assert all(text.isalpha() for text in rows["words"].symbols)


@pytest.mark.parametrize("position", ["first", "last"])
@pytest.mark.parametrize("length", [1, 2, 6, 7])
def test_the_doubled_row_ends_with_the_same_symbol_twice(position: str, length: int) -> None:
    """And alternates before; without an odd symbol the repeated one comes twice."""
    for odd, asked in (("zero", "0"), ("absent", "1")):
        item = drawn("copying/first_last", length, position=position, layout="doubled", odd=odd)
        row = "".join(item.symbols)
        from_end = row if position == "first" else row[::-1]
        assert item.target == asked
        other = "01"["10".index(asked)]
        assert from_end == (asked + f"{asked}{other}" * 5)[:length]


@pytest.mark.parametrize(
    "name",
    [name for name in built_in_files() if "order" in opened(name).spec.axes],
)
def test_the_row_may_come_first(name: str) -> None:
    """With the same words, but for `below`; nothing comes twice."""
    after, before = (shown(name, 200, order=order) for order in ("question_first", "row_first"))
    words = after.prompt.replace("sentence below?", "sentence?").split()
    assert sorted(words) == sorted(before.prompt.split())
    assert after.target == before.target
    row = max(after.prompt.split("\n"), key=len)
    assert before.prompt.startswith(row)
    instructions = after.prompt.partition(row)[2]  # amid other text they come last
    assert bool(instructions) == name.startswith("context/")
    assert not after.prompt.startswith(row)


def test_a_pair_of_words_is_the_one_that_is_named() -> None:
    """Or one of those that are drawn."""
    for pair, text in opened("copying/repeated_words").spec.axes["pair"].values.items():
        words = [
            set(drawn("copying/repeated_words", 25, index, pair=pair).symbols) for index in range(9)
        ]
        if text:
            assert {frozenset(one) for one in words} == {frozenset(str(text).split())}
        else:
            assert len(set(map(frozenset, words))) > 2


OF_PAPERS = [
    ("barbero", "copying/first_last", range(100, 501, 50)),
    ("barbero", "counting/sum", range(5, 196, 10)),
    ("barbero", "counting/ones", range(5, 196, 10)),
    ("barbero", "counting/bernoulli", range(5, 196, 10)),
    ("barbero", "counting/words", range(5, 196, 10)),
    ("barbero", "separators/two_symbols", range(5, 196, 10)),
    ("zhang", "separators/letters", range(10, 41, 2)),
]


@pytest.mark.parametrize(("study", "name", "lengths"), OF_PAPERS)
def test_studies_have_the_settings_of_the_papers(study: str, name: str, lengths: range) -> None:
    """Exact lengths, and the values that the papers have."""
    runs = study_runs(
        read_study(find_study(study)), {"model": ["tiny"]}, notify=print, trusts=False
    )
    (planned,) = (one for one in runs.plans if one.task.name == name)
    assert [line.length for line in planned.lines] == list(lengths)
    assert all(line.is_exact for line in planned.lines)
    row = "".join(planned.sample(planned.conditions[-1], planned.lines[-1], 0).prompt.split("\n"))
    if name == "copying/first_last":
        assert row.endswith("10100")
    if name == "separators/two_symbols":
        y = planned.task.spec.axes["share"].values["most"]
        assert {condition["share"] for condition in planned.conditions} == {"most"}
        assert y == 0.7


def test_a_comma_after_every_third_symbol() -> None:
    """In ones to be counted, and in rows whose last symbol is asked for."""
    assert shown("counting/ones", 8, separator="every_third").prompt.endswith(": 111,111,11")
    last = shown("copying/first_last", 8, position="last", separator="every_third")
    assert last.prompt.endswith(": 111,111,10")


@pytest.mark.parametrize("zeros", ["among", "aside"])
@pytest.mark.parametrize("length", [20, 160])
def test_prompts_of_rows_of_one_length_tell_no_count(length: int, zeros: str) -> None:
    """As many characters and tokens in every prompt of a length, and counts that differ by a
    fifth and more. Aside, the row is ones, and the zeros are on a line above it.
    """
    task, chat = opened("counting/density"), Chat(SHIPPED)
    counts, sizes = [], set()
    for index in range(20):
        condition = usual(task, zeros=zeros)
        sample = make_sample(task, condition, Line.exact(length), index, 0)
        row = sample.prompt.splitlines()[-1].partition(": ")[2].split(",")
        assert row.count("1") == sample.target
        assert (len(row) == length) == (zeros == "among")
        assert isinstance(sample.target, int)
        counts.append(sample.target)
        sizes.add((len(sample.prompt), len(chat.tokens(sample.prompt, "chat", None).ids)))
    assert len(sizes) == 1
    assert max(counts) > 1.4 * min(counts)
    assert min(counts) > 0.2 * length


CONTROLLED = "controlled/separators"


@pytest.mark.parametrize("share", opened(CONTROLLED).spec.axes["share"].values)
def test_controlled_separators_cost_the_same_tokens(share: str) -> None:
    """In the embedded model's tokenizer, at every length."""
    chat = Chat(SHIPPED)
    growth = set()
    for separator in opened(CONTROLLED).spec.axes["separator"].values:
        counts = [
            len(chat.tokens(sample.prompt, "chat", None).ids)
            for length in (1, 2, 30, 500)
            for sample in [shown(CONTROLLED, length, separator=separator, share=share)]
        ]
        growth.add(tuple(count - counts[0] for count in counts))
    assert growth == {(0, 2, 58, 998)}


def test_commas_that_separate_nothing_are_before_or_after_the_letters() -> None:
    """The prompts have the same words and commas as one with commas between the letters."""
    between, before, after = (
        shown(CONTROLLED, 9, separator=separator).prompt.split()
        for separator in ("comma", "commas_before", "commas_after")
    )
    letters = between[-17::2]
    assert between[-16::2] == [","] * 8
    assert before == between[:-17] + [","] * 8 + letters
    assert after == between[:-17] + letters + [","] * 8


VOCABULARIES = {"two": 2, "ten": 10, "hundred": 100, "thousand": 1_000, "ten_thousand": 10_000}


@pytest.mark.parametrize(("vocabulary", "kinds"), VOCABULARIES.items())
def test_a_vocabulary_changes_what_is_around_the_number(vocabulary: str, kinds: int) -> None:
    """The number asked for stands at the same places under every vocabulary, among so many others
    as there are; all have four digits, so they are cut into tokens alike.
    """
    many = drawn("vocabulary/numbers", FAR, index=1, vocabulary="ten_thousand")
    item = drawn("vocabulary/numbers", FAR, index=1, vocabulary=vocabulary)
    number = item.variables["number"]
    places = [[symbol == number for symbol in one.symbols] for one in (item, many)]
    assert places[0] == places[1]
    assert item.target == sum(places[0])
    assert all(re.fullmatch(r"\d{4}", symbol) for symbol in item.symbols)
    others = {*item.symbols} - {number}
    share = 1 - (1 - 1 / (kinds - 1)) ** (FAR - int(str(item.target)))
    assert len(others) == pytest.approx((kinds - 1) * share, rel=0.05)


def test_every_count_of_a_number_is_as_likely() -> None:
    """So no answer is right in many samples: at 10 symbols 1 in 11."""
    counts = Counter(drawn("vocabulary/numbers", 10, index).target for index in range(2_200))
    assert counts.keys() == {*range(11)}
    assert all(150 < count < 250 for count in counts.values())


WINDOWS = [("two", 12), ("four", 6), ("ten", 4), ("twenty_six", 3)]


@pytest.mark.parametrize(("alphabet", "window"), WINDOWS)
def test_without_repeats_no_window_comes_twice(alphabet: str, window: int) -> None:
    """In the longest row of the task, over every alphabet."""
    for index in range(20):
        item = drawn("vocabulary/stretches", 240, index, alphabet=alphabet, repeats="none")
        row = "".join(item.symbols)
        windows = [row[place : place + window] for place in range(len(row) - window + 1)]
        assert len({*windows}) == len(windows)
        assert item.target == " ".join(row)


@pytest.mark.parametrize("alphabet", [alphabet for alphabet, _ in WINDOWS])
@pytest.mark.parametrize(("repeats", "share"), [("quarter", 0.25), ("half", 0.5), ("most", 0.8)])
def test_a_stretch_comes_again_and_goes_on_differently(
    alphabet: str, repeats: str, share: float
) -> None:
    """As large a share of long rows as is asked for; 16 symbols do not tell the next one."""
    inside = differently = 0
    for index in range(10):
        item = drawn("vocabulary/stretches", 1_000, index, alphabet=alphabet, repeats=repeats)
        row = "".join(item.symbols)
        followed: dict[str, set[str]] = {}
        places = set[int]()
        for place in range(len(row) - 16):
            known = followed.setdefault(row[place : place + 16], set())
            if known:
                places |= {*range(place, place + 16)}
                differently += row[place + 16] not in known
            known.add(row[place + 16])
        inside += len(places)
    assert inside / 10_000 == pytest.approx(share, abs=0.08)  # by chance a stretch is longer
    assert differently > 10_000 * share / 16 * 0.8


class TestStrategies:
    """The example in a prompt is right, and its steps are as long as the strategy says."""

    @staticmethod
    def example(name: str, strategy: str, length: int) -> tuple[list[str], list[str]]:
        """The symbols of the row of the example, and its steps."""
        lines = shown(name, length, strategy=strategy).prompt.splitlines()
        at = next(number for number, line in enumerate(lines) if line.startswith("Row A: "))
        row = lines[at].removeprefix("Row A: ").replace(",", " ").split()
        return row, lines[at + 1].split()

    @pytest.mark.parametrize("strategy", ["scratchpad", "padded"])
    @pytest.mark.parametrize("length", [10, 160])
    def test_a_step_has_the_symbol_and_a_number(self, strategy: str, length: int) -> None:
        """The ones so far where they are counted, the symbols left where they are copied; padded,
        with as many digits as the length has.
        """
        width = len(str(length)) if strategy == "padded" else 1
        row, steps = self.example("strategies/steps", strategy, length)
        ones = [row[: place + 1].count("1") for place in range(len(row))]
        assert steps == [f"{one}:{so_far:0{width}}" for one, so_far in zip(row, ones, strict=True)]
        row, steps = self.example("strategies/copies", strategy, length)
        left = range(len(row) - 1, -1, -1)
        assert steps == [f"{one}:{number:0{width}}" for one, number in zip(row, left, strict=True)]

    @pytest.mark.parametrize("name", ["strategies/copies", "strategies/steps"])
    def test_markup_has_the_place_before_the_symbol(self, name: str) -> None:
        row, steps = self.example(name, "markup", 20)
        assert steps == [f"<{place}>{one}" for place, one in enumerate(row, 1)]

    def test_a_copy_behind_its_steps_is_right(self) -> None:
        """Only the last line is the answer, and a copy that lacks a symbol is wrong."""
        sample = shown("strategies/copies", 20)
        row = str(sample.target).split()
        steps = " ".join(f"<{place}>{one}" for place, one in enumerate(row, 1))
        outcomes = [
            judge(
                text=f"{steps}\nFinal answer: {' '.join(copy)}",
                finish_reason="stop",
                refusal=None,
                failure=None,
                target=sample.target,
                answer=opened("strategies/copies").spec.answer,
            ).outcome
            for copy in (row, row[1:])
        ]
        assert outcomes == ["correct", "incorrect"]
