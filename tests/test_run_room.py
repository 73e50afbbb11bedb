"""How many tokens replies get: models that think are noticed by their replies."""

from __future__ import annotations

import asyncio
import base64
import csv
import gzip
import json
import re
from random import choices
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from msgspec.structs import replace

from eyechart.harness.analysis.samples.details import RunDetails, read_details
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.journal.record import Record
from eyechart.harness.journal.thoughts import shows_thinking
from eyechart.harness.plan.cost import Budget, whole_cost
from eyechart.harness.report.page.cut_texts import cut_detail
from eyechart.harness.report.page.packed_samples import FIELDS, pack_samples
from eyechart.harness.run.engine import RunEngine
from eyechart.harness.run.first_replies import FirstRepliesError
from eyechart.harness.run.records import answered
from eyechart.harness.run.room import FIRST_ROOM, MOST, Room
from eyechart.harness.spec import Condition, Line, Sample, Settings
from eyechart.providers.base import (
    BadRequestError,
    FinishReason,
    Reply,
    Request,
    ScoredOption,
    ServerFaultError,
    Usage,
)
from eyechart.providers.catalog.price_list import offer
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import asking_of, records, right

if TYPE_CHECKING:
    from tests.conftest import Lab

THOUGHT = 3000
"""Tokens of each thought."""


def record(reply: str = "7", *, cut: bool = False, **fields: Any) -> Record:
    """A record of a reply."""
    finish = "length" if cut else "stop"
    return Record(
        id=fields.pop("id", "a"),
        condition=Condition(),
        length=3,
        index=0,
        target=7,
        prompt_hash="1",
        reply=reply,
        finish_reason=finish,
        **fields,
    )


class Thinker:
    """Answers after so many tokens of thinking, which are beside the text, in tags, or in a text
    whose opening tag is in the prompt.
    """

    def __init__(self, form: str, thought: int = THOUGHT) -> None:
        self.form, self.thought = form, thought
        self.given: list[int] = []
        self.spent = 0

    def __call__(self, request: Request) -> Reply:
        needed = self.thought + 20
        self.given.append(request.max_tokens)
        spent = min(request.max_tokens, needed)
        self.spent += spent
        is_whole = spent == needed
        answer = right(request) if is_whole else ""
        thoughts = "".join(choices(("hm ", "so "), k=min(spent, self.thought)))
        text = {
            "field": answer,
            "tags": f"<think>{thoughts}</think>{answer}" if is_whole else f"<think>{thoughts}",
            "closing tag": f"{thoughts}</think>{answer}" if is_whole else thoughts,
            "none": "I see " * spent,
        }[self.form]
        return Reply(
            text,
            "stop" if is_whole and self.form != "none" else "length",
            usage=Usage(10, spent),
            reasoning=thoughts if self.form == "field" else None,
        )


def engine(lab: Lab, thinker: Thinker, **wanted: Any) -> RunEngine:
    """A run of 40 samples of which the first six are asked before the others."""
    request = lab.wanted(samples=10, **wanted)
    return RunEngine(asking_of([request], said=lab.said.append), ScriptedProvider(thinker))


@pytest.mark.parametrize("finish", ["stop", None])
def test_a_server_that_does_not_say_length(lab: Lab, finish: FinishReason | None) -> None:
    """A reply with exactly as many tokens as were asked for was cut off, and is asked again."""
    thinker = Thinker("field")

    def says(request: Request) -> Reply:
        return replace(thinker(request), finish_reason=finish)

    request = lab.wanted(samples=10)
    provider = ScriptedProvider(says)
    asyncio.run(RunEngine(asking_of([request], said=lab.said.append), provider).run())
    judged = read_run(request.folder)
    assert judged.cells["correct"].sum() == len(records(request.folder)) == 40
    assert {one["finish_reason"] for one in records(request.folder)} == {finish}


@pytest.mark.parametrize("finish", ["stop", None])
def test_such_a_reply_is_judged_as_cut_off(lab: Lab, finish: FinishReason | None) -> None:
    """Not by a number on the way, unless the answer is there and whole."""
    texts = iter(["So far I have counted 1", "Final answer: 1", "Final answer: 1\nI counted"] * 6)

    def says(request: Request) -> Reply:
        return Reply(next(texts), finish, Usage(10, request.max_tokens))

    request = lab.wanted(samples=6, lengths=[3], settings=Settings(max_tokens=17))
    asyncio.run(RunEngine(asking_of([request]), ScriptedProvider(says)).run())
    judged = read_run(request.folder)
    assert [judged.cells[name].sum() for name in ("truncated", "unparsed")] == [8, 0]
    assert {one["max_tokens"] for one in records(request.folder)} == {17}


