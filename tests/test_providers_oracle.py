"""The built-in model that knows the answers, alone and in runs of every kind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import eyechart
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.providers.base import ModelSettings, OracleAnswer, Request, SetupError
from eyechart.providers.oracle import OracleProvider, read_oracle
from eyechart.providers.registry import registry
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_model

if TYPE_CHECKING:
    from eyechart.harness.analysis.samples.judged_run import JudgedRun
    from tests.conftest import Lab


@pytest.mark.parametrize(
    ("given", "label", "read"),
    [
        ("oracle:50", "oracle/50", (50, 1.0)),
        ("oracle/50", "oracle/50", (50, 1.0)),
        (" oracle:1/1 ", "oracle/1", (1, 1.0)),
        ("oracle:50/0.9", "oracle/50/0.9", (50, 0.9)),
        ("oracle:7/.50", "oracle/7/0.5", (7, 0.5)),
    ],
)
def test_a_name_is_a_length_and_a_probability(
    given: str, label: str, read: tuple[int, float]
) -> None:
    """The label is a name as well."""
    name = parse_model(given)
    assert (name.label, parse_model(name.label)) == (label, name)
    assert read_oracle(name.model) == read


@pytest.mark.parametrize(
    "given",
    [
        *("oracle", "oracle:", "oracle:0", "oracle:-5", "oracle:x", "oracle:5/", "oracle:5/0"),
        *("oracle:5/1.1", "oracle:5/nan", "oracle:5/0.5/2", "oracle:5.5", "oracle:٣"),
    ],
)
def test_a_name_that_is_no_oracle_says_what_is_one(given: str) -> None:
    """With an example."""
    with pytest.raises(SetupError, match="oracle:50"):
        parse_model(given)


def by_length(identifier: str) -> OracleAnswer:
    return OracleAnswer(int(identifier.partition(" ")[0]), "yes", "no")


def replies(sees: int, accuracy: float, *, length: int) -> list[str]:
    """To 400 samples of a length."""
    oracle = OracleProvider(sees, accuracy, by_length)

    async def ask() -> list[str]:
        requests = [Request("?", 9, sample_id=f"{length} {index}") for index in range(400)]
        return [(await oracle.complete(request)).text for request in requests]

    return asyncio.run(ask())


def test_it_is_right_up_to_a_length_and_wrong_beyond() -> None:
    """Always, unless it has lapses; these come at random, and are the same again."""
    assert set(replies(50, 1.0, length=50)) == {"yes"}
    assert set(replies(50, 1.0, length=51)) == {"no"}
    assert set(replies(50, 0.9, length=51)) == {"no"}
    some = replies(50, 0.9, length=3)
    assert 340 <= some.count("yes") <= 380
    assert some == replies(50, 0.9, length=3) != replies(50, 0.9, length=4)


def test_no_other_provider_is_given_what_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if a caller has it in the settings."""
    seen: list[ModelSettings] = []
    monkeypatch.setattr(registry, "_load", lambda _path: seen.append)
    for model in ("tiny", "gpt-4o", "vllm/x", "oracle:5"):
        open_model(parse_model(model), ModelSettings("", known=by_length))
    assert [settings.known for settings in seen] == [None, None, None, by_length]


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({}, "answers the samples of 'bench run'"),
        ({"known": by_length, "logprobs": True}, "leave out logprobs"),
        ({"known": by_length, "base_urls": ("http://127.0.0.1:9",)}, "takes no base_url"),
    ],
    ids=["unknown", "logprobs", "base-url"],
)
def test_what_it_cannot_do_is_said(settings: dict[str, object], word: str) -> None:
    """Before it is asked anything."""
    with pytest.raises(SetupError, match=word):
        open_model(parse_model("oracle:5"), ModelSettings("", **settings))  # type: ignore[arg-type]


def accuracies(run: JudgedRun) -> dict[int, set[float]]:
    """Line -> accuracies of its cells."""
    by_length: dict[int, set[float]] = {}
    for row in run.cells.to_dict("records"):
        by_length.setdefault(row["length"], set()).add(row["accuracy"])
    return by_length


def test_a_run_falls_at_its_length(lab: Lab) -> None:
    """On a task of one's own, with nothing to say and nothing to pay."""
    done = lab.bench_run("--model", "oracle:4", "--lengths", "2,4,5,9")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("lab/ones  oracle/4")
    assert lab.the_run().is_relative_to(lab.out / "runs" / "oracle" / "4")
    run = read_run(lab.the_run())
    assert accuracies(run) == {2: {1.0}, 4: {1.0}, 5: {0.0}, 9: {0.0}}
    assert run.cells["incorrect"].sum() == 16
    assert "cost" not in lab.bench_run("--model", "oracle:4", "--dry-run").out


def test_tasks_of_several_types_in_one_command(lab: Lab) -> None:
    """Each sample is answered by its own task."""
    done = lab.bench_run("--model", "oracle:3", task=lab.folder / "lab")
    assert done.code == 0
    for manifest in sorted(lab.out.rglob("manifest.json")):
        for length, found in accuracies(read_run(manifest.parent)).items():
            assert found == {float(length <= 3)}


def test_an_adaptive_run_finds_its_length(lab: Lab) -> None:
    """As do those of models that are not built in; the estimate is near."""
    done = lab.bench_run(
        *("--model", "oracle:20/0.98", "--adaptive", "--samples", "30"),
        *("--lengths", "5,10,20,40", "--axis", "separator=none"),
    )
    assert done.code == 0, done.err
    (row,) = read_run(lab.the_run()).conditions.values()
    estimate = row.effective_length()
    assert estimate is not None
    assert estimate.length is not None
    assert 14 < float(estimate.length.length) < 28


def test_python_asks_it_too(lab: Lab) -> None:
    """By the same name."""
    run = eyechart.run(lab.plain, "oracle:3", out=lab.out)
    assert set(run.cells["accuracy"]) == {0.0}
