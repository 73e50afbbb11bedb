"""`bench run --read likelihood`: from the options that are asked to what every door says."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import eyechart
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.face.options.variant import variant_of
from eyechart.harness.journal.manifest import read_manifest
from eyechart.harness.journal.record import SAMPLES, decode
from eyechart.harness.score.answer_type import PlainAnswerForm
from eyechart.harness.score.forced_choice import belief, choice_verdict, ranked
from eyechart.harness.spec import Settings
from eyechart.providers import descriptors
from eyechart.providers.base import Api, AuthError, Reply, Request, ServerFaultError
from eyechart.providers.likelihood import scored_reply
from tests.conftest import records

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Lab

LIKELIHOOD = ("--read", "likelihood")


def sees(request: Request) -> Reply:
    """Sure of rows of three; of others each wrong number seems more probable, the next one most."""
    wrong = len(request.options) - 1
    right = -1.0 if "length=3" in request.sample_id else -3.5
    others = [[-2.0] if place == 0 else [-3.0] for place in range(wrong)]
    return scored_reply(request, [[right / 2, right / 2], *others])


@pytest.fixture
def ask(lab: Lab) -> Callable[..., str]:
    """Makes a scripted model known whose provider scores options."""

    def known(script: Callable[[Request], Any]) -> str:
        name = lab.fake(script)
        apis: tuple[Api, ...] = ("chat",)
        able = replace(descriptors.BUILT_IN["fake"], likelihood=lambda _addresses: apis)
        lab.monkeypatch.setitem(descriptors.BUILT_IN, "fake", able)
        return name

    return known


def test_a_run_by_likelihood(lab: Lab, ask: Callable[..., str]) -> None:
    """It is a variant of the model; the journal has the options, and tables say how it was read."""
    done = lab.bench_run("--model", ask(sees), *LIKELIHOOD)
    assert done.code == 0, done.err
    run = lab.the_run()
    assert run.parts[-3] == "model@likelihood"
    manifest = read_manifest(run)
    assert (manifest.variant, manifest.settings.read) == ("likelihood", "likelihood")
    assert "Read by likelihood over" in done.out
    for record in records(run):
        right, other = record["options"][:2]
        assert right["text"] == str(record["target"])
        assert (right["tokens"], other["tokens"]) == (2, 1)
        assert record["reply"] == (right if record["length"] == 3 else other)["text"] or (
            record["length"] == 5
        )
    judged = read_run(run)
    cells = judged.cells.groupby("length")["accuracy"].mean()
    assert cells.to_dict() == {3: 1.0, 5: 0.0}
    assert judged.chance == pytest.approx(
        np.mean([1 / len(one["options"]) for one in records(run)])
    )
    row = (run / "effective_length.csv").read_text(encoding="utf-8").splitlines()
    first = dict(zip(row[0].split(","), row[1].split(","), strict=True))
    assert first["read"] == "likelihood"
    assert 0.08 < float(first["chance"]) < 0.12


def test_samples_show_options_rank_and_margin(lab: Lab, ask: Callable[..., str]) -> None:
    """On the terminal, as JSON, in Python and on the page."""
    lab.bench_ask("--model", ask(sees), *LIKELIHOOD)
    run = lab.the_run()
    shown = lab.bench("samples", run, "--task", lab.ones, "--outcome", "incorrect", "--limit", "1")
    assert "prefers " in shown.out
    rank = int(shown.out.partition("  options  ")[2].split()[0])
    assert shown.out.count("  (right)\n") == 1
    done = lab.bench("samples", run, "--task", lab.ones, "--limit", "0", "--json")
    rows = [json.loads(line) for line in done.out.splitlines()]
    wrong = next(row for row in rows if row["outcome"] == "incorrect")
    assert wrong["rank"] == len(wrong["options"]) == rank
    assert wrong["margin"] == -1.5
    assert str(wrong["answer"]) == wrong["reply"] == wrong["options"][1]["text"]
    correct = next(row for row in rows if row["outcome"] == "correct")
    assert (correct["rank"], correct["margin"], correct["why"]) == (1, 1.0, "")
    frame = eyechart.load_run(run, tasks=lab.ones).samples
    assert frame["rank"].tolist() == [row["rank"] for row in rows]
    assert frame["options"].tolist() == [row["options"] for row in rows]
    page = lab.folder / "page.html"
    assert lab.bench("report", run, "--task", lab.ones, "-o", page).code == 0
    assert "Read by likelihood over" in page.read_text(encoding="utf-8")


def test_errors_are_tried_again_and_a_run_goes_on(lab: Lab, ask: Callable[..., str]) -> None:
    """As for replies: the same options come to the same samples."""
    calls: list[Request] = []

    def faulty(request: Request) -> Any:
        calls.append(request)
        if len(calls) == 1:
            raise ServerFaultError("busy")
        if len(calls) == 6:
            raise AuthError("no key")
        return sees(request)

    limits = ("--max-connections", "1")
    assert lab.bench_ask("--model", ask(faulty), *LIKELIHOOD, *limits).code == 1
    assert len(records(lab.the_run())) == 4
    assert lab.bench_ask("--model", ask(faulty), *LIKELIHOOD, *limits).code == 0
    options = {request.sample_id: request.options for request in calls}
    assert all(options[request.sample_id] == request.options for request in calls)
    assert len(calls) == len(options) + 2
    assert {request.opening for request in calls} == {"Final answer:"}


def test_readings_are_compared_and_ranked_by_name(lab: Lab, ask: Callable[..., str]) -> None:
    """`bench compare` and the leaderboard say which model was read by likelihood."""

    def both(request: Request) -> Any:
        if request.options:
            return sees(request)
        return f"Final answer: {request.prompt.splitlines()[-1].count('1')}"

    model = ask(both)
    for arguments in ((), LIKELIHOOD):
        assert lab.bench_ask("--model", model, *arguments).code == 0
    runs = sorted((lab.out / "runs" / "fake").glob("*/lab/*"))
    compared = lab.bench("compare", *runs, "--all-findings")
    assert "fake/model@likelihood: Read by likelihood over" in compared.out
    board = lab.bench(
        *("leaderboard", "--out", lab.out, "-o", lab.folder / "board.csv", "--all-findings")
    )
    assert "fake/model@likelihood: Read by likelihood over" in board.out
    text = (lab.folder / "board.csv").read_text(encoding="utf-8")
    assert text.count("read=likelihood") == text.count("fake/model@likelihood") > 0


@pytest.mark.parametrize(
    "other",
    [
        ("--tier", "batch"),
        ("--engine", "ray"),
        ("--thinking", "low"),
        ("--thinking", "on"),
        ("--temperature", "1"),
        ("--max-tokens", "9"),
        ("--logprobs", "0"),
    ],
)
def test_what_does_not_go_together(lab: Lab, other: tuple[str, ...]) -> None:
    """One clear line before anything is asked."""
    done = lab.bench_run("--model", "tiny", *LIKELIHOOD, *other)
    done.one_line(2, f"--read likelihood does not go together with {other[0]}")


def test_models_without_likelihood(lab: Lab) -> None:
    """The line names what can do it."""
    lab.monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-one")
    lab.bench_run("--model", "gpt-4o", *LIKELIHOOD).one_line(
        2,
        "openai/gpt-4o does not say how probable",
        "gguf/…, vllm/… and lm-eval/…",
        "--api completions",
    )
    lab.bench_run("--model", "m", "--base-url", "http://127.0.0.1:9/v1", *LIKELIHOOD).one_line(
        2, "local/m takes --read likelihood with --api completions alone"
    )


def test_a_task_with_a_scorer_is_refused(lab: Lab) -> None:
    """Its scorer says of a reply whether it is right."""
    path = lab.ones.with_name("own.yaml")
    text = lab.ones.read_text(encoding="utf-8")
    path.write_text(f"{text}\nscorer: own.py:score\n", encoding="utf-8")
    path.with_suffix(".py").write_text(
        "def score(reply, item):\n"
        "    return 'correct' if str(item.target) in reply else 'unparsed'\n"
    )
    lab.bench_run("--model", "tiny", *LIKELIHOOD, task=path).one_line(2, "a scorer of its own")


def test_the_setting_has_a_name_at_each_door(lab: Lab) -> None:
    """The command line and files call it `read`; a variant says it last."""
    assert Settings().given().get("read") is None
    assert Settings(read="likelihood").given()["read"] == "likelihood"
    assert variant_of("bf16", "low", None, "likelihood") == "bf16+low+likelihood"
    lab.monkeypatch.setenv("EYECHART_READ", "likelihood")
    done = lab.bench_run("--model", "tiny", "--dry-run", task=lab.ones)
    assert "tiny@likelihood" in done.out


def test_python_asks_by_likelihood(tmp_path: Path) -> None:
    """The oracle is right up to its length."""
    asked: Any = {"lengths": [5, 20], "samples": 4, "out": tmp_path, "reading": "likelihood"}
    run = eyechart.run("counting/words", "oracle:10", **asked)
    assert run.judged.cells["accuracy"].tolist() == [1.0, 0.0]
    assert run.model == "oracle/10@likelihood"


@dataclass
class Chosen:
    """An option."""

    text: str
    logprob: float


def test_the_rank_of_the_right_option() -> None:
    """Of equally probable options it is the last: a model that cannot tell is not right."""
    options = [Chosen("7", -1.0), Chosen("8", -2.0), Chosen("6", -1.5)]
    assert (ranked(options).rank, ranked(options).margin) == (1, 0.5)
    equal = [Chosen("7", -1.0), Chosen("8", -1.0), Chosen("6", -3.0)]
    assert (ranked(equal).rank, ranked(equal).chosen) == (2, "8")
    form = PlainAnswerForm("integer", ("Final answer:",))
    verdict = choice_verdict(equal, 7, (), form)
    assert (verdict.outcome, verdict.answer, verdict.signed_error) == ("incorrect", 8, 1)
    tie = "'8' is as probable as '7', which counts as not right: rank 2 of 3, margin 0.00"
    assert verdict.why == tie
    assert [belief(one).tied for one in (options, equal)] == [False, True]
    assert choice_verdict(options, 7, (), form).outcome == "correct"


@pytest.mark.parametrize("kind", ["integer", "number", "choice"])
def test_an_option_that_is_no_answer(kind: str) -> None:
    """Such a record is nobody's of ours, and is not read."""
    form = PlainAnswerForm(kind, ("Final answer:",), options=("a", "b"), letters=True)
    for strange in ("Z", "", "a b"):
        verdict = choice_verdict([Chosen("7", -2.0), Chosen(strange, -1.0)], 7, (), form)
        assert (verdict.outcome, verdict.answer) == ("unparsed", None)
        assert verdict.why == f"the option {strange!r} is no {kind}"