@pytest.mark.parametrize(
    ("reply", "is_cut"),
    [
        (Reply("7", "stop", Usage(9, 17)), True),
        (Reply("7", None, Usage(9, 17)), True),
        (Reply("7", "length", Usage(9, 16)), True),
        (Reply("7", "length"), True),
        (Reply("7", "stop", Usage(9, 16)), False),
        (Reply("7", "stop", Usage(9, 18)), False),  # the server counts otherwise
        (Reply("7", "stop"), False),
        (Reply("7", "content_filter", Usage(9, 17)), False),
        (Reply("7", "other", Usage(9, 17)), True),
        (Reply("7", "other", Usage(9, 17), sure_stop=True), True),
        (Reply("7", "other", Usage(9, 16)), False),
        (Reply("7", "stop", Usage(9, 17), sure_stop=True), False),
        (Reply("7", None, Usage(9, 17), sure_stop=True), True),
        (Reply("7", "stop", Usage(9, 17), options=(ScoredOption("7", -1.0, 17),) * 2), False),
    ],
)
def test_what_is_cut_off(reply: Reply, is_cut: bool) -> None:
    """A reply with all of its tokens; only of such a one the limit is kept."""
    line = Line.exact(3)
    sample = Sample("a", Condition(), line, 3, 0, "How many?", 7)
    made = answered(sample, reply, attempts=1, latency_s=None, max_tokens=17)
    assert made.is_cut_off is is_cut
    assert made.max_tokens == (17 if is_cut else None)
    unlimited = answered(sample, reply, attempts=1, latency_s=None)
    assert unlimited.is_cut_off is (reply.finish_reason == "length")


@pytest.mark.parametrize("form", ["field", "tags", "closing tag"])
def test_a_model_that_thinks_gets_its_room(lab: Lab, form: str) -> None:
    """Without being told: every sample is answered, and hardly anything is paid twice."""
    thinker = Thinker(form)
    asyncio.run(engine(lab, thinker).run())
    kept = records(lab.wanted().folder)
    assert len(kept) == 40
    assert {one["finish_reason"] for one in kept} == {"stop"}
    assert thinker.spent < 1.3 * 40 * (THOUGHT + 20)
    assert max(thinker.given) < 10 * THOUGHT


def test_what_was_cut_off_is_paid_for(lab: Lab) -> None:
    """The record has the tokens of the replies before it, and its cost has them too."""
    asyncio.run(engine(lab, Thinker("field")).run())
    again = [one for one in records(lab.wanted().folder) if "cut_off" in one]
    assert again
    for one in again:
        assert one["attempts"] == one["cut_off"] + 1
        assert one["cut_output_tokens"] >= one["cut_off"]
        assert one["cut_prompt_tokens"] == 10 * one["cut_off"]
    prices = offer("openai", "gpt-4o").prices
    assert prices is not None
    cut: dict[str, Any] = {"cut_prompt_tokens": 10, "cut_output_tokens": 1000}
    cheap = whole_cost(prices, record(prompt_tokens=10, output_tokens=9))
    dear = whole_cost(prices, record(prompt_tokens=10, output_tokens=9, **cut))
    assert cheap is not None
    assert dear is not None
    assert dear > 10 * cheap


def test_a_model_that_talks_on_is_tried_twice(lab: Lab) -> None:
    """Its replies never end, so only two samples get more tokens, at most three times each."""
    thinker = Thinker("none", 10**9)
    asyncio.run(engine(lab, thinker).run())
    first = min(thinker.given)
    assert sum(given > first for given in thinker.given) <= 6
    assert len(records(lab.wanted().folder)) == 40


def test_the_users_limit_holds(lab: Lab) -> None:
    """It is the limit of the whole reply, also of one that is cut off in its thoughts."""
    thinker = Thinker("field")
    asyncio.run(engine(lab, thinker, settings=Settings(max_tokens=17)).run())
    assert set(thinker.given) == {17}


