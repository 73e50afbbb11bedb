"""The options of `bench run`: checked once, together with the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eyechart.harness.errors import UsageError
from eyechart.harness.face.options import run_options
from eyechart.harness.face.options.run_options import RunOptions, models_of
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.harness.spec import Settings
from eyechart.harness.study.spec import STUDY
from eyechart.providers.base import SetupError


def options(**given: Any) -> RunOptions:
    (found,) = models_of(RunSettings.read(**{"model": "gpt-4o", "out": "nowhere", **given}))
    return found


@pytest.fixture(autouse=True)
def _with_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits as users have them."""
    monkeypatch.setattr(run_options, "RunLimits", RunLimits)


def test_what_is_given_is_what_is_asked() -> None:
    """The limits, the settings and the model's facts are values by then."""
    read = options(
        seed=3,
        max_tokens=17,
        api="completions",
        system="",
        max_connections=5,
        rpm=6.0,
        budget=2.5,
    )
    assert read.settings == Settings(seed=3, max_tokens=17, api="completions")
    assert read.limits == RunLimits(max_connections=5, rpm=6.0)
    assert read.model.label == "openai/gpt-4o"
    assert read.model.prices is not None
    assert read.given.budget == 2.5
    assert read.model_settings().api == "completions"


def test_no_temperature_may_be_sent() -> None:
    """By its word at every door, also in a study's file, and by Python's `None`."""
    study = {"name": "s", "title": "s", "tasks": ["counting"], "temperature": "none"}
    of_study = STUDY.model_validate(study).settings
    for given in ({"temperature": "none"}, {"temperature": None}, of_study):
        read = options(**given)
        assert read.settings == Settings(temperature=None)
        assert read.model_settings().temperature is None


def test_the_default_is_that_of_the_limits() -> None:
    """A command without options tries as hard as the engine does by itself."""
    assert options().limits == RunLimits()
    assert options().settings == Settings()


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"model": "gpt-\udcff"}, "model"),
        ({"base_url": ["http://\udcff"]}, "base_url"),
        ({"model_args": ["\udcff"]}, "model_args"),
        ({"rpm": 0.0}, "rpm must be a number above 0"),
        ({"tpm": float("nan")}, "tpm must be a number above 0"),
        ({"budget": float("inf")}, "budget must be a number above 0"),
        ({"tier": "batch", "rpm": 1.0}, "rpm does not go together with tier='batch': it is"),
        ({"draws": 2, "reading": "likelihood"}, "does not go together with draws=2"),
        ({"draws": 1001}, "draws must be a whole number from 1 to 1,000"),
        ({"precision": 1.0}, "precision needs adaptive=True; add it"),
        ({"max_requests": 5}, "max_requests needs adaptive=True; add it"),
        (
            {"adaptive": True, "precision": 2.5},
            "precision must be a number from 0.4 to 1 oct",
        ),
        ({"model": "groq/nobody-knows-it", "budget": 1.0}, "budget needs the prices"),
        ({"out": Path(__file__) / "below"}, "is not a folder"),
        ({"tier": "priority"}, "tier must be default, flex or batch, not 'priority'"),
        ({"tier": "batch", "tpm": 5.0}, "tpm does not go together with tier='batch'"),
    ],
    ids=str,
)
def test_what_no_run_can_have(given: dict[str, Any], word: str) -> None:
    """Is said before anything is opened."""
    with pytest.raises(UsageError, match=word):
        options(**given)


@pytest.mark.parametrize(
    ("model", "tier", "word"),
    [
        ("tiny", "flex", "tiny is not asked in a tier 'flex'; leave out tier"),
        ("vllm/m", "default", "leave out tier"),
        ("deepseek/deepseek-v4-pro", "flex", "leave out tier"),
        ("anthropic/claude-sonnet-5", "flex", "'flex'; it has default; leave out tier"),
        ("anthropic/claude-sonnet-5", "batch", "tier='batch' is for openai"),
    ],
)
def test_a_tier_that_the_vendor_lacks(model: str, tier: str, word: str) -> None:
    """Is refused in a line, before anything is opened."""
    with pytest.raises(SetupError, match=word):
        options(model=model, tier=tier)


def test_a_tier_is_sent_and_paid_for() -> None:
    """A batch is one as well; none is asked of a server of the user's."""
    flex, batch = (options(model="gpt-5-mini", tier=tier) for tier in ("flex", "batch"))
    assert (flex.model_settings().tier, flex.given.is_batch) == ("flex", False)
    assert (batch.model_settings().tier, batch.given.is_batch) == (None, True)
    assert [str(one.model.prices).split()[1] for one in (flex, batch)] == ["flex", "batch"]
    assert not options(model="gpt-4o", tier="flex").model.has_tier_price
    with pytest.raises(SetupError, match="leave out tier"):
        options(model="gpt-5-mini", tier="flex", base_url=["http://127.0.0.1:9/v1"])


def test_no_batch_api() -> None:
    """A provider without one is named before anything is opened."""
    with pytest.raises(SetupError, match="tier='batch'"):
        options(model="tiny", tier="batch")


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"temperature": float("nan")}, "temperature"),
        ({"seed": 2**63}, "seed"),
        ({"api": "chatty"}, "api"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"system": "\udcff"}, "system"),
    ],
    ids=str,
)
def test_settings_that_no_run_can_have(given: dict[str, Any], word: str) -> None:
    """Each is named."""
    with pytest.raises(UsageError, match=word):
        RunSettings.read(**given)
