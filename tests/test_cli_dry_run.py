"""What `bench run --dry-run` says of prompts, replies and models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest

from tests.conftest import right
from tests.test_cli_adaptive import Window
from tests.test_plan_cost import priced

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Lab


def facts(lab: Lab, text: str) -> None:
    """Makes `text` the user's file of models."""
    path = lab.out.parent / "models.yaml"
    path.write_text(text)
    lab.monkeypatch.setenv("EYECHART_MODELS", str(path))


def test_requests_that_are_not_sent_are_not_counted(lab: Lab) -> None:
    """Neither where the window is too small nor where the reply would be too long."""
    facts(lab, "openai/small: {window: 8}\nopenai/short: {max_output: 7}\n")
    for model, why in (
        ("openai/small", "of a right reply have no room in the window of 8; not sent"),
        ("openai/short", "tokens of a right reply are more than the 7 that the model gives"),
    ):
        command = ("--model", model, "--samples", "3", "--dry-run")
        done = lab.bench_run(*command, task=lab.plain)
        assert "requests    3 (3 a cell); 3 do not fit, so 0 will be asked" in done.out
        assert why in done.out
        (run,) = orjson.loads(lab.bench_run(*command, "--json", task=lab.plain).out)["runs"]
        assert (run["requests"], run["fitting"], run["prompt_tokens"]) == (3, 0, 0)
        assert why in run["cells"][0]["too_long"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("tiny", "--logprobs", "0"),
            "tiny gives no probabilities of tokens; leave out",
        ),
        (("anthropic/x", "--logprobs", "0"), "leave out --logprobs"),
        (("anthropic/x", "--api", "completions"), "leave out --api completions"),
        (("gpt-4o", "--api", "completions", "--system", "Be brief."), "give an empty --system"),
        (("gpt-4o", "--api", "completions", "--thinking", "low"), "leave out --thinking, or"),
    ],
)
def test_what_the_run_would_refuse_is_refused(
    lab: Lab, arguments: tuple[str, ...], said: str
) -> None:
    lab.bench_run("--dry-run", "--model", *arguments).one_line(2, said)


def test_the_window_of_an_earlier_command_is_known(lab: Lab) -> None:
    """Only the server names this window. --fresh does not use it: another server may answer."""
    more = ("--model", lab.fake(Window(400)), "--axis", "separator=none", "--lengths")
    assert "do not fit" not in lab.bench_run(*more, "5,9000", "--dry-run").out
    lab.bench_ask(*more, "5")
    assert "4 do not fit, so 0 will be asked" in lab.bench_run(*more, "5,9000", "--dry-run").out
    fresh = lab.bench_run(*more, "5,9000", "--dry-run", "--fresh")
    assert "do not fit" not in fresh.out


@pytest.mark.parametrize("samples", ["9", "2600"], ids=["each", "some of each cell"])
def test_only_what_has_no_answer_has_a_price(lab: Lab, samples: str) -> None:
    """Of a complete run nothing; of another one what the same plan without those samples takes."""
    lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder))
    lines = ("--lengths", "5,20", "--model", lab.fake(right))
    left = ("characters", "prompt_tokens", "output_tokens", "most_output_tokens", "dollars")

    def dry(*command: str) -> list[float]:
        done = lab.bench_run(*lines, *command, "--dry-run", "--json", task=lab.plain)
        (run,) = orjson.loads(done.out)["runs"]
        assert run["requests"] == run["fitting"] == run["turns"]
        return [run[name] for name in (*left, "most_dollars")]

    few, whole = dry("--samples", "4"), dry("--samples", samples)
    assert lab.bench_ask(*lines, "--samples", "4", task=lab.plain).code == 0
    assert dry("--samples", "4") == [0] * len(few)
    assert dry("--samples", "4", "--fresh") == few
    rest = [one - part for one, part in zip(whole, few, strict=True)]
    assert dry("--samples", samples) == pytest.approx(rest, rel=0.02)
    done = lab.bench_run(*lines, "--samples", "4", "--dry-run", task=lab.plain)
    assert "8 are answered, so 0 will be asked" in done.out
    assert "tokens      0 of prompts" in done.out
    assert "cost of what is still to ask: about $0.00, at most $0.00, at" in done.out


