"""`import eyechart`: runs, tables, charts and comparisons from Python, with nothing printed."""

from __future__ import annotations

import ast
import asyncio
import pickle
import re
from collections.abc import Callable
from importlib import import_module
from multiprocessing import get_context
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import vl_convert

import eyechart
from eyechart.harness.errors import CompareError, EyechartError, JournalError, UsageError
from eyechart.harness.journal.manifest import read_manifest
from eyechart.harness.journal.record import read_records
from eyechart.harness.score.outcomes import OUTCOMES
from eyechart.providers.base import AuthError, BadRequestError, ProviderError, Request
from tests.conftest import Lab, records, right
from tests.test_cli_adaptive import sees
from tests.test_imports import SAYS_LOADED, loaded
from tests.test_task_scorer import opened

ROOT = Path(__file__).parents[1]


def some_right(request: Request) -> str:
    """Right without separators, wrong with commas at length 5."""
    wrong = "separator=comma" in request.sample_id and "length=5" in request.sample_id
    return "so Final answer: 99" if wrong else right(request)


def never(_request: Request) -> str:
    raise AssertionError("it was asked")


def no_key(_request: Request) -> str:
    raise AuthError("no key")


def too_hot(_request: Request) -> str:
    raise BadRequestError("too hot")


@pytest.fixture
def ask(lab: Lab) -> Callable[..., eyechart.Run]:
    """`eyechart.run` of `ones` on a scripted model."""

    def run(script: Callable[[Request], Any] = some_right, **options: Any) -> eyechart.Run:
        model = lab.fake(script)
        return eyechart.run(options.pop("task", lab.ones), model, out=lab.out, **options)

    return run


def test_runs_go_to_another_process(lab: Lab, ask: Callable[..., Any]) -> None:
    """With their judge and their task, also where these execute code beside the task file."""
    opened(lab.folder)
    runs = [ask(right, task=task) for task in (lab.ones, lab.folder / "near.yaml")]
    again = [eyechart.load_run(run.folder, run_kept_code=True) for run in runs]
    with get_context("spawn").Pool(1) as pool:
        for one in (*runs, *again):
            pd.testing.assert_frame_equal(pool.apply(attrgetter("samples"), (one,)), one.samples)
            there = pool.apply(attrgetter("conditions"), (one,))
            pd.testing.assert_frame_equal(there, one.conditions)
    for run in runs:
        assert run.samples["prompt"].notna().all()
        record = next(read_records(run.folder))
        assert pickle.loads(pickle.dumps(run)).judged.judge.verdict(record)  # noqa: S301  it is ours


