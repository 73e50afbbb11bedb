"""`bench samples`, `bench runs` and `bench tasks sample`: what is there can be looked at."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eyechart.harness.analysis.samples.shortening import marked, shortened
from eyechart.harness.cli.work.samples import MOST
from eyechart.harness.journal.manifest import MANIFEST
from eyechart.providers.base import BadRequestError, Reply, Request
from tests.conftest import Lab, right

ONE_ID = "lab/ones@1|separator=comma|length=5|seed=0|index=2"


def some_right(request: Request) -> Any:
    """Right without separators; with commas wrong at length 3, and of three kinds at length 5."""
    if "separator=none" in request.sample_id:
        return right(request)
    if "length=3" in request.sample_id:
        return "Let me see.\nFinal answer: 77."
    if request.sample_id.endswith("index=0"):
        return "no idea"
    if request.sample_id.endswith("index=1"):
        raise BadRequestError("too hot")
    return Reply(right(request), reasoning="One by one.")


@pytest.fixture
def run(lab: Lab) -> Path:
    """A run with four outcomes."""
    lab.bench_ask("--model", lab.fake(some_right))
    return lab.the_run()


@pytest.fixture
def rows(lab: Lab, run: Path) -> Callable[..., list[dict[str, Any]]]:
    """The objects that `bench samples --json` prints."""

    def ask(*arguments: str | Path) -> list[dict[str, Any]]:
        done = lab.bench("samples", run, "--json", "--limit", "0", *arguments)
        assert done.code == 0
        return [json.loads(line) for line in done.out.splitlines()]

    return ask


def test_a_sample_has_prompt_reply_target_and_reason(lab: Lab, run: Path) -> None:
    """The answer that was read is marked in the reply."""
    done = lab.bench(
        *("samples", run, "--task", lab.ones, "--outcome", "incorrect", "--limit", "1")
    )
    prompt = [line for line in done.out.splitlines() if line.startswith("  | How many ones?")]
    target = int(done.out.partition("target   ")[2].split()[0])
    assert done.code == 0
    assert len(prompt) == 1
    assert done.out.startswith("lab/ones@1|separator=comma|length=3|seed=0|index=0\n")
    assert f"  outcome  incorrect (reads 77, target {target})\n" in done.out
    assert "  | Let me see.\n  | Final answer: >>77<<.\n" in done.out
    assert done.err == "1 of 4 samples; --limit 0 shows all\n"


def test_every_sample_comes_once_in_json(rows: Callable[..., list[dict[str, Any]]]) -> None:
    """With all that is known of it, index by index."""
    every = rows()
    assert len({row["id"] for row in every}) == len(every) == 16
    assert [row["index"] for row in every] == sorted(row["index"] for row in every)
    wrong = next(row for row in every if row["outcome"] == "incorrect")
    assert wrong["reply"][wrong["answer_start"] : wrong["answer_end"]] == "77"
    assert wrong["answer"] == 77
    failed = next(row for row in every if row["outcome"] == "error")
    assert (failed["reply"], failed["answer"], failed["answer_start"]) == (None, None, None)
    assert failed["why"] == "BadRequestError: too hot"
    assert [row["reasoning"] for row in every if row["reasoning"]] == ["One by one."] * 2
    correct = [row for row in every if row["outcome"] == "correct"]
    assert {row["why"] for row in correct} == {""}
    assert len(correct) == 10


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (["--outcome", "incorrect"], 4),
        (["--outcome", "incorrect,unparsed", "--outcome", "error"], 6),
        (["--length", "5"], 8),
        (["--length", "5", "--length", "3"], 16),
        (["--condition", "separator=comma"], 8),
        (["--condition", "separator=none", "--condition", "separator=comma"], 16),
        (["--condition", "separator=none", "--outcome", "incorrect"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_samples_are_chosen(
    rows: Callable[..., list[dict[str, Any]]], arguments: list[str], count: int
) -> None:
    """By outcome, length and condition, each given once or several times."""
    assert len(rows(*arguments)) == count


def test_a_length_is_that_of_a_line_or_of_a_sample(lab: Lab) -> None:
    """A line of a band has the samples of its nominal length, whatever their own."""
    lab.with_bands()
    lab.bench_ask("--lengths", "3,12", "--samples", "8")
    every = [
        json.loads(line)
        for line in lab.bench("samples", lab.the_run(), "--json", "--limit", "0").out.splitlines()
    ]
    nominal = [row for row in every if row["length"] == 12]
    true_length = next(row["true_length"] for row in nominal if row["true_length"] != 12)
    for length, count in (
        (12, len(nominal)),
        (true_length, sum(true_length in (row["length"], row["true_length"]) for row in every)),
    ):
        command = ("samples", lab.the_run(), "--json", "--limit", "0", "--length", str(length))
        assert len(lab.bench(*command).out.splitlines()) == count > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--outcome", "wrong"], ["no outcome 'wrong'", "incorrect"]),
        (["--outcome", "not_run"], ["no outcome 'not_run'"]),
        (["--length", "7"], ["no sample has length 7; the run has lengths 3, 5"]),
        (["--condition", "separator"], ["AXIS=VALUE"]),
        (["--condition", "seperator=none"], ["did you mean 'separator'"]),
        (["--condition", "separator=nine"], ["did you mean 'none'"]),
    ],
    ids=str,
)
def test_what_no_run_has_is_refused(
    lab: Lab, run: Path, arguments: list[str], words: list[str]
) -> None:
    """In a line that says what there is."""
    lab.bench("samples", run, *arguments).one_line(2, *words)


def test_prompts_that_cannot_be_made_are_said_once(lab: Lab, run: Path) -> None:
    """The samples are shown without them; the code of the run is executed only where asked."""
    done = lab.bench("samples", run)
    assert done.code == 0
    assert "  prompt" not in done.out
    assert done.err.count("prompts are not shown: the task file of lab/ones is not at hand") == 1
    assert "--run-kept-code" in done.err
    done = lab.bench("samples", run, "--run-kept-code", "--limit", "3")
    assert done.out.count("How many ones?") == 3


def test_nothing_chosen_is_said(lab: Lab, run: Path) -> None:
    """And nothing of missing prompts."""
    done = lab.bench("samples", run, "--outcome", "overflow")
    assert (done.code, done.out, done.err) == (0, "", "no sample with a record is like that\n")


def test_long_texts_lose_their_middle(lab: Lab) -> None:
    """Not the answer; with --full and in JSON they are whole."""
    reply = f"{'a' * 3_000}\nFinal answer: 2\n{'b' * 3_000}"
    lab.bench_ask("--model", lab.fake(lambda _request: reply), "--lengths", "3", "--samples", "1")
    run = lab.the_run()
    done = lab.bench("samples", run, "--limit", "1")
    assert len(done.out) < 2 * MOST
    assert ">>2<<" in done.out
    assert done.out.count(" characters …]") == 2
    whole = lab.bench("samples", run, "--limit", "1", "--full").out
    assert f"  | {'b' * 3_000}\n" in whole
    row = json.loads(lab.bench("samples", run, "--limit", "1", "--json").out)
    assert row["reply"] == reply


def test_the_middle_is_counted() -> None:
    """What is left and what is left out is the text."""
    text = "".join(chr(97 + place % 26) for place in range(100))
    assert shortened(text, 100) == text
    assert shortened(text, 11) == f"{text[:6]}[… 89 characters …]{text[-5:]}"
    assert shortened(text, 1) == "a[… 99 characters …]"
    assert marked("so 7 it is", 3, 4, None) == [("so ", False), ("7", True), (" it is", False)]
    assert marked(text, 0, 0, None) == [(text, False)]
    (_, (answer, is_answer), _) = marked(text, 10, 90, 50)
    assert is_answer
    assert answer.startswith(text[10:20])
    assert "characters" in answer


def test_texts_steer_no_terminal_and_break_no_json(lab: Lab) -> None:
    """Control characters of a reply are escaped, and the JSON has them all."""
    reply = "\x1b[2J\x7f\x85\u2028\u202eFinal answer: 2"
    lab.bench_ask("--model", lab.fake(lambda _request: reply), "--lengths", "3", "--samples", "1")
    run = lab.the_run()
    shown = lab.bench("samples", run, "--limit", "1").out
    line = lab.bench("samples", run, "--limit", "1", "--json").out
    assert not {"\x1b", "\x7f", "\x85", "\u2028", "\u202e"} & set(shown + line)
    assert json.loads(line)["reply"] == reply


def test_runs_are_listed(lab: Lab) -> None:
    """How far each is; one that cannot be read is said and makes the command incomplete."""
    lab.bench_ask("--model", lab.fake(some_right))
    lab.bench_ask("--model", lab.fake(right), task=lab.plain)
    ones = next(lab.out.rglob("ones@1-*"))
    done = lab.bench("runs", "--out", lab.out, "--json")
    listed = {row["task"]: row for row in json.loads(done.out)["runs"]}
    assert done.code == 0
    assert (listed["lab/ones"]["answered"], listed["lab/ones"]["planned"]) == (15, 16)
    assert (listed["lab/plain"]["answered"], listed["lab/plain"]["planned"]) == (3, 3)
    assert listed["lab/ones"]["folder"] == str(ones)
    assert listed["lab/ones"]["model"] == "fake/model"
    (ones / MANIFEST).write_text("{}")
    done = lab.bench("runs", "--out", lab.out)
    assert done.code == 1
    head, line = done.out.splitlines()
    assert head.split() == ["model", "task", "answered", "updated", "folder"]
    assert "lab/plain@3" in line
    assert " 3 of 3 " in line
    assert f"{ones / MANIFEST} cannot be read" in done.err


def test_long_lines_go_on_below_on_a_terminal(lab: Lab) -> None:
    """With every character of them; a pipe gets them whole."""
    said = "one, two,  three\t" * 12 + "x" * 200 + "\n\nFinal answer: 77"
    lab.bench_ask("--model", lab.fake(lambda _: said), task=lab.plain)
    arguments = ("samples", lab.the_run(), "--limit", "1", "--full")
    piped = lab.bench(*arguments).out.splitlines()
    lab.monkeypatch.setenv("COLUMNS", "80")
    shown = lab.bench(*arguments).out.splitlines()
    assert max(len(line) for line in shown if line.startswith(("  | ", "  : "))) == 80
    together: list[str] = []
    for line in shown:
        if line.startswith("  : "):
            together[-1] += line.removeprefix("  : ")
        else:
            together.append(line)
    assert together == piped
    assert f"  | {said.splitlines()[0]}" in piped


def test_where_no_run_is(lab: Lab) -> None:
    """The folder is named."""
    done = lab.bench("runs", "--out", lab.out)
    assert (done.code, done.out) == (0, "")
    assert done.err == f"no run under {lab.out / 'runs'}\n"


def test_a_sample_is_made_again_from_its_id(
    lab: Lab, rows: Callable[..., list[dict[str, Any]]]
) -> None:
    """The prompt and the target are those of the run."""
    row = next(row for row in rows("--task", lab.ones) if row["id"] == ONE_ID)
    done = lab.bench("tasks", "sample", ONE_ID, "--task", lab.ones)
    prompt = "".join(f"  | {line}\n" for line in row["prompt"].split("\n"))
    assert done.out == f"{ONE_ID}\n  target   {row['target']}\n  prompt\n{prompt}"
    built_in = "counting/sum@1|strategy=direct,order=question_first|length=5|seed=0|index=0"
    assert "1+1+1+1+1" in lab.bench("tasks", "sample", built_in).out.replace(" ", "")


@pytest.mark.parametrize(
    ("identifier", "words"),
    [
        ("nonsense", ["not a sample id: 'nonsense'"]),
        (ONE_ID, ["no task 'lab/ones' is installed", "--task"]),
        (
            "counting/sum@99|strategy=direct,order=question_first|length=5|seed=0|index=0",
            ["counting/sum@1"],
        ),
        ("counting/sum@1|strategy=magic|length=5|seed=0|index=0", ["'strategy=magic'"]),
    ],
)
def test_an_id_that_names_nothing(lab: Lab, identifier: str, words: list[str]) -> None:
    """A line says what is wrong with it."""
    lab.bench("tasks", "sample", identifier).one_line(2, *words)
