"""Samples are paired, nested, independent of order, and each can be made from its id alone."""

from __future__ import annotations

import random
import tracemalloc
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import combinations, cycle, islice, product
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.errors import PlanError
from eyechart.harness.plan.plan import (
    fingerprint,
    make_sample,
    output_budget,
    plan,
    sample_from_id,
    sample_hash,
    sample_id,
)
from eyechart.harness.spec import Condition, Line
from eyechart.harness.task.catalogue import Task, built_in_files, open_task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eyechart.harness.spec import Item
    from tests.conftest import Lab

GOLDEN = {
    "bounded/majority": "974a56e5107c31fdd3d76bb851622d162cee68ffb259b8583db190d67432e3a3",
    "bounded/modulo": "3d5163eef071e55d0a9cc9402ba9baa1e7c815c8cbb230e5a9dd072f8dfc1d37",
    "bounded/neighbors_match": "27671d834af5ec78ce9fb9da58f955948a996f62597161eadfe60385e2dc74b3",
    "bounded/parity": "24cd59b3fdcf007a05e44c67a81007f45eba83b5b4a7b0171c70f0100727b6d5",
    "bounded/selective": "ceb5888391df2a0a598fb1120cad1a7eff31e2998d50ba5d60256ea47ca92cb6",
    "capacity/items": "afe7ee8dd858fdcf46ff1422a4f1882582b5cc84d3a16e2fbf003cbcd1ff09f0",
    "context/first_last": "6ba049a766e1198d5e83dbfd4f203775df1f9de14e884b787130211a6b95c40d",
    "context/ones": "9e46cc64a70100b07b3fc21afea1cc1c858adb9b03b08f1cf8037cdf77de2c03",
    "controlled/separators": "d3433a9812ef18156a4583fc72f5ae02ad3810faf835aff5e037c8912197acf2",
    "copying/first_last": "0b5f29d70b4e718518f4afdf0d63d5314eaac18099ae78bad42eac7622a24400",
    "copying/repeated_words": "f50b036d05aa89a123f5976322cb7d9a7e1f080d79766cfb49f8e2f4a568a2f1",
    "copying/verbatim": "2dffc487bc3f358bc5c3050b9b34545b18da255a84b5f865a5b9d07751df7847",
    "counting/bernoulli": "b8b0cb9cd2f2a9a599a9fc764c845b90b3c77a9a0cc44a498ecc07ef8b542759",
    "counting/density": "d1dd5eccfbfe99e42a7d7ce19624eeaaf9cb0cc0549aa4f89dec390fb101f1f8",
    "counting/ones": "76dbaebecd0c19c72b4715cffb5cc4819e0ff255d4ef3b5f10564ece42e8945d",
    "counting/sum": "28bf2d7dc1feeb7dd128dc2a76cd69f32445d6547aee16af379a13dd17c5c9ca",
    "counting/words": "c44a586e6a05519d1315647e6b759f727af349cabb83c8bce4b5e45689eabc31",
    "memory/flip_flop": "ac146c078ce2c0d9e15d6b78b3f7c9e92b27717d3fe04e8ef0183afeb861ab07",
    "memory/key_values": "b031ef570785bf19b3e8ebab4b50fa1ae8724f9dbeeff2064f9f36e95c7361a6",
    "memory/running_sum": "e75f81d58e4b60e6f83fb9b85e57f2ba8a14d56a2d5bc4f19834caea85939c0c",
    "separators/letters": "673df63cb472db200cbe0bc957791ee07ca3a34072fdf34a7a743d3d646f2117",
    "separators/ones_314": "9ca22080e7f20ed0dc2d3a74c16c3e71bb24372d08b2ad334e993fc97ef90fd2",
    "separators/two_symbols": "63ef207ac6c425ce96ccf2870f5f43461e7afff3ddb08b288ea679f4bc9c913b",
    "spelling/letters_in_words": "15d8f3ddbc44d476e9f911fb706c90b5e0125d39c4ce21b74b88403b838a152e",
    "strategies/copies": "9db5d4be5c168d4c0e2a0349919411f1ace49d7ec5e45829abe5fa03ee2a9175",
    "strategies/steps": "d88055093d97a218607637ddf6513d72de3bd1376e25a12acf1eb01b42915bc6",
    "turns/running_sum": "73c0ee11d3208f6740d1a98a2bf1e5b7a11e28e30ac31d18f6c18ea3ee203c3e",
    "vocabulary/numbers": "3662b33397b4dc541df3ee8e763baf70a82659ad50de8ab3e054e36d8b83da2e",
    "vocabulary/stretches": "b04b06332c38e99b6655b24c088d3d7c1ce452d0518dbb9f01557f0a4fe9402c",
}
"""Task -> fingerprint of its default plan with three samples a cell. A change of one of these is
a change of the task: raise its version."""