def test_the_users_limit_has_the_thinking_in_it(lab: Lab) -> None:
    """A dry run forecasts no more for a reply than a request asks for."""
    most = []
    for model in ("openai/o3", "openai/gpt-4o"):
        arguments = ("--model", model, "--max-tokens", "500", "--dry-run", "--json")
        done = lab.bench_run(*arguments)
        assert done.code == 0, done.err
        most.append(orjson.loads(done.out)["runs"][0]["most_output_tokens"])
    assert most == [500 * 16] * 2


def test_a_window_bounds_it() -> None:
    """A sample is asked again only for what is left, and at most three use up all of it."""
    room = Room(window=1000)
    short, long = (
        record("", cut=True, reasoning="hm", prompt_tokens=100, output_tokens=spent)
        for spent in (300, 900)
    )
    assert room.more(short, 300) == 900
    assert room.tokens("x" * 100, 50) == 900
    assert [room.more(long, 900) for _ in range(3)] == [None] * 3
    assert room.more(short, 300) is None


def test_whole_replies_between_do_not_reset_the_limit() -> None:
    """Short rows end and long ones never do, in turn: three long ones are paid for in full."""
    room = Room(window=1000)
    endless = record("", cut=True, reasoning="hm", prompt_tokens=100, output_tokens=900)
    for _ in range(3):
        assert room.more(endless, 900) is None
        room.note(record(reasoning="hm", output_tokens=30), 300)
    again = record("", cut=True, reasoning="hm", prompt_tokens=100, output_tokens=300)
    assert room.more(again, 300) is None


def test_a_servers_own_limit_is_noticed() -> None:
    """A reply that ended far below the tokens it was given is not asked again."""
    limited = record("", cut=True, reasoning="hm", output_tokens=100, max_tokens=300)
    assert Room().more(limited, 300) is None


def test_below_what_a_server_refuses_the_middle_is_asked(lab: Lab) -> None:
    """This is repeated until the thoughts have room, or both numbers are nearly equal. The user is
    told once.
    """
    thinker = Thinker("field", 1000)

    def limited(request: Request) -> Reply:
        if request.max_tokens > 4096:
            raise BadRequestError("max_tokens is too large")
        return thinker(request)

    asking = asking_of([lab.wanted(samples=10)], said=lab.said.append)
    asyncio.run(RunEngine(asking, ScriptedProvider(limited)).run())
    kept = records(lab.wanted().folder)
    assert [one["finish_reason"] for one in kept] == ["stop"] * 40
    assert max(thinker.given) <= 4096
    assert sum("does not take" in line for line in lab.said) == 1


def test_thoughts_without_end_are_followed_in_three_samples(lab: Lab) -> None:
    """However many are asked at the same time."""
    thinker = Thinker("field", 10**9)
    asyncio.run(engine(lab, thinker).run())
    assert thinker.given.count(MOST) == 3
    assert len(records(lab.wanted().folder)) == 40


def test_where_the_budget_ends_a_cut_off_reply_is_kept(lab: Lab) -> None:
    """It was paid for, so it is the sample's result."""
    prices = offer("openai", "gpt-4o").prices
    thinker = Thinker("field", 10**9)
    budget = Budget(prices, limit=0.05)
    asking = asking_of([lab.wanted(samples=10)], budget=budget, said=lab.said.append)
    asyncio.run(RunEngine(asking, ScriptedProvider(thinker)).run())
    kept = records(lab.wanted().folder)
    assert kept
    paid = sum(one["output_tokens"] + one.get("cut_output_tokens", 0) for one in kept)
    assert paid == thinker.spent


def test_a_continued_run_knows_that_its_model_thinks(lab: Lab) -> None:
    """So do runs of other tasks: their first replies have room. Otherwise asked, it may not."""
    asyncio.run(engine(lab, Thinker("field")).run())
    for request in (
        lab.wanted(samples=20),
        lab.wanted(lab.plain),
        lab.wanted(settings=Settings(seed=1)),
    ):
        thinker = Thinker("field")
        asking = asking_of([request], said=lab.said.append)
        asyncio.run(RunEngine(asking, ScriptedProvider(thinker)).run())
        assert thinker.spent == len(thinker.given) * (THOUGHT + 20) > 0
    thinker = Thinker("field")
    asyncio.run(engine(lab, thinker, settings=Settings(params={"top_p": 0.5})).run())
    assert min(thinker.given) < THOUGHT


