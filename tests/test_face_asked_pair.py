"""`bench compare --ask`: two runs are asked until their comparison is decided."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import eyechart
from eyechart.harness.analysis.adaptive.next_pairs import WAVES
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.cli.progress import LiveDisplay
from eyechart.harness.errors import COMPLETE, INCOMPLETE, JournalError, UsageError
from eyechart.harness.face.asking.ask_pair import AskedPair
from eyechart.harness.face.asking.ask_run import AskedRun, Limits
from eyechart.harness.face.asking.engine import RunNotices
from eyechart.harness.journal.manifest import MANIFEST, read_manifest, write_manifest
from eyechart.harness.run.event_loop import run_in_loop
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.providers import descriptors
from eyechart.providers.base import Api, AuthError, BadRequestError, Request
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import Done, Lab, records
from tests.test_analysis_family import right_to
from tests.test_likelihood import sees


class Pair:
    """Two models, a run of each, and what each was asked."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.asked: dict[str, list[str]] = {}
        self.folders: list[Path] = []

    def model(self, name: str, script: Callable[[Request], Any]) -> None:
        """Makes `name/x` known, with this script, or gives it another one."""
        self.asked.setdefault(name, [])

        def answer(request: Request) -> Any:
            self.asked[name].append(request.sample_id)
            return script(request)

        module = types.ModuleType(f"fake_{name}")
        module.__dict__["open_provider"] = lambda _settings: ScriptedProvider(answer)
        self.lab.monkeypatch.setitem(sys.modules, f"fake_{name}", module)
        self.lab.add_provider(name, f"fake_{name}:open_provider")

    def run(
        self, name: str, script: Callable[[Request], Any], *options: str, code: int = 0
    ) -> None:
        """Makes the run of a model, which ends with this exit code."""
        self.model(name, script)
        known = {path.parent for path in self.lab.out.rglob(MANIFEST)}
        command = ("--model", f"{name}/x", "--axis", "separator=none", *options)
        assert self.lab.bench_ask(*command).code == code
        (folder,) = {path.parent for path in self.lab.out.rglob(MANIFEST)} - known
        self.folders.append(folder)
        self.asked[name].clear()

    def ask(self, *options: str) -> Done:
        """`bench compare --ask` of both."""
        return self.lab.bench("compare", *self.folders, "--ask", "-t", self.lab.ones, *options)


@pytest.fixture
def pair(lab: Lab) -> Pair:
    """Nothing is asked yet."""
    return Pair(lab)


def lengths_of(identifiers: list[str]) -> set[int]:
    """The lengths of samples."""
    return {int(one.split("|length=")[1].split("|")[0]) for one in identifiers}


LINES = ("--lengths", "2,4,8,16", "--samples", "20")


def test_missing_pairs_come_first(pair: Pair) -> None:
    """What one run lacks of the other, and no more than the price; said before."""
    pair.run("far", right_to(8), *LINES)
    pair.run("near", right_to(8), "--lengths", "2,4", "--samples", "20")
    done = pair.ask("--max-requests", "30")
    assert done.code == 0
    said = " ".join(done.err.split())
    assert "asking at most 30 samples: only what the other run has (40 of near/x), in" in said
    assert "asked 30 samples, all that may be asked" in said
    assert (len(pair.asked["far"]), len(pair.asked["near"])) == (0, 30)
    assert lengths_of(pair.asked["near"]) == {8, 16}
    cells = read_run(pair.folders[1]).manifest.cells
    assert [cell.samples for cell in cells] == [20, 20, 15, 15]
    assert read_run(pair.folders[1]).missing == 0  # the limit left out what nobody wants now


@pytest.mark.parametrize(
    ("sees", "options", "said"),
    [
        (
            2,
            ("--lengths", "2,4", "--samples", "9"),
            "decided: far/x counts exactly further than near/x",
        ),
        (8, ("--lengths", "2,4,8,16", "--samples", "25"), "equivalent: far/x and near/x"),
    ],
)
def test_missing_pairs_are_not_asked_where_the_answer_is_found(
    pair: Pair, sees: int, options: tuple[str, ...], said: str
) -> None:
    """They would be paid for nothing."""
    pair.run("far", right_to(8), *LINES)
    pair.run("near", right_to(sees), *options)
    done = pair.ask()
    assert "no further samples are asked: the comparison is decided" in " ".join(done.err.split())
    assert said in done.err
    assert pair.asked == {"far": [], "near": []}


