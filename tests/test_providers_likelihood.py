"""Options that providers score: which tokens count, and what servers are asked."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from eyechart.providers.base import (
    BadReplyError,
    Likelihood,
    ModelSettings,
    OracleAnswer,
    OverloadedError,
    PromptOverflowError,
    Reply,
    Request,
    SetupError,
    StopRunError,
    Usage,
)
from eyechart.providers.descriptors import BUILT_IN, descriptor_of
from eyechart.providers.likelihood import scored_reply, shared_tokens, texts_with
from eyechart.providers.openai.scoring import UnreadableError, _echoed
from eyechart.providers.openai.token_tree import TokenTree, token_tree
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_model
from eyechart.providers.scripted import ScriptedProvider
from eyechart.providers.tiny.chat import Chat
from eyechart.providers.tiny.folder import model_folder
from eyechart.providers.tiny.runtime import TinyModel
from tests import fake_lm_eval
from tests.fake_lm_eval import FakeLmEval
from tests.fake_server import Asked, Response, fake_server

COUNT = Request("How many?", 8, options=("7", "81"), opening="Final answer:")
WHOLES = [f"How many?\nFinal answer:{rest}" for rest in ("", " 7", " 81")]


def score(model: str, request: Request, **settings: Any) -> Reply:
    """What the provider of `model` says of the options."""

    async def main() -> Reply:
        provider = open_model(parse_model(model), ModelSettings(model, **settings))
        assert isinstance(provider, Likelihood)
        try:
            return await provider.score(request)
        finally:
            await provider.aclose()

    return asyncio.run(main())


def logprob(character: str) -> float:
    """That of a character as a token, whatever stands before it."""
    return -ord(character) / 100


def listing(asked: Asked) -> list[tuple[list[str], list[float | None]]]:
    """The tokens of each prompt, one a character, with their log-probabilities."""
    texts = [
        text if isinstance(text, str) else "".join(map(chr, text)) for text in asked.body["prompt"]
    ]
    return [(list(text), [None, *map(logprob, text[1:])]) for text in texts]


def echoing(asked: Asked, _number: int) -> Response:
    """Repeats the prompts with one more token, the last prompt first."""
    if asked.path.endswith("/models"):
        return Response(body={"data": [{"id": "m"}]})
    assert asked.body["echo"]
    choices = [
        {
            "index": index,
            "text": "".join(tokens),
            "logprobs": {"tokens": [*tokens, "!"], "token_logprobs": [*logprobs, -9.0]},
        }
        for index, (tokens, logprobs) in enumerate(listing(asked))
    ]
    usage = {"prompt_tokens": 99, "completion_tokens": len(choices)}
    return Response(body={"model": "m-1", "choices": choices[::-1], "usage": usage})


def listed(asked: Asked, _number: int) -> Response:
    """Says as vLLM does what the tokens of each prompt are, which may come as numbers."""
    if "logprob_token_ids" in asked.body:  # unknown to older servers, which ignore it
        return Response(body={"choices": [{"text": "!"} for _ in asked.body["prompt"]]})
    if asked.path == "/tokenize" and "prompt" in asked.body:
        return Response(404)
    if asked.path == "/tokenize":
        *_, user = (one for one in asked.body["messages"] if one["role"] == "user")
        said = "".join(
            one["content"] for one in asked.body["messages"] if one["role"] == "assistant"
        )
        assert bool(said) is not asked.body["add_generation_prompt"]
        assert bool(said) is asked.body.get("continue_final_message", False)
        return Response(body={"tokens": list(map(ord, f"<{user['content']}>{said}"))})
    choices = [
        {
            "index": index,
            "text": "!",
            "prompt_logprobs": [
                None,
                *({str(ord(token)): {"logprob": logprob(token)}} for token in tokens[1:]),
            ],
        }
        for index, (tokens, _) in enumerate(listing(asked))
    ]
    return Response(body={"choices": choices})


def check(reply: Reply) -> None:
    """The options of `COUNT` as these servers score them."""
    assert reply.options is not None
    assert [one.text for one in reply.options] == ["7", "81"]
    assert [one.logprob for one in reply.options] == pytest.approx(
        [sum(map(logprob, text)) for text in (" 7", " 81")]
    )
    assert [one.tokens for one in reply.options] == [2, 3]
    assert (reply.text, reply.finish_reason) == ("7", "stop")


def test_an_option_is_what_goes_beyond_the_prompt() -> None:
    """Text and option are tokenized together; where they share a token, all options have it."""
    assert shared_tokens(["a", "b:"], [["a", "b:", " 7"], ["a", "b:", " 8", "1"]]) == 2
    assert shared_tokens(["a", "b", ":"], [["a", "b", ":7"], ["a", "b", ":", " 8"]]) == 2
    assert shared_tokens([1, 2, 3], [[1, 2], [1, 2, 3, 4]][1:]) == 3
    with pytest.raises(BadReplyError, match="cannot be told from those of the prompt"):
        shared_tokens([1, 2, 3], [[1, 2], [1, 2, 3, 4]])
    with pytest.raises(BadReplyError, match="cannot be told"):
        shared_tokens(["a"], [["b", "c"]])


@pytest.mark.parametrize(
    ("before", "wholes"),
    [
        ("Answer:", ["Answer: 7", "Answer: 81"]),
        ("Answer:  ", ["Answer:  7", "Answer:  81"]),
        ("<assistant>\n", ["<assistant>\n7", "<assistant>\n81"]),
        ("", ["7", "81"]),
    ],
)
def test_blanks_go_with_the_option(before: str, wholes: list[str]) -> None:
    """As in lm-evaluation-harness; a reply begins without one."""
    assert texts_with(before, COUNT) == (before.rstrip(" "), wholes)


def test_the_most_probable_option_is_the_reply() -> None:
    """Of equal ones the last, so that a model that cannot tell is not right."""
    assert scored_reply(COUNT, [[-1.0], [-0.5, -0.6]]).text == "7"
    assert scored_reply(COUNT, [[-1.0], [-0.5, -0.5]]).text == "81"


def test_options_that_exclude_each_other_are_not_both_certain() -> None:
    """A server that fills in zeros would make the last option the answer of every sample."""
    wanted = Request("", 1, options=("1", "2", "10"))
    with pytest.raises(BadReplyError, match="2 options that exclude each other have"):
        scored_reply(wanted, [[0.0], [-0.0], [0.0, 0.0]])
    chain = Request("", 1, options=("1", "10", "100"))  # each begins with the one before
    assert scored_reply(chain, [[0.0], [0.0], [0.0]]).options is not None


def test_a_number_beyond_all_floats_is_no_log_probability() -> None:
    """The reply is wrong, and not this program."""
    logprobs = {"tokens": ["a", "b"], "token_logprobs": [None, -(10**400)]}
    with pytest.raises(UnreadableError):
        _echoed({"logprobs": logprobs})


def test_a_server_that_repeats_the_prompt() -> None:
    """It is asked once for all options; its usage has the prompt once."""
    with fake_server(echoing) as server:
        reply = score("m", COUNT, base_urls=(server.base_url,), api="completions")
    (asked,) = (one for one in server.asked if one.path == "/v1/completions")
    assert asked.body == {
        "model": "m", "prompt": WHOLES, "max_tokens": 1, "temperature": 0.0,
        "echo": True, "logprobs": 1,
    }  # fmt: skip
    check(reply)
    assert reply.usage == Usage(len(WHOLES[0]), 5)
    assert reply.model == "m-1"
    assert reply.sent == {"temperature": 0.0, "echo": True, "logprobs": 1}


def test_vllm_lists_the_tokens_of_texts() -> None:
    """Without repeating the prompt."""
    with fake_server(listed) as server:
        reply = score("vllm/m", COUNT, base_urls=(server.base_url,), api="completions")
    *_, asked = server.asked
    assert (asked.body["prompt"], asked.body["prompt_logprobs"]) == (WHOLES, 0)
    check(reply)


def test_vllm_lists_the_tokens_of_chats() -> None:
    """The options continue the assistant's message; the tokens come from the server's template."""
    with fake_server(listed) as server:
        check(score("vllm/m", COUNT, base_urls=(server.base_url,)))
        bare = Request("How many? Final answer:", 8, options=("7", "81"))
        reply = score("vllm/m", bare, base_urls=(server.base_url,))
    *_, asked = server.asked
    texts = ["".join(map(chr, tokens)) for tokens in asked.body["prompt"]]
    assert texts == [f"<How many? Final answer:>{rest}" for rest in ("", "7", "81")]
    assert reply.options is not None
    assert [one.tokens for one in reply.options] == [1, 2]


class Choosing:
    """vLLM that gives the probabilities of chosen next tokens; a token is a character."""

    def __init__(self, *, is_local: bool = True) -> None:
        self.is_local = is_local
        """Whether a last digit is the same token with and without the question."""

    def tokens(self, text: str) -> list[int]:
        *tokens, last = map(ord, text)
        is_other = not self.is_local and text.startswith("How") and chr(last).isdecimal()
        return [*tokens, last + 1000 if is_other else last]

    def __call__(self, asked: Asked, _number: int) -> Response:
        if asked.path == "/tokenize":
            text = asked.body.get("prompt")
            if text is None:
                return listed(asked, _number)
            return Response(body={"tokens": self.tokens(text)})
        chosen = asked.body["logprob_token_ids"]
        assert len(chosen) == len(set(chosen)) <= 128
        assert (asked.body["max_tokens"], asked.body["logprobs"]) == (1, 1)
        assert asked.body["return_tokens_as_token_ids"]
        table = {f"token_id:{one}": -one / 100 for one in chosen}
        choices = [
            {"index": at, "text": "!", "logprobs": {"top_logprobs": [{**table, "!": -9.0}]}}
            for at in range(len(asked.body["prompt"]))
        ]
        usage = {"prompt_tokens": 99, "completion_tokens": len(choices)}
        return Response(body={"choices": choices[::-1], "usage": usage})


def paths(asked: Sequence[Asked]) -> list[str]:
    return [one.path for one in asked]


@pytest.mark.parametrize("api", ["completions", "chat"])
def test_vllm_gives_chosen_next_tokens(api: str) -> None:
    """One prompt for each beginning that options share, not one for each option."""
    with fake_server(Choosing()) as server:
        reply = score("vllm/m", COUNT, base_urls=(server.base_url,), api=api)
    *_, asked = server.asked
    text = WHOLES[0] if api == "completions" else "<How many?>Final answer:"
    assert ["".join(map(chr, one)) for one in asked.body["prompt"]] == [
        f"{text}{node}" for node in ("", " ", " 8")
    ]
    assert asked.body["logprob_token_ids"] == sorted(map(ord, " 718"))
    check(reply)
    assert reply.usage == Usage(len(text), 5)


@pytest.mark.parametrize(("is_local", "times"), [(True, 1), (False, 3)])
def test_a_text_is_tokenized_once_where_its_end_says_the_rest(is_local: bool, times: int) -> None:
    """The ends of other samples are known; a tokenizer that looks further back than the end is
    asked for each option.
    """

    async def main() -> list[str]:
        settings = ModelSettings("m", base_urls=(server.base_url,), api="completions")
        provider = open_model(parse_model("vllm/m"), settings)
        assert isinstance(provider, Likelihood)
        try:
            first = await provider.score(COUNT)
            known = len(server.asked)
            second = await provider.score(replace(COUNT, prompt="How many more?"))
        finally:
            await provider.aclose()
        assert first.options is not None
        assert first.options == second.options
        return paths(server.asked[known:])

    with fake_server(Choosing(is_local=is_local)) as server:
        assert asyncio.run(main()) == ["/tokenize"] * times + ["/v1/completions"]


def test_a_server_without_chosen_tokens_is_asked_for_them_once() -> None:
    """Then prompts are listed."""

    async def main() -> None:
        settings = ModelSettings("m", base_urls=(server.base_url,))
        provider = open_model(parse_model("vllm/m"), settings)
        assert isinstance(provider, Likelihood)
        try:
            for _ in range(2):
                check(await provider.score(COUNT))
        finally:
            await provider.aclose()

    for refuses in (False, True):

        def answer(asked: Asked, number: int, refuses: bool = refuses) -> Response:
            if refuses and "logprob_token_ids" in asked.body:
                return Response(400, {"error": {"message": "logprob_token_ids"}})
            return listed(asked, number)

        with fake_server(answer) as server:
            asyncio.run(main())
        chosen = [
            "logprob_token_ids" in one.body for one in server.asked if "completions" in one.path
        ]
        assert chosen == [True, False, False]


def test_options_that_share_little_are_listed() -> None:
    """A node costs as much as a prompt: long options, and more tokens than vLLM takes."""
    assert token_tree([1, 2], [[1, 2, 3], [1, 2, 4, 5]]) == TokenTree((1, 2), ((3,), (4, 5)))
    assert token_tree([1, 2], [[1, 2, 3, 4, 5], [1, 2, 4, 5]]) is None  # 4 nodes, 3 prompts
    options = [[1, 2, 3 + at] for at in range(129)]
    assert token_tree([1, 2], options[:128]) is not None
    assert token_tree([1, 2], options) is None


@pytest.mark.parametrize("refused", [True, False])
def test_chosen_tokens_that_are_missing_once(refused: bool) -> None:
    """That sample is asked in the other way; the next one is not."""
    whole = Choosing()

    def answer(asked: Asked, number: int) -> Response:
        if "prompt_logprobs" in asked.body:
            return listed(asked, number)
        if "logprob_token_ids" in asked.body and paths(server.asked).count(asked.path) == 2:
            if refused:
                return Response(400, {"error": {"message": "unknown field logprob_token_ids"}})
            asked.body["logprob_token_ids"] = [32]
        return whole(asked, number)

    async def main() -> None:
        settings = ModelSettings("m", base_urls=(server.base_url,))
        provider = open_model(parse_model("vllm/m"), settings)
        assert isinstance(provider, Likelihood)
        try:
            for _ in range(3):
                check(await provider.score(COUNT))
        finally:
            await provider.aclose()

    with fake_server(answer) as server:
        asyncio.run(main())
    asked = [one.body for one in server.asked if one.path == "/v1/completions"]
    assert ["logprob_token_ids" in body for body in asked] == [True, True, False, True]


def test_a_tokenizer_that_fails_is_tried_again() -> None:
    """An overloaded server is no server without `/tokenize`."""

    def answer(asked: Asked, number: int) -> Response:
        if asked.path == "/tokenize":
            return Response(503, {"error": {"message": "busy"}})
        return listed(asked, number)

    with fake_server(answer) as server, pytest.raises(OverloadedError, match="503: busy"):
        score("vllm/m", COUNT, base_urls=(server.base_url,))


def spoiled(change: Callable[[dict[str, Any]], object]) -> Callable[[Asked, int], Response]:
    """A server whose replies are changed."""

    def answer(asked: Asked, number: int) -> Response:
        response = echoing(asked, number)
        if isinstance(response.body, dict) and "choices" in response.body:
            change(response.body)
        return response

    return answer


def only_generated(body: dict[str, Any]) -> None:
    for choice in body["choices"]:
        choice["logprobs"] = {"tokens": ["!"], "token_logprobs": [-9.0]}


def with_all(value: float | None) -> Callable[[dict[str, Any]], object]:
    """Gives all tokens this log-probability."""

    def change(body: dict[str, Any]) -> None:
        for choice in body["choices"]:
            logprobs = choice["logprobs"]["token_logprobs"]
            choice["logprobs"]["token_logprobs"] = [value for _ in logprobs]

    return change


def with_last(value: float | None) -> Callable[[dict[str, Any]], object]:
    """Gives the last token of the first option this log-probability."""

    def change(body: dict[str, Any]) -> None:
        one = next(choice for choice in body["choices"] if choice["index"] == 1)
        one["logprobs"]["token_logprobs"][-2] = value

    return change


def shortened(body: dict[str, Any]) -> None:
    body["choices"][0]["logprobs"]["token_logprobs"].pop()


STRUCTURE = [
    (lambda body: body["choices"].pop(), "the reply has 2 of 3 prompts"),
    (lambda body: [one.pop("logprobs") for one in body["choices"]], "no logprobs"),
    (with_all(None), r"each token of the options has no log-probability \(null or NaN\)"),
    (with_all(math.nan), r"each token of the options has no log-probability \(null or NaN\)"),
    (with_all(-math.inf), "each token of the options has the log-probability -inf"),
    (only_generated, "the repeated tokens are not those of the prompt"),
]
VALUES = [
    (with_last(None), "a token of an option has no log-probability"),
    (with_last(5.0), "a token of an option has the log-probability 5.0"),
    (with_last(-math.inf), "a token of an option has the log-probability -inf"),
    (shortened, "tokens have [0-9]+ log-probabilities"),
]


@pytest.mark.parametrize(("change", "said"), STRUCTURE)
def test_a_server_without_probabilities_of_prompts(
    change: Callable[[dict[str, Any]], object], said: str
) -> None:
    """Says so in one line, which ends the run."""
    with (
        fake_server(spoiled(change)) as server,
        pytest.raises(
            SetupError, match=f"does not give the probabilities.*{said}.*; use reading='reply'"
        ),
    ):
        score("m", COUNT, base_urls=(server.base_url,), api="completions")


@pytest.mark.parametrize("status", [400, 500])
def test_a_server_that_rejects_such_requests(status: int) -> None:
    """The same, with the server's words; llama-cpp-python's server says it with 500."""

    def rejecting(asked: Asked, number: int) -> Response:
        if asked.path.endswith("/models"):
            return echoing(asked, number)
        return Response(status, {"error": {"message": "logprobs is not supported"}})

    with (
        fake_server(rejecting) as server,
        pytest.raises(SetupError, match=r"logprobs is not supported.*; use reading='reply'"),
    ):
        score("m", COUNT, base_urls=(server.base_url,), api="completions")


@pytest.mark.parametrize("model", ["m", "vllm/m"])
@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "no access.*; set [A-Z]+_API_KEY$"),
        (404, "without /completions needs reading='reply' and api='chat'"),
    ],
)
def test_a_server_that_has_no_such_path_or_wants_a_key(
    monkeypatch: pytest.MonkeyPatch, model: str, status: int, said: str
) -> None:
    """The line ends with what helps."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def answer(asked: Asked, number: int) -> Response:
        if asked.path.endswith("/models"):
            return echoing(asked, number)
        return Response(status, {"error": {"message": "no"}})

    with fake_server(answer) as server, pytest.raises(StopRunError, match=said):
        score(model, COUNT, base_urls=(server.base_url,), api="completions")


