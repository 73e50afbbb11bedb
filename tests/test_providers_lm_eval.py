"""lm-eval as a provider, against a stand-in for lm-eval; `test_real_lm_eval` has the real one."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import orjson
import pytest

from eyechart.harness.journal.manifest import MANIFEST
from eyechart.providers import base
from eyechart.providers.base import (
    ModelSettings,
    PromptOverflowError,
    Reply,
    Request,
    SampleError,
    SetupError,
    StopRunError,
    Usage,
)
from eyechart.providers.documents import CUE
from eyechart.providers.in_process.one_thread import OneThread
from eyechart.providers.lm_eval.args import facts_of, label_of, manifest_args, read_args
from eyechart.providers.lm_eval.bridge import LmEvalProvider
from eyechart.providers.lm_eval.loading import QuietOutput
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import needs, open_model
from eyechart.providers.secrets import keep_secret, mask, redact
from tests import fake_lm_eval
from tests.conftest import PATIENCE_S, Lab, records
from tests.fake_lm_eval import Engine, FakeLmEval, Own, Plain, Transformers
from tests.fake_server import Asked, Response, chat, fake_server

Result = TypeVar("Result")
KEY = "planted-0123456789"


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLmEval]:
    """lm-eval's tree, as a stand-in."""
    environment = dict(os.environ)
    yield fake_lm_eval.install(monkeypatch)
    os.environ.clear()
    os.environ.update(environment)


def use(
    work: Callable[[LmEvalProvider], Awaitable[Result]],
    kind: str = "engine",
    *args: str,
    **settings: Any,
) -> Result:
    """What `work` comes to with a model of lm-eval's type `kind`."""
    given = args or ("pretrained=m",)

    async def main() -> Result:
        name = parse_model(f"lm-eval/{kind}", given)
        provider = open_model(name, ModelSettings("", model_args=given, **settings))
        assert isinstance(provider, LmEvalProvider)
        try:
            return await work(provider)
        finally:
            await provider.aclose()

    return asyncio.run(main())


def ask(*prompts: str, most: int = 40, **request: Any) -> Callable[[LmEvalProvider], Any]:
    """Asks all at once, as a run does once the model is there; replies and errors in order."""

    async def work(provider: LmEvalProvider) -> list[Reply | BaseException]:
        await provider.facts()
        asked = (provider.complete(Request(one, most, **request)) for one in prompts)
        return await asyncio.gather(*asked, return_exceptions=True)

    return work


