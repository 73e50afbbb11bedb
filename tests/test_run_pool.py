"""Samples to a provider: what is tried again, how often, and what ends a run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import pytest

from eyechart.harness.journal.record import Record
from eyechart.harness.plan.cost import Budget, estimate_tokens
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.pool import ask_all
from eyechart.harness.run.progress import Progress
from eyechart.harness.spec import Condition, Line, Sample
from eyechart.providers import base
from eyechart.providers.base import (
    AuthError,
    BadReplyError,
    BadRequestError,
    BrokenConnectionError,
    ConnectError,
    OverloadedError,
    PromptOverflowError,
    ProviderError,
    RateLimitError,
    RefusedError,
    Reply,
    ReplyTimeoutError,
    Request,
    SampleError,
    ServerFaultError,
    SetupError,
    StopRunError,
    TransientError,
    UnknownModelError,
    Usage,
)
from eyechart.providers.catalog.model_facts import PriceList
from eyechart.providers.scripted import Script, ScriptedProvider
from tests.conftest import as_line

pytestmark = pytest.mark.usefixtures("own_time")

ONE_BY_ONE = RunLimits(max_connections=1)


def keeps(records: list[dict[str, Any]]) -> Callable[[Record], None]:
    """A function that adds a record to `records`, as the mapping that the journal writes."""
    return lambda record: records.append(as_line(record))


def sample(index: int) -> Sample:
    return Sample(
        f"id{index}",
        Condition({"separator": "none"}),
        Line.exact(3),
        3,
        index,
        f"prompt {index}",
        index,
    )


def samples(count: int) -> Iterator[tuple[Sample, int]]:
    return ((sample(index), 100 + index) for index in range(count))


class Timed(ScriptedProvider):
    """Answers after `pass_time` was called."""

    def __init__(self, script: Script, pass_time: Callable[[], None]) -> None:
        super().__init__(script)
        self.pass_time = pass_time

    async def complete(self, request: Request) -> Reply:
        self.pass_time()
        return await super().complete(request)


class Asked:
    """A finished run: what was written, how long it paused, what it raised."""

    def __init__(
        self,
        script: Script,
        count: int = 1,
        *,
        limits: RunLimits = ONE_BY_ONE,
        append: Callable[[Record], None] | None = None,
        latency_s: float = 0.0,
        **options: Any,
    ) -> None:
        def pass_time() -> None:
            self.now_s += latency_s

        self.provider = Timed(script, pass_time)
        self.records: list[dict[str, Any]] = []
        self.waits_s: list[float] = []
        self.now_s = 0.0
        self.progress = options.pop("progress", None) or Progress()
        self.raised: BaseException | None = None

        async def sleep(pause_s: float) -> None:
            self.waits_s.append(pause_s)
            self.now_s += pause_s
            await asyncio.sleep(0)

        async def main() -> None:
            write = append or keeps(self.records)
            await ask_all(
                samples(count),
                self.provider,
                write,
                limits=limits,
                progress=self.progress,
                sleep=sleep,
                clock=lambda: self.now_s,
                **options,
            )

        try:
            asyncio.run(main())
        except (ProviderError, OSError, ZeroDivisionError) as error:
            self.raised = error

    @property
    def asked(self) -> list[str]:
        """Ids in the order they were sent."""
        return [request.sample_id for request in self.provider.requests]


def family(kind: type[ProviderError]) -> list[type[ProviderError]]:
    """`kind` and every class below it."""
    known = [one for one in vars(base).values() if isinstance(one, type) and issubclass(one, kind)]
    return [kind, *(one for one in known if one is not kind)]


class TestRecords:
    """What is written about a sample."""

    def test_an_answer_is_recorded_with_all_that_is_known(self) -> None:
        """Sample, text, finish reason, refusal, usage, model and attempts are in the record."""
        reply = Reply("Final answer: 0", "length", Usage(7, 5), "m-2024", "no", "hm")
        before_s = time.time()
        (record,) = Asked([reply], latency_s=2.5).records
        assert before_s - 0.001 <= record.pop("at") <= time.time() + 0.001  # rounded
        assert record == {
            "id": "id0",
            "condition": {"separator": "none"},
            "length": 3,
            "index": 0,
            "target": 0,
            "prompt_hash": sample(0).prompt_hash,
            "chars": len("prompt 0"),
            "attempts": 1,
            "reply": "Final answer: 0",
            "finish_reason": "length",
            "max_tokens": 100,
            "refusal": "no",
            "reasoning": "hm",
            "prompt_tokens": 7,
            "output_tokens": 5,
            "model": "m-2024",
            "latency_s": 2.5,
        }

    def test_the_latency_is_that_of_the_last_attempt(self) -> None:
        """Attempts without a reply, and the waits between them, are not part of it."""
        (record,) = Asked([OverloadedError("503"), "2"], latency_s=2.5).records
        assert (record["attempts"], record["latency_s"]) == (2, 2.5)

    def test_unknown_usage_is_unknown(self) -> None:
        """No token count is made up."""
        (record,) = Asked(["2"]).records
        assert (record["prompt_tokens"], record["output_tokens"]) == (None, None)

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (PromptOverflowError("9 tokens too many"), "overflow"),
            (RefusedError("content filter"), "refused"),
            (BadRequestError("no such parameter"), "error"),
            (SampleError("odd"), "error"),
        ],
    )
    def test_a_sample_error_costs_its_own_sample(self, error: SampleError, kind: str) -> None:
        """It is asked once, recorded with its kind and text, and the next ones are answered."""
        done = Asked(lambda request: error if request.sample_id == "id1" else "2", 3)
        assert done.asked == ["id0", "id1", "id2"]
        assert done.raised is None
        assert done.waits_s == []
        failures = [record.get("failure") for record in done.records]
        said = {"kind": kind, "type": type(error).__name__, "message": str(error)}
        assert failures == [None, said, None]
        assert "reply" not in done.records[1]

    def test_progress_tells_answers_from_errors(self) -> None:
        """A prompt too long is an answer, an error is none."""
        done = Asked([PromptOverflowError("x"), BadRequestError("x"), "2", RefusedError("x")], 4)
        assert (done.progress.answered, done.progress.failed, done.progress.done) == (3, 1, 4)

    def test_progress_counts_nothing_before_the_first_sample(self) -> None:
        """A display shows it at once."""
        progress = Progress()
        assert (progress.answered, progress.failed, progress.failed_in_a_row) == (0, 0, 0)
        assert (progress.retries, progress.connections, progress.last_failure) == (0, 0, "")
        assert (progress.judged, progress.correct) == (0, 0)

    def test_progress_tells_the_time_since_it_began(self) -> None:
        """It begins when it is made."""
        before_s = time.monotonic()
        assert before_s <= Progress().started_s <= time.monotonic()
        progress = Progress(started_s=before_s - 60)
        assert 60 <= progress.elapsed_s <= time.monotonic() - before_s + 60


class TestRequests:
    """What is sent."""

    def test_a_request_is_the_sample_and_its_budget(self) -> None:
        """Each sample brings its own prompt and output budget."""
        assert Asked(["2"], 2).provider.requests == [
            Request("prompt 0", 100, 0.0, None, "id0", "separator=none|0"),
            Request("prompt 1", 101, 0.0, None, "id1", "separator=none|1"),
        ]

    def test_a_seed_is_sent_only_where_something_is_drawn(self) -> None:
        """At temperature 0 there is nothing to seed."""
        sent = [
            Asked(["2"], temperature=temperature, seed=5).provider.requests[0]
            for temperature in (0.0, 0.7)
        ]
        assert [(request.temperature, request.seed) for request in sent] == [(0.0, None), (0.7, 5)]


class TestRetries:
    """Transient errors are tried again."""

    @pytest.mark.parametrize("kind", family(TransientError))
    def test_every_transient_error_is_tried_again(self, kind: type[TransientError]) -> None:
        """The sample is answered in the end, and the record counts the attempts."""
        done = Asked([kind("wait"), kind("wait"), "2"])
        assert [record["reply"] for record in done.records] == ["2"]
        assert done.records[0]["attempts"] == 3
        assert done.progress.retries == 2
        assert (done.progress.answered, done.progress.failed) == (1, 0)

    def test_pauses_double_up_to_the_longest(self) -> None:
        """1, 2, 4 … seconds, and no pause after the last attempt."""
        limits = RunLimits(1, max_attempts=6, initial_backoff_s=1.0, max_backoff_s=6.0)
        assert Asked([OverloadedError("503")], limits=limits).waits_s == [1.0, 2.0, 4.0, 6.0, 6.0]

    def test_each_sample_has_pauses_of_its_own(self) -> None:
        """The next sample begins with the short one again."""
        done = Asked(
            [ReplyTimeoutError("x"), ReplyTimeoutError("x"), "2", ReplyTimeoutError("x"), "2"], 2
        )
        assert done.waits_s == [1.0, 2.0, 1.0]

    @pytest.mark.parametrize("kind", [RateLimitError, OverloadedError, ServerFaultError])
    def test_pauses_grow_slowly_while_others_are_answered(self, kind: type[TransientError]) -> None:
        """They do not double. A load is not the sample's fault then, so it is tried more often; a
        fault may be.
        """
        limits = RunLimits(max_connections=2, initial_backoff_s=1.0)
        asked = 0

        def reply(request: Request) -> str | ProviderError:
            nonlocal asked
            if request.sample_id != "id0":
                return "2"
            asked += 1
            return "2" if asked == 10 else kind("it has too much to do")

        done = Asked(reply, 60, limits=limits)
        (record,) = (record for record in done.records if record["id"] == "id0")
        if kind is ServerFaultError:
            assert (record["failure"]["type"], asked) == ("ServerFaultError", 6)
        else:
            assert (record["reply"], record["attempts"]) == ("2", 10)
        assert done.waits_s == [float(wait) for wait in range(1, len(done.waits_s) + 1)]

    def test_a_server_says_when_to_come_back(self) -> None:
        """A longer wish is granted; a shorter one gets the first wait, not doubled."""
        limits = RunLimits(1, max_attempts=5, initial_backoff_s=1.0, max_backoff_s=60.0)
        wishes = [7.5, 0.1, None, 500.0]
        script = [RateLimitError("429", retry_after_s=wish) for wish in wishes]
        assert Asked([*script, "2"], limits=limits).waits_s == [7.5, 1.0, 4.0, 500.0]
        at_once = [RateLimitError("429", retry_after_s=0.0)] * 3
        assert Asked([*at_once, "2"], limits=limits).waits_s == [1.0, 1.0, 1.0]

    def test_attempts_are_capped(self) -> None:
        """Then the sample is an error with the last message, and the run goes on."""
        limits = RunLimits(1, max_attempts=3)
        done = Asked(
            lambda request: BrokenConnectionError("down") if request.sample_id == "id0" else "2",
            2,
            limits=limits,
        )
        assert done.asked == ["id0", "id0", "id0", "id1"]
        failed, answered = done.records
        assert failed["attempts"] == 3
        assert failed["failure"] == {
            "kind": "error",
            "type": "BrokenConnectionError",
            "message": "down",
        }
        assert answered["reply"] == "2"

    @pytest.mark.parametrize(
        ("kind", "requests"), [(ServerFaultError, 8), (BadReplyError, 8), (OverloadedError, 11)]
    )
    def test_before_any_answer_one_sample_is_tried_again(
        self, kind: type[TransientError], requests: int
    ) -> None:
        """Three times, or as often as ever while the server is overloaded; then none is."""
        limits = RunLimits(max_connections=6, unheard_attempts=3)
        asked = Asked(lambda _: kind("it fails"), 6, limits=limits)
        assert len(asked.asked) == requests
        assert {record["failure"]["type"] for record in asked.records} == {kind.__name__}
        assert len(asked.records) == 6

    def test_the_first_answer_lets_the_others_try_again(self) -> None:
        """As often as ever."""
        fails = {f"id{index}": 2 + index for index in range(4)}

        def answer(request: Request) -> Any:
            fails[request.sample_id] -= 1
            return ServerFaultError("it fails") if fails[request.sample_id] >= 0 else "7"

        limits = RunLimits(max_connections=4, unheard_attempts=3)
        asked = Asked(answer, 4, limits=limits)
        assert [record["reply"] for record in asked.records] == ["7"] * 4

    def test_rate_limits_are_capped_apart(self) -> None:
        """Attempts that end with a rate limit have a number of their own."""
        limits = RunLimits(1, max_attempts=1, max_rate_limited=3, max_elapsed_s=1000)
        done = Asked([RateLimitError("429")], limits=limits)
        assert len(done.asked) == 3
        assert done.waits_s == [1.0, 2.0]
        assert done.records[0]["attempts"] == 3

    def test_one_attempt_means_one(self) -> None:
        """Retries can be turned off."""
        done = Asked([BadReplyError("x")], limits=RunLimits(1, max_attempts=1))
        assert len(done.asked) == 1
        assert done.waits_s == []

    @pytest.mark.parametrize("kind", [OverloadedError, RateLimitError])
    @pytest.mark.parametrize(("latency_s", "waits_s"), [(0.0, [4.0, 4.0]), (1.0, [4.0])])
    def test_a_sample_is_tried_for_so_long(
        self, kind: type[TransientError], latency_s: float, waits_s: list[float]
    ) -> None:
        """Attempts and the waits between them are limited together, however many are allowed."""
        limits = RunLimits(
            1, max_attempts=99, initial_backoff_s=4.0, max_backoff_s=4.0, max_elapsed_s=8.0
        )
        done = Asked([kind("later")], limits=limits, latency_s=latency_s)
        assert done.waits_s == waits_s
        (record,) = done.records
        assert (record["failure"]["kind"], record["attempts"]) == ("error", len(waits_s) + 1)
        assert done.raised is None

    def test_another_error_may_follow(self) -> None:
        """A transient error that turns into a sample's own error ends there."""
        done = Asked([OverloadedError("x"), PromptOverflowError("too long")])
        assert done.records[0]["failure"]["kind"] == "overflow"
        assert done.records[0]["attempts"] == 2

    def test_a_sample_that_waits_holds_up_no_other(self) -> None:
        """While one pauses, the other workers go on."""
        order: list[int] = []

        async def main() -> None:
            others_done = asyncio.Event()

            async def sleep(_pause_s: float) -> None:
                await others_done.wait()

            def append(record: Record) -> None:
                order.append(record.index)
                if len(order) == 4:
                    others_done.set()

            script = ScriptedProvider([RateLimitError("429"), "2"])
            first = [script]

            class Once(ScriptedProvider):
                async def complete(self, request: Request) -> Reply:
                    if request.sample_id == "id0":
                        return await first[0].complete(request)
                    return await super().complete(request)

            await ask_all(samples(5), Once(["2"]), append, limits=RunLimits(2), sleep=sleep)

        asyncio.run(main())
        assert order == [1, 2, 3, 4, 0]