def test_runs_with_other_lines_are_not_equivalent_yet(pair: Pair) -> None:
    """Equal areas over the lines of both say nothing of the lines that one of them lacks, nor do
    answers that are all wrong there.
    """
    pair.run("far", right_to(8), *LINES)
    pair.run("near", right_to(2), "--lengths", "2", "--samples", "20")
    pair.ask("--margin", "0.2")
    assert lengths_of(pair.asked["near"]) == {4, 8, 16}


def test_runs_without_a_common_line_are_asked_one(pair: Pair) -> None:
    """Nothing can be compared before."""
    pair.run("far", right_to(8), "--lengths", "8,16", "--samples", "9")
    pair.run("near", right_to(2), "--lengths", "2,4", "--samples", "9")
    done = pair.ask()
    assert "decided: far/x counts exactly further than near/x" in done.err
    assert lengths_of(pair.asked["far"]) == {2, 4}


def test_one_reply_to_a_sample_of_two_lines_is_one_sample(pair: Pair) -> None:
    """The other line of the same length gets it too; so the price is not spent, and nothing is
    without a reply.
    """
    pair.lab.with_bands()
    pair.run("far", right_to(8), "--lengths", "2,4,8,16", "--samples", "9")
    pair.run("near", right_to(8), "--lengths", "2,4,8,16", "--exact", "--samples", "9")
    done = pair.ask("--max-requests", "30")
    asked = pair.asked["far"] + pair.asked["near"]
    assert "have no reply" not in done.err
    assert f"asked {len(asked)} samples" in done.err
    assert (done.code, len(asked)) == (0, 30)


def test_missing_pairs_are_one_of_the_waves(pair: Pair) -> None:
    """So the comparison is looked at as often as where none is missing."""
    pair.run("far", right_to(8), *LINES)
    pair.run("near", right_to(8), "--lengths", "2,4", "--samples", "20")
    judging = JudgeSettings(tasks=str(pair.lab.ones), margin=1e-9)
    asking = AskedPair(pair.folders, Limits(requests=100), judging, warn=print)
    why = asking.ask(RunNotices(LiveDisplay(), print, print), run_in_loop)
    assert (asking.waves, asking.asked) == (WAVES, 100), why


def test_the_same_command_goes_on(pair: Pair) -> None:
    """Nothing that was answered is lost, or asked again."""
    pair.run("far", right_to(16), *LINES)
    pair.run("near", right_to(16), "--lengths", "2,4", "--samples", "20")

    def dies(request: Request) -> str:
        if len(pair.asked["near"]) > 12:
            raise AuthError("the key is gone")
        return right_to(16)(request)

    pair.model("near", dies)
    done = pair.ask("--max-requests", "40")
    assert done.code == 1
    assert "the key is gone" in done.err
    answered = [one["id"] for one in records(pair.folders[1]) if "error" not in one]
    pair.model("near", right_to(16))
    pair.asked["near"].clear()
    assert pair.ask("--max-requests", "40").code == 0
    assert not set(answered) & set(pair.asked["near"])
    assert read_run(pair.folders[1]).missing == 0


