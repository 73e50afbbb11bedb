"""Tasks that ask over several turns: what is sent, what is kept, and where a run goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eyechart.harness.journal.record import Record, decode
from eyechart.harness.plan.context_fit import context_fits
from eyechart.harness.plan.cost import Budget, estimate_tokens, likely_answer, whole_cost
from eyechart.harness.plan.estimate import forecast
from eyechart.harness.run import retry
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.pool import ask_all
from eyechart.harness.run.progress import Progress
from eyechart.harness.spec import Condition, Line, Sample, Settings
from eyechart.harness.spec.turns import NEXT_TURN, Turn, conversation, messages_of
from eyechart.providers import descriptors
from eyechart.providers.base import (
    AuthError,
    BadRequestError,
    ModelSettings,
    ProviderError,
    Reply,
    Request,
    Usage,
)
from eyechart.providers.catalog.model_facts import PriceList
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import Lab, records
from tests.fake_server import Response, chat, fake_server

SUMS = """\
version: 1
title: Sums over turns
generator: digits.py:digits
unit: turns
lengths: [1, 3]
samples: 2
spread: none
prompt: |
  Add up. Write "{{ phrase }}" and then the sum so far.
  {{ symbols | join(next_turn) }}
answer: integer
"""
"""Two samples of one turn and two of three: eight requests."""
DIGITS = """\
from eyechart.harness.spec import Item


def digits(rng, length):
    row = [rng.choice("123456789") for _ in range(length)]
    return Item(row, sum(map(int, row)))