every_task = pytest.mark.parametrize("name", built_in_files())


@cache
def opened(name: str) -> Task:
    return open_task(name, built_in_files()[name], trial=False)


def conditions(task: Task) -> Iterator[Condition]:
    """Every condition there is."""
    axes = task.spec.axes
    for values in product(*(axis.values for axis in axes.values())):
        yield Condition(zip(axes, values, strict=True))


def drawn(task: Task, condition: Condition, length: int, index: int) -> Item:
    return task.draw(random.Random(f"0|{task.name}|{index}"), condition, length, index)


def shown_to_the_generator(task: Task, condition: Condition) -> tuple[object, ...]:
    """A condition's values on the axes that the generator itself takes."""
    assert task._generator is not None
    return tuple(v for axis, v in condition.items() if axis in task._generator.keywords)


@every_task
def test_the_default_plan_is_pinned(name: str) -> None:
    """Ids, prompts and targets are the same in every process, on Python 3.11 to 3.13."""
    assert f"{fingerprint(plan(opened(name), samples=3)):064x}" == GOLDEN[name]


def test_every_task_is_pinned() -> None:
    """A new task needs a fingerprint here, and a removed one none."""
    assert GOLDEN.keys() == built_in_files().keys()


@every_task
def test_a_sample_is_what_its_id_says(name: str) -> None:
    """The same sample comes out of its id alone, for every value of an axis and every length."""
    task = opened(name)
    every = list(conditions(task))
    if len(every) > 100:
        every = every[::7]
    for axis, about in task.spec.axes.items():
        assert {condition[axis] for condition in every} == {*about.values}
    pairs = zip(cycle(every), cycle(task.lengths), strict=True)
    count = max(len(every), len(task.lengths))
    seen = set()
    for number, (condition, length) in enumerate(islice(pairs, count)):
        made = make_sample(task, condition, Line.exact(length), number % 5, seed=number % 3 - 1)
        again = sample_from_id(task, made.id)
        assert again == made
        assert list(again.condition) == list(task.spec.axes)
        seen.add(made.id)
    assert len(seen) == count


@every_task
def test_conditions_are_paired(name: str) -> None:
    """The same index shows the same item under all conditions that the generator cannot tell
    apart, so only how it is asked and written differs.
    """
    task = opened(name)
    for length, index in product((task.lengths[0], task.lengths[-1]), (0, 3)):
        items: dict[tuple[object, ...], Item] = {}
        for condition in conditions(task):
            item = drawn(task, condition, length, index)
            assert items.setdefault(shown_to_the_generator(task, condition), item) == item


ONES = "counting/ones@1|separator=none,strategy=direct,order=question_first"
AXES_MAKE_ROWS = {
    "bounded/majority",
    "bounded/neighbors_match",
    "bounded/selective",
    "capacity/items",
    "context/first_last",
    "controlled/separators",
    "copying/first_last",
    "copying/repeated_words",
    "copying/verbatim",
    "memory/flip_flop",
    "memory/running_sum",
    "separators/two_symbols",
    "turns/running_sum",
    "vocabulary/numbers",
    "vocabulary/stretches",
}
"""Tasks in which an axis says what is in the row, or where."""