def test_it_ends_once_one_sees_further(pair: Pair) -> None:
    """Rows are added on the lines that tell most; both runs stay full ones, with areas."""
    pair.run("far", right_to(16), "--lengths", "2,4,8,16,32,64", "--samples", "5")
    pair.run("near", right_to(8), "--lengths", "2,4,8,16,32,64", "--samples", "5")
    before = json.loads(pair.lab.bench("compare", *pair.folders, "--json").out)["pairs"][0]
    done = pair.ask("--max-requests", "120", "--json")
    found = json.loads(done.out)["pairs"][0]
    assert (before["further"], found["further"]) == (None, "far/x")
    assert found["findings"][0]["sentence"].startswith(
        "far/x counts exactly further than near/x on lab/ones: to "
    )
    assert "the comparison is decided" in done.err
    asked = pair.asked["far"] + pair.asked["near"]
    assert 0 < len(asked) < 120
    assert len(pair.asked["far"]) == len(pair.asked["near"])
    assert 64 not in lengths_of(asked)
    assert found["area"] is not None
    assert [read_manifest(folder).adaptive for folder in pair.folders] == [[], []]
    assert all((folder / "table.csv").exists() for folder in pair.folders)


def test_a_decided_comparison_asks_nothing(pair: Pair) -> None:
    """Two runs that are equivalent."""
    pair.run("far", right_to(8), *LINES)
    pair.run("near", right_to(8), *LINES)
    done = pair.ask()
    assert "asking at most 80 samples" in done.err
    assert "the comparison is decided" in done.err
    assert "equivalent: far/x and near/x" in done.err
    assert pair.asked == {"far": [], "near": []}
    assert "far/x and near/x are equivalent on lab/ones" in " ".join(done.out.split())


def test_what_more_samples_do_not_show_is_not_decided(pair: Pair) -> None:
    """Two models that are wrong everywhere."""
    pair.run("one", right_to(0), *LINES)
    pair.run("two", right_to(0), *LINES)
    said = " ".join(pair.ask().err.split())
    assert "no further samples are asked: more samples would not decide the comparison" in said
    assert said.endswith(
        "open: which of one/x and two/x counts exactly further (no area can fall "
        "by more than the margin)"
    )
    assert pair.asked == {"one": [], "two": []}


