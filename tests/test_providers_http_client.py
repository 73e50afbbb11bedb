"""No client goes where a server sends it, and none stumbles over what a server says of itself."""

from __future__ import annotations

import asyncio
from base64 import b64encode

import pytest

from eyechart.providers.base import (
    BadReplyError,
    BrokenConnectionError,
    ModelSettings,
    OverloadedError,
    Reply,
    Request,
    ServerFaultError,
    SetupError,
    StopRunError,
)
from eyechart.providers.http.client import Client, certificates
from eyechart.providers.http.proxy import proxy_for
from eyechart.providers.openai.api import open_provider as open_openai
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_model
from tests.conftest import Lab, records
from tests.fake_server import Asked, Response, chat, fake_server

MODELS = ("m", "vllm/m", "anthropic/m")
KEY = "sk-planted-0123456789"


def ask(model: str, *urls: str, times: int = 1) -> Reply:
    """The last reply of a model there."""

    async def main() -> Reply:
        name = parse_model(model)
        provider = open_model(name, ModelSettings(name.model, base_urls=urls))
        try:
            return [await provider.complete(Request("Row A: 1", 10)) for _ in range(times)][-1]
        finally:
            await provider.aclose()

    return asyncio.run(main())


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(
    model: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the key nor the prompt goes where the user did not send them."""
    for variable in ("OPENAI_API_KEY", "VLLM_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(variable, KEY)
    with fake_server(lambda _asked, _number: Response(body=chat("7"))) as other:
        to = {"Location": f"{other.base_url}/chat/completions"}
        redirecting = Response(status, b"", to)
        with fake_server(lambda _asked, _number: redirecting) as server:
            urls: tuple[str, ...] = (server.base_url,)
            if model.startswith("anthropic"):
                monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
                urls = ()
            with pytest.raises(BadReplyError, match=f"{status}: .*{other.base_url}.* where it is"):
                ask(model, *urls)
            assert len(server.asked) == 1
        assert other.asked == []


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "location", ["http://[::1/", "http://\xff/", "//", "x" * 5000, "data:,x", "http://a:b@c:99999/"]
)
def test_a_redirect_to_nowhere_is_one_like_others(model: str, location: str) -> None:
    """In the middle of a run it costs one attempt."""
    headers = {"Location": location.encode().decode("latin-1")}
    with (
        fake_server(lambda _asked, _number: Response(302, b"", headers)) as server,
        pytest.raises((BadReplyError, BrokenConnectionError)) as caught,
    ):
        ask(model, server.base_url)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("model", ["m", "vllm/m"])
def test_a_run_survives_a_redirect_to_nowhere(lab: Lab, model: str) -> None:
    """The next attempt is answered."""
    bodies: list[object] = []

    def answer(asked: Asked, _number: int) -> Response:
        if asked.path == "/v1/models":
            return Response(body={"data": [{"id": "m", "max_model_len": 4096}]})
        bodies.append(asked.body)
        if bodies.count(asked.body) == 1:
            return Response(302, b"", {"Location": "http://[::1/"})
        return Response(body=chat("Final answer: 2"))

    with fake_server(answer) as server:
        done = lab.bench_run("--model", model, "--base-url", server.base_url, "--samples", "2")
    assert done.code == 0, done
    assert all("reply" in record for record in records(lab.the_run()))
    assert len(bodies) > len(records(lab.the_run()))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("charset", ["hex", "rot13", "undefined", "\x00", "utf-7", '"'])
def test_an_encoding_that_is_none_is_not_looked_up(model: str, charset: str) -> None:
    """JSON is UTF-8, whatever a header says."""
    kind = {"Content-Type": f"application/json; charset={charset}"}
    body = {"error": {"message": "no lück"}}
    with (
        fake_server(lambda _asked, _number: Response(500, body, kind)) as server,
        pytest.raises((ServerFaultError, BrokenConnectionError)) as caught,
    ):
        ask(model, server.base_url)
    if charset != "\x00":  # which no header may have
        assert str(caught.value) == "500: no lück"


@pytest.mark.parametrize("model", ["m", "vllm/m"])
def test_no_cookie_is_kept(model: str) -> None:
    """A server that sets one with every reply does not make the next request longer."""

    def answer(_asked: Asked, number: int) -> Response:
        return Response(
            body=chat("7"), headers={"Set-Cookie": f"name{number}={'x' * 1000}; Path=/"}
        )

    with fake_server(answer) as server:
        ask(model, server.base_url, times=3)
    assert [asked.headers.get("cookie") for asked in server.asked] == [None] * 3


@pytest.mark.parametrize("url", ["http://user:planted@[::1/v1", "http://127.0.0.1:1/v1?planted"])
@pytest.mark.parametrize("variable", ["ANTHROPIC_BASE_URL", "AZURE_OPENAI_ENDPOINT"])
def test_an_address_in_a_variable_is_looked_at_too(
    variable: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named, and neither its password nor its query is."""
    for one in ("AZURE_OPENAI_API_KEY", "OPENAI_API_VERSION", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(one, "x")
    monkeypatch.setenv(variable, url)
    with pytest.raises(SetupError, match=variable) as caught:
        ask("azure/m" if "AZURE" in variable else "anthropic/m")
    assert "planted" not in str(caught.value)


def test_certificates_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For all clients, until a variable names others."""
    assert certificates() is certificates()
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    with pytest.raises(SetupError, match="No such file"):
        Client("https://one")


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("m", "OPENAI_API_KEY"),
        ("vllm/m", "VLLM_API_KEY"),
        ("anthropic/m", "ANTHROPIC_API_KEY"),
    ],
)
def test_a_proxy_gets_its_own_password_and_no_key(
    model: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked for a tunnel in plain text; what is in the tunnel is for the server alone."""
    monkeypatch.setenv(variable, KEY)
    heads: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:pa%40ss@127.0.0.1:{port}")
        name = parse_model(model)
        urls: tuple[str, ...] = ("https://api.example/v1",)
        if model.startswith("anthropic"):
            monkeypatch.setenv("ANTHROPIC_BASE_URL", urls[0])
            urls = ()
        provider = open_model(name, ModelSettings(name.model, base_urls=urls))
        with pytest.raises(StopRunError, match=r"proxy http://\*\*\*@127.* of HTTPS_PROXY"):
            await provider.complete(Request("Row A: 1", 10))
        await provider.aclose()
        server.close()
        await server.wait_closed()

    asyncio.run(main())
    (head,) = heads
    assert head.startswith(b"CONNECT api.example:443 ")
    assert b64encode(b"me:pa@ss") in head
    assert KEY.encode() not in head


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("user", "given", "sent"),
    [
        ("", {}, None),
        ("me:pa%40ss@", {}, f"Basic {b64encode(b'me:pa@ss').decode()}"),
        ("me:pa%40ss@", {"authorization": "Other x"}, "Other x"),
    ],
)
def test_who_asks_is_said_once(
    model: str, user: str, given: dict[str, str], sent: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's header is sent; without it the password of the address; without both the key."""
    for variable in ("OPENAI_API_KEY", "VLLM_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    with fake_server(lambda _asked, _number: Response(500, {})) as server:

        async def main() -> None:
            name = parse_model(model)
            url = server.base_url.replace("://", f"://{user}")
            provider = open_model(name, ModelSettings(name.model, base_urls=(url,), headers=given))
            with pytest.raises(ServerFaultError):
                await provider.complete(Request("Row A: 1", 10))
            await provider.aclose()

        asyncio.run(main())
    assert [asked.headers.get("authorization") for asked in server.asked] == [sent]


@pytest.mark.parametrize("model", MODELS)
def test_a_long_header_is_no_fault(model: str) -> None:
    """Vendors write policies of many kilobytes."""
    policy = {"Content-Security-Policy": "x" * 20_000}
    with (
        fake_server(lambda _asked, _number: Response(503, {}, policy)) as server,
        pytest.raises(OverloadedError),
    ):
        ask(model, server.base_url)


def test_azure_is_asked_as_a_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its own header for the key, and the version of the API."""
    with fake_server(lambda _asked, _number: Response(body=chat("7"))) as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", f"{server.base_url.removesuffix('/v1')}/")
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_API_VERSION", "2026-01-01")
        assert ask("azure/my model").text == "7"
    (asked,) = server.asked
    deployment = "/openai/deployments/my%20model/chat/completions"
    assert asked.path == f"{deployment}?api-version=2026-01-01"
    assert asked.headers["api-key"] == KEY
    assert "authorization" not in asked.headers


def test_the_account_that_pays_is_said_to_openai_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key may have several."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    (vendor,) = open_openai(ModelSettings("m", "openai")).clients
    (own,) = open_openai(ModelSettings("m", "openai", base_urls=("http://127.0.0.1:1/v1",))).clients
    assert vendor.headers.get("OpenAI-Organization") == "org-1"
    assert "OpenAI-Organization" not in own.headers


@pytest.mark.parametrize("left_out", ["host.example", "host.example:8000", ".example", "*"])
def test_what_no_proxy_names_is_asked_itself(
    left_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host, one with its port, a domain, or all."""
    for name in ("http_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", "proxy.example:3128")
    for url in ("http://me:pa@host.example:8000/v1", "http://other.org/v1"):
        monkeypatch.delenv("NO_PROXY", raising=False)
        proxy = proxy_for(url)
        assert proxy is not None
        assert (proxy.address, proxy.name) == ("http://proxy.example:3128", "ALL_PROXY")
        monkeypatch.setenv("NO_PROXY", left_out)
        assert (proxy_for(url) is None) == ("host" in url or left_out == "*")