def test_a_continued_run_follows_no_endless_thoughts(lab: Lab) -> None:
    """Three samples used up all the room there is, so the others are asked once."""
    asyncio.run(engine(lab, Thinker("field", 10**9)).run())
    thinker = Thinker("field", 10**9)
    request = lab.wanted(samples=20)
    asking = asking_of([request], said=lab.said.append)
    asyncio.run(RunEngine(asking, ScriptedProvider(thinker)).run())
    assert len(thinker.given) == 40
    assert max(thinker.given) < 2 * FIRST_ROOM


def test_the_length_of_thoughts_is_shown(lab: Lab) -> None:
    """In tokens where the provider counts them, else in characters, with those in the text."""

    def answer(request: Request) -> Reply:
        if "separator=none" in request.sample_id:
            usage = Usage(10, 130, thought_tokens=100 + 20 * ("index=0" in request.sample_id))
            return Reply(right(request), usage=usage, reasoning="hm")
        thoughts = "h m" * 9000
        uncounted = Usage(10, 130, thought_tokens=0)  # as some servers say it
        return Reply(f"<think>{thoughts}</think>{right(request)}", usage=uncounted)

    lab.bench_run("--model", lab.fake(answer), "--samples", "2")
    folder = lab.the_run()
    with (folder / "table.csv").open() as file:
        cells = list(csv.DictReader(file))
    assert [cell["thinking_tokens"] for cell in cells] == ["110.0", "110.0", "", ""]
    shown = lab.bench("samples", folder, "--limit", "0").out
    assert shown.count("  thinking 120 tokens\n") == shown.count("  thinking 100 tokens\n") == 2
    assert shown.count("  thinking 27,015 characters\n") == 4
    details = read_details(read_run(folder), cut_detail)
    on_page = {
        dict(zip(FIELDS, texts, strict=True))["thinking"]
        for chunk in pack_samples([("", RunDetails(read_run(folder), details, ""))]).chunks
        for texts in json.loads(gzip.decompress(base64.b64decode(chunk)))
    }
    assert on_page == {"120 tokens", "100 tokens", "27,015 characters"}


class TestForecast:
    """A dry run says what thinking may cost."""

    def forecast(self, lab: Lab, *more: str) -> tuple[dict[str, Any], str]:
        """The run as JSON, and the line about thinking."""
        arguments = ("--samples", "10", "--dry-run", *more)
        (run,) = orjson.loads(lab.bench_run(*arguments, "--json").out)["runs"]
        out = lab.bench_run(*arguments).out
        return run, "".join(re.findall(r"^  thinking +(.*)$", out, re.MULTILINE))

    def test_of_a_model_that_was_seen_to_think(self, lab: Lab) -> None:
        """From its earlier replies; and no replies cost more than the most that it says."""
        name = lab.fake(Thinker("field"))
        assert lab.bench_ask("--model", name, "--samples", "2").code == 0
        run, line = self.forecast(lab, "--model", name)
        assert line.startswith("usually 3,01")
        assert "the mean of 8 earlier replies); at most 131,072 with the answer" in line
        assert run["thinking"]["seen"] == 8
        assert run["output_tokens"] == pytest.approx(32 * (THOUGHT + 20), rel=0.01)
        endless = Thinker("field", 10**9)
        lab.fake(endless)
        lab.bench_ask("--model", name, "--samples", "10", "--fresh", "--keep-going")
        assert endless.spent <= run["most_output_tokens"]

    def test_of_a_model_that_is_listed(self, lab: Lab) -> None:
        """By an assumption, up to the longest reply of its vendor; a limit of the user's holds."""
        run, line = self.forecast(lab, "--model", "openai/o3")
        assert line.startswith("usually 1,024 tokens a reply (assumed); at most 100,000")
        assert run["most_output_tokens"] > 40 * 100_000
        assert run["most_dollars"] > run["dollars"] > 0
        run, line = self.forecast(lab, "--model", "openai/o3", "--max-tokens", "500")
        assert line == "usually 500 tokens a reply (assumed); at most 500 with the answer"
        assert run["most_output_tokens"] == 40 * 500

    def test_of_others(self, lab: Lab) -> None:
        """One line says that it is not counted, unless the model is known to answer at once."""
        run, line = self.forecast(lab, "--model", "q", "--base-url", "http://127.0.0.1:9/v1")
        assert line.startswith("not counted; ")
        assert run["thinking"] is None
        for model in ("openai/gpt-4o", "tiny"):
            assert self.forecast(lab, "--model", model)[1] == ""


