"""What limits an effective length: models that fail by room, form, refusal, window and by sight."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TypeAlias

import pytest

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.providers.base import (
    BadRequestError,
    PromptOverflowError,
    RefusedError,
    Reply,
    Request,
)
from tests.conftest import Lab, right
from tests.sentences import headline

Said: TypeAlias = Callable[[int, int, str], Reply | str | Exception]
"""Length, index and the right reply -> what the model says."""
CUT_IN_THOUGHT = Reply("", "length", reasoning="One, then a zero, then")
CUT = Reply("First I go through the row: the first symbol is a one, the second", "length")
LOOP = Reply("Count: writes " + "writes 1, " * 30, "length")
BABBLE = "1, 1, 0, 1, 4, 7, 1, 1, 22, 1, 1, 0, 3"
WRONG = "Final answer: 9999"


def number(right_one: str) -> int:
    return int(right_one.rpartition(" ")[2])


def beyond(last: int, other: Reply | str | Exception, share: int = 1) -> Said:
    """Right up to a length, and beyond it `other` for one index in `share`."""
    return lambda length, index, right_one: (
        other if length > last and index % share == 0 else right_one
    )


def both(length: int, index: int, right_one: str) -> Reply | str | Exception:
    """Refuses one half beyond 20, and is cut off in the other."""
    return right_one if length <= 20 else (RefusedError("no"), CUT_IN_THOUGHT)[index % 2]


def refusing_once(length: int, index: int, right_one: str) -> Reply | str | Exception:
    """Sees to 20."""
    refuses = (length, index) == (10, 3)
    return RefusedError("no") if refuses else beyond(20, WRONG)(length, index, right_one)


def babbling(length: int, index: int, right_one: str) -> str:
    """Sees to 20; beyond, one answer in five can be read, and is wrong."""
    return right_one if length <= 20 else WRONG if index % 5 == 0 else BABBLE


def cut_then_wrong(length: int, index: int, right_one: str) -> str | Reply:
    """Is cut off between 20 and 50, and wrong beyond."""
    return WRONG if length > 50 else right_one if length <= 20 or index % 2 else CUT


def hedging(_: int, __: int, right_one: str) -> str:
    return f"It could be {number(right_one)} or {number(right_one) + 1}."


def lapsing(length: int, index: int, right_one: str) -> str:
    """Sees to 50; one reply in twelve is unreadable."""
    if length > 50:
        return WRONG
    return "I counted them." if (length + index) % 12 == 0 else right_one


MODELS: Mapping[str, tuple[Said, str, str]] = {
    "sees to 20": (beyond(20, WRONG), "sight", "="),
    "sees nothing": (beyond(0, WRONG), "sight", "<"),
    "sees all": (beyond(999, WRONG), "lengths", ">"),
    "babbles where it is blind": (babbling, "sight", "="),
    "is unreadable and never wrong": (beyond(20, BABBLE), "form", ">"),
    "loops where it is blind": (beyond(20, LOOP), "sight", "="),
    "a few unreadable": (lapsing, "sight", "="),
    "one refusal": (refusing_once, "sight", "="),
    "thinks too long": (beyond(20, CUT_IN_THOUGHT), "room", ">"),
    "thinks too long at once": (beyond(0, CUT_IN_THOUGHT), "room", ""),
    "reasons in the open": (beyond(20, CUT), "room", ">"),
    "half cut off": (beyond(20, CUT_IN_THOUGHT, 2), "room", ">"),
    "hedges": (hedging, "form", ""),
    "says nothing": (beyond(0, ""), "form", ""),
    "says no number": (beyond(0, "I counted them.", 2), "form", ""),
    "names two numbers": (
        lambda length, _, right_one: json.dumps({"ones": number(right_one), "symbols": length}),
        "form",
        "",
    ),
    "refuses long rows": (beyond(20, RefusedError("no")), "refusal", ">"),
    "refuses half": (beyond(0, RefusedError("no"), 2), "refusal", ""),
    "refuses a few": (beyond(0, RefusedError("no"), 6), "refusal", ""),
    "small window": (beyond(50, PromptOverflowError("too long")), "window", ">"),
    "no window": (beyond(0, PromptOverflowError("too long")), "window", ""),
    "is cut off, then wrong": (cut_then_wrong, "room", ">"),
    "refuses and is cut off": (both, "mixed", ">"),
}
"""Model -> what it says, what limits it, and the sign of its length; empty where it is not known.
"""


def ask(lab: Lab, said: Said, name: str = "model") -> str:
    """What a run of the model prints."""

    def reply(request: Request) -> Reply | str:
        values = dict(part.split("=") for part in request.sample_id.split("|") if "=" in part)
        row = request.prompt.splitlines()[-1]
        found = said(len(row.replace(",", "")), int(values["index"]), right(request))
        if isinstance(found, Exception):
            raise found
        return found

    options = "--lengths", "5,10,20,50,100", "--samples", "20", "--axis", "separator=comma"
    done = lab.bench_run(
        *("--model", lab.fake(reply).replace("model", name), *options),
        *("--max-tokens", "64", "--keep-going"),
    )
    assert done.code == 0, done
    return done.out


def test_where_longer_rows_fail_by_sight_an_upper_bound_is_known(lab: Lab) -> None:
    """Between 20 and 50 nothing shows how far it sees; beyond, every answer is wrong."""
    ask(lab, cut_then_wrong)
    run = read_run(lab.the_run())
    (judged,) = run.conditions.values()
    found = judged.effective_length()
    assert found is not None
    low, high = found.length_ci
    assert (low.sign, high.sign) == ("=", "=")
    assert 10 <= low.length <= 20
    assert 50 <= high.length <= 100
    bounds = f"it is right to at least {low} symbols and to at most {high} symbols."
    assert headline(run).endswith(bounds)


@pytest.mark.parametrize("name", MODELS)
def test_what_limits_each_of_many_models(lab: Lab, name: str) -> None:
    """The cause is named, and a length is a number only where it is the model's sight."""
    said, by, sign = MODELS[name]
    printed = " ".join(ask(lab, said).split())
    run = read_run(lab.the_run())
    (judged,) = run.conditions.values()
    found = judged.effective_length()
    assert found is not None
    assert (found.limit.by, "" if found.length is None else found.length.sign) == (by, sign)
    assert found.is_ranked == (by in ("sight", "lengths"))
    finding = headline(run)
    assert " ".join(finding.split()) in printed
    assert ("It is not known how far" in finding) == (not found.is_ranked)
    assert (" Remedy: " in printed) == (not found.is_ranked)
    assert ("limited by" in printed) == (not found.is_ranked)


