"""Remedies: each is said only where it can help."""

from __future__ import annotations

from typing import Any

import pytest

from eyechart.harness.analysis.samples.remedies import ReplyRemedies, context_of
from eyechart.harness.journal.record import Record
from eyechart.harness.plan.resolved_model import resolve_model
from eyechart.harness.score.outcomes import Cause
from eyechart.harness.spec import Settings
from eyechart.providers.naming import in_python
from tests.test_plan_estimate import planned
from tests.test_run_room import record

MODEL = resolve_model("vllm/m")
SHORTER = (
    "ask for shorter rows with lengths, or use a larger window: a reply has at most 900 tokens"
)
ENDLESS = (
    "look at the replies ('bench samples'): some were asked with up to 18,000 tokens, "
    "and did not end"
)


def cut(tokens: int, asked: int, **fields: Any) -> Record:
    """A record of a reply that was cut off after so many of the tokens asked for."""
    fields = {"prompt_tokens": 100, "output_tokens": tokens, "max_tokens": asked, **fields}
    return record("1 2 3", cut=True, **fields)


def said(
    cause: Cause,
    *records: Record,
    settings: dict[str, Any] | None = None,
    window: int | None = None,
    context: str = "",
) -> str:
    """The remedy for one cause, as Python's messages spell it."""
    server = {} if window is None else {"max_model_len": window}
    found = ReplyRemedies(MODEL, Settings(**settings or {}), server, context).of([cause], records)
    return in_python(" / ".join(found))


@pytest.mark.parametrize(
    ("records", "settings", "window", "remedy"),
    [
        ([cut(288, 288)], {}, None, "give replies more tokens with max_tokens"),
        ([], {}, None, "give replies more tokens with max_tokens"),
        (
            [cut(288, 288, reasoning="hm")],
            {},
            None,
            "give replies more tokens with max_tokens, or give less to think with thinking",
        ),
        (
            [cut(288, 288, reasoning="hm")],
            {"thinking": "off"},
            None,
            "give replies more tokens with max_tokens",
        ),
        (
            [cut(64, 288), cut(64, 288)],
            {},
            None,
            "raise the server's own limit, which ended replies at about 64 of 288 tokens asked",
        ),
        (
            [cut(900, 900)],
            {},
            1000,
            SHORTER,
        ),
        ([cut(900, 900)], {}, 4000, "give replies more tokens with max_tokens"),
        (
            [cut(18_000, 18_000, cut_off=3)],
            {},
            None,
            ENDLESS,
        ),
        (
            [record("1 2 3", output_tokens=18_000, max_tokens=18_000, cut_off=3)],
            {},
            None,
            ENDLESS,
        ),
        (
            [cut(18_000, 18_000, cut_off=3, reasoning="hm")],
            {},
            None,
            "give replies more tokens with max_tokens, or give less to think with thinking",
        ),
    ],
)
def test_replies_that_were_cut_off(
    records: list[Record], settings: dict[str, object], window: int | None, remedy: str
) -> None:
    """More tokens are named only where they are to be had, less thinking only where it thinks."""
    assert said(Cause.ROOM, *records, settings=settings, window=window) == remedy


def test_other_causes_depend_on_the_settings() -> None:
    """What a setting has already is not recommended."""
    base = "a base model wants api='completions'"
    assert base in said(Cause.FORM, settings={"api": "chat"})
    assert base not in said(Cause.FORM, settings={"api": "completions"})
    assert "max_tokens" not in said(Cause.WINDOW)
    assert "fewer tokens with max_tokens" in said(Cause.WINDOW, settings={"max_tokens": 900})
    assert said(Cause.SIGHT) == ""


def test_a_prompt_of_mostly_other_text_needs_less_of_it() -> None:
    """Where the axis adds nothing, shorter rows help."""
    smaller = "ask for a smaller value of the axis context with axes, or use a larger window"
    assert said(Cause.WINDOW, context="context") == smaller
    assert said(Cause.ROOM, cut(900, 900), window=1000, context="context").startswith(smaller)
    for task, expected in (("context/ones", ["", "context"]), ("counting/ones", ["", ""])):
        plan = planned(task)
        found = {context_of(plan.task.spec, one) for one in plan.conditions}
        assert sorted(found) == sorted(set(expected))