class TestRun:
    """`eyechart.run`."""

    def test_it_is_the_run_of_the_command(self, lab: Lab, ask: Callable[..., eyechart.Run]) -> None:
        """Its folder and its files are the same, and each continues the other."""
        run = ask(lengths=[3])
        assert run.folder == lab.the_run()
        assert (run.model, run.task, run.missing) == ("fake/model", "lab/ones", 0)
        table = (run.folder / "table.csv").read_bytes()
        done = lab.bench_run("--model", lab.fake(never), "--lengths", "3")
        assert done.code == 0
        assert (run.folder / "table.csv").read_bytes() == table
        assert len(ask(lengths=[3, 5]).samples) == 16

    def test_nothing_is_printed(self, lab: Lab, ask: Callable[..., eyechart.Run]) -> None:
        """Neither results nor progress."""
        lab.capture.readouterr()
        ask()
        assert lab.capture.readouterr() == ("", "")

    def test_the_manifest_has_the_call(self, ask: Callable[..., eyechart.Run]) -> None:
        """And not the command line of the process."""
        run = ask(lengths=[3], axes={"separator": "none"})
        (command,) = read_manifest(run.folder).commands
        assert command == (
            "eyechart.run('lab/ones', 'fake/model', lengths=[3], samples=4, "
            "axes={'separator': ['none']}, seed=0)"
        )

    def test_axes_are_values_or_all(self, ask: Callable[..., eyechart.Run]) -> None:
        """As `--axis` takes them."""
        assert len(ask(axes={"separator": "all"}).conditions) == 3
        assert list(ask(axes={"separator": ["space"]}, seed=1).conditions["separator"]) == ["space"]

    def test_it_runs_inside_an_event_loop(self, ask: Callable[..., eyechart.Run]) -> None:
        """As in a notebook; errors come out as well."""

        async def notebook() -> eyechart.Run:
            with pytest.raises(ProviderError, match="no key"):
                ask(no_key, seed=1)
            return ask()

        assert asyncio.run(notebook()).missing == 0

    def test_messages_are_warnings_at_the_end(self, ask: Callable[..., eyechart.Run]) -> None:
        """Or go where the caller wants them."""
        with pytest.warns(UserWarning, match="16 samples have no reply; the same call asks them"):
            run = ask(too_hot, keep_going=True)
        assert run.missing == 16
        assert "–" in repr(run)
        assert "16 of 16 samples are not scored: error 16." in run._repr_html_()
        with pytest.raises(UsageError, match="nothing to draw"):
            run.plot()
        said: list[str] = []
        ask(too_hot, seed=1, warn=said.append, keep_going=True)
        assert said[-1] == "16 samples have no reply; the same call asks them again"

    def test_what_was_answered_is_saved(self, lab: Lab, ask: Callable[..., eyechart.Run]) -> None:
        """Where an error ends the run, which is raised."""
        asked: list[Request] = []

        def refuse(request: Request) -> Any:
            asked.append(request)
            if len(asked) > 6:
                raise AuthError("no key")
            return right(request)

        with pytest.raises(ProviderError, match="no key"):
            ask(refuse, max_connections=1)
        assert pd.read_csv(lab.the_run() / "table.csv")["n"].sum() >= 6

    def test_an_adaptive_run_is_that_of_the_command(
        self, lab: Lab, ask: Callable[..., eyechart.Run]
    ) -> None:
        """It asks the same samples; the command that follows asks none."""
        lengths = [5, 10, 20, 40, 80, 160]
        run = ask(sees(25), lengths=lengths, adaptive=True)
        assert list(run.conditions["adaptive"]) == ["yes", "yes"]
        (command,) = read_manifest(run.folder).commands
        assert command.endswith(
            ", samples=400, axes={'separator': ['none', 'comma']}, seed=0, adaptive=True)"
        )
        files = {path.name: path.read_bytes() for path in run.folder.glob("*.csv")}
        words = ("--lengths", ",".join(map(str, lengths)), "--adaptive")
        done = lab.bench_run("--model", lab.fake(never), *words)
        assert done.code == 0
        assert {name: (run.folder / name).read_bytes() for name in files} == files
        asked = sorted(str(record["id"]) for record in records(run.folder))
        lab.bench_ask("--model", lab.fake(sees(25)), *words, "--fresh")
        assert sorted(str(record["id"]) for record in records(run.folder)) == asked

    def test_an_adaptive_run_says_what_is_not_known(self, ask: Callable[..., eyechart.Run]) -> None:
        """And why; without lengths it goes on beyond those of the task."""
        said: list[str] = []
        run = ask(sees(25), adaptive=True, max_requests=10, warn=said.append)
        assert len(run.samples) == 10
        assert len(said) == 3
        assert said[0].startswith("separator=none: ")
        assert said[0].endswith(" need more samples")
        assert said[-1] == (
            "2 conditions are not known to the precision of a full run "
            "(max_requests is reached); the same call goes on"
        )
        (command,) = read_manifest(run.folder).commands
        assert "lengths=" not in command

    def test_the_call_has_what_was_chosen(self, ask: Callable[..., eyechart.Run]) -> None:
        """Numbers of other libraries too; what was not given is left out."""
        run = ask(lengths=np.array([3, 5]), samples=np.int64(2), exact=True, seed=np.int64(3))
        (command,) = read_manifest(run.folder).commands
        assert command == (
            "eyechart.run('lab/ones', 'fake/model', lengths=[3, 5], exact=True, samples=2, "
            "axes={'separator': ['none', 'comma']}, seed=3)"
        )

    def test_fresh_starts_over(self, lab: Lab, ask: Callable[..., eyechart.Run]) -> None:
        """The old run is moved, and that is said."""
        ask()
        with pytest.warns(UserWarning, match="the old run is now"):
            assert ask(lambda _request: "Final answer: 99", fresh=True).cells["correct"].sum() == 0
        assert list((lab.out / "replaced").iterdir())

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"axes": {"seperator": "none"}}, "did you mean 'separator'"),
            ({"axes": {"separator": "nine"}}, "no value 'nine'"),
            ({"exact": "wide"}, "exact must be true or false, not 'wide'"),
            ({"samples": 0}, "samples must be a whole number from 1 to 1,000,000, not 0"),
            ({"lengths": [0]}, "lengths must be whole numbers from 1 to"),
            ({"lengths": []}, "lengths is empty"),
            ({"lengths": "5,x"}, "lengths must be whole numbers from 1 to 1,000,000, with commas"),
            ({"lengths": [2.5]}, "lengths must be whole numbers from 1 to 1,000,000, not 2.5"),
            ({"axes": {"separator": []}}, "axes has no value of 'separator'"),
            ({"samples": True}, "samples must be a whole number from 1 to 1,000,000, not True"),
            ({"adaptive": True, "max_requests": 0}, "max_requests must be a whole number from 1"),
            ({"adaptive": True, "precision": "1"}, "a number from 0.4 to 1 octaves, not '1'"),
            ({"max_connections": 0}, "whole number from 1 to 10,000, not 0"),
            ({"budget": float("nan")}, "budget must be a number above 0, not nan"),
            ({"rpm": -1.0}, "^rpm must be a number above 0, not -1"),
            ({"threshold": 0.0}, "from 0.02 to 0.995, not 0"),
            ({"task": "counting"}, "several tasks"),
            ({"task": "counting/one"}, "did you mean 'counting/ones'"),
        ],
        ids=str,
    )
    def test_mistakes_are_our_errors(
        self, ask: Callable[..., eyechart.Run], options: dict[str, Any], words: str
    ) -> None:
        """Before anything is asked."""
        with pytest.raises(EyechartError, match=words):
            ask(never, **options)