def test_answered_draws_have_no_price(lab: Lab) -> None:
    """The others of the same samples have theirs."""
    lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder))
    drawn = ("--model", lab.fake(right), "--lengths", "5", "--samples", "3")

    def tokens(*command: str, task: Path) -> int:
        done = lab.bench_run(*command, "--dry-run", "--json", task=task)
        return int(orjson.loads(done.out)["runs"][0]["most_output_tokens"])

    one = tokens(*drawn, task=lab.plain)
    assert tokens(*drawn, "--draws", "4", task=lab.plain) == 4 * one
    assert lab.bench_ask(*drawn, task=lab.plain).code == 0
    assert tokens(*drawn, "--draws", "4", task=lab.plain) == 3 * one


def test_a_model_that_nobody_knows_is_told(lab: Lab) -> None:
    """Once, with the name that was meant, and asked all the same."""
    said = "bench: openai/gtp-4o is in no list of models; did you mean 'openai/gpt-4o'?"
    dry = lab.bench_run(
        "--model",
        "openai/gtp-4o,openai/gpt-4o",
        "--dry-run",
        "--thinking",
        "low,high",
        task=lab.plain,
    )
    refuses = "bench: openai/gpt-4o does not reason, so its vendor will refuse a reasoning effort"
    assert (dry.code, dry.err.splitlines()) == (0, [said, refuses])
    lab.monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    run = lab.bench_run("--model", "openai/gtp-4o", task=lab.plain)
    assert run.err.splitlines()[0] == said
    at_a_server = ("--model", "openai/gtp-4o", "--base-url", "http://127.0.0.1:9/v1", "--dry-run")
    assert lab.bench_run(*at_a_server, task=lab.plain).err == ""


@pytest.mark.parametrize(
    ("model", "samples", "said"),
    [
        ("tiny", "3", "(counted)"),
        ("tiny", "2600", "(counted in a few samples of each cell)"),
        ("gpt-4o", "3", "(estimated: one a digit or sign, one per five letters)"),
    ],
)
def test_who_counted_the_tokens_is_said(lab: Lab, model: str, samples: str, said: str) -> None:
    """The model's tokenizer counted all prompts or some, or there is none at hand."""
    given = ("--task", "counting/ones", "--model", model, "--lengths", "5", "--samples", samples)
    assert said in lab.bench("run", *given, "--dry-run").out


def test_of_a_long_prompt_the_beginning_and_the_end_are_shown(lab: Lab) -> None:
    """With the number of characters between; the document has all of it, and its length."""
    command = ("--lengths", "9000", "--axis", "separator=none", "--dry-run")
    done = lab.bench_run("--model", "tiny", *command)
    (run,) = orjson.loads(lab.bench_run("--model", "tiny", *command, "--json").out)["runs"]
    prompt = run["sample"]["prompt"]
    assert run["sample"]["characters"] == len(prompt) > 9000
    shown = [line[6:] for line in done.out.splitlines() if line.startswith("    | ")]
    between = f"{len(prompt) - 1500:,} characters; 'bench tasks sample ID' prints the whole prompt"
    beginning, end = "\n".join(shown).split(f"\n[… {between} …]\n")
    assert (prompt[:1000], prompt[-500:]) == (beginning, end)


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ("0.0001", "the budget of $0.0001 is spent before all of it is asked; a new one goes on"),
        ("0.01", "the budget of $0.01 probably pays for all of it, and not for the worst case"),
        ("9", "the budget of $9.00 pays for all of it"),
    ],
)
def test_what_a_budget_pays_for(lab: Lab, budget: str, said: str) -> None:
    """A cost below half a cent is not shown as nothing; the worst case is rounded up."""
    asked = ("--model", "gpt-4o", "--lengths", "5", "--samples", "4", "--budget", budget)
    done = lab.bench_run(*asked, "--dry-run", task=lab.plain)
    assert done.code == 0
    assert "cost of all: less than $0.01, at most $0.0" in done.out
    assert done.out.splitlines()[-1] == said