@pytest.mark.parametrize(
    ("kept", "thinks"),
    [
        (record(reasoning="hm"), True),
        (record(thought_tokens=3, output_tokens=9), True),
        (record("<think>hm</think> 7"), True),
        (record("hm </think> 7"), True),
        (record("", cut=True), True),
        (record(""), False),
        (record("7", cut=True), False),
        (record("7"), False),
    ],
)
def test_signs_of_thinking(kept: Record, thinks: bool) -> None:
    """Thoughts in the text or beside it, tokens of them, or nothing but used-up tokens."""
    assert shows_thinking(kept) is thinks


class TestFirstReplies:
    """The first replies decide whether the rest is paid for."""

    @pytest.mark.parametrize(
        ("reply", "cause", "remedy"),
        [
            (Reply("I like rows."), "6 not readable", "--outcome unparsed"),
            (Reply("I'm sorry, I can't help with that."), "6 refused", "change the prompt"),
            (Reply(""), "6 not readable", "have no text"),
            (Reply("7", "length"), "6 cut off", "and did not end"),
        ],
    )
    def test_a_run_stops_with_cause_and_remedy(
        self, lab: Lab, reply: Reply, cause: str, remedy: str
    ) -> None:
        """After six requests of a hundred, with exit code 1; --keep-going asks on."""
        name = lab.fake(lambda _request: reply)
        arguments = ("--model", name, "--samples", "25")
        done = lab.bench_run(*arguments)
        assert done.code == 1
        assert f"none of the first 6 replies has an answer that can be read: {cause}" in done.err
        assert len(re.findall(r"^  separator=\w+ at length 3: ", done.err, re.MULTILINE)) == 3
        assert remedy in done.err
        assert len(records(lab.wanted(samples=25, model=name).folder)) == 6
        again = lab.bench_run(*arguments)
        assert (again.code, "an earlier command stopped the run" in again.err) == (1, True)
        assert len(records(lab.wanted(samples=25, model=name).folder)) == 6
        more = lab.bench_run(*arguments, "--keep-going")
        assert more.code == 0
        folder = lab.wanted(samples=25, model=name).folder
        assert len(records(folder)) == 100

    @pytest.mark.parametrize(
        ("error", "requests", "remedy"),
        [
            (BadRequestError("400: no template"), 6, "--param"),
            (BadRequestError("400: temperature: 0 to 1"), 6, "such as --temperature none, "),
            (BadRequestError("400: bad top_p"), 6, "such as --param top_p=…, "),
            (ServerFaultError("500: oops"), 8, "--base-url"),
        ],
    )
    def test_a_run_without_any_reply_stops(
        self, lab: Lab, error: Exception, requests: int, remedy: str
    ) -> None:
        """After the first samples of the first run; the same command asks them again."""
        asked: list[str] = []
        works = False

        def answer(request: Request) -> Any:
            asked.append(request.sample_id)
            return right(request) if works else error

        tasks = f"{lab.ones},{lab.plain}"
        arguments = ("--model", lab.fake(answer), "--samples", "25", "--task", tasks)
        done = lab.bench_run(*arguments)
        assert done.code == 1
        assert "lab/ones: none of the first 6 samples got a reply" in done.err
        assert f"  6 times: {error}" in done.err
        assert remedy in done.err
        assert len(asked) == requests
        works = True
        assert lab.bench_run(*arguments).code == 0

    def test_a_servers_own_limit_is_named(self, lab: Lab) -> None:
        """More tokens from here would not help."""
        thoughtful = Reply("", "length", usage=Usage(9, 100), reasoning="hm")
        done = lab.bench_run("--model", lab.fake(lambda _request: thoughtful), "--samples", "25")
        assert done.code == 1
        assert "the server's own limit, which ended replies at about 100 of " in done.err
        assert "--max-tokens" not in done.err

    def test_one_usable_reply_is_enough(self, lab: Lab) -> None:
        """A wrong answer is an answer; a condition without any is named."""
        name = lab.fake(lambda asked: Reply("9" if "," in asked.prompt else "I like rows."))
        done = lab.bench_run("--model", name)
        assert done.code == 0
        assert "no first reply under separator=none has an answer" in done.err

    def test_other_runs_of_the_command_go_on(self, lab: Lab) -> None:
        """An engine stops the run whose form cannot be read, and asks the next one."""
        from eyechart.harness.face.asking.first_replies import check_first

        runs = [lab.wanted(), lab.wanted(settings=Settings(seed=1))]
        seen: list[str] = []

        def answer(request: Request) -> Any:
            seen.append(request.sample_id)
            return "no" if "seed=0" in request.sample_id else right(request)

        asking = asking_of(runs, said=lab.said.append, check_first=check_first)
        both = RunEngine(asking, ScriptedProvider(answer))
        with pytest.raises(FirstRepliesError, match="none of the first 6"):
            asyncio.run(both.run())
        assert [len(records(run.folder)) for run in runs] == [6, 16]
        assert len(seen) == 22

    def test_a_short_run_is_asked_whole(self, lab: Lab) -> None:
        """Where nothing is left to be saved; it ends in the same way."""
        name = lab.fake(lambda _request: Reply("I like rows."))
        done = lab.bench_run("--model", name, "--samples", "1")
        assert done.code == 1
        assert "none of the first 4 replies has an answer that can be read" in done.err
        assert "--keep-going" not in done.err
        assert len(records(lab.wanted(samples=1, model=name).folder)) == 4

    def test_the_next_command_goes_on_all_the_same(self, lab: Lab) -> None:
        """The command that was stopped would stop again."""
        name = lab.fake(lambda _request: Reply("I like rows."))
        assert lab.bench_ask("--model", name, "--samples", "9").code == 1
        last = lab.bench("score", lab.the_run()).out.splitlines()[-1]
        assert last.startswith("next: bench run ")
        assert last.endswith(" --keep-going")

    def test_keep_going_is_for_one_command(self, lab: Lab) -> None:
        """A later one without it says why it asks nothing, as long as no reply can be read."""
        readable = False
        name = lab.fake(lambda asked: right(asked) if readable else Reply("I like rows."))
        folder = lab.wanted(model=name).folder
        more = ("--model", name, "--samples")
        assert lab.bench_ask(*more, "4", "--keep-going").code == 0
        done = lab.bench_run(*more, "8")
        assert "stopped the run: none of the first 16 replies has an answer" in done.err
        assert "--keep-going asks the rest, --fresh starts over" in done.err
        assert (done.code, len(records(folder))) == (1, 16)
        other = lab.bench_run(*more, "8", "--axis", "separator=space")
        assert "none of the first 6 replies" in other.err  # asked now, under another condition
        readable = True
        assert lab.bench_ask(*more, "8", "--keep-going").code == 0
        assert lab.bench_ask(*more, "9").code == 0
        assert len(records(folder)) == 36 + 6

    @pytest.mark.parametrize(("most", "asked", "goes_on"), [("4", 4, 1), ("200", 6, 0)])
    def test_an_adaptive_run_stops_as_others_do(
        self, lab: Lab, most: str, asked: int, goes_on: int
    ) -> None:
        """After as many replies, if it may ask as many; what nobody could read has no length."""
        name = lab.fake(lambda _request: Reply("I like rows."))
        arguments = ("--model", name, "--adaptive", "--max-requests", most)
        done = lab.bench_run(*arguments)
        assert done.code == 1
        assert f"none of the first {asked} replies has an answer that can be read" in done.err
        assert len(records(lab.the_run())) == asked
        more = lab.bench_run(*arguments, "--keep-going")
        assert more.code == goes_on
        assert "does not reach" not in more.out + more.err
        assert "it is limited by form: " in more.err

    def test_all_tasks_that_stopped_are_named(self, lab: Lab) -> None:
        """With what each of them met, and of several models once more at the end."""
        name = lab.fake(lambda _request: Reply("I like rows."))
        done = lab.bench_run("--model", name, "--task", f"{lab.ones},{lab.plain}", "--samples", "9")
        assert "the first replies stopped 2 tasks: lab/ones, lab/plain" in done.err
        assert "lab/plain: none of the first 6 replies" in done.err
        study = lab.folder / "study.yaml"
        tasks = f"tasks: [{{task: {lab.ones}}}, {{task: {lab.plain}}}]"
        study.write_text(
            f"name: s\nversion: 1\ntitle: S\nmodels: [{{name: {name}}}]\nsamples: 9\n{tasks}\n"
        )
        command = ("run", study, "--out", lab.out, "--trust")
        done = lab.bench(*command)
        assert done.code == 1
        assert done.err.count("stopped 2 tasks: lab/ones, lab/plain") == 1
        done = lab.bench(*command, "--model", f"{name},oracle:5")
        assert "stopped 2 tasks: lab/ones, lab/plain" in done.lines[-1]
        assert lab.bench(*command, "--keep-going").code == 0