@pytest.mark.parametrize(
    "options",
    ['[{"text":"7","logprob":-1,"tokens":1}]', '[{"text":"7"}]', "7"],
)
def test_a_record_whose_options_are_no_choice(options: str) -> None:
    """Is no record, so that its sample is asked again."""
    line = (
        '{"id":"a","condition":{},"length":1,"index":0,"target":7,"prompt_hash":"ab","reply":"7",'
        f'"options":{options}}}'
    )
    with pytest.raises(ValueError, match=r"options|Option|array|field"):
        decode(line.encode())


def test_a_threshold_below_chance_is_refused(lab: Lab, ask: Callable[..., str]) -> None:
    """Guesses reach it."""
    lab.bench_ask("--model", ask(sees), *LIKELIHOOD)
    done = lab.bench("score", lab.the_run(), "--task", lab.ones, "--threshold", "0.05")
    done.one_line(2, "--threshold 0.05 is not above chance")


def test_the_embedded_model_knows_what_it_says(tmp_path: Path) -> None:
    """Where it counts right, the right count is the most probable one."""
    asked: Any = {"lengths": [5, 10], "samples": 5, "out": tmp_path}
    said = eyechart.run("counting/ones", "tiny", **asked)
    read = eyechart.run("counting/ones", "tiny", reading="likelihood", **asked)
    accuracies = [run.judged.cells["accuracy"].tolist() for run in (said, read)]
    assert accuracies == [[1.0] * 4, [1.0] * 4]
    assert all(math.exp(one[0]["logprob"]) > 0.5 for one in read.samples["options"])


