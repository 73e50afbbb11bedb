"""What a run makes of servers that answer in ways that people reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from eyechart import compare
from eyechart.harness.errors import UsageError
from tests.fake_server import Asked, Response, chat, fake_server

if TYPE_CHECKING:
    from tests.conftest import Done, Lab

TOO_LONG = "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens"


def asked(lab: Lab, url: str, *more: str) -> Done:
    """One task of an own server; the limits of the first replies are those of any run."""
    lab.monkeypatch.chdir(lab.folder)
    model = () if "-m" in more else ("-m", "m")
    return lab.bench("run", "-t", "counting/sum", "--base-url", url, *model, *more)


def test_a_window_that_the_list_of_models_names_keeps_long_prompts_back(lab: Lab) -> None:
    """Also where no tokenizer counts, and under another name than vLLM's: nothing is sent, and a
    cell in which no prompt had room has no accuracy.
    """

    def answering(asked: Asked, _number: int) -> Response:
        if asked.path == "/v1/models":
            return Response(body={"data": [{"id": "m", "limits": {"context_length": 32768}}]})
        return Response(body=chat("Final answer: 2"))

    with fake_server(answering) as server:
        done = asked(lab, server.base_url, "--lengths", "2,131072", "--exact", "--samples", "3")
    assert done.code == 0
    assert [len(one.body["messages"]) for one in server.asked if one.body] == [1] * 3
    assert "have no room in the window of 32,768; not sent" in done.err
    row = next(line for line in done.out.splitlines() if "131072" in line)
    assert "–" in row
    assert "0 (0" not in row


def test_first_prompts_that_are_all_too_long_are_said_as_that(lab: Lab) -> None:
    """The run stops by the server's word on the window, not as unreadable."""
    with fake_server(lambda _asked, _number: Response(400, {"message": TOO_LONG})) as server:
        done = asked(lab, server.base_url, "--lengths", "2", "--samples", "10")
    assert done.code == 1
    assert "none of the first 6 prompts fits the window of the model (400: This model's" in done.err
    assert "can be read" not in done.err
    assert "0 (0" not in done.out


def test_a_fault_of_the_server_about_a_long_prompt_is_asked_three_times(lab: Lab) -> None:
    """By its words the prompt is too long, so the sample ends as that, and not as an error that
    each later command asks again.
    """

    def answering(asked: Asked, _number: int) -> Response:
        if asked.body and len(asked.body["messages"][-1]["content"]) > 300:
            return Response(500, {"error": "Prompt length 300 is greater than max_seq_len 200"})
        return Response(body=chat("Final answer: 2"))

    with fake_server(answering) as server:
        done = asked(lab, server.base_url, "--lengths", "2,500", "--samples", "3")
        sent = [one.body["messages"] for one in server.asked if one.body]
    assert done.code == 0
    assert sum(len(messages[-1]["content"]) > 300 for messages in sent) == 3 * 3
    assert "overflow" in done.out


def test_the_word_of_a_filter_is_shown(lab: Lab) -> None:
    """At each sample, and where it is said what limits the length."""
    words = ("RECITATION", "content_filter")
    with fake_server(lambda _asked, number: Response(body=chat(None, words[number % 2]))) as server:
        done = asked(lab, server.base_url, "--lengths", "2", "--samples", "2")
    assert "the server's filter says 'RECITATION', 'content_filter'" in " ".join(done.out.split())
    shown = lab.bench("samples", *lab.folder.rglob("counting/sum@*")).out
    assert "refused (RECITATION)" in shown
    assert "refused (content_filter)" in shown


def test_an_unknown_word_for_an_end_is_said_once(lab: Lab) -> None:
    """Whatever the number of replies; a word that means nothing is not said."""
    words = ("because", "because", "OTHER")

    def answering(_asked: Asked, number: int) -> Response:
        return Response(body=chat("Final answer: 2", words[number % 3]))

    with fake_server(answering) as server:
        done = asked(lab, server.base_url, "--lengths", "2", "--samples", "9")
    assert done.err.count("ended a reply with 'because', a word that Eyechart does not know") == 1
    assert "OTHER" not in done.err