class TestStopping:
    """What ends a run, and what it leaves."""

    @pytest.mark.parametrize("kind", family(StopRunError))
    def test_a_pointless_run_stops_at_once(self, kind: type[StopRunError]) -> None:
        """The error comes out as it is, nothing more is asked, and what was answered stays."""
        error = kind("the key is refused")
        done = Asked(lambda request: error if request.sample_id == "id2" else "2", 100)
        assert done.raised is error
        assert done.asked == ["id0", "id1", "id2"]
        assert [record["index"] for record in done.records] == [0, 1]

    def test_a_pause_between_attempts_ends_at_once(self) -> None:
        """A worker that pauses has no request in flight, so nobody waits for it."""

        async def main() -> None:
            pausing = asyncio.Event()

            class Refusing(ScriptedProvider):
                async def complete(self, request: Request) -> Reply:
                    if request.sample_id == "id0":
                        raise RateLimitError("429")
                    await pausing.wait()
                    raise AuthError("the key is refused")

            async def sleep(_pause_s: float) -> None:
                pausing.set()
                await asyncio.Event().wait()

            limits = RunLimits(2, drain_timeout_s=60)
            asked = ask_all(samples(2), Refusing([]), print, limits=limits, sleep=sleep)
            await asyncio.wait_for(asked, 10)

        with pytest.raises(AuthError):
            asyncio.run(main())

    def test_the_kinds_are_all_there(self) -> None:
        """The walk over the error tree finds the leaves that it is about."""
        assert {AuthError, SetupError, UnknownModelError} < set(family(StopRunError))
        assert {RateLimitError, OverloadedError, ReplyTimeoutError} < set(family(TransientError))

    def test_a_run_that_gets_nothing_stops(self) -> None:
        """After so many samples in a row without a reply; the last reason is said."""
        limits = RunLimits(max_connections=1, max_attempts=2, max_consecutive_failures=3)
        done = Asked(lambda _request: OverloadedError("busy"), 100, limits=limits)
        assert isinstance(done.raised, StopRunError)
        assert "3 samples in a row" in str(done.raised)
        assert "busy" in str(done.raised)
        assert len(done.records) == 3

    def test_a_server_that_never_answered_gets_little_time(self) -> None:
        """What is wrong is said at the first attempt; the last one is at the end of the time."""
        said: list[str] = []
        done = Asked(lambda _request: ConnectError("refused"), 100, say=said.append)
        assert isinstance(done.raised, StopRunError)
        assert str(done.raised).startswith("no connection within 10 s; start the server")
        assert said == ["refused; trying again for up to 10 s"]
        assert done.waits_s == [1, 2, 4, 3]
        assert done.records == []

    def test_a_server_that_is_starting_is_waited_for(self) -> None:
        """Any answer, also an error, shows that it is there."""
        script = [ConnectError("refused"), ServerFaultError("loading"), *[ConnectError("no")] * 5]
        done = Asked([*script, "2"])
        assert done.raised is None
        assert [record["attempts"] for record in done.records] == [8]

    def test_a_server_that_is_away_for_a_minute_costs_no_sample(self) -> None:
        """A sample is asked until it is back, more often than after any other fault."""
        said: list[str] = []
        away = [ConnectError("refused")] * ONE_BY_ONE.max_attempts
        done = Asked([*["2"] * 20, *away, *["2"] * 20], 40, say=said.append)
        assert done.raised is None
        assert [record["reply"] for record in done.records] == ["2"] * 40
        assert len(done.asked) == 40 + len(away)
        assert said == ["refused; trying again for up to 120 s"]
        assert (done.progress.retried, done.progress.failed) == (1, 0)
        assert done.progress.waited_s == sum(done.waits_s) == 63

    def test_a_server_that_is_away_for_good_stops_the_run(self) -> None:
        """What was answered stays, and no sample is counted as failed."""
        done = Asked(["2", *[ConnectError("refused")] * 50], 2)
        assert isinstance(done.raised, StopRunError)
        assert str(done.raised).startswith("no connection within 120 s")
        assert [record["index"] for record in done.records] == [0]
        assert sum(done.waits_s) == 120

    def test_connections_that_only_one_sample_cannot_make_count(self) -> None:
        """Where others are answered meanwhile the sample is to blame, and the run goes on."""

        class OneRefused(ScriptedProvider):
            async def complete(self, request: Request) -> Reply:
                await asyncio.sleep(0)
                return await super().complete(request)

        async def sleep(_pause_s: float) -> None:
            for _ in range(10):  # others are answered
                await asyncio.sleep(0)

        def script(request: Request) -> str | ConnectError:
            return ConnectError("refused") if request.sample_id == "id0" else "2"

        provider, limits = OneRefused(script), RunLimits(max_connections=2)
        asked = ask_all(samples(500), provider, lambda _record: None, limits=limits, sleep=sleep)
        progress = asyncio.run(asked)
        assert (progress.answered, progress.failed) == (499, 1)
        attempts = [request.sample_id for request in provider.requests].count("id0")
        assert attempts == limits.max_attempts

    def test_what_was_tried_again_is_counted_by_samples(self) -> None:
        """And the time in which there was nothing but waiting, once for all samples that wait."""
        done = Asked([RateLimitError("429"), RateLimitError("429"), "2", "2"], 2)
        assert (done.progress.retries, done.progress.retried) == (2, 1)
        assert done.progress.waited_s == 3

    def test_a_silent_server_stops_the_run(self) -> None:
        """Attempts that fail for twenty minutes, and nothing answered, are enough; it is said."""
        said: list[str] = []
        limits = RunLimits(max_connections=1, initial_backoff_s=700, max_backoff_s=700)
        done = Asked(
            lambda _request: ReplyTimeoutError("no reply"), 100, limits=limits, say=said.append
        )
        assert isinstance(done.raised, StopRunError)
        assert str(done.raised).startswith("nothing was answered for 23 minutes; the last failure")
        assert done.progress.last_failure == "no reply"
        assert len(said) == 1

    def test_what_was_paid_for_nothing_counts(self) -> None:
        """A reply without a choice has a usage and a price."""
        budget = Budget(PriceList(input=1e6, output=0, as_of=date(2026, 1, 1)).prices(), limit=30.0)
        paid = BadReplyError("no choices", usage=Usage(11, 0))
        done = Asked(lambda _request: paid, 100, progress=Progress(budget=budget))
        assert budget.spent == 33.0
        assert len(done.asked) == 3

    def test_what_was_taken_for_nothing_counts_for_the_rate(self) -> None:
        """Both kinds of tokens of a reply without a choice; a pause between attempts is shorter."""

        def seconds(prompt: int, output: int) -> float:
            limits = RunLimits(max_connections=1, tpm=60, initial_backoff_s=1, max_attempts=1)
            paid = BadReplyError("no choices", usage=Usage(prompt, output))
            return Asked(lambda _request: paid, 2, limits=limits).now_s

        assert seconds(60, 40) == seconds(100, 0) == 100
        assert seconds(60, 0) == 60

    def test_a_prompt_counts_for_the_rate_before_its_reply(self) -> None:
        """The second request leaves when the most that the first may take has passed."""
        now_s, sent_s = 0.0, list[float]()
        both_sent = asyncio.Event()

        class Slow(ScriptedProvider):
            async def complete(self, request: Request) -> Reply:
                sent_s.append(now_s)
                if len(sent_s) == 2:
                    both_sent.set()
                await both_sent.wait()
                return await super().complete(request)

        async def sleep(pause_s: float) -> None:
            nonlocal now_s
            now_s += pause_s
            await asyncio.sleep(0)

        limits = RunLimits(max_connections=2, tpm=60)
        asking = ask_all(
            samples(2),
            Slow(["2", "2"]),
            lambda _: None,
            limits=limits,
            sleep=sleep,
            clock=lambda: now_s,
        )
        asyncio.run(asking)
        assert sent_s == [0, 100 + estimate_tokens("prompt 0")]

    def test_the_last_failure_is_known_between_attempts(self) -> None:
        """Whoever shows the progress can say why it waits."""
        progress, seen = Progress(), list[str]()

        def second_time(_request: Request) -> str | TransientError:
            seen.append(progress.last_failure)
            return "2" if len(seen) > 1 else OverloadedError("too busy")

        Asked(second_time, progress=progress)
        assert seen == ["", "too busy"]

    def test_one_reply_gives_hope(self) -> None:
        """Failures count in a row only."""
        limits = RunLimits(max_connections=1, max_consecutive_failures=2)
        done = Asked([BadRequestError("x"), "7"], 100, limits=limits)
        assert done.raised is None
        assert (done.progress.answered, done.progress.failed) == (50, 50)

    def test_with_many_workers_one_error_comes_out(self) -> None:
        """Not a group of them, and no worker asks on."""
        done = Asked(lambda _request: AuthError("401"), 1000, limits=RunLimits(8))
        assert isinstance(done.raised, AuthError)
        assert done.records == []
        assert len(done.asked) <= 8

    def test_a_journal_that_fails_ends_the_run(self) -> None:
        """Answers that cannot be kept are not asked for."""

        def full(_record: Record) -> None:
            raise OSError("disk full")

        done = Asked(["2"], 1000, limits=RunLimits(4), append=full)
        assert isinstance(done.raised, OSError)
        assert len(done.asked) <= 4

    def test_a_sample_that_cannot_be_made_ends_the_run(self) -> None:
        """The generator's error comes out alone, and the answers before it are written."""
        records: list[dict[str, Any]] = []

        def broken() -> Iterator[tuple[Sample, int]]:
            yield from samples(2)
            raise ZeroDivisionError

        provider = ScriptedProvider(["2"])
        with pytest.raises(ZeroDivisionError):
            asyncio.run(ask_all(broken(), provider, keeps(records), limits=RunLimits(3)))
        assert [record["index"] for record in records] == [0, 1]

    def test_interrupted_keeps_what_came(self) -> None:
        """A cancelled run has written every reply that arrived, and asks nothing more."""
        records: list[dict[str, Any]] = []
        asked: list[str] = []
        five = asyncio.Event()

        class Stuck:
            async def complete(self, request: Request) -> Reply:
                asked.append(request.sample_id)
                if len(asked) == 5:
                    five.set()
                if request.sample_id in ("id3", "id4"):
                    await asyncio.Event().wait()
                await asyncio.sleep(0)
                return Reply("2")

            async def facts(self) -> Mapping[str, object]:
                return {}

            async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
                raise NotImplementedError

            async def aclose(self) -> None:
                pass

        async def main() -> None:
            limits = RunLimits(2, interrupt_drain_s=0.02)
            task = asyncio.create_task(ask_all(samples(9), Stuck(), keeps(records), limits=limits))
            await five.wait()
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert [record["index"] for record in records] == [0, 1, 2]
        assert len(asked) == 5