class TestBatches:
    """Models of this process: what waits together is generated together."""

    @pytest.mark.parametrize("kind", ["engine", "hf"])
    def test_what_waits_together_is_one_batch(
        self, fake: FakeLmEval, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        """Forty prompts in three batches of at most sixteen; each gets its own reply."""
        all_wait = threading.Event()
        take = OneThread._take
        monkeypatch.setattr(
            OneThread, "_take", lambda queue: all_wait.wait(PATIENCE_S) and take(queue)
        )

        async def work(provider: LmEvalProvider) -> list[Reply]:
            await provider.facts()
            asked = [asyncio.create_task(provider.complete(Request(one, 40))) for one in prompts]
            asyncio.get_running_loop().call_soon(all_wait.set)
            return await asyncio.gather(*asked)

        monkeypatch.setattr(Engine, "script", lambda prompt: (f"so {prompt}", "stop"))
        prompts = [f"{'1' * (place % 7)} {place}" for place in range(40)]
        replies = use(work, kind, "pretrained=m", "batch_size=16")
        assert [reply.text for reply in replies] == [f"so <{prompt}>" for prompt in prompts]
        assert {reply.finish_reason for reply in replies} == {"stop"}
        first = replies[0]
        assert first.usage == Usage(len(prompts[0]) + 2, len(first.text) + 1)
        assert [len(batch) for batch in fake.engine().batches] == [16, 16, 8]
        lengths = [len(prompt) for batch in fake.engine().batches for prompt in batch]
        assert lengths == sorted(lengths, reverse=True)

    def test_fewer_than_a_batch_are_answered_too(self, fake: FakeLmEval) -> None:
        """Nobody waits for a batch to be full."""
        replies = use(ask("one"), "engine", "pretrained=m", "batch_size=64")
        assert [reply.text for reply in replies] == ["Final answer: 2"]
        assert fake.engine().batches == [["<one>"]]

    def test_a_batch_has_one_way_to_be_sampled(self, fake: FakeLmEval) -> None:
        """Other temperatures and seeds are other batches."""

        async def work(provider: LmEvalProvider) -> None:
            await asyncio.gather(
                provider.complete(Request("a", 40)),
                provider.complete(Request("b", 40, temperature=0.5, seed=7)),
                provider.complete(Request("c", 40)),
            )

        use(work)
        assert sorted(map(sorted, fake.engine().batches)) == [["<a>", "<c>"], ["<b>"]]
        assert {
            (wanted["do_sample"], wanted["temperature"]) for wanted in fake.engine().wanted
        } == {(False, 0.0), (True, 0.5)}
        assert all("repetition_penalty" not in wanted for wanted in fake.engine().wanted)

    def test_the_sampling_of_a_models_config_does_not_hold(
        self, monkeypatch: pytest.MonkeyPatch, fake: FakeLmEval
    ) -> None:
        """A model of transformers has penalties in its `generation_config.json`."""
        model = SimpleNamespace(generation_config=None)
        monkeypatch.setattr(Engine, "model", model, raising=False)

        async def work(provider: LmEvalProvider) -> None:
            await provider.complete(Request("a", 40))
            await provider.complete(Request("b", 40, temperature=0.5, seed=7))

        use(work)
        greedy, drawn = fake.engine().wanted
        assert (greedy["repetition_penalty"], greedy["no_repeat_ngram_size"]) == (1.0, 0)
        assert (drawn["top_p"], drawn["top_k"]) == (1.0, 0)
        assert "top_k" not in greedy  # transformers warns of it where nothing is drawn

    @pytest.mark.parametrize("kind", ["engine", "hf"])
    def test_each_reply_keeps_to_its_own_budget(
        self, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        """They share a batch, and what one may say is not cut by, nor grows with, another's."""
        monkeypatch.setattr(Engine, "script", lambda _prompt: ("0123456789", "stop"))

        async def work(provider: LmEvalProvider) -> list[Reply]:
            budgets = (4, 10, 11, 30)
            return await asyncio.gather(
                *(provider.complete(Request(f"p{most}", most)) for most in budgets)
            )

        replies = use(work, kind)
        assert [(one.text, one.finish_reason, one.usage) for one in replies] == [
            ("0123", "length", Usage(4, 4)),
            ("0123456789", "length", Usage(5, 10)),
            ("0123456789", "stop", Usage(5, 11)),
            ("0123456789", "stop", Usage(5, 11)),
        ]

    def test_budgets_share_a_batch_only_where_the_window_takes_them(
        self, fake: FakeLmEval, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A long prompt next to a large budget would be cut from the left: two batches."""
        monkeypatch.setattr(Engine, "script", lambda prompt: (prompt[:5], "stop"))

        async def work(provider: LmEvalProvider) -> tuple[Reply, Reply]:
            return await asyncio.gather(
                provider.complete(Request("x" * 300, 90)), provider.complete(Request("y", 350))
            )

        long, short = use(work, "hf")
        assert (long.text, short.text) == ("<xxxx", "<y>")
        assert len(fake.engine().batches) == 2

    def test_a_text_to_be_continued_ends_at_its_stops(
        self, fake: FakeLmEval, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Under `--api completions`; no template, and running on is not being cut off."""
        monkeypatch.setattr(
            Engine, "script", lambda _prompt: (" 2\nHow many ones are there now?" * 9, "length")
        )
        (reply,) = use(ask("How many ones are in it?\nRow: 11"), "hf", api="completions")
        assert (reply.text, reply.finish_reason) == (" 2", "stop")
        assert fake.engine().batches[0][0].endswith(f"Row: 11{CUE}")

    def test_an_empty_reply_that_ended_is_what_the_model_said(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The end token came first: nothing said, and that is no error."""
        monkeypatch.setattr(Engine, "script", lambda _prompt: ("", "stop"))
        (reply,) = use(ask("one"), "hf")
        assert (reply.text, reply.finish_reason, reply.usage) == ("", "stop", Usage(5, 1))
        assert reply.sure_stop


class TestFaults:
    """What lm-eval would turn into an empty or a wrong answer."""

    @pytest.mark.parametrize("kind", ["engine", "hf"])
    def test_a_prompt_that_does_not_fit_is_an_overflow(self, fake: FakeLmEval, kind: str) -> None:
        """lm-eval would cut it from the left; it is not sent, and its neighbours are."""
        replies = use(ask("x" * 358, "x" * 359), kind)
        assert isinstance(replies[0], Reply)
        assert isinstance(replies[1], PromptOverflowError)
        assert "361 tokens" in str(replies[1])
        assert "400" in str(replies[1])
        assert len(fake.engine().batches) == 1

    def test_one_bad_prompt_among_many_costs_itself(
        self, fake: FakeLmEval, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The batch is halved until the culprit is alone."""

        def script(prompt: str) -> Any:
            return ValueError("no such\ncharacter") if "7" in prompt else ("fine", "stop")

        monkeypatch.setattr(Engine, "script", script)
        replies = use(ask(*map(str, range(16))))
        assert [reply.text for reply in replies if isinstance(reply, Reply)] == ["fine"] * 15
        assert isinstance(replies[7], SampleError)
        assert str(replies[7]) == "lm-eval's engine failed with ValueError: no such character"
        assert len(fake.engine().batches) == 9

    def test_a_batch_too_large_for_the_memory_is_halved_for_good(
        self, fake: FakeLmEval, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """All are answered, and the user is told once for each halving."""
        said: list[str] = []

        class Small(Engine):
            def texts(self, asked: list[tuple[str, dict[str, Any]]]) -> list[str]:
                if len(asked) > 4:
                    raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
                return super().texts(asked)

        monkeypatch.setitem(fake.models, "small", Small)
        replies = use(ask(*map(str, range(32))), "small", "pretrained=m", notify=said.append)
        assert all(isinstance(reply, Reply) for reply in replies)
        assert said == [f"memory is short: batches of {n} prompts from now on" for n in (16, 8, 4)]

    def test_a_prompt_that_the_memory_does_not_hold_says_so(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Alone, it is an error of its own sample."""
        monkeypatch.setattr(Engine, "script", lambda _prompt: MemoryError())
        (error,) = use(ask("one"))
        assert isinstance(error, SampleError)
        assert str(error).startswith(
            "not enough memory for one prompt of 5 tokens and a reply of 40 ("
        )

    @pytest.mark.parametrize("said", [None, ""])
    def test_no_text_from_a_type_that_tells_nothing_is_an_error(
        self, monkeypatch: pytest.MonkeyPatch, said: str | None
    ) -> None:
        """It may be anything that failed, so it is no wrong answer."""
        monkeypatch.setattr(Plain, "script", staticmethod(lambda _prompt: said))
        (error,) = use(ask("one"), "plain", api="completions")
        assert isinstance(error, SampleError)
        assert "no text" in str(error)

    def test_a_type_without_a_tokenizer_answers_nevertheless(self) -> None:
        """With what is known: its text."""
        (reply,) = use(ask("one"), "plain", api="completions")
        assert reply == Reply("Final answer: 2")

    def test_a_reply_for_another_prompt_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A model that loses one of its replies fails, and mixes nothing up."""
        monkeypatch.setattr(Engine, "generate_until", lambda *_a, **_k: [])
        (error,) = use(ask("one"))
        assert isinstance(error, SampleError)

    def test_closing_ends_whoever_waits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A run that stops does not hang on a batch."""
        begun, go_on = threading.Event(), threading.Event()

        def script(_prompt: str) -> tuple[str, str]:
            begun.set()
            assert go_on.wait(10)
            return "late", "stop"

        monkeypatch.setattr(Engine, "script", staticmethod(script))

        async def work(provider: LmEvalProvider) -> tuple[Any, Any]:
            first = asyncio.create_task(provider.complete(Request("a", 40)))
            await asyncio.to_thread(begun.wait, PATIENCE_S)
            second = asyncio.create_task(provider.complete(Request("b", 40)))
            await asyncio.sleep(0.01)
            closing = asyncio.create_task(provider.aclose())
            await asyncio.sleep(0.01)
            go_on.set()
            await closing
            return await asyncio.gather(first, second, return_exceptions=True)

        first, second = use(work)
        assert first.text == "late"
        assert isinstance(second, StopRunError)


class TestOpening:
    """What cannot be, said in one line before anything is asked."""

    @pytest.mark.parametrize(
        ("kind", "settings", "words"),
        [
            ("engin", {}, ("'engin'", "did you mean 'engine'")),
            ("hf/gpt2", {}, ("no model type 'hf/gpt2'", "model_args='pretrained=")),
            ("broken", {}, ("cannot load broken", "weights.bin is no file of weights")),
            ("lacking", {}, ("torch.nn", "pip install 'lm-eval[hf]'")),
            ("plain", {}, ("no chat template", "api='completions'")),
            ("local-completions", {}, ("base_url", "/v1/completions")),
        ],
    )
    def test_what_cannot_be_loaded(
        self, kind: str, settings: dict[str, Any], words: tuple[str, ...]
    ) -> None:
        """Says what is wrong and the remedy."""
        with pytest.raises(SetupError) as raised:
            use(lambda provider: provider.facts(), kind, **settings)
        assert not [word for word in words if word not in str(raised.value)], str(raised.value)
        assert "\n" not in str(raised.value)

    def test_the_package_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The command that brings it is in the line."""
        monkeypatch.setitem(sys.modules, "lm_eval", None)
        monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
        with pytest.raises(SetupError, match=r"pip install -e '\.\[lm-eval\]'"):
            open_model(parse_model("lm-eval/hf"), ModelSettings("hf"))
        (row,) = (row for row in needs({}) if row[0] == "lm-eval")
        assert "pip install -e '.[lm-eval]'" in row[2]

    @pytest.mark.parametrize(
        ("settings", "word"),
        [({"logprobs": True}, "logprobs=True"), ({"base_urls": ("http://a/v1",)}, "base_url")],
    )
    def test_what_is_not_had_here(self, settings: dict[str, Any], word: str) -> None:
        """Refused at once."""
        with pytest.raises(SetupError, match=word):
            open_model(parse_model("lm-eval/hf"), ModelSettings("hf", **settings))

    def test_a_template_that_leaves_the_system_prompt_out(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """lm-eval would send the prompt without it and say nothing."""
        monkeypatch.setattr(Engine, "system", False)
        with pytest.raises(SetupError, match="leaves out system"):
            use(lambda provider: provider.facts(), system="Be brief.")

    def test_the_system_prompt_is_sent(self, fake: FakeLmEval) -> None:
        """Before the prompt."""
        use(ask("one"), system="Be brief.")
        assert fake.engine().batches == [["<Be brief.|one>"]]

    def test_facts_tell_the_arguments_and_no_key(self) -> None:
        """What shapes answers; how fast they come is no part of it."""
        args = ("pretrained=m", "dtype=float32", "batch_size=8", f"auth_token={KEY}")
        facts = use(lambda provider: provider.facts(), "hf", *args)
        assert facts == {
            "engine": "lm-eval",
            "lm_eval": "0.4.99",
            "type": "hf",
            "model_args": {"dtype": "float32", "pretrained": "m"},
            "max_model_len": 400,
        }

    def test_tokens_are_counted_as_they_are_sent(self) -> None:
        """With the template around them; not at all where lm-eval has no tokenizer."""
        assert use(lambda provider: provider.count_tokens(["one", "three"])) == [5, 7]
        counted = use(lambda provider: provider.count_tokens(["one"]), "plain", api="completions")
        assert counted is None

    def test_defaults_are_those_of_lm_eval_but_for_the_batch(self, fake: FakeLmEval) -> None:
        """One prompt at a time is its own default; `auto` is found by halving."""
        use(ask("one"))
        assert (fake.engine().batch_size, fake.engine().args["device"]) == (32, "cuda:0")
        Engine.made.clear()
        use(ask("one"), "engine", "pretrained=m", "batch_size=auto", "device=cpu")
        assert (fake.engine().batch_size, fake.engine().args["device"]) == (64, "cpu")


class TestServers:
    """Types that ask a server: lm-eval's request, our reading of the reply."""

    def reply(
        self,
        response: Response,
        kind: str = "local-chat-completions",
        *args: str,
        path: str = "/chat/completions",
        **settings: Any,
    ) -> tuple[Any, list[Asked]]:
        """What one prompt gets from a server with this one response, and what it was asked."""
        with ExitStack() as stack:
            server = stack.enter_context(fake_server(lambda _asked, _number: response))
            given = ("model=m", f"base_url={server.base_url}{path}", *args)
            (said,) = use(ask("How many?\nRow: 11"), kind, *given, **settings)
            return said, server.asked

    def test_an_ordinary_exchange(self) -> None:
        """The body is lm-eval's, without a list of stops that is empty; the reply is all of it."""
        said, (asked,) = self.reply(Response(body=chat("7")), system="Be brief.")
        assert said == Reply("7", "stop", Usage(11, 3), "fake-model-1")
        assert asked.path == "/v1/chat/completions"
        assert asked.body == {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "How many?\nRow: 11"},
            ],
            "model": "m",
            "max_tokens": 40,
            "temperature": 0.0,
            "seed": 1234,
        }

    def test_a_text_to_be_continued(self) -> None:
        """With stops; as tokens, if lm-eval is given a tokenizer for them."""
        body = {"choices": [{"text": " 7", "finish_reason": "stop"}]}
        said, (asked,) = self.reply(
            Response(body=body), "local-completions", path="/completions", api="completions"
        )
        assert said.text == " 7"
        assert asked.body["prompt"] == f"How many?\nRow: 11{CUE}"
        assert f"\n{CUE.strip()}" in asked.body["stop"]
        said, (asked,) = self.reply(
            Response(body=body), "local-completions", "tokenizer=t", api="completions"
        )
        assert asked.body["prompt"] == [ord(sign) for sign in f"How many?\nRow: 11{CUE}"]

    def test_tokens_that_do_not_fit_are_an_overflow(self) -> None:
        """lm-eval would cut them from the left."""
        error, asked = self.reply(
            Response(body={}),
            "local-completions",
            "tokenizer=t",
            "max_length=50",
            api="completions",
        )
        assert isinstance(error, PromptOverflowError)
        assert "max_length" in str(error)
        assert asked == []

    @pytest.mark.parametrize(
        ("body", "finish", "refusal"),
        [
            (chat(None, "length"), "length", None),
            (chat("", "content_filter"), "content_filter", None),
            (chat(None, "stop", refusal="I will not."), "stop", "I will not."),
        ],
    )
    def test_what_lm_eval_makes_empty_keeps_its_reason(
        self, body: Any, finish: str, refusal: str | None
    ) -> None:
        """A reply cut off while thinking, filtered, refused."""
        said, _ = self.reply(Response(body=body))
        assert (said.text, said.finish_reason, said.refusal) == ("", finish, refusal)

    @pytest.mark.parametrize(
        ("response", "error"),
        [
            (Response(429, {"error": {"message": "slow down"}}), base.RateLimitError),
            (Response(401, {"error": {"message": "who?"}}), base.AuthError),
            (Response(500, {"error": {"message": "oh"}}), base.ServerFaultError),
            (
                Response(400, {"error": {"message": "maximum context length is 5"}}),
                PromptOverflowError,
            ),
            (Response(200, b"<html>"), base.BadReplyError),
            (Response(200, {"choices": []}), base.BadReplyError),
            (Response(200, chat("x" * 999), cut=True), base.BrokenConnectionError),
        ],
    )
    def test_faults_are_told_apart_and_asked_once(
        self, response: Response, error: type[Exception]
    ) -> None:
        """The runner is the one who tries again."""
        said, asked = self.reply(response)
        assert type(said) is error
        assert len(asked) == 1

    def test_a_key_is_in_no_message(self) -> None:
        """Not even if the server says it back."""
        body = {"error": {"message": f"bad key {KEY}"}}
        said, (asked,) = self.reply(
            Response(400, body), "local-chat-completions", f"auth_token={KEY}"
        )
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        assert KEY not in str(said)

    def test_a_header_of_ones_own_is_in_no_message(self) -> None:
        """Nor is what it has of a key, where it is given as a table."""
        body = {"error": {"message": f"bad key {KEY}, basic {KEY}"}}
        header = f"header={{'X-Api-Key': '{KEY}', 'Accept': 'application/json'}}"
        said, _ = self.reply(Response(400, body), "local-chat-completions", header)
        assert KEY not in str(said)
        assert redact("of application/json") == "of application/json"
        assert mask(f"I was sent {KEY}") == "I was sent ***"

    def test_a_temperature_of_lm_evals_own_is_recorded(self) -> None:
        """It decides by the model's name; the reply says that ours was left out."""
        told: list[str] = []
        said, _ = self.reply(Response(body=chat("7")), "warm", notify=told.append)
        assert said.dropped_params == ("temperature",)
        assert told == ["lm-eval asks 'm' at temperature 1"]

    def test_the_forms_of_other_vendors(self) -> None:
        """Anthropic's and SGLang's replies, as lm-eval's types for them get them."""
        anthropic = {
            "content": [{"type": "text", "text": "7"}],
            "stop_reason": "max_tokens",
            "usage": {"input_tokens": 5, "output_tokens": 40},
        }
        said, _ = self.reply(Response(body=anthropic))
        assert said == Reply("7", "length", Usage(5, 40, 0, 0))
        sglang = {
            "text": "7",
            "meta_info": {
                "finish_reason": {"type": "length"},
                "prompt_tokens": 5,
                "completion_tokens": 40,
            },
        }
        said, _ = self.reply(Response(body=sglang))
        assert said == Reply("7", "length", Usage(5, 40), sure_stop=said.sure_stop)

    def test_a_llama_server_is_told_when_to_end(self) -> None:
        """lm-eval asks it for as much as it likes to say."""
        body = {"choices": [{"text": " 7", "finish_reason": "length"}]}
        said, (asked,) = self.reply(Response(body=body), "gguf", path="", api="completions")
        assert (said.text, said.finish_reason) == (" 7", "length")
        assert asked.path == "/v1/v1/completions"  # the address is the server's own, without /v1
        assert (asked.body["max_tokens"], asked.body["temperature"]) == (40, 0.0)
        assert "seed" not in asked.body
        assert asked.body["repeat_penalty"] == 1.0  # that of llama-cpp-python is 1.1

    @pytest.mark.parametrize(
        ("said", "kind"),
        [
            (TimeoutError(), base.ReplyTimeoutError),
            (ConnectionError("no"), base.BrokenConnectionError),
            (type("Limited", (Exception,), {"status_code": 429})("slow"), base.RateLimitError),
            (KeyError("choices"), base.BadReplyError),
        ],
    )
    def test_a_type_that_sends_for_itself(
        self, monkeypatch: pytest.MonkeyPatch, said: Exception, kind: type[Exception]
    ) -> None:
        """Its replies are read the same way, its errors by what they say."""
        monkeypatch.setattr(Own, "said", chat("7", "length"))
        (reply,) = use(ask("one"), "own")
        assert (reply.text, reply.finish_reason) == ("7", "length")
        monkeypatch.setattr(Own, "said", said)
        (error,) = use(ask("one"), "own")
        assert type(error) is kind

    @pytest.mark.parametrize(
        ("kind", "api", "word"),
        [
            ("local-completions", "chat", "use api='completions'"),
            ("local-chat-completions", "completions", "chat form only"),
        ],
    )
    def test_a_form_that_a_type_has_not(self, kind: str, api: Any, word: str) -> None:
        """Said before anything is sent."""
        with pytest.raises(SetupError, match=word):
            use(lambda provider: provider.facts(), kind, "base_url=http://127.0.0.1:9/v1", api=api)


class TestNames:
    """How a model is called, and what is told of it."""

    @pytest.mark.parametrize(
        ("args", "label"),
        [
            (("pretrained=EleutherAI/pythia-70m",), "EleutherAI/pythia-70m"),
            (("dtype=float32", "pretrained=a", "device=cpu"), "a"),
            (
                ("peft=my/adapter", "pretrained=a", "revision=step1"),
                "a,revision=step1,peft=my/adapter",
            ),
            (("base_url=http://u:p@h/v1", "model=m"), "m"),
            (("base_url=http://user:pass@host:1/v1",), "http://***@host:1/v1"),
            ((), ""),
        ],
    )
    def test_other_weights_are_another_model(self, args: tuple[str, ...], label: str) -> None:
        """What makes weights is in the name, how they are run is not."""
        assert label_of(read_args(args)) == label

    def test_the_label_names_type_and_model(self) -> None:
        """As it stands in tables."""
        assert parse_model("lm-eval/hf", ("pretrained=a/b",)).label == "lm-eval/hf/a/b"
        assert parse_model("lm-eval/dummy").label == "lm-eval/dummy"

    @pytest.mark.parametrize(
        ("args", "words"),
        [
            (("pretrained",), ("KEY=VALUE", "'pretrained'")),
            (("=x",), ("KEY=VALUE",)),
            (("a=1", "a=2"), ("'a'", "twice")),
            (("pretrained=x,dtype=float32",), ("'dtype'", "of its own")),
        ],
    )
    def test_arguments_that_are_none(self, args: tuple[str, ...], words: tuple[str, ...]) -> None:
        """Refused with the remedy."""
        with pytest.raises(SetupError) as raised:
            read_args(args)
        assert all(word in str(raised.value) for word in words)

    def test_lists_keep_their_commas(self) -> None:
        """They are lm-eval's to read."""
        assert read_args(["chat_template_args={'a': 1, 'b': 2}"])["chat_template_args"]

    def test_secrets_are_told_to_nobody(self) -> None:
        """Neither in the manifest's facts nor in its command."""
        args = read_args([f"api_key={KEY}", "tokenizer=t", "think_end_token=</think>"])
        assert manifest_args(args) == {"tokenizer": "t", "think_end_token": "</think>"}
        assert KEY not in redact(f"bench run --model-arg api_key={KEY}")

    def test_others_take_no_model_arguments(self) -> None:
        """As they take no --model-arg."""
        with pytest.raises(SetupError, match="model_args is for models of vllm/ and lm-eval/"):
            parse_model("tiny", ("dtype=float32",))

    def test_weights_on_disk_are_known_by_what_is_in_them(self, tmp_path: Path) -> None:
        """A checkpoint that was overwritten is another model, a copy of it is the same."""
        for name in ("m", "copy"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "config.json").write_text("{}")
            (tmp_path / name / "model.safetensors").write_bytes(bytes(10**6))
        args = {"pretrained": str(tmp_path / "m")}
        before = facts_of(args)["weights"]
        assert facts_of({"pretrained": str(tmp_path / "copy")})["weights"] == before
        (tmp_path / "m" / "model.safetensors").write_bytes(bytes(10**6 - 1) + b"x")
        assert facts_of(args)["weights"] != before
        assert "weights" not in facts_of({"model": "no/such\0folder"})

    def test_a_provider_is_no_model(self) -> None:
        """Its name alone is not taken for a model of OpenAI's."""
        with pytest.raises(SetupError, match="'lm-eval' is a provider and no model: lm-eval/"):
            parse_model("lm-eval", ("pretrained=a/b",))


class TestCommand:
    """`bench run --model lm-eval/…`."""

    def test_a_run_is_kept_apart_by_its_arguments(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The manifest has them, without the key; other arguments do not continue it."""
        monkeypatch.setattr(Transformers, "script", lambda _prompt: ("Final answer: 2", "stop"))
        model = ("--model", "lm-eval/hf", "--model-arg", "pretrained=a/b")
        done = lab.bench_run(*model, "--model-arg", f"auth_token={KEY}", "--lengths", "3")
        assert done.code == 0, done
        folder = lab.the_run()
        assert folder.parts[-5:-2] == ("hf", "a", "b")
        said = (folder / MANIFEST).read_bytes()
        assert orjson.loads(said)["server"]["model_args"] == {"pretrained": "a/b"}
        assert KEY.encode() not in said
        assert all(record["finish_reason"] == "stop" for record in records(folder))
        for more in ((), ("--lengths", "3")):  # also where nothing is left to ask
            done = lab.bench_run(*model, "--model-arg", "dtype=float16", *more)
            assert "another model or server (model_args was" in done.err
            assert done.code == 1
        assert len(records(folder)) == 8
        assert b"float16" not in (folder / MANIFEST).read_bytes()

    def test_other_models_refuse_it(self, lab: Lab) -> None:
        """One line, before anything is done."""
        lab.bench_run("--model", "tiny", "--model-arg", "a=1").one_line(2, "--model-arg", "tiny")


def test_what_libraries_print_goes_to_the_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Standard output stays ours, below Python too, and comes back; no key stays in the log."""
    log = tmp_path / "server.log"
    keep_secret(KEY)
    quiet = QuietOutput(log)
    os.write(1, f"an engine's talk of {KEY}\n".encode())
    quiet.close()
    quiet.close()
    os.write(1, b"ours\n")
    assert capfd.readouterr().out == "ours\n"
    assert log.read_text() == "an engine's talk of ***\n"