@pytest.mark.parametrize(
    "answer",
    [
        None,
        Response(403, "<html>Forbidden</html>"),
        Response(407, "<html>Proxy Authentication Required</html>"),
        Response(407, {"error": "Proxy Authentication Required"}),
        Response(200, b"<html>Log in to the network</html>"),
        Response(404, {"error": "not found"}),
    ],
)
@pytest.mark.parametrize("model", ["m", "vllm/m", "anthropic/m"])
def test_a_proxy_of_the_environment_is_named(lab: Lab, model: str, answer: Response | None) -> None:
    """Where a request that failed went to it, as with curl also one to this machine; then the key
    is not to blame. What NO_PROXY names is asked itself.
    """
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY", "HTTP_PROXY"):
        lab.monkeypatch.delenv(name, raising=False)
    with (
        fake_server(lambda _asked, _number: answer or Response()) as proxy,
        fake_server(lambda _asked, _number: Response(body=chat("Final answer: 2"))) as server,
    ):
        address = proxy.base_url.removesuffix("/v1") if answer else "http://127.0.0.1:9"
        lab.monkeypatch.setenv("http_proxy", address.replace("://", "://user:pa55word@"))
        more = ("-m", model, "--lengths", "2", "--samples", "1")
        done = asked(lab, server.base_url, *more)
        assert done.code == (2 if model == "vllm/m" else 1)
        assert f"proxy {address.replace('://', '://***@')} of http_proxy: NO_PROXY=127" in done.err
        assert "_API_KEY" not in done.err
        assert "pa55word" not in done.err
        assert not server.asked
        lab.monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        asked(lab, server.base_url, *more)
        assert server.asked


@pytest.mark.parametrize("model", ["m", "vllm/m", "anthropic/m"])
def test_no_password_of_a_netrc_file_is_sent(lab: Lab, model: str) -> None:
    """What it has for the host of a server is of other programs."""
    (lab.folder / ".netrc").write_text("machine 127.0.0.1 login me password pa55word\n")
    lab.monkeypatch.setenv("HOME", str(lab.folder))
    lab.monkeypatch.setenv("NETRC", str(lab.folder / ".netrc"))
    listed = {"data": [{"id": "m"}], **chat("Final answer: 2")}
    with fake_server(lambda _asked, _number: Response(body=listed)) as server:
        asked(lab, server.base_url, "-m", model, "--lengths", "2", "--samples", "1")
    assert server.asked
    assert not any("basic" in one.headers.get("authorization", "").lower() for one in server.asked)


def test_an_unknown_model_is_answered_with_the_names_of_the_server(lab: Lab) -> None:
    """And an address without /v1 with the one that is meant."""

    def answering(asked: Asked, _number: int) -> Response:
        if asked.path == "/v1/models":
            return Response(body={"data": [{"id": "qwen-7b"}, {"id": "llama-8b"}]})
        return Response(404, {"error": {"message": "The model `qwen-7` does not exist"}})

    with fake_server(answering) as server:
        done = asked(lab, server.base_url, "-m", "qwen-7", "--lengths", "2")
        assert done.code == 1
        assert "the server has 'qwen-7b', 'llama-8b'" in done.err
        assert "/v1?" not in done.err
        bare = server.base_url.removesuffix("/v1")
        done = asked(lab, bare, "-m", "qwen-7b", "--lengths", "2", "--fresh")
        assert f"did you mean --base-url {server.base_url}?" in done.err


@pytest.mark.parametrize(
    "path", ["/chat/completions", "/completions/", "/messages", "/responses", "/models"]
)
def test_the_path_of_a_request_is_no_part_of_an_address(lab: Lab, path: str) -> None:
    """A request appends it."""
    done = asked(lab, f"http://127.0.0.1:9/v1{path}", "--lengths", "2")
    done.one_line(2, "which each request appends; did you mean 'http://127.0.0.1:9/v1'?")


GATEWAY_KEY = "gw-planted-0123456789"


