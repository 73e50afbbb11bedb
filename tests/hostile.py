"""Inputs with one thing wrong each, and the property that every command has in spite of them.

The property: a command ends with an exit code of ours and without a traceback, no answer that was
in a journal is lost, no planted key is in any byte that was written or printed, and nothing is
written outside `--out`. `test_hostile.py` holds it for the corpus and for some inputs that
Hypothesis makes; `benchmarks/hostile.py` tries as many as there is time for.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import orjson

from eyechart.harness.journal.record import SAMPLES
from tests.fake_server import Asked, Response, chat

KEY = "sk-planted-0123456789abcdef"
PASSWORD = "pa'ss-planted-\"0123"  # noqa: S105  planted to be looked for
PLANTED: Mapping[str, bytes] = {
    "key": KEY.encode(),
    "key in base64": base64.b64encode(KEY.encode()).rstrip(b"="),
    "password": PASSWORD.encode(),
    "password, quoted": quote(PASSWORD, safe="").encode(),
    "password in JSON": json.dumps(PASSWORD)[1:-1].encode(),
    "user and password": base64.b64encode(f"user:{PASSWORD}".encode()).rstrip(b"="),
}
"""Forms in which a secret may come back."""
EXIT_CODES = (0, 1, 2, 130)

WRONG: tuple[Any, ...] = (
    *(None, True, 0, -1, 5, 1.5, 1e308, 10**20, -(10**400), 2**64 - 1),
    *("", "x", "\x1b]0;title\x07", "\x1b[2J\x00\x9b", "<!-- end -->\n|", "=cmd|' /C calc'!A0"),
    *(
        "../../x",
        "/etc/x",
        "\u202e\u2028",
        "a" * 5000,
        [],
        [None],
        [[]],
        {},
        {"x": {}},
        "{{ 7*7 }}",
    ),
)
"""A value for each place that has another one."""


class Commands(Protocol):
    """Whatever runs a command; raises what has no line for the user."""

    def __call__(self, *arguments: str | Path) -> Any:
        """An object with `code`, `out` and `err`."""
        ...


@dataclass
class World:
    """A folder with runs in it, and what must hold of it whatever is run."""

    folder: Path
    """Everything is in here; runs in `folder/results`."""
    bench: Commands
    own: tuple[Path, ...] = ()
    """Files that hold planted secrets because a test put them there."""
    said: list[str] = field(default_factory=list)
    """Warnings of what is read without a command."""
    _answers: set[bytes] = field(default_factory=set)
    _outside: dict[Path, bytes] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        return self.folder / "results"

    def look(self) -> None:
        """Notes all answers and all files outside, which must be there after the next commands."""
        self._answers = set(self._lines())
        self._outside = dict(self._files_outside())

    def run(self, *arguments: str | Path, writes: tuple[Path, ...] = ()) -> Any:
        """Runs a command and asserts the property; `writes` are files it may write outside."""
        done = self.bench(*arguments)
        said = f"{done.out}\n{done.err}"
        about = f"bench {' '.join(map(str, arguments))}: {done}"
        assert done.code in EXIT_CODES, about
        assert "Traceback" not in said, about
        steering = {sign for sign in said if (ord(sign) < 32 or 127 <= ord(sign) < 160)} - {"\n"}
        assert not steering, about
        for name, secret in PLANTED.items():
            assert secret not in said.encode(errors="replace"), (name, about)
        for path in self._files():
            content = path.read_bytes()
            for name, secret in PLANTED.items():
                assert path in self.own or secret not in content, (name, path, about)
        assert self._answers <= set(self._lines()), about
        now = dict(self._files_outside())
        mine = {path: text for path, text in now.items() if path not in writes}
        assert mine == {p: text for p, text in self._outside.items() if p not in writes}, about
        return done

    def _files(self) -> Iterator[Path]:
        for path in self.folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                yield path

    def _files_outside(self) -> Iterator[tuple[Path, bytes]]:
        for path in self._files():
            if not path.is_relative_to(self.out):
                yield path, path.read_bytes()

    def _lines(self) -> Iterator[bytes]:
        """Each line of a journal that is an answer."""
        for path in self.out.rglob(SAMPLES):
            for line in path.read_bytes().splitlines():
                with suppress(ValueError, AttributeError):
                    if isinstance(orjson.loads(line).get("reply"), str):
                        yield line


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a JSON value: keys and indices on the way to it."""
    yield at
    if isinstance(value, dict):
        for name in value:
            yield from places(value[name], (*at, name))
    elif isinstance(value, list):
        for index in range(min(len(value), 2)):
            yield from places(value[index], (*at, index))


def changed(value: Any, at: tuple[str | int, ...], new: Any) -> Any:
    """A copy of `value` with `new` at a place; with the place left out where `new` is `...`."""
    if not at:
        return new
    copied: Any = dict(value) if isinstance(value, dict) else list(value)
    if len(at) == 1 and new is ...:
        del copied[at[0]]
    else:
        copied[at[0]] = changed(copied[at[0]], at[1:], new)
    return copied