@pytest.mark.parametrize("name", sorted({*built_in_files()} - AXES_MAKE_ROWS))
def test_rows_are_paired_where_no_axis_makes_them(name: str) -> None:
    """The row is the same under all conditions whatever the generator is told."""
    task = opened(name)
    for length, index in product(task.lengths, (0, 3)):
        first, *others = (drawn(task, condition, length, index) for condition in conditions(task))
        assert all(list(other.symbols) == list(first.symbols) for other in others)


def test_what_is_drawn_is_paired_in_the_copying_tasks_too() -> None:
    """First and last symbol are asked of rows with the same label and the same odd symbol."""
    task = opened("copying/first_last")
    for index in range(10):
        items = [drawn(task, condition, 20, index) for condition in conditions(task)]
        assert len({str(item.variables) for item in items}) == 1
        symbols = {
            symbol.strip()
            for item, condition in zip(items, conditions(task), strict=True)
            if condition["odd"] == "random"
            for symbol in item.symbols
        }
        assert len(symbols) == 2


def check_nested(task: Task, condition: Condition, index: int) -> None:
    items = {length: drawn(task, condition, length, index) for length in task.lengths}
    rows = {length: "".join(item.symbols) for length, item in items.items()}
    from_the_end = condition.get("position") == "last"
    for short, long in combinations(task.lengths, 2):
        assert items[short].variables == items[long].variables
        if from_the_end:
            assert rows[long].endswith(rows[short])
        else:
            assert rows[long].startswith(rows[short])


PLACED = {
    "bounded/majority",
    "bounded/neighbors_match",
    "copying/repeated_words",
    "memory/key_values",
}
"""Tasks in which what is asked for stands at a share of the length, or is a count of all of it."""


@pytest.mark.parametrize("name", sorted({*built_in_files()} - PLACED))
def test_lengths_are_nested(name: str) -> None:
    """A longer row begins with the shorter one of the same index, for all pairs of lengths; where
    the last symbol is asked for, it ends with it, since what is asked for stands at that end.
    """
    task = opened(name)
    told_apart = {shown_to_the_generator(task, one): one for one in conditions(task)}
    for condition in told_apart.values():
        for index in (0, 7):
            check_nested(task, condition, index)


def test_repeated_words_are_nested_up_to_the_changed_one() -> None:
    """Every length repeats the same word and changes one word, in the same way; where it stands
    is a share of the length, so the rows agree in all but the changed word's place.
    """
    task = opened("copying/repeated_words")
    for condition, index in product(conditions(task), range(5)):
        pair = str(task.spec.axes["pair"].values[condition["pair"]]).split()
        words = set()
        for length in task.lengths:
            item = drawn(task, condition, length, index)
            word = pair[0] if pair else min(item.symbols, key=len)
            (at,) = (place for place, other in enumerate(item.symbols) if other != word)
            share = float(str(task.spec.axes["position"].values[condition["position"]]))
            assert at == round(share * (length - 1))
            words.add((word, item.symbols[at]))
        assert len(words) == 1


@every_task
def test_order_and_concurrency_change_nothing(name: str) -> None:
    """Samples made backwards and in threads are those made in order."""
    task = opened(name)
    planned = plan(task, samples=2, lengths=task.lengths[:3])
    in_order = list(planned)
    places = [(sample.condition, sample.line, sample.index) for sample in in_order]
    backwards = [planned.sample(*place) for place in reversed(places)]
    assert backwards[::-1] == in_order
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda place: planned.sample(*place), places)) == in_order