"""


@pytest.fixture
def sums(lab: Lab) -> Path:
    """The task file of `SUMS`."""
    (lab.folder / "lab" / "digits.py").write_text(DIGITS)
    path = lab.folder / "lab" / "sums.yaml"
    path.write_text(SUMS)
    return path


def so_far(request: Request, off: int = 0) -> str:
    """Adds to what the model said before."""
    before = int(request.history[-1][1].split()[-1]) if request.history else 0
    return f"Final answer: {before + int(request.prompt.splitlines()[-1]) + off}"


def whole(lab: Lab, sums: Path, script: Callable[[Request], Any] = so_far) -> list[dict[str, Any]]:
    """The records of the samples of three turns."""
    lab.run(lab.wanted(sums, lengths=[3]), ScriptedProvider(script))
    return records(lab.the_run())


class TestConversation:
    """What a model is sent."""

    def test_each_message_follows_the_models_own_replies(self, lab: Lab, sums: Path) -> None:
        """In the order of the prompt; the last reply is judged, and those before are kept."""
        provider = ScriptedProvider(so_far)
        wanted = lab.wanted(sums, samples=1)
        lab.run(wanted, provider, max_connections=1)
        one, three = wanted.plan
        assert [one.in_turns, len(one.messages), len(three.messages)] == [True, 1, 3]
        asked = [request for request in provider.requests if request.sample_id == three.id]
        assert [request.prompt for request in asked] == list(three.messages)
        assert [len(request.history) for request in asked] == [0, 1, 2]
        (question, said), (second, _) = asked[-1].history
        assert (question, second) == three.messages[:2]
        record = records(lab.the_run())[-1]
        assert record["reply"] == f"Final answer: {three.target}"
        assert [turn["reply"] for turn in record["turns"]] == [
            text for _, text in asked[-1].history
        ]
        assert said == so_far(asked[0])
        assert record["attempts"] == 3
        assert "turns" not in records(lab.the_run())[0]

    def test_a_mistake_of_the_model_stays(self, lab: Lab, sums: Path) -> None:
        """It goes on from its own answer."""
        found = whole(lab, sums, lambda request: so_far(request, off=not request.history))
        assert [int(one["reply"].split()[-1]) - one["target"] for one in found] == [1, 1]

    @pytest.mark.parametrize(
        ("reply", "outcome"),
        [
            (Reply("Final ans", "length"), "truncated"),
            (Reply("Final ans", "stop", Usage(9, 50)), "truncated"),  # all of its tokens
            (Reply("", "content_filter"), "refused"),
            (Reply("", refusal="I will not"), "refused"),
            (Reply(" "), "unparsed"),
        ],
    )
    def test_nothing_follows_a_reply_that_is_none(
        self, lab: Lab, sums: Path, reply: Reply, outcome: str
    ) -> None:
        """The sample ends with it."""
        settings = Settings(max_tokens=50)
        wanted = lab.wanted(sums, lengths=[3], samples=1, settings=settings)
        second = ScriptedProvider(lambda request: reply if request.history else so_far(request))
        lab.run(wanted, second)
        (record,) = records(lab.the_run())
        assert len(second.requests) == 2
        assert [len(record["turns"]), record["reply"]] == [1, reply.text]
        shown = lab.bench("samples", lab.the_run(), "--json", "--task", sums)
        assert json.loads(shown.out)["outcome"] == outcome

    def test_each_turn_has_room_of_its_own(self, lab: Lab, sums: Path) -> None:
        """What was cut off in one turn is asked again there, and the next begins with as much."""
        cut: list[Request] = []

        def script(request: Request) -> Reply | str:
            if len(request.history) == 1 and not cut:
                cut.append(request)
                usage = Usage(7, request.max_tokens)
                return Reply("<think>so", "length", usage=usage, reasoning="long")
            return Reply(so_far(request), usage=Usage(7, 5))

        provider = ScriptedProvider(script)
        lab.run(lab.wanted(sums, lengths=[3], samples=1), provider)
        first, _, again, last = provider.requests
        assert again.history == cut[0].history
        assert first.max_tokens < again.max_tokens == last.max_tokens
        (record,) = records(lab.the_run())
        assert record["turns"][1]["cut_output_tokens"] == first.max_tokens
        assert record["attempts"] == 4
        assert "cut_off" not in record


class TestGoingOn:
    """What is answered is not asked again."""

    def test_a_turn_that_fails_is_asked_again_alone(self, lab: Lab, sums: Path) -> None:
        """With the replies that came before it."""
        wanted = lab.wanted(sums, lengths=[3], samples=1)
        lab.run(wanted, ScriptedProvider(so_far_fails))
        (record,) = records(lab.the_run())
        assert [record["failure"]["type"], len(record["turns"])] == ["BadRequestError", 1]
        provider = ScriptedProvider(so_far)
        lab.run(wanted, provider)
        assert [len(request.history) for request in provider.requests] == [1, 2]
        assert records(lab.the_run())[-1]["reply"].endswith(f" {record['target']}")

    def test_a_run_that_stops_between_two_turns_keeps_them(self, lab: Lab, sums: Path) -> None:
        """The same command sends what is left, and nothing twice."""
        wanted = lab.wanted(sums, lengths=[3], samples=4)
        stops = iter([*[None] * 7, AuthError("no key")])
        first = ScriptedProvider(lambda request: next(stops) or so_far(request))
        with pytest.raises(AuthError):
            lab.run(wanted, first, max_connections=2)
        kept = {one["id"]: one for one in records(lab.the_run())}
        done = sum(len(one.get("turns", ())) + ("failure" not in one) for one in kept.values())
        assert done == 7
        provider = ScriptedProvider(so_far)
        lab.run(wanted, provider)
        assert len(provider.requests) == 12 - 7
        assert len({one["id"] for one in records(lab.the_run()) if "failure" not in one}) == 4

    def test_turns_of_another_prompt_are_not_used(self, lab: Lab, sums: Path) -> None:
        """A changed row begins anew."""
        wanted = lab.wanted(sums, lengths=[3], samples=1)
        lab.run(wanted, ScriptedProvider(so_far_fails))
        journal = lab.the_run() / "samples.jsonl"
        (record,) = records(lab.the_run())
        journal.write_text(json.dumps({**record, "prompt_hash": "0"}) + "\n")
        provider = ScriptedProvider(so_far)
        lab.run(wanted, provider)
        assert len(provider.requests) == 3

    def test_more_turns_than_messages_are_cut(self, lab: Lab, sums: Path) -> None:
        """A journal may come from anywhere; the last message is asked in any case."""
        wanted = lab.wanted(sums, lengths=[3], samples=1)
        lab.run(wanted, ScriptedProvider(so_far_fails))
        journal = lab.the_run() / "samples.jsonl"
        (record,) = records(lab.the_run())
        journal.write_text(json.dumps({**record, "turns": [{"reply": "5"}] * 9}) + "\n")
        provider = ScriptedProvider(so_far)
        lab.run(wanted, provider)
        assert [len(request.history) for request in provider.requests] == [2]

    def test_the_end_of_a_budget_keeps_them_too(self) -> None:
        """A reply that crosses the limit is the last request; its turn is kept."""
        prices = PriceList(input=0, output=1e6, as_of=date(2026, 1, 1)).prices()
        budget = Budget(prices, limit=1.5)
        kept: list[Record] = []
        provider = ScriptedProvider([Reply("1", usage=Usage(1, 1))])
        ask(in_turns(), provider, kept, progress=Progress(budget=budget))
        assert [len(provider.requests), budget.spent] == [2, 2.0]
        (record,) = kept
        assert [record.is_error, len(record.turns or ())] == [True, 2]
        assert record.failure is not None
        assert record.failure.message == "the run ended after turn 2 of 3"
        assert whole_cost(prices, record) == 2.0


def so_far_fails(request: Request) -> str | ProviderError:
    """The second turn is refused."""
    return BadRequestError("not this one") if request.history else so_far(request)


def in_turns() -> Iterator[tuple[Sample, int]]:
    """One sample of three messages."""
    prompt = NEXT_TURN.join("abc")
    none = Condition({"separator": "none"})
    yield Sample("id", none, Line.exact(3), 3, 0, prompt, 1, in_turns=True), 2


def ask(
    samples: Iterator[tuple[Sample, int]],
    provider: ScriptedProvider,
    kept: list[Record],
    **options: Any,
) -> None:
    """Asks one sample at a time."""
    asyncio.run(ask_all(samples, provider, kept.append, **{"limits": RunLimits(1), **options}))


class TestCounting:
    """Each turn is a request."""

    def test_a_rate_counts_turns(self) -> None:
        """Sixty a minute are one a second."""
        now_s = 0.0

        async def sleep(pause_s: float) -> None:
            nonlocal now_s
            now_s += pause_s

        provider = ScriptedProvider(["1"])
        limits = RunLimits(max_connections=1, rpm=60)
        ask(in_turns(), provider, [], limits=limits, sleep=sleep, clock=lambda: now_s)
        assert len(provider.requests) == 3
        assert now_s == pytest.approx(2.0)

    def test_a_server_that_hangs_between_two_turns_is_said(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Once: the count of samples does not move meanwhile."""
        monkeypatch.setattr(retry, "_SILENT_S", 0.0)
        said: list[str] = []
        told = asyncio.Event()

        class Hangs(ScriptedProvider):
            async def complete(self, request: Request) -> Reply:
                if request.history:
                    await told.wait()
                return await super().complete(request)

        def say(line: str) -> None:
            said.append(line)
            told.set()

        ask(in_turns(), Hangs(["1"]), [], say=say)
        (line,) = said
        assert "with 1 in flight: the model is slow, or the server hangs" in line

    def test_most_requests_counts_samples(self, lab: Lab, sums: Path) -> None:
        """As its help says."""
        limits = ("--adaptive", "--max-requests", "3")
        done = lab.bench_run("--model", "oracle:2", *limits, task=sums)
        assert len({one["id"] for one in records(lab.the_run())}) == 3, done.err

    def test_a_forecast_sends_all_that_was_said_before(self, lab: Lab, sums: Path) -> None:
        """Once more in each turn, with the replies."""
        wanted = lab.wanted(sums, lengths=[3], samples=1)
        (sample,) = wanted.plan
        ahead = asyncio.run(forecast(wanted.plan, max_tokens=20))
        sizes = list(map(estimate_tokens, sample.messages))
        said = sizes[0], sum(sizes[:2]), sum(sizes)
        answer = likely_answer(sample)
        assert (ahead.requests, ahead.turns) == (1, 3)
        assert ahead.most_output_tokens == 60
        assert [one.most_prompt for one in ahead.samples] == [
            len("".join(sample.messages[: turn + 1])) + 20 * turn for turn in range(3)
        ]
        assert ahead.prompt_tokens == sum(said) + 3 * answer

    def test_replies_take_room_in_the_window(self, lab: Lab, sums: Path) -> None:
        """Those between the messages stay there."""

        class Counting(ScriptedProvider):
            async def count_tokens(self, prompts: Any) -> list[int] | None:
                return list(map(len, prompts))

        wanted = lab.wanted(sums, lengths=[3], samples=1)
        (sample,) = wanted.plan
        size = len(sample.prompt)

        def fit(window: int) -> str:
            facts = {"max_model_len": window}
            found = asyncio.run(context_fits(wanted.plan, wanted.model, facts, Counting([])))
            return "".join(map(str, found.values()))

        assert fit(size + 20)
        assert not fit(size + 60)

    def test_costs_are_those_of_all_turns(self) -> None:
        """Each with its own cache; unknown ones are left out."""
        prices = PriceList(input=1e6, output=2e6, as_of=date(2026, 1, 1)).prices()
        kept: list[Record] = []
        replies = [Reply("1", usage=Usage(1, 1)), Reply("2", usage=Usage(3, 1)), Reply("3")]
        budget = Budget(prices)
        ask(in_turns(), ScriptedProvider(replies), kept, progress=Progress(budget=budget))
        (record,) = kept
        assert [turn.prompt_tokens for turn in record.turns or ()] == [1, 3]
        assert whole_cost(prices, record) == 8.0
        assert whole_cost(prices, msgspec.structs.replace(record, turns=None)) is None