class TestResult:
    """`eyechart.Run`."""

    def test_tables(self, ask: Callable[..., eyechart.Run]) -> None:
        """The ones of the files, and one as the terminal has it."""
        run = ask()
        assert run.table.to_dict() == {
            "separator=none": {3: 1.0, 5: 1.0},
            "separator=comma": {3: 1.0, 5: 0.0},
        }
        assert list(run.cells["correct"]) == [4, 4, 4, 0]
        assert list(run.conditions["separator"]) == ["none", "comma"]
        estimate = run.effective_length["separator=none"]
        assert estimate is not None
        assert str(estimate.length) == "> 5"
        assert "separator=none: > 5" in repr(run)

    def test_lines_of_one_nominal_length_are_two_rows(
        self, lab: Lab, ask: Callable[..., Any]
    ) -> None:
        """A band and an exact line."""
        lab.with_bands()
        ask(lengths=[3, 12], exact=True)
        run = ask(lengths=[3, 12])
        assert len(run.table) == 4
        assert [name.partition(":")[0] for name in run.table.index] == ["3", "3", "12", "12"]

    def test_samples_have_their_texts(self, ask: Callable[..., eyechart.Run]) -> None:
        """Prompts of a user's own task too, as the task was just asked."""
        samples = ask().samples
        assert list(samples.columns[:4]) == ["id", "separator", "length", "true_length"]
        assert samples["prompt"].str.contains("How many ones?", regex=False).all()
        wrong = samples[samples["outcome"] == "incorrect"]
        assert len(wrong) == 4
        row = wrong.iloc[0]
        assert row["reply"][row["answer_start"] : row["answer_end"]] == "99"
        assert row["answer"] == 99
        assert row["why"].startswith("reads 99, target ")
        assert set(samples["outcome"]) <= set(OUTCOMES)

    def test_samples_are_chosen(self, ask: Callable[..., eyechart.Run]) -> None:
        """As by `bench samples`."""
        run = ask()
        assert len(run.choose_samples(outcomes="incorrect")) == 4
        assert len(run.choose_samples(lengths=[3], condition={"separator": "comma"})) == 4
        assert list(run.choose_samples(outcomes="refused").columns) == list(run.samples.columns)
        with pytest.raises(UsageError, match="no outcome 'corect'"):
            run.choose_samples(outcomes="corect")

    def test_an_axis_may_have_the_name_of_a_field(self, lab: Lab, ask: Callable[..., Any]) -> None:
        """Its column then says that it is the axis."""
        text = lab.ones.read_text().replace("separator:", "prompt:")
        lab.ones.write_text(text.replace("{{ sequence }}", "{{ symbols | join(prompt) }}"))
        samples = ask(right, lengths=[3], axes={"prompt": "none"}).samples
        assert set(samples["axis_prompt"]) == {"none"}
        assert samples["prompt"].str.contains("How many").all()

    def test_the_chart_has_every_condition(self, ask: Callable[..., eyechart.Run]) -> None:
        """As Altair, of which notebooks make a picture."""
        run = ask()
        spec = run.plot().to_dict()
        rows = [row for data in spec["datasets"].values() for row in data]
        assert {row["condition"] for row in rows} == {"separator=none", "separator=comma"}
        seen = {label: estimate for label, estimate in run.effective_length.items() if estimate}
        assert len(seen) == 2
        assert {row["condition"]: row["right_to"] for row in rows if "right_to" in row} == {
            label: str(estimate) for label, estimate in seen.items()
        }
        one = ask(lengths=[4], seed=2, axes={"separator": "none"}).plot().to_dict()
        assert one["layer"][0]["encoding"]["x"]["scale"]["domain"] == [8.0, 2.0]

    def test_the_longest_length_of_the_chart_has_its_label(
        self, ask: Callable[..., eyechart.Run]
    ) -> None:
        """Of lengths without room for all labels."""
        svg = vl_convert.vegalite_to_svg(ask(lengths=[4, 5, 390, 395, 400]).plot().to_dict())
        shown = re.findall(r'opacity="1">(\d+)</text>', svg)
        assert "400" in shown
        assert "395" not in shown

    def test_html_is_escaped(self, ask: Callable[..., eyechart.Run]) -> None:
        """Names are of others."""
        run = ask(lengths=[3])
        shown = run._repr_html_()
        assert "<td>100%</td>" in shown
        assert "right to" in shown
        assert "not scored" not in shown
        run.judged.manifest.model = "<script>"
        assert "<script>" not in run._repr_html_()