def test_adaptive_runs_stay_adaptive(pair: Pair) -> None:
    """Their missing pairs are asked all the same."""
    pair.lab.with_bands()
    pair.run("far", right_to(8), "--adaptive", "--max-requests", "20", "--lengths", "2,4,8,16")
    pair.run("near", right_to(4), "--adaptive", "--max-requests", "24", "--lengths", "2,4,8,16")
    pair.ask("--max-requests", "60")
    manifests = [read_manifest(folder) for folder in pair.folders]
    assert [len(manifest.adaptive) for manifest in manifests] == [1, 1]
    sizes = [{cell.key: cell.samples for cell in manifest.cells} for manifest in manifests]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--axis", "separator=none,comma"), ("--ask compares runs", "leave out one")),
        (("--settle", "best"), ("--settle is for three runs or more",)),
        (("--settle", "x"), ("--settle is ranks or best, not 'x'",)),
        (("--budget", "1"), ("--budget", "prices")),
        (("--max-requests", "0"), ("--max-requests", "1")),
    ],
)
def test_what_does_not_go_together(
    pair: Pair, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """One line, and nothing is asked."""
    pair.run("far", right_to(8), *LINES)
    pair.run("near", right_to(8), *LINES)
    done = pair.ask(*options)
    assert done.code == 2
    assert all(word in done.err for word in words), done.err
    assert pair.asked == {"far": [], "near": []}


def test_limits_are_for_asking(pair: Pair) -> None:
    """They would be ignored otherwise."""
    pair.run("far", right_to(8), *LINES)
    done = pair.lab.bench("compare", *pair.folders, *pair.folders, "--max-requests", "3")
    done.one_line(2, "--max-requests is for --ask; add it")


def test_a_folder_that_was_renamed_is_not_asked_into_another(pair: Pair) -> None:
    """The replies would be in a new folder."""
    pair.run("far", right_to(8), *LINES)
    pair.run("near", right_to(8), *LINES)
    pair.folders[1] = pair.folders[1].rename(pair.folders[1].with_name("mine"))
    pair.ask().one_line(2, "mine cannot be asked again: it would be asked as", "the command that")


def test_a_run_is_asked_with_what_it_was_asked_with(pair: Pair) -> None:
    """Its manifest keeps that; an option of the command goes over it."""
    given = ("--logprobs", "3", "--rpm", "60000", "--name", "@fp8+x")
    pair.run("far", right_to(8), *LINES, *given, "--max-connections", "3")
    manifest = read_manifest(pair.folders[0])
    assert manifest.given == {
        "logprobs": 3,
        "max_connections": 3,
        "name": "@fp8+x",
        "rpm": 60000.0,
    }
    judging = JudgeSettings(tasks=str(pair.lab.ones))
    settings = AskedRun(pair.folders[0], Limits(), judging, print)._options.given
    assert settings.kept == manifest.given
    limits = Limits(max_connections=7)
    settings = AskedRun(pair.folders[0], limits, judging, print)._options.given
    assert settings.kept == manifest.given | {"max_connections": 7}


def test_a_setting_that_was_left_open_stays_open(pair: Pair) -> None:
    """Runs that were asked without a temperature are asked again without one; the default is 0."""
    given = ("--temperature", "none", "--system", "", "--max-tokens", "auto")
    pair.run("far", right_to(8), *LINES, *given)
    pair.run("near", right_to(8), "--lengths", "2,4", "--samples", "20", *given)
    done = pair.ask("--max-requests", "6")
    assert done.code == 0, done.err
    assert len(pair.asked["near"]) == 6


def test_a_forced_choice_of_a_model_without_temperature_is_asked_again(lab: Lab) -> None:
    """Its manifest says that no temperature was sent, and none can be given."""
    model = lab.fake(sees)
    chat: tuple[Api, ...] = ("chat",)
    usual = descriptors.BUILT_IN["fake"]
    able = replace(usual, likelihood=lambda _addresses: chat, takes_temperature=False)
    lab.monkeypatch.setitem(descriptors.BUILT_IN, "fake", able)
    assert lab.bench_ask("--model", model, "--read", "likelihood").code == 0
    assert read_manifest(lab.the_run()).settings.temperature is None
    run = AskedRun(lab.the_run(), Limits(), JudgeSettings(tasks=str(lab.ones)), print)
    assert run._options.settings.read == "likelihood"


def test_a_run_of_batches_is_asked_one_by_one(pair: Pair) -> None:
    """A wave cannot wait for a day; a line says so."""
    pair.run("far", right_to(8), *LINES)
    manifest = read_manifest(pair.folders[0])
    manifest.given = {"tier": "batch"}
    write_manifest(pair.folders[0], manifest)
    said: list[str] = []
    one = AskedRun(pair.folders[0], Limits(), JudgeSettings(tasks=str(pair.lab.ones)), said.append)
    assert not one._options.given.is_batch
    assert [line.partition("was asked")[2] for line in said] == [
        " by the vendor's Batch API, and is now asked one by one, at the price of that"
    ]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"base_url": ["http://127.0.0.1:9"]}, "'base_url' is no setting that a manifest keeps"),
        ({"model_args": ["x=y"]}, "'model_args' is no setting that a manifest keeps"),
        ({"out": "/"}, "'out' is no setting that a manifest keeps"),
        ({"seed": 1}, "'seed' is no setting that a manifest keeps"),
        ({"rpm": "x" * 9}, "rpm must be"),
    ],
)
def test_a_folder_says_nothing_of_addresses(
    pair: Pair, given: dict[str, Any], problem: str
) -> None:
    """It may be a stranger's; what it gives is checked as an option is."""
    pair.run("far", right_to(8), *LINES)
    file = pair.folders[0] / MANIFEST
    file.write_text(json.dumps(json.loads(file.read_text()) | {"given": given}))
    with pytest.raises(JournalError, match=problem):
        read_manifest(pair.folders[0])


def test_the_embedded_model(lab: Lab) -> None:
    """It is asked again as its run was."""
    for model in ("tiny", "oracle:12"):
        command = ("--task", "counting/words", "--model", model, "--samples", "5", "--out", lab.out)
        assert lab.bench_ask(*command, "--lengths", "5,10,20,40").code == 0
    folders = sorted(path.parent for path in lab.out.rglob(MANIFEST))
    before = [len(records(folder)) for folder in folders]
    done = lab.bench("compare", *folders, "--ask", "--max-requests", "40")
    assert done.code == 0, done.err
    more = [len(records(folder)) - count for folder, count in zip(folders, before, strict=True)]
    assert more[0] == more[1] > 0
    assert sum(more) <= 40


