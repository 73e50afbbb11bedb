"""Several models in one `bench run`: at the same time, each for itself, under one budget."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from eyechart.harness.journal.manifest import MANIFEST
from eyechart.providers.base import AuthError, BadRequestError, Reply, Request, SetupError, Usage
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import records, right
from tests.test_catalog_prices import RAW as PRICE_LIST

if TYPE_CHECKING:
    from tests.conftest import Done, Lab

PRICES = """\
fake/a: {prices: {input: 0, output: 1000000, as_of: 2026-01-01}}
fake/b: {prices: {input: 0, output: 1000000, as_of: 2026-01-01}}
"""


def fakes(lab: Lab, **scripts: Callable[[Request], Any]) -> dict[str, ScriptedProvider]:
    """The models `fake/NAME`, each with its script."""
    asked = {name: ScriptedProvider(script) for name, script in scripts.items()}
    module = types.ModuleType("fake_provider")
    module.__dict__["open_provider"] = lambda settings: asked[settings.model]
    lab.monkeypatch.setitem(sys.modules, "fake_provider", module)
    lab.add_provider("fake", "fake_provider:open_provider")
    return asked


def titles(done: Done) -> list[str]:
    """The models of the table that was printed."""
    rows = [line for line in done.out.splitlines() if line.startswith(("lab/", "| lab/"))]
    return [row.replace("|", " ").split()[1] for row in rows]


def broken(_request: Request) -> BadRequestError:
    return BadRequestError("400")


def no_key(_request: Request) -> AuthError:
    return AuthError("the key is refused")


@pytest.mark.parametrize(
    "models",
    [
        ["--model", "fake/a,fake/b"],
        ["-m", "fake/a", "-m", "fake/b"],
        ["--model", " fake/a , fake/b,fake/a"],
    ],
    ids=str,
)
def test_each_model_is_asked_once(lab: Lab, models: list[str]) -> None:
    """With commas between, or by the option again; each once."""
    asked = fakes(lab, a=right, b=right)
    done = lab.bench("run", "--task", lab.plain, "--out", lab.out, *models)
    assert (done.code, done.err) == (0, "")
    assert titles(done) == ["fake/a", "fake/b"]
    assert [len(provider.requests) for provider in asked.values()] == [3, 3]


def test_two_names_of_a_model_are_one(lab: Lab) -> None:
    """It is not asked, or shown, twice."""
    done = lab.bench_run("--model", "oracle:5,oracle/5,oracle:5/1", task=lab.plain)
    assert titles(done) == ["oracle/5"]


def test_tasks_may_be_given_one_by_one(lab: Lab) -> None:
    """As models are."""
    command = ("run", "-t", lab.plain, "-t", f"{lab.ones},{lab.plain}", "-m", "oracle:5")
    done = lab.bench(*command, "--out", lab.out)
    assert done.code == 0
    assert [path.parent.name[:5] for path in sorted(lab.out.rglob(MANIFEST))] == ["ones@", "plain"]


def test_several_models_behind_one_name_are_noted(lab: Lab) -> None:
    """Where the run's result stands, and wherever it is shown again."""
    names = iter(f"m{number % 5}" for number in range(99))
    model = lab.fake(lambda request: Reply(right(request), model=next(names)))
    done = lab.bench_run("--model", model)
    note = (
        "The replies come from 5 models (m0, m1, m2 and 2 others), so the numbers are those of no "
        "single one."
    )
    assert "replies now come from 'm1', and those before from 'm0'" in done.err
    page = lab.folder / "page.html"
    run = lab.the_run()
    scored, compared = lab.bench("score", run), lab.bench("compare", run, "--axis", "separator=all")
    ranked = lab.bench("leaderboard", run, "-o", lab.folder / "board.csv")
    lab.bench("report", run, "-o", page)
    for shown in (done.out, scored.out, compared.out, ranked.out, page.read_text()):
        assert note in " ".join(shown.split())


@pytest.mark.parametrize(
    ("script", "code", "why"),
    [
        (broken, 1, "lab/plain: none of the first 3 samples got a reply"),
        (no_key, 1, "the key is refused"),
    ],
)
def test_a_failure_does_not_stop_the_others(
    lab: Lab, script: Callable[[Request], Any], code: int, why: str
) -> None:
    """The last lines say which model failed."""
    fakes(lab, a=script, b=right)
    done = lab.bench_run("--model", "fake/a,fake/b", task=lab.plain)
    assert done.code == code
    assert (lab.out / "runs" / "fake" / "b").is_dir()
    said = ["1 of 2 models are complete; these are not:", f"  fake/a: {why}"]
    assert done.err.splitlines()[-2:] == said


def test_the_exit_code_of_a_command_is_that_of_a_usage_error_for_all_models(lab: Lab) -> None:
    """A missing key alone is 2; beside a model that was asked it is 1."""
    lab.monkeypatch.delenv("GROQ_API_KEY", raising=False)
    fakes(lab, a=broken, b=right)
    assert lab.bench_ask("--model", "groq/x,groq/y", task=lab.plain).code == 2
    done = lab.bench_run("--model", "groq/x,fake/a,fake/b", task=lab.plain)
    assert done.code == 1
    assert done.err.splitlines()[-3] == "1 of 3 models are complete; these are not:"
    assert done.err.splitlines()[-1].startswith("  fake/a: lab/plain: none of the first 3 samples")
    assert "GROQ_API_KEY" in done.err.splitlines()[-2]