def test_a_generator_that_changes_its_params_changes_no_other_sample(lab: Lab) -> None:
    """A list in `params` is the same for every sample, whatever a generator did to it before."""
    lab.plain.write_text(
        lab.plain.read_text().replace("lengths:", "params: {symbols: [a, b, c, d]}\nlengths:")
    )
    (lab.plain.parent / "rows.py").write_text(
        "from eyechart.harness.spec import Item\n\n\ndef ones(rng, length, symbols):\n"
        "    if rng.random() < 0.9:\n        rng.shuffle(symbols)\n"
        "    return Item(symbols[:length], length)\n"
    )
    planned = plan(open_task("lab/plain", lab.plain, trial=False), samples=20)
    in_order = list(planned)
    assert [planned.sample(Condition(), Line.exact(4), index) for index in range(20)] == in_order


@every_task
def test_indices_and_seeds_show_different_prompts(name: str) -> None:
    """Neither the samples of a cell nor those of two seeds are all alike."""
    task = opened(name)
    some = next(conditions(task))
    length = task.lengths[-1]
    prompts = {
        (seed, index): make_sample(task, some, Line.exact(length), index, seed).prompt
        for seed, index in product((0, 1), range(20))
    }
    for seed in (0, 1):
        assert len({prompts[seed, index] for index in range(20)}) > 1
    assert [prompts[0, i] for i in range(20)] != [prompts[1, i] for i in range(20)]


