"""`bench compare`: two runs, or two conditions, on the same samples."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from eyechart.harness.analysis.comparison.comparison import Change, compare_conditions, compare_runs
from eyechart.harness.analysis.comparison.comparison_table import comparison_table
from eyechart.harness.analysis.length.at_length import at_length
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.journal.manifest import read_manifest, write_manifest
from eyechart.harness.journal.record import SAMPLES
from eyechart.harness.spec import Settings
from eyechart.providers.base import Request
from tests.conftest import Lab, mark_chosen, right
from tests.test_analysis_family import right_to
from tests.test_analysis_family import run as other_run


def wrong_from(index: int, *, length: int = 5) -> Callable[[Request], str]:
    """Right but at `length` from sample `index` on."""

    def script(request: Request) -> str:
        identifier = request.sample_id
        late = int(identifier.rpartition("=")[2]) >= index
        return "Final answer: 9" if late and f"length={length}|" in identifier else right(request)

    return script


def run(lab: Lab, model: str, script: Callable[[Request], str] = right, samples: int = 20) -> Path:
    """The folder of a run of `ONES` without separators."""
    wanted = lab.wanted(model=model, samples=samples, axes={"separator": ["none"]})
    lab.asked(wanted, script)
    return wanted.folder


class TestRuns:
    """Two models."""

    def test_a_real_difference(self, lab: Lab) -> None:
        """Per line both accuracies and the corrected p; then effective length and area."""
        sharp = run(lab, "scripted/sharp", samples=40)
        blind = run(lab, "scripted/blind", wrong_from(5), samples=40)
        done = lab.bench("compare", sharp, blind, "-o", lab.folder / "c.csv")
        assert done.code == 0
        assert str(lab.folder / "c.csv") in done.out.splitlines()
        with (lab.folder / "c.csv").open() as file:
            three, five, length, near, apart, area, *whole = csv.DictReader(file)
        assert (three["length"], three["p_holm"], three["n"]) == ("3", "1.0", "40")
        assert (five["only_first"], five["only_second"]) == ("35", "0")
        assert float(five["p"]) == pytest.approx(2 / 2**35)
        assert float(five["p_holm"]) == pytest.approx(4 / 2**35)
        assert (five["value_first"], five["value_second"]) == ("1.0", "0.125")
        assert (length["measure"], length["length"]) == ("effective_length", "")
        assert (length["value_first"], length["value_first_bound"]) == ("5.0", ">")
        assert length["value_second_bound"] == ""
        assert (length["ci_high"], length["ci_high_bound"]) == ("", ">")
        assert length["ci_low"]
        assert (near["measure"], apart["measure"]) == ("near_length", "apart_length")
        assert (near["value_first"], near["value_first_bound"]) == ("5.0", ">")
        assert near["difference"] == near["p"] == apart["p"] == ""
        assert [row["measure"] for row in whole] == ["effective_length", "area"]
        for of_pair, of_condition in zip(whole, (length, area), strict=True):
            assert (of_pair["condition"], of_pair["second_is"]) == ("all", "worse")
            same = (
                "value_first",
                "value_second",
                "ci_low",
                "ci90_low",
                "ci90_high",
                "factor_ci_low",
            )
            assert [of_pair[name] for name in same] == [of_condition[name] for name in same]
        assert (whole[0]["further"], whole[0]["margin"]) == ("scripted/sharp", "0.05")
        assert length["ci_low_bound"] == ""
        assert {five[name] for name in five if name.endswith("_bound")} == {""}
        assert 3 <= float(length["value_second"]) <= 5
        assert (area["measure"], area["length"]) == ("area", "")

    def test_the_other_way_round(self, lab: Lab) -> None:
        """The numbers change their sign and nothing else."""
        sharp, blind = (
            read_run(folder)
            for folder in (
                run(lab, "scripted/sharp", samples=40),
                run(lab, "scripted/blind", wrong_from(5), samples=40),
            )
        )
        forth, back = compare_runs(sharp, blind), compare_runs(blind, sharp)
        assert forth.length.low == pytest.approx(-back.length.high)
        assert forth.area is not None
        assert back.area is not None
        assert forth.area.difference_ci == back.area.swapped.difference_ci
        assert (forth.length.further, back.length.further) == (1, -1)

    def test_only_pairs_count(self, lab: Lab) -> None:
        """More samples in one run change nothing."""
        few, many = run(lab, "scripted/a", samples=4), run(lab, "scripted/b", samples=9)
        verdict = compare_runs(read_run(few), read_run(many))
        assert [row.n for row in verdict.conditions[0].paired.lengths] == [4, 4]

    def test_the_same_model_with_other_settings(self, lab: Lab) -> None:
        """The names say what differs."""
        wanted = [
            lab.wanted(settings=Settings(temperature=temperature)) for temperature in (0.0, 0.7)
        ]
        for one in wanted:
            lab.asked(one)
        verdict = compare_runs(read_run(wanted[0].folder), read_run(wanted[1].folder))
        assert verdict.first == "scripted/test (temperature=0.0)"
        assert verdict.second == "scripted/test (temperature=0.7)"
        assert len(verdict.conditions) == 2

    def test_what_is_not_limited_is_no_missing_value(self, lab: Lab) -> None:
        """Two sides that see beyond the lines: their difference is open in both directions."""
        first, second = (read_run(run(lab, f"scripted/{name}", samples=60)) for name in "ab")
        table = comparison_table([compare_runs(first, second)], 0.05)
        row, whole = table[table["measure"] == "effective_length"].to_dict("records")
        assert whole["difference_bound"] == "?"
        found = [row[f"{name}_bound"] for name in ("value_first", "value_second", "difference")]
        assert found == [">", ">", "?"]
        assert (row["ci_low_bound"], row["ci_high_bound"]) == ("<", ">")


class TestChange:
    """What became of the second, compared with the first."""

    def change(
        self, lab: Lab, *scripts: Callable[[Request], str], samples: int = 20, margin: float = 0.05
    ) -> Change:
        first, second = (
            read_run(run(lab, f"scripted/{name}", script, samples))
            for name, script in zip("ab", scripts, strict=True)
        )
        return compare_runs(first, second).change(margin)

    def test_worse_and_better(self, lab: Lab) -> None:
        """By the area, whichever side is first."""
        assert self.change(lab, right, wrong_from(5)) == "worse"

    def test_better(self, lab: Lab) -> None:
        """The other way round."""
        assert self.change(lab, wrong_from(5), right) == "better"

    def test_equal_answers_of_many_samples_are_equivalent(self, lab: Lab) -> None:
        """With few samples it is open."""
        assert self.change(lab, right, right, samples=120) == "equivalent"

    def test_few_samples_leave_it_open(self, lab: Lab) -> None:
        """Four samples say nothing about five points."""
        assert self.change(lab, right, right, samples=4) == "undecided"

    def test_a_collapse_at_one_length_is_worse_within_any_margin(self, lab: Lab) -> None:
        """Even where the areas are equal, since the other side is worse elsewhere."""
        scripts = wrong_from(0, length=3), wrong_from(0, length=5)
        assert self.change(lab, *scripts, margin=0.6) == "worse"

    def test_too_few_replies_for_a_length_show_no_difference_of_lengths(self, lab: Lab) -> None:
        """Six replies on either side; nothing is said of an accuracy at a length either."""
        lengths = [3, 5, 9, 17, 33, 65]
        first, second = (
            other_run(lab, name, right_to(length), lengths=lengths, samples=1)
            for name, length in (("far", 99), ("near", 3))
        )
        compared = compare_runs(first, second)
        assert (compared.length.further, compared.length.shown[1:]) == (0, (-math.inf, math.inf))
        assert compared.change("1.5x") == "undecided"
        for one in first.conditions.values():
            estimate = one.effective_length()
            assert estimate is not None
            assert at_length(estimate, 5).reaches is None

    def test_adaptive_samples_have_no_area(self, lab: Lab) -> None:
        """They are equivalent within a factor only; effective lengths and lines are compared as
        ever.
        """
        folders = [run(lab, "scripted/a", samples=120), run(lab, "scripted/b", samples=120)]
        first, second = map(read_run, folders)
        assert compare_runs(first, second).change(0.05) == "equivalent"
        mark_chosen(folders[1], "none")
        chosen = read_run(folders[1])
        compared = compare_runs(first, chosen)
        assert (compared.area, compared.change(0.05)) == (None, "undecided")
        assert compared.change("1.5x") == "undecided"  # both are right beyond the longest line
        done = lab.bench("compare", *folders, "-o", lab.folder / "c.csv", "--fail-if", "worse")
        assert done.code == 0
        with (lab.folder / "c.csv").open() as file:
            measures = [row["measure"] for row in csv.DictReader(file)]
        of_both = ["effective_length", "near_length", "apart_length"]
        assert measures == ["accuracy", "accuracy", *of_both, "effective_length"]
        assert "| area" not in done.out
        assert "At least one side is adaptive, so lines are compared on the 240 samples" in done.out
        assert "whether the two are equivalent is not tested" in done.out
        worse = run(lab, "scripted/c", wrong_from(5), samples=120)
        back = compare_runs(chosen, read_run(worse))
        assert (back.area, back.change(0.05), back.change("1.5x")) == (None, "worse", "worse")

    @pytest.mark.parametrize(
        ("fail_if", "code"),
        [("worse", 3), ("different", 3), ("undecided", 3), ("not-equivalent", 3), (None, 0)],
    )
    def test_the_exit_code(self, lab: Lab, fail_if: str | None, code: int) -> None:
        """A pipeline stops where the second is worse."""
        folders = run(lab, "scripted/a"), run(lab, "scripted/b", wrong_from(5))
        options = () if fail_if is None else ("--fail-if", fail_if)
        done = lab.bench("compare", *folders, *options, "-o", lab.folder / "c.csv")
        assert done.code == code
        assert "scripted/a counts exactly further than scripted/b on lab/ones" in done.out
        assert ("scripted/b is worse" in done.err) == (fail_if is not None)
        back = lab.bench(
            "compare", *reversed(folders), "--fail-if", "worse", "-o", lab.folder / "c.csv"
        )
        assert back.code == 0

    def test_what_cannot_be_judged_has_another_code(self, lab: Lab) -> None:
        """As in a gate: missing samples, no sight, and an open verdict where that fails."""
        whole = run(lab, "scripted/a", samples=20)
        few = run(lab, "scripted/b", samples=4)
        refuses = run(lab, "scripted/c", lambda _: "I cannot help with that.", samples=20)
        for first, second, fail_if, said in (
            (whole, few, "worse", "scripted/b is incomplete"),
            (whole, refuses, "worse", "scripted/c is not comparable"),
            (few, whole, "worse", ""),
            (few, whole, "undecided", "scripted/a is undecided"),
            (few, whole, "not-equivalent", "scripted/a is undecided"),
        ):
            given = (first, second, "--fail-if", fail_if, "--margin", "0.01")
            done = lab.bench("compare", *given)
            expected = f"bench: --fail-if {fail_if}: {said}\n" if said else ""
            assert (done.code, done.err) == (4 * bool(said), expected)
        assert lab.bench("compare", whole, few).code == 0

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (("--margin", "0"), ("--margin", "from 0.001 to 0.999, or", "not 0")),
            (("--margin", "5"), ("--margin", "from 0.001 to 0.999, or", "not 5")),
            (("--margin", "-1"), ("--margin", "from 0.001 to 0.999, or", "not -1")),
            (("--margin", "x"), ("--margin", "must be a number", "not 'x'")),
            (("-o", "c.txt"), ("-o 'c.txt'", "no .csv file")),
            (("--fail-if", "bad"), ("--fail-if", "worse, undecided, different or not-equivalent")),
            (("--threshold", "2"), ("--threshold",)),
        ],
    )
    def test_options_that_cannot_be(
        self, lab: Lab, options: tuple[str, ...], words: tuple[str, ...]
    ) -> None:
        """Each in one line."""
        folders = run(lab, "scripted/a"), run(lab, "scripted/b")
        lab.bench("compare", *folders, *options).one_line(2, *words)


class TestRefused:
    """What cannot be compared is said in one line, with exit code 2."""

    def refuse(self, lab: Lab, *words: str, model: str = "scripted/b") -> None:
        lab.bench("compare", run(lab, "scripted/a"), run(lab, model)).one_line(2, *words)

    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({"task_version": 2}, ("version 1", "2", "run both with the same")),
            ({"spec": {"system": "x"}}, ("the file of lab/ones changed",)),
            ({"task": "lab/twos"}, ("one is a run of lab/ones, the other of lab/twos",)),
            ({"settings": Settings(seed=3)}, ("seed 0 and seed 3",)),
        ],
    )
    def test_other_tasks_and_rows(
        self, lab: Lab, changed: dict[str, Any], words: tuple[str, ...]
    ) -> None:
        """By what the manifests say."""
        folder = run(lab, "scripted/b")
        manifest = replace(read_manifest(folder), **changed, run="")
        manifest.spec = read_manifest(folder).spec | changed.get("spec", {})
        manifest.spec["version"] = manifest.task_version
        manifest.task_digest = manifest.task_spec().digest()
        write_manifest(folder, manifest)
        lab.bench("compare", run(lab, "scripted/a"), folder).one_line(2, *words)

    def test_other_prompts(self, lab: Lab) -> None:
        """By what the journals say."""
        folder = run(lab, "scripted/b")
        path = folder / SAMPLES
        lines = path.read_bytes().splitlines(keepends=True)
        changed = orjson.loads(lines[-1]) | {"prompt_hash": "abc"}
        path.write_bytes(b"".join(lines[:-1]) + orjson.dumps(changed) + b"\n")
        said = lab.bench("compare", run(lab, "scripted/a"), folder).one_line(2, "1 sample differ")
        assert "length 5, index 19" in said

    def test_a_run_with_itself(self, lab: Lab) -> None:
        """And the way to compare conditions."""
        self.refuse(lab, "is named twice; --axis AXIS=VALUE,VALUE compares two", model="scripted/a")

    def test_one_run_and_the_same_three_times(self, lab: Lab) -> None:
        """Two or more are compared, and each is another one."""
        folder = run(lab, "scripted/a")
        lab.bench("compare", folder).one_line(2, "two runs or more, not 1", "--axis")
        lab.bench("compare", folder, folder, folder).one_line(2, "is named twice")

    def test_nothing_in_common(self, lab: Lab) -> None:
        """Neither condition nor length."""
        other = lab.wanted(model="scripted/b", axes={"separator": ["comma"]})
        lab.asked(other)
        mine = run(lab, "scripted/a")
        lab.bench("compare", mine, other.folder).one_line(2, "no condition in common")
        longer = lab.wanted(model="scripted/c", axes={"separator": ["none"]}, lengths=[9])
        lab.asked(longer)
        lab.bench("compare", mine, longer.folder).one_line(2, "no scored sample in common")

    def test_no_run(self, lab: Lab) -> None:
        """Exit code 1, as everywhere."""
        lab.bench("compare", run(lab, "scripted/a"), lab.folder).one_line(1, "no run in")


class TestConditions:
    """Two values of an axis, on the same rows."""

    def folder(self, lab: Lab) -> Path:
        wanted = lab.wanted(samples=40, axes={"separator": ["all"]})
        lab.asked(
            wanted,
            lambda request: (
                wrong_from(5)(request) if "separator=none" in request.sample_id else right(request)
            ),
        )
        return wanted.folder

    def test_an_axis_with_one_value_has_nothing_to_compare(self, lab: Lab) -> None:
        """Whatever was given, the message has what the run has."""
        folder = run(lab, "scripted/a")
        for given in ("all", "none"):
            lab.bench("compare", folder, "--axis", f"separator={given}").one_line(
                2, f"needs exactly two different values to compare, not '{given}'", "has none"
            )

    def test_what_a_separator_does(self, lab: Lab) -> None:
        """The sentence names the model and both values, the better one first."""
        done = lab.bench(
            *("compare", self.folder(lab), "--axis", "separator=none,comma"),
            *("-o", lab.folder / "c.csv"),
        )
        assert done.code == 0
        assert (
            "scripted/test counts exactly further with separator=comma than with "
            "separator=none on lab/ones: "
            "to more than 5 symbols against 3"
        ) in done.out
        assert not (Path.cwd() / "compare.csv").exists()

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ("separator=none,dot", ("no separator=dot", "none, space, comma")),
            ("separator=none", ("two different values", "'none'")),
            ("separator=none,none", ("two different values", "'none', 'none'")),
            ("separator=all", ("two different values", "has none, space, comma")),
            ("hint=on,off", ("no axis 'hint'", "separator")),
            ("separator", ("--axis wants",)),
        ],
    )
    def test_values_that_are_not_there(self, lab: Lab, given: str, words: tuple[str, ...]) -> None:
        """Each with what there is."""
        lab.bench("compare", self.folder(lab), "--axis", given).one_line(2, *words)

    def test_the_rest_of_the_condition_is_kept_equal(self, lab: Lab) -> None:
        """One comparison for each of the other axes' values."""
        task = ("--task", "counting/ones", "--lengths", "5,10", "--samples", "2")
        axes = ("--axis", "strategy=direct,cot_zero_shot", "--axis", "separator=none,comma")
        model = lab.fake(lambda _: "Final answer: 5")
        lab.bench_ask(*task, *axes, "--model", model, "--out", lab.out)
        verdict = compare_conditions(read_run(lab.the_run()), "separator", ["none", "comma"])
        assert [dict(one.condition) for one in verdict.conditions] == [
            {"strategy": "direct", "order": "question_first"},
            {"strategy": "cot_zero_shot", "order": "question_first"},
        ]