@pytest.mark.parametrize(("change", "said"), [*STRUCTURE, *VALUES])
def test_after_a_good_reply_a_bad_one_is_an_error_of_its_sample(
    change: Callable[[dict[str, Any]], object], said: str
) -> None:
    """A value that cannot be true is one from the beginning."""
    is_good = True

    def later(body: dict[str, Any]) -> None:
        if not is_good:
            change(body)

    async def main(base_url: str) -> None:
        nonlocal is_good
        settings = ModelSettings("m", base_urls=(base_url,), api="completions")
        provider = open_model(parse_model("m"), settings)
        assert isinstance(provider, Likelihood)
        try:
            check(await provider.score(COUNT))
            is_good = False
            with pytest.raises(BadReplyError, match=said):
                await provider.score(COUNT)
            is_good = True
            check(await provider.score(COUNT))
        finally:
            await provider.aclose()

    with fake_server(spoiled(later)) as server:
        asyncio.run(main(server.base_url))


def usage_of(tokens: int) -> Callable[[dict[str, Any]], object]:
    return lambda body: body["usage"].update(completion_tokens=tokens)


def ended_at_once(body: dict[str, Any]) -> None:
    """The model ended after one of the options instead of generating a token."""
    logprobs = body["choices"][0]["logprobs"]
    for column in logprobs.values():
        column.pop()
    body["usage"]["completion_tokens"] = 2