def test_a_million_samples_take_no_memory() -> None:
    """Planning is lazy: the first 1,000 of a million samples leave nothing behind."""
    planned = plan(opened("counting/sum"), lengths=[5], samples=1_000_000)
    assert planned.size == 1_000_000
    list(islice(planned, 10))
    tracemalloc.start()
    try:
        (last,) = deque(islice(planned, 1_000), maxlen=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert last.index == 999
    assert peak < 40_000


def test_samples_come_index_by_index(lab: Lab) -> None:
    """Each index goes through conditions, and each condition through ascending lengths."""
    task = open_task("lab/ones", lab.ones)
    planned = plan(task, lengths=[5, 3, 5], samples=2)
    places = [(s.index, s.condition["separator"], s.length) for s in planned]
    assert planned.size == len(places) == 8
    assert places == list(product((0, 1), ("none", "comma"), (3, 5)))
    (first, *_) = planned
    assert first.id == "lab/ones@1|separator=none|length=3|seed=0|index=0"
    assert first.prompt.count("\n") == 1


def test_options_go_over_the_tasks_defaults(lab: Lab) -> None:
    """Lengths, samples, seed and values of an axis can each be chosen; the rest stays."""
    task = open_task("lab/ones", lab.ones)
    assert ([str(line) for line in plan(task).lines], plan(task).samples, plan(task).seed) == (
        ["3", "5"],
        4,
        0,
    )
    assert [c["separator"] for c in plan(task).conditions] == ["none", "comma"]
    chosen = plan(
        task, lengths=[7], samples=1, seed=9, axes={"separator": ["space", "none", "space"]}
    )
    assert [sample.id for sample in chosen] == [
        "lab/ones@1|separator=space|length=7|seed=9|index=0",
        "lab/ones@1|separator=none|length=7|seed=9|index=0",
    ]
    everything = plan(task, axes={"separator": ["all"], "strategy": ["direct"]})
    assert [c["separator"] for c in everything.conditions] == ["none", "space", "comma"]
    with pytest.raises(
        PlanError, match="'lab/ones' has no value 'coma' on axis 'separator'; it has none"
    ):
        plan(task, axes={"separator": ["none", "coma"]})


def test_an_adaptive_plan_has_a_count_for_each_cell(lab: Lab) -> None:
    """Its samples are those of a full plan, in index order; cells without samples are not in it."""
    full = plan(open_task("lab/ones", lab.ones))
    none, comma = full.conditions
    three, five = full.lines
    counts = {
        (none, five): 3,
        (none, three): 1,
        (comma, three): 0,
        (Condition({"x": "y"}), five): 2,
    }
    chosen = full.with_counts(counts)
    assert chosen.sizes == {(none, three): 1, (none, five): 3}
    assert (chosen.size, list(chosen.lines)) == (4, [three, five])
    assert [sample.id for sample in chosen] == [
        sample.id
        for sample in full
        if sample.index < chosen.cell_size(sample.condition, sample.line)
    ]
    grown = chosen.with_counts({(comma, three): 2})
    assert [sample.id for sample in grown] == [
        full.sample(comma, three, index).id for index in range(2)
    ]


def test_items_that_are_ready_are_planned_as_far_as_they_go(lab: Lab) -> None:
    """A length with fewer items than asked for has a smaller cell; one without is an error."""
    path = lab.folder / "ready.yaml"
    path.write_text(
        "version: 1\ntitle: x\nitems: rows.jsonl\nprompt: '{{ phrase }} {{ row }}'\nanswer: text\n"
    )
    lines = [
        f'{{"variables": {{"row": 1}}, "target": "{number}", "length": {2 + number // 4}}}\n'
        for number in range(6)
    ]
    (lab.folder / "rows.jsonl").write_text("".join(lines))
    task = open_task("x/ready", path)
    planned = plan(task, samples=3)
    assert [planned.cell_size(planned.conditions[0], line) for line in planned.lines] == [3, 2]
    assert planned.size == len(list(planned)) == 5
    assert [s.target for s in plan(task)] == ["0", "4", "1", "5", "2", "3"]
    for sample in planned:
        assert sample_from_id(task, sample.id) == sample
    with pytest.raises(PlanError, match="'x/ready' has no item of length 9"):
        plan(task, lengths=[2, 9])
    for place in ("length=2|seed=0|index=4", "length=9|seed=0|index=0"):
        with pytest.raises(PlanError):
            sample_from_id(task, f"x/ready@1|-|{place}")


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "x",
        "counting/ones",
        f"{ONES}|length=5|seed=0",
        f"{ONES}|length=x|seed=0|index=0",
        f"{ONES}|length=-5|seed=0|index=0",
        f"{ONES}|length=5|seed=0|index=0 ",
        f"{ONES}|length=5|seed=0|index=0\n",
        "counting/ones@2|separator=none,strategy=direct,order=question_first|length=5|seed=0|index=0",
        "counting/sum@1|strategy=direct,order=question_first|length=5|seed=0|index=0",
        "counting/ones@1|-|length=5|seed=0|index=0",
        "counting/ones@1||length=5|seed=0|index=0",
        "counting/ones@1|separator=none,strategy=direct|length=5|seed=0|index=0",
        "counting/ones@1|separator=no,strategy=direct,order=question_first|length=5|seed=0|index=0",
        "counting/ones@1|separator=none,strategy=direct,order=question_first,hint=off|length=5|seed=0|index=0",
        f"{ONES}|length=05|seed=0|index=0",
        f"{ONES}|length=5|seed=-0|index=0",
        "counting/ones@1|order=question_first,strategy=direct,separator=none|length=5|seed=0|index=0",
        "counting/ones@1|separator=comma,separator=none,strategy=direct,order=question_first|length=5|seed=0|index=0",
        f"{ONES}|length=0|seed=0|index=0",
    ],
)
def test_what_is_no_id_is_refused(wrong: str) -> None:
    """An id of another task, version or condition, or none at all, makes no sample."""
    with pytest.raises(PlanError) as caught:
        sample_from_id(opened("counting/ones"), wrong)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("folder", ["plain", "my tasks", "v@2", "a|b", "é", "a=b,c", "length=5"])
def test_a_users_folder_may_be_called_anything(folder: str, lab: Lab) -> None:
    """An id makes its sample again whatever characters the task's name has."""
    name = f"{folder}/ones"
    task = open_task(name, lab.ones)
    sample = next(iter(plan(task)))
    assert sample.id == sample_id(task, sample.condition, sample.length, sample.index, 0)
    assert sample_from_id(task, sample.id) == sample