class TestFolders:
    """`load_run`, `list_runs` and `compare`."""

    def test_a_run_is_loaded(self, lab: Lab, ask: Callable[..., eyechart.Run]) -> None:
        """With the prompts where its code may be executed, else with a warning."""
        run = ask()
        again = eyechart.load_run(run.folder)
        assert again.table.equals(run.table)
        with pytest.warns(UserWarning, match="no prompts: the task file of lab/ones"):
            assert again.samples["prompt"].isna().all()
        for options in ({"tasks": lab.ones}, {"run_kept_code": True}):
            loaded_run = eyechart.load_run(run.folder, **options)
            assert loaded_run.samples["prompt"].equals(run.samples["prompt"])
        half = eyechart.load_run(run.folder, threshold=0.5)
        assert set(half.conditions["threshold"]) == {0.5}
        with pytest.raises(JournalError, match="no run in"):
            eyechart.load_run(lab.folder)

    def test_runs_are_listed(self, lab: Lab, ask: Callable[..., eyechart.Run]) -> None:
        """Also where there is none."""
        assert eyechart.list_runs(lab.out).empty
        run = ask()
        (row,) = eyechart.list_runs(lab.out).to_dict("records")
        assert (row["answered"], row["planned"], row["folder"]) == (16, 16, str(run.folder))

    def test_runs_are_compared(self, lab: Lab, ask: Callable[..., eyechart.Run]) -> None:
        """Runs, folders and conditions, with the sentences of `bench compare`."""
        run = ask(samples=12)
        lab.bench_ask("--model", lab.model("Final answer: 99"), "--samples", "12")
        (other,) = (path for path in lab.out.rglob("ones@1-*") if path != run.folder)
        comparison = eyechart.compare(run, other)
        assert comparison.change == "worse"
        assert repr(comparison).startswith(comparison.findings[0].sentence)
        assert set(comparison.table["first"]) == {"fake/model"}
        assert eyechart.compare(other, run.folder).change == "better"
        conditions = run.compare("separator", "none", "comma")
        assert conditions.change == "worse"
        assert "separator=none" in conditions._repr_html_()
        twice: list[tuple[Any, ...]] = [(run, run.folder), ([other, run, run.folder],)]
        for given in twice:
            with pytest.raises(CompareError, match=r"is given 2 times; Run\.compare compares two"):
                eyechart.compare(*given)
        with pytest.raises(UsageError, match="margin"):
            eyechart.compare(run, other, margin=1.5)


class TestModule:
    """The module `eyechart`."""

    def test_it_loads_nothing_heavy(self) -> None:
        """Until a name is used; `Item` needs none of it."""
        assert loaded(f"import sys\nimport eyechart\n{SAYS_LOADED}") == "[]"
        assert loaded(f"import sys\nfrom eyechart import Item\n{SAYS_LOADED}") == "[]"
        code = "import sys\nimport eyechart\nprint([n for n in sys.modules if 'harness' in n])"
        assert loaded(code) == "[]"

    def test_every_name_is_there_and_typed(self) -> None:
        """What type checkers read is what is loaded."""
        tree = ast.parse((ROOT / "eyechart" / "__init__.py").read_text())
        typed, _ = (node for node in tree.body if isinstance(node, ast.If))
        places = {
            name.name: node.module
            for node in typed.body
            if isinstance(node, ast.ImportFrom)
            for name in node.names
        }
        assert places == eyechart._PLACES
        assert sorted(places) == eyechart.__all__
        for name in eyechart.__all__:
            there = import_module(eyechart._PLACES[name])
            assert getattr(eyechart, name) is getattr(there, name)
        assert set(eyechart.__all__) <= set(dir(eyechart))
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            _ = eyechart.nothing  # type: ignore[attr-defined]

    def test_a_task_is_loaded(self, lab: Lab) -> None:
        """By name, by file, or as it is."""
        task = eyechart.load_task("counting/ones")
        assert eyechart.load_task(task) is task
        assert eyechart.load_task(lab.ones).name == "lab/ones"