@pytest.mark.parametrize("error", [ValueError("1.2.3"), OverflowError("int too large")])
def test_a_mistake_of_ours_costs_its_sample_only(error: Exception) -> None:
    """Whatever a server says that nobody thought of is tried again; if that does not help, the run
    goes on and there is no traceback.
    """
    asked: list[str] = []

    class Odd(ScriptedProvider):
        async def complete(self, request: Request) -> Reply:
            asked.append(request.sample_id)
            if request.sample_id == "id1" or asked == ["id0"]:
                raise error
            return await super().complete(request)

    records: list[dict[str, Any]] = []
    limits = RunLimits(max_connections=1, initial_backoff_s=0, max_attempts=3)
    asyncio.run(ask_all(samples(3), Odd(["2"]), keeps(records), limits=limits))
    assert [one.get("failure") for one in records] == [
        None,
        {
            "kind": "error",
            "type": "TransientError",
            "message": f"{type(error).__name__}: {error}",
        },
        None,
    ]
    assert [one["attempts"] for one in records] == [2, 3, 1]


class TestDraining:
    """A run that is to stop sends nothing more, and keeps what was on its way."""

    def stopped(
        self, last: Callable[[], Awaitable[Reply]], *, drain_timeout_s: float = 5.0
    ) -> tuple[list[str], list[str], BaseException]:
        """Sample 0 stops the run while 1 is in flight and ends as `last` does; who was asked, whose
        reply was written, and what was raised.
        """
        asked: list[str] = []
        records: list[dict[str, Any]] = []

        class Stopping(ScriptedProvider):
            async def complete(self, request: Request) -> Reply:
                asked.append(request.sample_id)
                if request.sample_id == "id0":
                    await asyncio.sleep(0.01)
                    raise AuthError("no access")
                return await last()

        limits = RunLimits(max_connections=2, drain_timeout_s=drain_timeout_s)
        with pytest.raises(StopRunError) as caught:
            asyncio.run(ask_all(samples(9), Stopping(["1"]), keeps(records), limits=limits))
        return asked, [record["id"] for record in records], caught.value

    def test_what_is_in_flight_is_still_written(self) -> None:
        """It may be paid for."""

        async def late() -> Reply:
            await asyncio.sleep(0.05)
            return Reply("2")

        asked, written, error = self.stopped(late)
        assert (asked, written) == (["id0", "id1"], ["id1"])
        assert isinstance(error, AuthError)

    def test_it_is_not_waited_for_without_end(self) -> None:
        """A server that hangs cannot hold the run."""

        async def never() -> Reply:
            await asyncio.Event().wait()
            raise AssertionError

        asked, written, error = self.stopped(never, drain_timeout_s=0.05)
        assert (asked, written) == (["id0", "id1"], [])
        assert isinstance(error, AuthError)

    def test_it_is_not_asked_again(self) -> None:
        """A fault that could be retried comes too late."""

        async def faulty() -> Reply:
            await asyncio.sleep(0.05)
            raise OverloadedError("503")

        asked, written, _ = self.stopped(faulty, drain_timeout_s=0.5)
        assert (asked, written) == (["id0", "id1"], [])

    @pytest.mark.parametrize("patient", [True, False])
    def test_an_interrupted_run_waits_for_it(self, *, patient: bool) -> None:
        """Not for long, and not at all once it is interrupted again."""
        records: list[dict[str, Any]] = []
        asked: list[str] = []

        class Slow(ScriptedProvider):
            async def complete(self, request: Request) -> Reply:
                asked.append(request.sample_id)
                await asyncio.sleep(0.1)
                return await super().complete(request)

        async def main() -> None:
            limits = RunLimits(3, interrupt_drain_s=5)
            task = asyncio.create_task(
                ask_all(samples(9), Slow(["2"]), keeps(records), limits=limits)
            )
            await asyncio.sleep(0.05)
            task.cancel()
            if not patient:
                await asyncio.sleep(0.01)
                task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert asked == ["id0", "id1", "id2"]
        assert sorted(record["id"] for record in records) == (asked if patient else [])

    def test_what_is_waited_for_is_said(self) -> None:
        """After a second; an interrupted run that seems to hang is interrupted harder."""
        said: list[str] = []

        class Stuck(ScriptedProvider):
            async def complete(self, request: Request) -> Reply:
                await asyncio.sleep(60)
                return await super().complete(request)

        async def main() -> None:
            limits = RunLimits(3, interrupt_drain_s=1.2)
            work = ask_all(samples(9), Stuck(["2"]), lambda _: None, limits=limits, say=said.append)
            task = asyncio.create_task(work)
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        (line,) = said
        assert line.startswith("requests in flight: 3. They may be paid for: waiting up to 1 s for")

    def test_who_is_to_ask_again_is_not_waited_for(self) -> None:
        """A fault while the run ends has nothing to wait for."""

        class Faulty(ScriptedProvider):
            async def complete(self, request: Request) -> Reply:
                await asyncio.sleep(0.05)
                raise OverloadedError(f"503 {request.sample_id}", retry_after_s=60)

        async def main() -> None:
            limits = RunLimits(3, interrupt_drain_s=30)
            task = asyncio.create_task(ask_all(samples(9), Faulty(["2"]), print, limits=limits))
            await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, 5)

        asyncio.run(main())

    def test_a_reply_that_cannot_be_written_then_is_said(self) -> None:
        """Once; the interrupt is what is raised."""
        said: list[str] = []

        class Slow(ScriptedProvider):
            async def complete(self, request: Request) -> Reply:
                await asyncio.sleep(0.05)
                return await super().complete(request)

        def full(_record: Record) -> None:
            raise OSError("disk full")

        async def main() -> None:
            work = ask_all(samples(9), Slow(["2"]), full, limits=RunLimits(3), say=said.append)
            task = asyncio.create_task(work)
            await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert said == ["disk full"]

    def test_when_the_money_is_spent_nobody_queues_for_a_rate(self) -> None:
        """Workers in line for a place in the minute go home."""
        prices = PriceList(input=1.0, output=1.0, as_of=date(2025, 10, 1)).prices()
        budget = Budget(prices, limit=0.00025)
        reply = Reply("2", usage=Usage(90, 10))
        progress = Progress(budget=budget)
        done = Asked([reply], 99, limits=RunLimits(64, rpm=60), progress=progress)
        assert len(done.records) == 3
        assert done.now_s < 10

    def test_a_model_that_answers_at_once_is_interrupted_too(self) -> None:
        """Its replies need no waiting, but an interrupt is heard between two of them."""
        records: list[Record] = []

        async def main() -> None:
            first = asyncio.Event()

            def append(record: Record) -> None:
                records.append(record)
                first.set()

            task = asyncio.create_task(ask_all(samples(500), ScriptedProvider(["2"]), append))
            await first.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert 0 < len(records) < 500

    def test_interrupted_before_it_began(self) -> None:
        """Nothing is asked."""

        async def main() -> None:
            task = asyncio.create_task(ask_all(samples(9), provider, lambda _: None))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        provider = ScriptedProvider(["2"])
        asyncio.run(main())
        assert provider.requests == []

    def test_a_mistake_in_the_task_waits_for_it_too(self) -> None:
        """A sample cannot be made while others are in flight or wait: all these are answered."""
        records: list[dict[str, Any]] = []

        def broken() -> Iterator[tuple[Sample, int]]:
            yield from samples(30)
            raise ZeroDivisionError

        class Slow(ScriptedProvider):
            async def complete(self, request: Request) -> Reply:
                await asyncio.sleep(0.05)
                return await super().complete(request)

        with pytest.raises(ZeroDivisionError):
            asyncio.run(ask_all(broken(), Slow(["2"]), keeps(records), limits=RunLimits(64)))
        assert {record["id"] for record in records} == {f"id{index}" for index in range(30)}

    def test_a_server_that_wants_to_be_left_alone_is(self) -> None:
        """Longer than anything is tried: the run stops and says so, instead of sleeping."""
        script = [RateLimitError("429", retry_after_s=3600)]
        done = Asked(script, 3)
        assert isinstance(done.raised, StopRunError)
        said = "the server asks for a pause of 60 min; the same command goes on later (429)"
        assert str(done.raised) == said
        assert done.waits_s == []

    def test_a_server_that_asks_for_as_much_as_a_sample_has_is_given_it(self) -> None:
        """One second more stops the run."""
        limits = RunLimits(1, max_elapsed_s=8.0)
        waited, stopped = (
            Asked([RateLimitError("429", retry_after_s=pause_s), "2"], limits=limits)
            for pause_s in (8.0, 9.0)
        )
        assert (waited.waits_s, waited.raised, len(waited.records)) == ([8.0], None, 1)
        assert isinstance(stopped.raised, StopRunError)
        assert (stopped.waits_s, stopped.records) == ([], [])

    def test_no_money_no_request(self) -> None:
        """The reply that crosses the budget is kept, and is the last."""
        prices = PriceList(input=1.0, output=1.0, as_of=date(2025, 10, 1)).prices()
        budget = Budget(prices, limit=0.00025)
        reply = Reply("2", usage=Usage(90, 10))
        asked = Asked([reply], 9, progress=Progress(budget=budget))
        assert len(asked.provider.requests) == len(asked.records) == 3
        assert round(budget.spent, 9) == 0.0003

    def test_replies_without_figures_are_charged_by_estimate(self) -> None:
        """So that a budget holds whatever the server reports."""
        prices = PriceList(input=1.0, output=1.0, as_of=date(2025, 10, 1)).prices()
        budget = Budget(prices)
        Asked([Reply("ninety 9")], 1, progress=Progress(budget=budget))
        tokens = estimate_tokens("prompt 0") + estimate_tokens("ninety 9")
        assert round(budget.spent * 1_000_000, 6) == tokens