def test_the_fingerprint_is_of_the_set(lab: Lab) -> None:
    """Order does not matter; every id, prompt and target does."""
    task = open_task("lab/ones", lab.ones)
    samples = list(plan(task))
    assert fingerprint(reversed(samples)) == fingerprint(samples)
    assert fingerprint(samples) == sum(map(sample_hash, samples)) % 2**256
    assert fingerprint([]) == 0
    assert fingerprint(samples[1:]) != fingerprint(samples)
    assert fingerprint(plan(task, seed=1)) != fingerprint(samples)
    lab.ones.write_text(lab.ones.read_text().replace("How many", "How  many"))
    assert fingerprint(plan(open_task("lab/ones", lab.ones))) != fingerprint(samples)


def test_room_for_a_reply_grows_with_what_is_asked() -> None:
    """A direct answer has room for itself; reasoning has room for the row besides."""
    task = opened("counting/ones")
    budgets = {
        (strategy, length): output_budget(
            make_sample(
                task,
                Condition({"separator": "none", "strategy": strategy, "order": "question_first"}),
                Line.exact(length),
                0,
                0,
            )
        )
        for strategy, length in product(("direct", "cot_zero_shot"), (5, 500))
    }
    assert budgets["direct", 5] < budgets["direct", 500] < 400
    assert budgets["cot_zero_shot", 5] > budgets["direct", 5]
    assert budgets["cot_zero_shot", 500] - budgets["cot_zero_shot", 5] > 495


def test_any_lengths_are_bands_unless_the_command_or_the_task_has_exact_ones(lab: Lab) -> None:
    """A band of `fifth` is the same around given lengths."""
    task, lab_task = opened("counting/ones"), open_task("lab/ones", lab.ones)

    def shown(of: Task, **options: object) -> list[str]:
        return [str(line) for line in plan(of, **options).lines]  # type: ignore[arg-type]

    assert shown(task)[:4] == ["5", "7 (6–8)", "10 (9–12)", "15 (13–18)"]
    assert shown(task, exact=True)[:4] == ["5", "7", "10", "15"]
    assert shown(task, lengths=[50, 10], exact=True) == ["10", "50"]
    assert shown(task, lengths=[50, 10]) == ["10 (10–22)", "50 (23–50)"]
    assert shown(lab_task) == ["3", "5"]
    assert shown(lab_task, lengths=[50, 10]) == ["10", "50"]
    assert shown(opened("capacity/items"), lengths=[10, 50]) == ["10 (8–12)", "50 (40–60)"]


def test_every_plan_asks_the_same_sample_of_a_length() -> None:
    """A sample of a band is the one that its true length and index name, and lengths of a band are
    the same under every condition.
    """
    task = opened("counting/words")
    planned = plan(task, lengths=[10, 50], samples=12, axes={"strategy": ["all"]})
    lengths: dict[tuple[Line, int], int] = {}
    for sample in planned:
        again = sample_from_id(task, sample.id)
        assert (again.line, again.length) == (Line.exact(sample.length), sample.length)
        assert (again.prompt, again.target) == (sample.prompt, sample.target)
        assert sample.line.low <= sample.length <= sample.line.high
        place = sample.line, sample.index
        assert lengths.setdefault(place, sample.length) == sample.length
    assert len(set(lengths.values())) > 12
    assert list(planned.sizes.values()) == [12] * 6


def test_ready_items_have_no_bands(lab: Lab) -> None:
    """Their lengths are what they are."""
    path = lab.folder / "ready.yaml"
    path.write_text(
        "version: 1\ntitle: x\nitems: rows.jsonl\nprompt: '{{ phrase }} {{ row }}'\nanswer: text\n"
    )
    lines = (
        f'{{"variables": {{"row": 1}}, "target": "a", "length": {length}}}\n' for length in (2, 9)
    )
    (lab.folder / "rows.jsonl").write_text("".join(lines))
    task = open_task("x/ready", path)
    assert plan(task).lines == plan(task, exact=True).lines == [Line.exact(2), Line.exact(9)]