def variants(value: Any) -> Iterator[tuple[str, Any]]:
    """Each place of `value` without its value, and with one of another kind, in turn."""
    for number, at in enumerate(places(value)):
        name = ".".join(map(str, at)) or "all of it"
        if at:
            yield f"no {name}", changed(value, at, ...)
        for wrong in (WRONG[number % len(WRONG)], WRONG[(7 * number + 3) % len(WRONG)]):
            yield f"{name} is {repr(wrong)[:20]}", changed(value, at, wrong)


def as_json(value: Any) -> bytes:
    """JSON with integers of any length, and lone surrogates as escapes."""
    return json.dumps(value).encode()


def deep(levels: int) -> bytes:
    """JSON that nests deeper than a reader's stack."""
    return b'{"error":' * levels + b"1" + b"}" * levels


def replies() -> Iterator[tuple[str, Response]]:
    """What a server may send in place of a reply."""
    sound = chat("Final answer: 2")
    for name, body in variants(sound):
        yield name, Response(body=as_json(body))
    for text in WRONG:
        if isinstance(text, str):
            yield f"says {text[:12]!r}", Response(body=chat(text, reasoning_content=text))
    usage = ("prompt_tokens", "completion_tokens", "total_tokens")
    for number in (-1, 0, 2**64 - 1, 10**400, 1.5, True, "7"):
        body = {**sound, "usage": dict.fromkeys(usage, number)}
        yield f"usage {str(number)[:12]}", Response(body=as_json(body))
    for status in (200, 204, 301, 400, 401, 403, 404, 408, 413, 418, 429, 500, 503, 529, 599):
        for name, content in (("nothing", b""), ("a page", b"<html>\x1b[2J</html>")):
            yield f"{status} with {name}", Response(status, content)
    for status in (200, 400, 500):
        yield f"{status}, nested", Response(status, deep(100_000))
        yield f"{status}, no UTF-8", Response(status, b'{"error": "\xff\xfe\x00"}')
        yield f"{status}, long", Response(status, b'{"error": "' + b"api key " * 50_000 + b'"}')
        wrong = {"error": {"message": ["x"], "code": {"a": 1}, "type": 5}}
        yield f"{status}, message is a list", Response(status, wrong)
    yield "half a reply", Response(body=sound, cut=True)
    bomb = gzip.compress(b" " * 50_000_000)
    yield "a gzip bomb", Response(body=bomb, headers={"Content-Encoding": "gzip"})
    yield "no gzip", Response(body=b"no", headers={"Content-Encoding": "gzip"})
    yield "unknown encoding", Response(body=b"no", headers={"Content-Encoding": "zstd"})


def headers() -> Iterator[tuple[str, Response]]:
    """Headers with one thing wrong, on replies that are asked again or come from elsewhere."""
    for value in (
        *("", "soon", "-5", "1e3", "nan", "inf", "0.001", "9" * 400),
        "Wed, 21 Oct 2015 07:28:00 +99999999999999999999",
        "Wed, 99 Nov 99999 99:99:99 GMT",
    ):
        for name in ("Retry-After", "retry-after-ms", "x-ratelimit-reset-requests"):
            more = {"x-ratelimit-remaining-requests": "0"} if "reset" in name else {}
            yield f"{name}: {value[:30]}", Response(429, {}, {name: value, **more})
    for charset in ("hex", "utf-7", "nonsense", "idna", "undefined", "\x80"):
        kind = {"Content-Type": f"application/json; charset={charset}"}
        yield f"charset {charset!r}", Response(500, b'{"error": "no"}', kind)
    for place in ("http://[::1/", "/", "", "//", "ftp://x/", "http://127.0.0.1:0/", "data:,x"):
        for status in (301, 302, 307, 308):
            yield f"{status} to {place!r}", Response(status, b"", {"Location": place})


def echoes() -> Iterator[tuple[str, Callable[[Asked], Response]]]:
    """Replies that say the credentials back which they were sent."""

    def said(asked: Asked) -> str:
        return f"{asked.headers.get('authorization')} {KEY} http://host/?auth={KEY}"

    def field_of(name: str) -> Callable[[Asked], Response]:
        return lambda asked: Response(body={**chat("Final answer: 2"), name: said(asked)})

    def message(name: str) -> Callable[[Asked], Response]:
        return lambda asked: Response(body=chat("Final answer: 2", **{name: said(asked)}))

    yield "the model's name", field_of("model")
    yield "reasoning", message("reasoning_content")
    yield "a refusal", message("refusal")
    yield "the text", lambda asked: Response(body=chat(f"{said(asked)}\nFinal answer: 2"))
    for status in (400, 401, 429, 500):
        yield f"{status}", lambda asked, code=status: Response(code, {"error": said(asked)})  # type: ignore[misc]
        yield f"{status}, a page", lambda asked, code=status: Response(code, said(asked).encode())  # type: ignore[misc]