def test_a_wrong_name_is_said_before_any_model_is_asked(lab: Lab) -> None:
    """Also where it is the last one."""
    asked = fakes(lab, a=right)
    done = lab.bench_run("--model", "fake/a,gtp4", task=lab.plain)
    done.one_line(2, "'gtp4'", "did you mean 'gpt-4o'?")
    assert not asked["a"].requests
    lab.bench_run("--model", "fake/a,,fake/b").one_line(2, "''", "provider/model")


def test_an_interrupt_ends_all(lab: Lab) -> None:
    """What is left is named."""

    def interrupted(_request: Request) -> str:
        raise KeyboardInterrupt

    fakes(lab, a=interrupted, b=interrupted)
    done = lab.bench_run("--model", "fake/a,fake/b", task=lab.plain)
    assert done.code == 130
    assert done.err.count("interrupted; what was answered is saved") == 1
    assert done.err.splitlines()[-2] == "  fake/a: interrupted"
    assert done.err.splitlines()[-1] in ("  fake/b: interrupted", "  fake/b: not asked")


def test_debug_raises_the_first_failure(lab: Lab) -> None:
    """With its traceback."""
    lab.monkeypatch.delenv("GROQ_API_KEY", raising=False)
    with pytest.raises(SetupError):
        lab.bench("--debug", "run", "-t", lab.plain, "-m", "groq/x,oracle:5", "--out", lab.out)


def test_the_last_reply_may_spend_the_budget(lab: Lab) -> None:
    """The run is complete, and has its place on a leaderboard."""
    (lab.folder / "models.yaml").write_text(PRICES)
    lab.monkeypatch.setenv("EYECHART_MODELS", str(lab.folder / "models.yaml"))

    def paid(request: Request) -> Reply:
        return Reply(right(request), usage=Usage(1, 2), sure_stop=True)

    fakes(lab, a=paid)
    command = ("--model", "fake/a", "--max-tokens", "2", "--max-connections", "1")
    assert lab.bench_ask(*command, "--budget", "6", task=lab.plain).code == 0
    assert len(records(lab.the_run())) == 3


def test_one_budget_is_for_all_models(lab: Lab) -> None:
    """What one has spent the other cannot; the lines say how much each cost."""
    (lab.folder / "models.yaml").write_text(PRICES)
    lab.monkeypatch.setenv("EYECHART_MODELS", str(lab.folder / "models.yaml"))

    def paid(request: Request) -> Reply:
        return Reply(right(request), usage=Usage(1, 2), sure_stop=True)

    asked = fakes(lab, a=paid, b=paid)
    command = ("--model", "fake/a,fake/b", "--max-tokens", "2", "--max-connections", "1")
    done = lab.bench_run(*command, "--budget", "10", task=lab.plain)
    assert done.code == 1
    first, second = (len(provider.requests) for provider in asked.values())
    assert first + second == 5
    assert f"fake/a: cost about ${2 * first}.00" in done.err
    assert f"fake/b: cost about ${2 * second}.00" in done.err
    assert "no reply (the budget of $10 is spent)" in done.err


def test_a_limit_of_requests_is_for_each_model(lab: Lab) -> None:
    """Of an adaptive command, so that each model is asked as much."""
    asked = fakes(lab, a=right, b=right)
    done = lab.bench_run("--model", "fake/a,fake/b", "--adaptive", "--max-requests", "5")
    assert done.code == 1
    assert [len(provider.requests) for provider in asked.values()] == [5, 5]
    assert "  fake/b: 2 conditions are not known" in done.err


def test_a_dry_run_shows_each_model(lab: Lab) -> None:
    """In a row; and asks none."""
    command = ("--model", "oracle:5,tiny", "--dry-run")
    done = lab.bench_run(*command, task=lab.plain)
    assert done.code == 0
    assert "| oracle/5 |        3 |        0 |" in done.out
    assert "| tiny     |        3 |        0 |" in done.out
    assert not lab.out.exists()


def test_a_batch_file_asks_one_model(lab: Lab) -> None:
    """Several are refused, not silently one of them taken."""
    command = ("export", "batch", "-t", lab.plain, "-o", lab.folder / "x.jsonl")
    for models in (["-m", "gpt-4o,gpt-4.1"], ["-m", "gpt-4o", "-m", "gpt-4.1"]):
        lab.bench(*command, *models).one_line(2, "one model")


def test_prices_are_updated_where_there_is_a_network(lab: Lab) -> None:
    """Otherwise one line says why, and the list of the package stays."""
    answers: list[httpx2.Response | httpx2.HTTPError] = [
        httpx2.ConnectError("[Errno 113] no route to host")
    ]
    request = httpx2.Request("GET", "https://example.org")
    answers += [
        httpx2.Response(200, json=content, request=request)
        for content in ({"no": "list"}, [], PRICE_LIST)
    ]

    def get(*_: object, **__: object) -> httpx2.Response:
        answer = answers.pop(0)
        if isinstance(answer, httpx2.HTTPError):
            raise answer
        return answer

    lab.monkeypatch.setattr(httpx2, "get", get)
    lab.monkeypatch.setenv("XDG_CACHE_HOME", str(lab.folder))
    for why in (": no route to host; in use", "; in use", ": it has no models; in use"):
        failed = lab.bench("models", "--update-prices")
        failed.one_line(1, "was not updated from https://", f"{why} are the prices of 20")
    done = lab.bench("models", "--update-prices")
    assert (done.code, "openai" in done.out) == (0, True)
    kept = lab.folder / "eyechart" / "prices.json"
    assert done.err == f"today's prices of 1 models are in {kept}; all commands use them\n"