class TestDoors:
    """Who can ask such a task, and how it is shown."""

    @pytest.mark.parametrize(
        ("options", "word"),
        [
            (["--api", "completions"], "leave out --api completions"),
            (["--read", "likelihood"], "leave out --read likelihood"),
            (["--engine", "ray"], "leave out --engine ray"),
            (["--axis", "examples=2"], "leave out the axis 'examples'"),
        ],
    )
    def test_what_has_no_turns_is_refused(
        self, lab: Lab, sums: Path, options: list[str], word: str
    ) -> None:
        """Before anything is sent."""
        model = ["--model", "m", "--base-url", "http://127.0.0.1:9/v1"]
        if "--read" in options:
            model = ["--model", "oracle:3"]
        lab.bench_run(*model, *options, task=sums).one_line(2, "'lab/sums'", "several turns", word)

    def test_a_batch_has_no_turns(self, lab: Lab, sums: Path, monkeypatch: Any) -> None:
        """Neither of a vendor nor in a file."""
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
        gpt = ("--model", "openai/gpt-4o")
        lab.bench_run(*gpt, "--tier", "batch", task=sums).one_line(2, "leave out --tier batch")
        lab.bench_run(*gpt, "--tier", "batch", task=sums).one_line(2, "leave out --tier batch")
        file = lab.folder / "x.jsonl"
        out = ("--out", lab.out, "-o", file)
        lab.bench("export", "batch", "--task", sums, *gpt, *out).one_line(2, "a batch cannot")

    @pytest.mark.parametrize("form", ["lm-eval", "verifiers"])
    def test_what_asks_once_says_so(self, lab: Lab, sums: Path, form: str) -> None:
        """And who does not."""
        done = lab.bench("export", form, "-o", lab.folder / "x", "--task", sums)
        done.one_line(2, "several turns", "'bench run' and Inspect do")

    def test_a_model_that_answers_one_message_says_so(self, lab: Lab, sums: Path) -> None:
        """The embedded one does."""
        lab.bench_run("--model", "tiny", task=sums).one_line(2, "tiny answers one message")

    def test_the_page_the_screen_and_json_have_the_whole_conversation(
        self, lab: Lab, sums: Path
    ) -> None:
        """The prompt with the replies in it; JSON has them apart."""
        whole(lab, sums)
        task = ("--task", sums)
        shown = lab.bench("samples", lab.the_run(), "--limit", "1", *task).out
        row = json.loads(lab.bench("samples", lab.the_run(), "--limit", "1", "--json", *task).out)
        first, second = (turn["reply"] for turn in row["turns"])
        assert f"[the model replies]\n  | {first}\n  | \n  | " in shown
        assert shown.index(first) < shown.index(second) < shown.index(">>")
        assert row["prompt"].count(NEXT_TURN) == 2
        page = lab.folder / "page.html"
        assert lab.bench("report", lab.the_run(), "-o", page, *task).code == 0

    def test_an_oracle_answers_the_target_of_each_turn(self, lab: Lab) -> None:
        """So no turn before the last one is wrong, and the last one where the sample is."""
        task = ("--task", "turns/running_sum", "--lengths", "2,3,5", "--exact", "--samples", "2")
        assert lab.bench_ask(*task, "--model", "oracle:3", "--out", lab.out).code == 0
        done = lab.bench("samples", lab.the_run(), "--limit", "0", "--json")
        rows = list(map(json.loads, done.out.splitlines()))
        found = {(row["length"], row["outcome"], row["first_wrong_turn"]) for row in rows}
        assert found == {(2, "correct", None), (3, "correct", None), (5, "incorrect", 5)}

    def test_the_first_turn_that_went_wrong_is_said(self, lab: Lab, sums: Path) -> None:
        """Where the generator gives the answers of the turns; a mistake stays, and is said once."""
        with_targets = DIGITS.replace(
            "sum(map(int, row)))",
            "sum(map(int, row)), turn_targets=[sum(map(int, row[:n])) for n in range(1, length)])",
        )
        (sums.parent / "digits.py").write_text(with_targets)
        # the replies that are off by one, by sample; the last reply of the last one is cut off
        wrong_in = iter([(1,), (0, 1, 2), (2,), (), (9,)])
        off: dict[str, tuple[int, ...]] = {}

        def script(request: Request) -> str | Reply:
            ways = off.setdefault(request.sample_id, next(wrong_in) if not request.history else ())
            if ways == (9,) and len(request.history) == 2:
                return Reply("Final ans", "stop", Usage(9, 50))
            return so_far(request, off=len(request.history) in ways)

        wanted = lab.wanted(sums, lengths=[3], samples=5, settings=Settings(max_tokens=50))
        lab.run(wanted, ScriptedProvider(script), max_connections=1)
        asked = ("samples", lab.the_run(), "--task", sums, "--limit", "0")
        rows = [json.loads(line) for line in lab.bench(*asked, "--json").out.splitlines()]
        assert [row["first_wrong_turn"] for row in rows] == [2, 1, 3, None, 3]
        shown = lab.bench(*asked).out
        assert shown.count("is the first whose answer is not right") == 4
        assert "  turns    2 is the first whose answer is not right\n" in shown

    def test_turn_targets_are_checked(self, lab: Lab, sums: Path) -> None:
        """They are answers as the target is."""
        generator = DIGITS.replace("row)))", "row)), turn_targets=['x'])")
        (sums.parent / "digits.py").write_text(generator)
        done = lab.bench("tasks", "check", sums)
        assert done.code == 2
        assert "a turn's target" in done.out + done.err

    def test_a_dry_run_says_how_many_requests_are_left(self, lab: Lab, sums: Path) -> None:
        """After an interrupt between two turns, of this sample too."""
        replies = iter(range(5))

        def script(request: Request) -> str:
            if next(replies, None) is None:
                raise AuthError("no key")
            return so_far(request)

        lab.fake(script)
        takes_turns = replace(descriptors.BUILT_IN["fake"], takes_turns=True)
        lab.monkeypatch.setitem(descriptors.BUILT_IN, "fake", takes_turns)
        model = ("--model", "fake/model", "--max-connections", "1")
        assert lab.bench_ask(*model, task=sums).code == 1
        said = " ".join(lab.bench_run(*model, "--dry-run", task=sums).out.split())
        assert "8 requests in all, of which 3 are left; each turn is one" in said
        document = json.loads(lab.bench_run(*model, "--dry-run", "--json", task=sums).out)
        (planned,) = document["runs"]
        assert (planned["turns"], planned["answered_turns"]) == (8, 5)
        done = lab.bench_run(*model, "--dry-run", "--fresh", "--json", task=sums)
        (whole,) = json.loads(done.out)["runs"]
        left = planned["most_output_tokens"] / whole["most_output_tokens"]
        assert left == pytest.approx(3 / 8, rel=0.001)
        fresh = lab.bench_run(*model, "--dry-run", "--fresh", task=sums)
        assert "8 requests in all; each turn is one" in " ".join(fresh.out.split())

    def test_a_dry_run_says_how_many_requests_turns_are(self, lab: Lab, sums: Path) -> None:
        """Two samples of one, two of three."""
        done = lab.bench_run("--model", "oracle:3", "--dry-run", task=sums)
        assert "requests    4 (2 a cell)" in done.out
        assert "turns       8 requests in all" in done.out

    def test_an_empty_message_is_a_mistake_of_the_file(self, lab: Lab, sums: Path) -> None:
        """No vendor takes one."""
        sums.write_text(SUMS.replace("join(next_turn) }}", "join(next_turn) }}{{ next_turn }}"))
        done = lab.bench("tasks", "check", sums)
        assert done.code == 2
        assert "message 2 of the prompt is empty" in done.out + done.err

    def test_the_name_is_taken(self, lab: Lab, sums: Path) -> None:
        """An axis or a variable would hide it."""
        axes = "axes: {next_turn: {default: [a], values: {a: x}}}\n"
        sums.write_text(SUMS.replace("prompt:", f"{axes}prompt:"))
        assert "next_turn" in lab.bench("tasks", "check", sums).err


