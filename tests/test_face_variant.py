"""Variants of one model: runs of their own, by how the model is served or asked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import eyechart
from eyechart.harness.analysis.ranking.leaderboard import run_rows
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.errors import JournalError, UsageError
from eyechart.harness.face.options.run_options import RunOptions, models_of
from eyechart.harness.face.options.variant import (
    refuse_other_arguments,
    refuse_variant,
    variant_of,
)
from eyechart.harness.journal.manifest import read_manifest, write_manifest
from eyechart.harness.plan.resolved_model import resolve_model
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.harness.settings.spelling import as_option
from eyechart.providers.base import SetupError
from eyechart.providers.naming import spelled
from tests.conftest import Lab


@pytest.mark.parametrize(
    ("label", "effort", "variant"),
    [("", None, ""), ("fp8", None, "fp8"), ("", "low", "low"), ("fp8", "low", "fp8+low")],
)
def test_the_variant_is_named_after_the_model(label: str, effort: str | None, variant: str) -> None:
    """By the label, the effort, or both; a reasoning effort gives any model room to think."""
    assert variant_of(label, effort) == variant
    model = resolve_model("openai/mine", variant=variant, effort=effort)
    assert model.label == ("openai/mine@" + variant if variant else "openai/mine")
    assert model.facts.effort == effort
    assert bool(model.facts.room_to_think) == (effort is not None)


@pytest.mark.parametrize("label", ["", "a/b", "a,b", "-a", "ü", "a b", "a" * 41])
def test_a_label_that_no_folder_can_have_is_refused(label: str) -> None:
    with pytest.raises(UsageError, match=r"^name must be "):
        RunSettings.read(name=f"@{label}")


def test_two_variants_are_two_runs_in_folders_and_tables(tmp_path: Path) -> None:
    """They never share answers, and each has a row of its own in the leaderboard."""
    asked: Any = {"lengths": [5], "samples": 2, "out": tmp_path}
    one, other = (
        eyechart.run("counting/words", model, name=f"@{label}", **asked)
        for model, label in (("oracle:50", "a"), ("oracle:2", "b"))
    )
    assert one.folder.parts[-4:-2] == ("oracle", "50@a")
    assert (one.model, other.model) == ("oracle/50@a", "oracle/2@b")
    runs = [read_run(run.folder) for run in (one, other)]
    assert [run.manifest.model_name for run in runs] == ["oracle/50", "oracle/2"]
    rows = [row for run in runs for row in run_rows(run)[0]]
    assert [row["model"] for row in rows] == ["oracle/50@a", "oracle/2@b"]
    assert {read_manifest(run.folder).variant for run in runs} == {"a", "b"}


def test_names_that_differ_in_case_alone_share_no_run(tmp_path: Path) -> None:
    """Two folders; and where a file system has one for both, the second is refused by its name."""
    asked: Any = {"lengths": [5], "samples": 2, "out": tmp_path}
    small = eyechart.run("counting/words", "oracle:50", name="@fp8", **asked).folder
    replies = (small / "samples.jsonl").read_bytes()
    folder = tmp_path / "runs" / "oracle" / "50@FP8"
    folder.symlink_to(folder.with_name("50@fp8"))  # as such a file system has it
    with pytest.raises(JournalError, match="does not tell apart from oracle/50@FP8"):
        eyechart.run("counting/words", "oracle:50", name="@FP8", **asked)
    assert (small / "samples.jsonl").read_bytes() == replies
    folder.unlink()
    large = eyechart.run("counting/words", "oracle:50", name="@FP8", **asked).folder
    assert large != small
    assert (small / "samples.jsonl").read_bytes() == replies


def test_one_label_has_one_set_of_server_arguments(tmp_path: Path) -> None:
    """Also where the other run is of another task; a label of its own is another variant."""
    asked: Any = {"lengths": [5], "samples": 2, "out": tmp_path}
    run = eyechart.run("counting/words", "oracle:50", name="@a", **asked)
    manifest = read_manifest(run.folder)
    manifest.server["server_args"] = ["--dtype=bfloat16"]
    write_manifest(run.folder, manifest)
    model = resolve_model("oracle/50", variant="a")
    refuse_other_arguments(tmp_path, model, "a", {"server_args": ["--dtype=bfloat16"]})
    refuse_other_arguments(tmp_path, resolve_model("oracle/50", variant="b"), "b", {})
    with pytest.raises(UsageError, match=r"name='@a': .*--dtype=bfloat16, and this command has no"):
        refuse_other_arguments(tmp_path, model, "a", {})


@pytest.mark.parametrize("model", ["tiny", "oracle:50", "vllm/mine", "scripted/file"])
def test_a_model_that_is_not_asked_for_an_effort_is_said(model: str) -> None:
    """With the command's options, so that a dry run says it too."""
    with pytest.raises(SetupError, match="for thinking, not 'low'"):
        options_of(model, "low")


def options_of(model: str, effort: str, *urls: str) -> RunOptions:
    given = RunSettings.read(model=model, thinking=effort, base_url=urls, out="nowhere")
    (found,) = models_of(given)
    return found


@pytest.mark.parametrize(
    ("effort", "guess"),
    [
        ("banana", "there are on, off, none, minimal, low, medium, high, xhigh, max"),
        ("hihg", "did you mean 'high'?"),
    ],
)
def test_an_effort_that_no_vendor_has_is_refused(effort: str, guess: str) -> None:
    """A server of the user's may have it."""
    for model in ("gpt-5", "anthropic/claude-sonnet-5"):
        with pytest.raises(SetupError, match=f"no effort '{effort}' .*{re.escape(guess)}"):
            options_of(model, effort)
    mine = options_of("mine", effort, "http://127.0.0.1:9/v1")
    assert mine.model.label == f"local/mine@{effort}"
    assert options_of("ollama/mine", effort).settings.effort == effort


@pytest.mark.parametrize("model", ["tiny@fp8", "openai/gpt-5@low", "vllm/a/b@bf16+likelihood"])
def test_a_name_as_it_is_printed_is_no_model(model: str) -> None:
    """The options that make a variant are named, unless it is at the user's server, or a vendor's
    version.
    """
    with pytest.raises(UsageError) as said:
        refuse_variant(model)
    (line,) = said.value.lines
    name, _, variant = model.partition("@")
    assert spelled(line, as_option).endswith(
        f"has the variant @{variant} in its name; write --model {name}, and the variant with "
        "--name, --thinking or --read"
    )
    refuse_variant(model, ["http://127.0.0.1:9/v1"])
    refuse_variant("vertex/claude-sonnet-4@20250514")


def test_each_effort_is_one_run(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--thinking low,high` plans two runs, which a dry run shows."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-one")
    asked = ("--task", "counting/ones", "--model", "gpt-5", "--lengths", "5", "--dry-run")
    done = lab.bench("run", *asked, "--thinking", "low,high")
    assert done.code == 0
    assert "openai/gpt-5@low" in done.out
    assert "openai/gpt-5@high" in done.out
