"""`bench run --draws`: each prompt is asked several times, in one run."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import eyechart
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.errors import UsageError
from eyechart.harness.journal.manifest import read_manifest
from eyechart.providers.base import Request, TransientError
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import records, right

if TYPE_CHECKING:
    from tests.conftest import Lab

SMALL = ("--lengths", "3,5", "--samples", "2", "--axis", "separator=none")
WARM = ("--temperature", "0.5")


def by_draw(request: Request) -> str:
    """Right, but wrong in each second draw of the first row."""
    wrong = "|index=0|draw=2" in request.sample_id
    return "Final answer: 77" if wrong else right(request)


def draws_of(folder: Path) -> Counter[int]:
    """Draw -> its records."""
    return Counter(record.get("draw", 1) for record in records(folder))


class TestAsking:
    """What is asked, and recorded."""

    def test_each_draw_is_a_request_with_a_seed_of_its_own(self, lab: Lab) -> None:
        """Prompts are the same; ids, seeds and records tell the draws apart."""
        provider = ScriptedProvider(right)
        model = lab.fake(provider)
        done = lab.bench_run("--model", model, *SMALL, *WARM, "--draws", "3", "--seed", "4")
        assert (done.code, done.err) == (0, "")
        assert len(provider.requests) == 12
        assert len({request.prompt for request in provider.requests}) == 4
        assert len({request.sample_id for request in provider.requests}) == 12
        for prompt in {request.prompt for request in provider.requests}:
            asked = [one for one in provider.requests if one.prompt == prompt]
            assert {one.seed for one in asked} == {4, 5, 6}
        found = {
            (one["id"][-7:], one.get("draw", 1), one["seed"]) for one in records(lab.the_run())
        }
        assert {one for one in found if one[1] > 1} == {("|draw=2", 2, 5), ("|draw=3", 3, 6)}
        assert {seed for _, draw, seed in found if draw == 1} == {4}
        assert "seed" not in read_manifest(lab.the_run()).sent

    def test_draws_of_a_prompt_are_neighbours(self, lab: Lab) -> None:
        """So that a server's cache of prefixes serves them."""
        planned = lab.wanted(lengths=[3, 5], samples=2)
        prompts = [one.prompt for one in replace(planned.plan, draws=3)]
        assert len(prompts) == planned.plan.size * 3
        assert all(len(set(prompts[at : at + 3])) == 1 for at in range(0, len(prompts), 3))

    def test_a_run_grows_by_draws_and_by_rows(self, lab: Lab) -> None:
        """Only what is new is asked; the folder, the dataset and its fingerprint stay the same."""
        provider = ScriptedProvider(right)
        model = lab.fake(provider)
        lab.bench_ask("--model", model, *SMALL, *WARM)
        fingerprint = read_run(lab.the_run()).fingerprint()
        lab.bench_ask("--model", model, *SMALL, *WARM, "--draws", "3")
        assert draws_of(lab.the_run()) == {1: 4, 2: 4, 3: 4}
        manifest = read_manifest(lab.the_run())
        assert {cell.draws for cell in manifest.cells} == {3}
        assert read_run(lab.the_run()).fingerprint() == fingerprint is not None
        again = lab.bench_run("--model", model, *SMALL, *WARM, "--draws", "2")
        assert len(provider.requests) == 12
        assert read_run(lab.the_run()).missing == 0
        assert again.code == 0
        assert "has 2 lines of 2 samples, each asked 3 times" in " ".join(again.err.split())
        more = (*SMALL[:3], "3", *SMALL[4:])
        lab.bench_ask("--model", model, *more, *WARM, "--draws", "3")
        assert draws_of(lab.the_run()) == {1: 6, 2: 6, 3: 6}
        assert read_run(lab.the_run()).missing == 0

    def test_what_failed_is_asked_again(self, lab: Lab) -> None:
        """A draw without a reply, and no other."""
        failing = {"|draw=2"}

        def script(request: Request) -> str:
            if request.sample_id.endswith("|index=1|draw=2") and failing:
                raise TransientError("502")
            return right(request)

        lab.monkeypatch.setattr("eyechart.harness.run.retry.RetryState.wait_after", _never)
        model = lab.fake(script)
        done = lab.bench_run("--model", model, *SMALL, *WARM, "--draws", "2")
        assert done.code == 1
        assert "2 samples have no reply" in done.err
        run = read_run(lab.the_run())
        assert run.cells["error"].sum() == 2
        assert run.cells["n"].sum() == 6
        failing.clear()
        assert lab.bench_ask("--model", model, *SMALL, *WARM, "--draws", "2").code == 0
        assert read_run(lab.the_run()).cells["n"].sum() == 8

    def test_shards_have_their_rows_draws(self, lab: Lab) -> None:
        """Together they are the run that is asked at once."""
        model = lab.fake(by_draw)
        whole = (*SMALL, *WARM, "--draws", "2")
        for number, missing in ((1, 4), (2, 0)):
            done = lab.bench_run("--model", model, *whole, "--shard", f"{number}/2")
            assert done.code == 0
            folder = lab.the_run()
            assert read_run(folder).missing == missing
        assert draws_of(folder) == {1: 4, 2: 4}
        lab.bench_ask("--model", model, *whole, "--out", lab.folder / "once")
        (once,) = (lab.folder / "once").rglob("manifest.json")
        assert read_run(folder).cells.equals(read_run(once.parent).cells)
        assert read_run(folder).fingerprint() == read_run(once.parent).fingerprint()

    def test_an_adaptive_run_asks_each_of_its_rows_so_often(self, lab: Lab) -> None:
        """Its limit counts requests."""
        model = lab.fake(right)
        most = ("--adaptive", "--max-requests", "60")
        lab.bench_ask("--model", model, *WARM, *most, "--draws", "3", "--axis", "separator=none")
        counts = draws_of(lab.the_run())
        assert len(set(counts.values())) == 1
        assert sorted(counts) == [1, 2, 3]
        assert 0 < sum(counts.values()) <= 60