@pytest.mark.parametrize("options", ["gone", None])
def test_a_line_without_options_is_no_answer(
    lab: Lab, ask: Callable[..., str], options: str | None
) -> None:
    """Its reply says nothing of probabilities: one line, and the same command asks it again."""
    asked = ("--model", ask(sees), *LIKELIHOOD)
    lab.bench_ask(*asked)
    path = lab.the_run() / SAMPLES
    first, *others = path.read_text(encoding="utf-8").splitlines()
    fields = json.loads(first)
    fields["options"] = None
    if options == "gone":
        del fields["options"]
    path.write_text("\n".join([json.dumps(fields), *others, ""]), encoding="utf-8")
    done = lab.bench("score", lab.the_run(), "--task", lab.ones)
    assert f"{path}:1: no options of a forced choice; its sample counts as not asked" in done.err
    assert done.code == 1
    assert read_run(lab.the_run()).missing == 1
    assert lab.bench_ask(*asked).code == 0
    assert len(path.read_text(encoding="utf-8").splitlines()) == len(others) + 2
    assert read_run(lab.the_run()).missing == 0


def test_a_published_record_says_what_was_chosen_from(lab: Lab, ask: Callable[..., str]) -> None:
    """The method, the options with their log-probabilities, chance; other names than of replies."""
    lab.bench_ask("--model", ask(sees), *LIKELIHOOD)
    folder = lab.folder / "eee"
    arguments = ("every-eval-ever", lab.the_run(), "--task", lab.folder / "lab", "-o", folder)
    assert lab.bench("export", *arguments).code == 0
    (aggregate,) = (folder / "data").rglob("*.json")
    samples = aggregate.with_name(f"{aggregate.stem}_samples.jsonl")
    by_id = {record["id"]: record for record in records(lab.the_run())}
    rows = list(map(json.loads, samples.read_text().splitlines()))
    assert len(rows) == len(by_id)
    for row in rows:
        record = by_id[row["sample_id"]]
        count = len(record["options"])
        method = row["answer_attribution"][0]["extraction_method"]
        assert method.startswith(f"eyechart: most probable of {count} options after ")
        assert json.loads(row["metadata"]["options"]) == record["options"]
        assert float(row["metadata"]["chance"]) == pytest.approx(1 / count, abs=1e-6)
        assert "/read=likelihood/" in row["evaluation_name"]
    for result in json.loads(aggregate.read_text())["evaluation_results"]:
        assert result["score_details"]["details"]["read"] == "likelihood"
        assert "/read=likelihood/" in result["evaluation_name"]


def test_a_dry_run_counts_no_replies(lab: Lab, ask: Callable[..., str]) -> None:
    """None is written, and nothing is thought."""
    asked = ("--model", ask(sees), *LIKELIHOOD, "--dry-run")
    printed = lab.bench_run(*asked).out
    assert "the options of each are not counted, and no reply is written" in printed
    assert "of replies" not in printed
    assert "thinking" not in printed
    (run,) = json.loads(lab.bench_run(*asked, "--json").out)["runs"]
    assert (run["output_tokens"], run["most_output_tokens"]) == (0, 0)