class TestWorkers:
    """A bounded number of requests is in flight, over a lazy stream."""

    @pytest.mark.parametrize("connections", [1, 3, 16])
    def test_requests_in_flight_are_bounded_and_used(self, connections: int) -> None:
        """Never more than allowed, and as many as there are samples for."""
        flying, most, drawn = 0, 0, 0

        def stream() -> Iterator[tuple[Sample, int]]:
            nonlocal drawn
            for drawn, one in enumerate(samples(300), start=1):
                assert drawn <= len(records) + connections + 64
                yield one

        class Counting:
            async def complete(self, request: Request) -> Reply:
                nonlocal flying, most
                flying += 1
                most = max(most, flying)
                for _ in range(3):
                    await asyncio.sleep(0)
                flying -= 1
                return Reply(request.prompt)

            async def facts(self) -> Mapping[str, object]:
                return {}

            async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
                raise NotImplementedError

            async def aclose(self) -> None:
                pass

        records: list[dict[str, Any]] = []
        asyncio.run(ask_all(stream(), Counting(), keeps(records), limits=RunLimits(connections)))
        assert most == connections
        assert sorted(record["index"] for record in records) == list(range(300))
        assert all(record["reply"] == f"prompt {record['index']}" for record in records)

    def test_long_prompts_are_not_made_ahead(self) -> None:
        """One of a hundred thousand characters is enough at a time."""
        made: list[int] = []

        def stream() -> Iterator[tuple[Sample, int]]:
            for index in range(9):
                made.append(index)
                yield (
                    Sample(f"id{index}", Condition(), Line.exact(3), 3, index, "1" * 100_000, 3),
                    10,
                )

        class Watching(ScriptedProvider):
            async def complete(self, request: Request) -> Reply:
                asked.append((request.sample_id, len(made)))
                return await super().complete(request)

        asked: list[tuple[str, int]] = []
        asyncio.run(ask_all(stream(), Watching(["2"]), lambda _: None, limits=ONE_BY_ONE))
        assert asked == [(f"id{index}", index + 1) for index in range(9)]

    def test_nothing_to_ask_asks_nothing(self) -> None:
        """An empty stream is a finished run."""
        done = Asked(["2"], 0, limits=RunLimits(4))
        assert (done.asked, done.records, done.progress.done) == ([], [], 0)