def test_python_asks_too(pair: Pair) -> None:
    """As the command does: the same samples, once; messages are those of a run."""
    pair.run("far", right_to(8), *LINES)
    pair.run("near", right_to(8), "--lengths", "2,4", "--samples", "20")
    found = eyechart.compare(*pair.folders, ask=True, max_requests=40, tasks=pair.lab.ones)
    assert (len(pair.asked["far"]), len(pair.asked["near"])) == (0, 40)
    lines = found.table[found.table["length"].notna()]
    assert list(lines["length"]) == [2, 4, 8, 16]
    assert set(lines["n"]) == {20}
    pair.asked["near"].clear()
    again = eyechart.compare(*pair.folders, ask=True, max_requests=1, tasks=pair.lab.ones)
    assert again.findings[0].sentence == found.findings[0].sentence
    assert len(pair.asked["far"]) + len(pair.asked["near"]) <= 1


def test_python_says_mistakes_of_asking(pair: Pair) -> None:
    """By the names of its own arguments."""
    for name in ("one", "two"):
        pair.run(name, right_to(8), *LINES)
    with pytest.raises(UsageError, match="are for ask=True; add it"):
        eyechart.compare(*pair.folders, budget=1.0)
    with pytest.raises(UsageError, match="max_requests must be"):
        eyechart.compare(*pair.folders, ask=True, max_requests=0)
    with pytest.raises(
        TypeError, match="has no argument 'max_request'; did you mean 'max_requests'"
    ):
        eyechart.compare(*pair.folders, max_request=1)  # type: ignore[call-overload]


def test_samples_without_a_reply_are_no_success(pair: Pair) -> None:
    """The comparison of what there is follows, and the exit code says that something is missing;
    Python is told as well.
    """

    def dead(_request: Request) -> str:
        raise BadRequestError("engine died")

    pair.run("far", right_to(8), "--lengths", "2,4,8", "--samples", "3")
    pair.run("near", right_to(8), "--lengths", "2,4,8", "--samples", "2")
    pair.model("near", dead)
    done = pair.ask()
    assert done.code == INCOMPLETE
    assert "no reply (the last: engine died)" in " ".join(done.err.split())
    told: list[str] = []
    eyechart.compare(*pair.folders, ask=True, tasks=pair.lab.ones, warn=told.append)
    assert any("have no reply" in line for line in told)


def test_with_fail_if_the_verdict_alone_gives_the_exit_code(pair: Pair) -> None:
    """A failed request gives exit code 1. With `--fail-if` it gives 0, since the second run has
    every sample of the first and is not worse.
    """
    pair.run("near", right_to(8), "--lengths", "2,4,8", "--samples", "2")
    pair.run("far", right_to(8), "--lengths", "2,4,8", "--samples", "3")

    def dead(_request: Request) -> str:
        raise BadRequestError("engine died")

    pair.model("near", dead)
    for options, code in (((), INCOMPLETE), (("--fail-if", "worse"), COMPLETE)):
        done = pair.ask(*options)
        assert "no reply (the last: engine died)" in " ".join(done.err.split())
        assert done.code == code


def test_a_limit_that_is_reached_without_all_replies(pair: Pair) -> None:
    """A sample that failed counts for the limit, and is not called asked."""

    def fails_once(request: Request) -> str:
        if len(pair.asked["near"]) == 1:
            raise BadRequestError("engine died")
        return right_to(8)(request)

    pair.run("far", right_to(8), *LINES)
    pair.run("near", right_to(8), "--lengths", "2,4", "--samples", "20")
    pair.model("near", fails_once)
    said = " ".join(pair.ask("--max-requests", "10").err.split())
    assert "asked 9 samples: the limit of 10 is reached" in said
    assert len(pair.asked["near"]) == 10