@pytest.mark.parametrize("model", ["m", "vllm/m", "anthropic/m"])
def test_a_header_is_sent_and_never_stored(lab: Lab, model: str) -> None:
    """Each request has it, with the value of a variable; neither a file nor a message does, even
    where the server repeats it. It is no part of a run's identity.
    """
    lab.monkeypatch.setenv("GATEWAY", GATEWAY_KEY)
    given = ("--header", "X-Gateway=Bearer $GATEWAY", "--header", "X-Team=blue-7-planted")
    lab.monkeypatch.setattr("sys.argv", ["bench", "run", *given])

    def answering(asked: Asked, _number: int) -> Response:
        said = f"{dict(asked.headers)} Final answer: 2"
        message = {"content": [{"type": "text", "text": said}], "stop_reason": "end_turn"}
        return Response(body={"data": [{"id": "m"}], **chat(said), **message})

    with fake_server(answering) as server:
        more = ("-m", model, "--lengths", "2", "--samples", "1")
        done = asked(lab, server.base_url, *more, *given)
        assert done.code == 0
        posts = [one for one in server.asked if one.path.endswith(("completions", "messages"))]
        assert posts
        for one in posts:
            assert one.headers["x-gateway"] == f"Bearer {GATEWAY_KEY}"
            assert one.headers["x-team"] == "blue-7-planted"
        sent = len(server.asked)
        asked(lab, server.base_url, *more)
        assert not any(one.body for one in server.asked[sent:]), "the run goes on without it"
    files = [path.read_text() for path in (lab.folder / "results").rglob("*.json*")]
    assert files
    for text in (done.out, done.err, *files):
        assert "planted" not in text


@pytest.mark.parametrize("door", ["compare", "gate", "Python"])
def test_a_header_is_given_again_to_ask_more(lab: Lab, door: str) -> None:
    """At each door, since no file has it."""
    lab.monkeypatch.setenv("GATEWAY", GATEWAY_KEY)
    given = ("--header", "X-Gateway=Bearer $GATEWAY")
    with fake_server(lambda _asked, _number: Response(body=chat("Final answer: 2"))) as server:
        for name, samples in (("a", "4"), ("b", "2")):
            more = ("--name", name, "--lengths", "2,9", "--samples", samples, *given)
            asked(lab, server.base_url, *more)
        first, second = sorted(lab.folder.rglob("counting/sum@*"))
        lab.bench("gate", "--save", "base.json", first)
        sent = len(server.asked)
        asking = ("--ask", "--base-url", server.base_url, *given)
        if door == "Python":
            compare(first, second, ask=True, base_url=server.base_url, header=given[1])
        else:
            lab.bench(door, first if door == "compare" else "base.json", second, *asking)
        posts = [one for one in server.asked[sent:] if one.body]
    assert posts
    assert {one.headers.get("x-gateway") for one in posts} == {f"Bearer {GATEWAY_KEY}"}
    with pytest.raises(UsageError, match="header are for ask=True"):
        compare(first, second, header=given[1])


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("X-Key=a\nHost: b", "--header X-Key has a line break"),
        ("X Key=planted", "--header wants NAME=VALUE"),
        ("planted", "--header wants NAME=VALUE, as 'X-Team=$TEAM'"),
        ("Content-Length=7", "--header Content-Length cannot be given here"),
        ("X-Key=$LACKING", "--header X-Key: the variable LACKING is not set"),
    ],
)
def test_a_header_that_breaks_requests_is_refused(lab: Lab, given: str, problem: str) -> None:
    """By its name alone."""
    done = asked(lab, "http://127.0.0.1:9/v1", "--lengths", "2", "--header", given)
    assert "planted" not in done.one_line(2, problem)


def test_a_file_of_a_stranger_sets_no_header(lab: Lab) -> None:
    """It could send any variable; and a model that is computed here takes none."""
    (lab.folder / "bench.toml").write_text("header = ['X-Key=$HOME']\n")
    done = asked(lab, "http://127.0.0.1:9/v1", "--lengths", "2")
    assert done.code == 2
    assert "can send any variable of the environment" in done.err
    (lab.folder / "bench.toml").unlink()
    done = lab.bench("run", "-t", "counting/sum", "-m", "tiny", "--header", "X-Key=1")
    done.one_line(2, "tiny takes no --header")