def _never(*_: object, **__: object) -> None:
    """No further attempt."""


class TestShown:
    """Tables, sentences and documents."""

    def run_it(self, lab: Lab, *more: str) -> str:
        """A run in which the second draw of the first row is wrong; what it prints."""
        done = lab.bench_run("--model", lab.fake(by_draw), *SMALL, *WARM, "--draws", "3", *more)
        assert done.code == 0
        return done.out

    def test_the_sentence(self, lab: Lab) -> None:
        """Mean, majority, pass@k and the split."""
        said = " ".join(self.run_it(lab).split())
        assert (
            "Of 4 prompts, each asked 3 times, 2 got the same text each time and 2 the same "
            "verdict. A reply is right in 83 %, the majority of a prompt's replies in 100 %; "
            "pass@2 100 %, pass@3 100 %." in said
        )

    def test_tables_and_python(self, lab: Lab) -> None:
        """`n` counts replies, the interval goes by rows."""
        self.run_it(lab)
        run = eyechart.load_run(lab.the_run(), tasks=str(lab.ones))
        cells = run.cells
        assert cells["n"].tolist() == [6, 6]
        assert cells["accuracy"].round(3).tolist() == [0.833, 0.833]
        assert cells["draws"].tolist() == [3, 3]
        assert cells["pass_at_draws"].tolist() == [1, 1]
        assert cells["majority"].tolist() == [1, 1]
        assert (cells["ci_low"] < 0.36).all()  # of six independent replies it is 0.44
        assert run.pass_at(1) == pytest.approx(5 / 6)
        assert run.pass_at(4) is None
        assert run.drawn is not None
        assert run.samples["draw"].tolist().count(2) == 4
        with pytest.raises(UsageError, match="k"):
            run.pass_at(0)

    def test_documents(self, lab: Lab) -> None:
        """`--json` has the numbers, and samples their draws."""
        shown = json.loads(self.run_it(lab, "--json"))
        (run,) = shown["runs"]
        assert run["draws"] == 3
        (drawn,) = (one["facts"] for one in run["findings"] if one["kind"] == "draws")
        assert drawn["pass_at"] == {"2": 1.0, "3": 1.0}
        lines = lab.bench("samples", lab.the_run(), "--json", "--limit", "0").out.splitlines()
        assert [json.loads(line)["draw"] for line in lines[:3]] == [1, 2, 3]
        assert "draw     2 of 3, seed 1" in lab.bench("samples", lab.the_run(), "--limit", "0").out
        page = lab.folder / "r.html"
        assert lab.bench("report", lab.the_run(), "-o", page).code == 0
        assert "each asked 3 times" in page.read_text()

    def test_the_dry_run_counts_them(self, lab: Lab) -> None:
        """Requests, tokens and what is answered already."""
        model, asked = lab.fake(right), (*SMALL, *WARM, "--draws", "3")
        first = lab.bench_run("--model", model, *asked, "--dry-run").out
        assert "12 (2 a cell, each asked 3 times)" in " ".join(first.split())
        document = json.loads(lab.bench_run("--model", model, *asked, "--dry-run", "--json").out)
        one = json.loads(lab.bench_run("--model", model, *SMALL, *WARM, "--dry-run", "--json").out)
        runs = [found["runs"][0] for found in (document, one)]
        assert runs[0]["requests"] == 3 * runs[1]["requests"] == 12
        assert runs[0]["fitting"] == 12
        assert runs[0]["draws"] == 3
        lab.bench_ask("--model", model, *SMALL, *WARM)
        again = lab.bench_run("--model", model, *asked, "--dry-run").out
        assert "4 are answered, so 8 will be asked" in " ".join(again.split())

    def test_two_runs_are_compared_by_rows(self, lab: Lab) -> None:
        """Each row has the mean of its draws; the number of draws may differ."""
        self.run_it(lab)
        first = lab.the_run()
        lab.bench_ask("--model", lab.fake(right), *SMALL, *WARM, "--out", lab.folder / "other")
        (other,) = (lab.folder / "other").rglob("manifest.json")
        shown = json.loads(lab.bench("compare", first, other.parent, "--json").out)
        text = json.dumps(shown)
        assert '"n": 2' in text
        assert "-0.166667" in text

    def test_a_baseline_has_all_draws(self, lab: Lab) -> None:
        """The gate compares a run with what was saved of it, draw by draw."""
        self.run_it(lab)
        baseline = lab.folder / "baseline.json"
        assert lab.bench("gate", baseline, lab.the_run(), "--save").code == 0
        from eyechart.harness.satellites.gate.baseline import read_baseline

        (saved,) = read_baseline(baseline)
        run = read_run(lab.the_run())
        assert saved.cells[["n", "correct"]].equals(run.cells[["n", "correct"]])
        assert sorted(saved.samples["draw"]) == sorted(run.samples["draw"])