def with_mark(body: dict[str, Any]) -> None:
    """The tokenizer begins each prompt with a token of its own."""
    for choice in body["choices"]:
        choice["logprobs"]["tokens"].insert(0, "<s>")
        choice["logprobs"]["token_logprobs"].insert(0, None)
        choice["logprobs"]["token_logprobs"][1] = -1.0


@pytest.mark.parametrize(
    "change", [usage_of(0), usage_of(1), usage_of(3), ended_at_once, with_mark]
)
def test_the_repeated_text_says_what_was_generated(
    change: Callable[[dict[str, Any]], object],
) -> None:
    """Whatever the usage says."""
    with fake_server(spoiled(change)) as server:
        check(score("m", COUNT, base_urls=(server.base_url,), api="completions"))


@pytest.mark.parametrize("generated", [0, 1])
def test_of_parts_of_characters_the_usage_says_it(generated: int) -> None:
    """Where it agrees with the number of tokens."""

    def change(body: dict[str, Any]) -> None:
        for choice in body["choices"]:
            logprobs = choice["logprobs"]
            logprobs["tokens"][0] = "\ufffd"
            for column in logprobs.values():
                del column[len(column) - 1 + generated :]
        total = sum(len(choice["logprobs"]["tokens"]) for choice in body["choices"])
        body["usage"] = {"prompt_tokens": total - 3 * generated, "completion_tokens": 3 * generated}

    with fake_server(spoiled(change)) as server:
        check(score("m", COUNT, base_urls=(server.base_url,), api="completions"))