class TestForms:
    """The form of a vendor's requests."""

    def messages(self, opens: Callable[[ModelSettings], Any], answer: object) -> list[Any]:
        """What a server gets of a conversation."""
        request = Request("c", 9, history=(("a", "b"),))
        with fake_server(lambda _asked, _number: Response(body=answer)) as server:
            url = (
                server.base_url if opens.__module__.endswith("openai.api") else server.base_url[:-3]
            )
            settings = ModelSettings("m", "local", base_urls=(url,), system="s")

            async def main() -> None:
                provider = opens(settings)
                try:
                    await provider.complete(request)
                finally:
                    await provider.aclose()

            asyncio.run(main())
            (asked,) = server.asked
        return [(one["role"], one["content"]) for one in asked.body["messages"]]

    def test_openai(self) -> None:
        """The system prompt stands first."""
        from eyechart.providers.openai.api import open_provider

        said = [("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "c")]
        assert self.messages(open_provider, chat("1")) == said

    def test_anthropic(self) -> None:
        """Which has the system prompt apart."""
        from eyechart.providers.anthropic import open_provider

        reply = {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": "1"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        said = [("user", "a"), ("assistant", "b"), ("user", "c")]
        assert self.messages(open_provider, reply) == said


def test_a_prompt_is_cut_where_the_model_replies() -> None:
    """And read with its replies; one that lacks the places stays as it is."""
    prompt = f"a\n{NEXT_TURN}b{NEXT_TURN}c"
    assert messages_of(prompt) == ("a", "b", "c")
    turns = [Turn(reply="1"), Turn(reply="2")]
    shown = conversation(prompt, turns)
    assert shown == "a\n\n[the model replies]\n1\n\nb\n\n[the model replies]\n2\n\nc"
    assert conversation("a […] c", turns) == "a […] c"
    assert conversation(prompt, ()) == prompt


def test_turns_that_cannot_be_true_are_left_out() -> None:
    """Of a line of the journal; the reply stays."""
    line = {"id": "a", "condition": {}, "length": 1, "index": 0, "target": 1, "prompt_hash": "0"}
    said = {**line, "reply": "1", "turns": [{"reply": "x", "prompt_tokens": -4}]}
    (turn,) = decode(json.dumps(said).encode()).turns or ()
    assert (turn.reply, turn.prompt_tokens) == ("x", None)
    record = decode(json.dumps({**said, "turns": [{"reply": 3}]}).encode())
    assert (record.reply, record.turns) == ("1", None)