class TestModels:
    """The built-in models draw."""

    def test_an_oracle_draws_at_a_temperature_alone(self, lab: Lab) -> None:
        """At temperature 0 all draws are alike, and that they can be is said."""
        model = ("--model", "oracle:50/0.5")
        cold = lab.bench_run(*model, *SMALL, "--draws", "4")
        assert "draws differ by the noise of a server alone" in " ".join(cold.err.split())
        found = read_run(lab.the_run()).drawn
        assert found is not None
        assert found.same_text == found.prompts == 4
        out = lab.folder / "warm"
        warm = lab.bench_run(*model, *SMALL, *WARM, "--draws", "16", "--out", out)
        assert warm.err == ""
        (manifest,) = out.rglob("manifest.json")
        found = read_run(manifest.parent).drawn
        assert found is not None
        assert found.same_verdict < 4

    def test_tiny_draws_are_other_ones_and_come_again(self, lab: Lab) -> None:
        """The same seed gives the same replies, in another order of requests too."""
        asked = ("--task", "counting/words", "--model", "tiny", "--lengths", "30", "--samples", "3")
        said = []
        for out, connections in (("a", "64"), ("b", "1")):
            more = ("--temperature", "1.5", "--draws", "6", "--max-connections", connections)
            assert lab.bench_ask(*asked, *more, "--out", lab.folder / out).code == 0
            (manifest,) = (lab.folder / out).rglob("manifest.json")
            said.append({one["id"]: one["reply"] for one in records(manifest.parent)})
        assert said[0] == said[1]
        found = read_run(manifest.parent).drawn
        assert found is not None
        assert found.same_text < found.prompts


def test_a_batch_file_has_a_request_for_each_draw(lab: Lab) -> None:
    """With seeds of their own; the replies come back into the run."""
    file = lab.folder / "requests.jsonl"
    command = ("--task", lab.ones, "--model", "gpt-4o", *SMALL, *WARM, "--out", lab.out)
    done = lab.bench("export", "batch", *command, "--draws", "2", "-o", file)
    assert done.code == 0, done
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert Counter(line["body"]["seed"] for line in lines) == {0: 4, 1: 4}
    assert len({line["custom_id"] for line in lines}) == 8
    replies = lab.folder / "replies.jsonl"
    reply = {"choices": [{"message": {"content": "Final answer: 3"}, "finish_reason": "stop"}]}
    replies.write_text(
        "".join(
            json.dumps(
                {"custom_id": line["custom_id"], "response": {"status_code": 200, "body": reply}}
            )
            + "\n"
            for line in lines
        )
    )
    assert lab.bench("import", replies, "--out", lab.out, "--task", lab.ones).code == 0
    assert draws_of(lab.the_run()) == {1: 4, 2: 4}
    assert {one["seed"] for one in records(lab.the_run())} == {0, 1}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--draws", "0"), "--draws must be a whole number from 1 to 1,000"),
        (("--draws", "3", "--read", "likelihood"), "does not go together with --draws 3"),
        (("--draws", "3", "--adaptive", "--max-requests", "2"), "less than the 3 requests of a"),
    ],
)
def test_what_makes_no_sense_is_refused(lab: Lab, options: tuple[str, ...], words: str) -> None:
    """In one line, before anything is asked."""
    done = lab.bench_run("--model", "tiny", *options, task=Path("counting/ones"))
    assert done.code == 2
    assert words in " ".join(done.err.split())


def test_a_study_and_python_have_draws(lab: Lab) -> None:
    """As settings of all runs."""
    study = lab.folder / "study.yaml"
    study.write_text(
        f"name: several\ntitle: Several draws\nmodels: [oracle:9/0.5]\ntasks: [{lab.ones}]\n"
        "temperature: 1\ndraws: 2\nsamples: 2\nlengths: [3]\n"
    )
    done = lab.bench("run", study, "--out", lab.out, "--trust")
    assert done.code == 0, done
    assert set(draws_of(lab.the_run())) == {1, 2}
    run = eyechart.run(
        lab.ones,
        "oracle:9/0.5",
        lengths=[3],
        samples=2,
        temperature=1,
        draws=3,
        out=lab.folder / "p",
        warn=print,
    )
    assert run.judged.draws == 3
    assert "draws=3" in run.judged.manifest.commands[0]