@pytest.mark.parametrize("api", ["chat", "completions"])
@pytest.mark.parametrize("options", [("3", "31", "4", "150"), ("3", "4")])
def test_the_embedded_model_computes_the_prompt_once(
    options: tuple[str, ...], api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And gives each option what a pass over the whole text gives it."""
    folder = model_folder("tiny")
    model, chat = TinyModel.load(folder), Chat(folder)
    request = Request(
        "How many ones are in row xy: 111\nFinal answer:",
        8,
        options=options,
    )
    before, tails = chat.option_ids(request, api, None)
    packed: list[int] = []
    prefill = TinyModel._prefill

    def counting(self: TinyModel, prompts: Sequence[Sequence[int]], *rest: Any, **more: Any) -> Any:
        packed.extend(map(len, prompts))
        return prefill(self, prompts, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(TinyModel, "_prefill", counting)
        reply = score("tiny", request, api=api)
    assert packed == [len(before)]
    assert reply.options is not None
    for option, tail in zip(reply.options, tails, strict=True):
        logits = model.logits([*before, *tail])[len(before) - 1 : -1].astype(float)
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        wanted = sum(logs[place, token] for place, token in enumerate(tail))
        assert math.isclose(option.logprob, wanted, abs_tol=1e-4)
    assert reply.usage == Usage(len(before), sum(map(len, tails)))


def test_options_that_do_not_fit_into_memory_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Are computed in parts, with the same result."""
    request = Request("How many ones? 111", 8, options=("3", "4", "150"), opening="Final answer:")
    whole = score("tiny", request)
    monkeypatch.setattr("eyechart.providers.tiny.runtime._CACHE_BYTES", 1)
    parts = score("tiny", request)
    assert whole.options is not None
    assert parts.options is not None
    for one, two in zip(whole.options, parts.options, strict=True):
        assert math.isclose(one.logprob, two.logprob, abs_tol=1e-4)


def test_options_beyond_the_window_of_the_embedded_model() -> None:
    """An error of the sample."""
    with pytest.raises(PromptOverflowError, match="the window of tiny takes"):
        score("tiny", Request("1" * 9_000, 8, options=("3", "4"), opening="Final answer:"))


def test_made_up_models_prefer_an_option() -> None:
    """The oracle the first one, up to its length; a script the one that it says."""

    def known(identifier: str) -> OracleAnswer:
        return OracleAnswer(int(identifier), "right", "wrong")

    near, far = (
        score("oracle:50", Request("", 8, sample_id=length, options=("a", "b", "c")), known=known)
        for length in ("50", "51")
    )
    assert near.text == "a"
    assert far.text in ("b", "c")
    assert near.options is not None
    assert math.fsum(math.exp(one.logprob) for one in near.options) == pytest.approx(1)
    scripted = ScriptedProvider(["81", near])
    assert asyncio.run(scripted.score(COUNT)).text == "81"
    assert asyncio.run(scripted.score(COUNT)) == near


class TestLmEval:
    """`loglikelihood` of lm-eval's models."""

    @pytest.fixture(autouse=True)
    def fake(self, monkeypatch: pytest.MonkeyPatch) -> FakeLmEval:
        """lm-eval's tree, as a stand-in."""
        return fake_lm_eval.install(monkeypatch)

    def ask(self, *requests: Request, kind: str = "engine", **settings: Any) -> list[Any]:
        """Asks all at once."""

        async def main() -> list[Any]:
            given = ("pretrained=m",) if kind == "engine" else ("base_url=http://127.0.0.1:9/v1",)
            name = parse_model(f"lm-eval/{kind}", given)
            provider = open_model(name, ModelSettings("", model_args=given, **settings))
            assert isinstance(provider, Likelihood)
            try:
                await asyncio.gather(provider.score(requests[0]), return_exceptions=True)
                asked = map(provider.score, requests)
                return await asyncio.gather(*asked, return_exceptions=True)
            finally:
                await provider.aclose()

        return asyncio.run(main())

    def test_all_options_are_asked_together(self, fake: FakeLmEval) -> None:
        """lm-eval gets one pair for each option: the text before the option, and the option."""
        (reply,) = self.ask(COUNT, api="completions")
        before = "How many?\nFinal answer:"
        assert fake.engine().scored[-1] == [(before, " 7"), (before, " 81")]
        assert [one.logprob for one in reply.options] == [-2.0, -3.0]
        assert [one.tokens for one in reply.options] == [2, 3]
        assert reply.usage == Usage(len(before), 5)

    def test_a_chat_begins_with_the_phrase(self, fake: FakeLmEval) -> None:
        """After the template."""
        self.ask(COUNT)
        assert fake.engine().scored[-1][0] == ("<How many?>Final answer:", " 7")

    def test_one_bad_prompt_costs_itself(
        self, fake: FakeLmEval, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The others are scored. A prompt that is too long is a bad one: lm-eval would cut it."""
        bad, long = replace(COUNT, prompt="bad"), replace(COUNT, prompt="x" * 400)

        def script(prompt: str) -> Any:
            return ValueError("no such sign") if "bad" in prompt else ("", "stop")

        monkeypatch.setattr(fake_lm_eval.Engine, "script", staticmethod(script))
        good, failed, overflow = self.ask(COUNT, bad, long)
        assert good.text == "7"
        assert "no such sign" in str(failed)
        assert isinstance(overflow, PromptOverflowError)
        assert "the window has 400" in str(overflow)
        assert len(fake.engine().scored) == 4

    def test_what_has_no_likelihood_says_so(self) -> None:
        """A type that asks a server."""
        (said,) = self.ask(COUNT, kind="local-completions", api="completions")
        assert isinstance(said, SetupError)
        assert "asks a server" in str(said)


def test_descriptors_say_who_can() -> None:
    """Vendors cannot; a server of the user's can for texts."""
    here = ("http://127.0.0.1:1/v1",)
    able = {name for name, one in BUILT_IN.items() if one.likelihood(())}
    assert able == {"tiny", "oracle", "scripted", "vllm", "lm-eval", "hf", "gguf"}
    assert descriptor_of("openai").likelihood(()) == ()
    assert descriptor_of("openai").likelihood(here) == ("completions",)
    assert descriptor_of("lmstudio").likelihood(()) == ("completions",)