def test_the_fact_has_numbers(lab: Lab) -> None:
    """How many failed for which cause, and what is known all the same."""
    assert "all 40 failing replies were cut off; it is right to at least 20 symbols" in " ".join(
        ask(lab, beyond(20, CUT_IN_THOUGHT)).split()
    )


def test_no_reply_to_longer_rows_is_no_sight(lab: Lab) -> None:
    """The longest line with a reply is not the longest one that was asked."""

    def reply(request: Request) -> str:
        values = dict(part.split("=") for part in request.sample_id.split("|") if "=" in part)
        if int(values["length"]) > 20:
            raise BadRequestError("boom")
        return right(request)

    asked = ("--lengths", "5,10,20,50,100", "--samples", "10", "--axis", "separator=comma")
    done = lab.bench_run("--model", lab.fake(reply), *asked)
    assert done.code == 1
    note = "20 of the longer rows got no reply; it is right to at least"
    assert note in " ".join(done.out.split())
    (judged,) = read_run(lab.the_run()).conditions.values()
    found = judged.effective_length()
    assert found is not None
    assert (found.limit.by, found.is_ranked) == ("error", False)
    assert "bench samples --outcome error" in " ".join(found.limit.remedies)


def test_only_sight_is_ranked_and_compared(lab: Lab) -> None:
    """Of two models that fail on the same rows, one by sight and one by room, none is worse."""
    folders = []
    for name, other in (("sees", WRONG), ("thinks", CUT_IN_THOUGHT)):
        ask(lab, beyond(20, other), name)
        folders.append(next((lab.out / "runs" / "fake" / name).rglob("manifest.json")).parent)
    compared = lab.bench("compare", *folders)
    said = " ".join(compared.out.split())
    assert "fake/sees and fake/thinks cannot be compared" in said
    assert "fake/thinks is limited by room (all 40 failing replies were cut off)" in said
    assert "is worse than" not in said
    (document,) = json.loads(lab.bench("compare", *folders, "--json").out)["pairs"]
    assert [document[f"limited_by_{side}"] for side in ("first", "second")] == ["sight", "room"]
    assert (document["factor"], document["second_is"]) == (None, "undecided")
    ranks = lab.bench("leaderboard", *folders, "-o", lab.out / "board.csv").out
    rows = [[cell.strip() for cell in line.split("|")] for line in ranks.splitlines()]
    assert ["1", "fake/sees", "28 (20–50)"] in [row[1:4] for row in rows]
    assert ["–", "fake/thinks", "> 20 (20 to > 100)†"] in [row[1:4] for row in rows]
    note = (
        "It is not known how far fake/thinks counts exactly on lab/ones: all 40 "
        "failing replies were cut "
        "off; it is right to at least 20 symbols. Remedy: give"
    )
    assert note in " ".join(ranks.split())
    page = (lab.out / "board.html").read_text()
    assert note in page
    assert "limited by room" in page
