"""Prompts of a model folder as token ids, and replies as text."""

from __future__ import annotations

import hashlib
import json
import os
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from eyechart.providers.base import Api, Request, SetupError, Tokens, install
from eyechart.providers.documents import as_document, opened
from eyechart.providers.in_process.model_files import (
    characters,
    check_rendered,
    is_there,
    one_line,
    read_content,
    read_object,
    read_text,
    rendering,
    tokenizing,
)
from eyechart.providers.likelihood import shared_tokens, texts_with
from eyechart.providers.tiny.tokenizer import PieceTokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from jinja2 import Template

_WORD = re.compile(r"[^\W\d_]{2,}")
ROW_LETTERS = frozenset("abxy")
"""A text of only these letters is a row, as in training."""


class Chat:
    """Converts prompts to token ids and back, as `apply_chat_template` of transformers does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        config = read_object(folder / "tokenizer_config.json")
        tokenizer = read_content(folder / "tokenizer.json")
        self._tokenizer = PieceTokenizer.read(tokenizer) or _library_tokenizer(tokenizer, folder)
        self._special_tokens = {
            key: value.get("content") if isinstance(value, dict) else value
            for key, value in config.items()
            if key.endswith("_token") and isinstance(value, str | dict)
        }
        template = _template_text(folder, config)
        self._template = _compiled(template, folder)
        self.sha256 = hashlib.sha256(tokenizer + template.encode()).hexdigest()
        """Hash of the tokenizer and the chat template."""

    def tokens(self, prompt: str, api: Api, system: str | None) -> Tokens:
        """The prompt as `ids` makes it, with the characters that each token stands for."""
        text = self._text(prompt, api, system)
        with tokenizing(self._folder):
            encoding = self._tokenizer.encode(text, add_special_tokens=api != "chat")
        return Tokens(tuple(encoding.ids), characters(prompt, text, encoding.offsets))

    def answer_ids(self, prompt: str, answer: str, api: Api, system: str | None) -> tuple[int, ...]:
        """The tokens of `answer` after the prompt. Where the first letters of the answer and the
        end of the prompt would be one token, they are two.
        """
        text, is_plain = self._text(prompt, api, system), api != "chat"
        with tokenizing(self._folder):
            before = self._tokenizer.encode(text, add_special_tokens=is_plain).ids
            whole = self._tokenizer.encode(text + answer, add_special_tokens=is_plain).ids
            if whole[: len(before)] == before:
                return tuple(whole[len(before) :])
            return tuple(self._tokenizer.encode(answer, add_special_tokens=False).ids)

    def option_ids(
        self, request: Request, api: Api, system: str | None
    ) -> tuple[list[int], list[list[int]]]:
        """The tokens before the options of a request, and those of each option after them."""
        before = opened(request.prompt, request.opening)
        if api == "chat":
            before = f"{self._rendered(request.prompt, system)}{request.opening}"
        text, texts = texts_with(before, request)
        with tokenizing(self._folder):
            encodings = self._tokenizer.encode_batch_fast(
                [text, *texts], add_special_tokens=api != "chat"
            )
        first, *wholes = (encoding.ids for encoding in encodings)
        shared = shared_tokens(first, wholes)
        return first[:shared], [whole[shared:] for whole in wholes]

    def _text(self, prompt: str, api: Api, system: str | None) -> str:
        return self._rendered(prompt, system) if api == "chat" else as_document(prompt)

    def ids(self, prompts: Sequence[str], api: Api, system: str | None) -> list[list[int]]:
        """Token ids of each prompt, as a server makes them.

        The template adds the special tokens of a chat; the tokenizer adds those before a text to
        continue.
        """
        texts = [self._text(prompt, api, system) for prompt in prompts]
        with tokenizing(self._folder):
            encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=api != "chat")
        return [encoding.ids for encoding in encodings]

    def _rendered(self, prompt: str, system: str | None) -> str:
        """The prompt in the chat template; raises `SetupError` if the template fails."""
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": prompt})
        with rendering():
            text = self._template.render(
                messages=messages,
                tools=None,
                documents=None,
                add_generation_prompt=True,
                **self._special_tokens,
            )
        return check_rendered(text, prompt)

    def unknown_words(self, text: str) -> list[str]:
        """The words of `text` that are no token, each once; a row of letters is no word."""
        known = {token.strip() for token in self._tokenizer.get_vocab()}
        words = dict.fromkeys(_WORD.findall(text))
        return [
            word
            for word in words
            if not (word in known or word.isupper() or ROW_LETTERS.issuperset(word))
        ]

    def text(self, ids: Sequence[int]) -> str:
        """The text of token ids, without special tokens."""
        with tokenizing(self._folder):
            decoded: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return decoded


def _library_tokenizer(content: bytes, folder: Path) -> Any:
    """The tokenizer of any `tokenizer.json`; raises `SetupError`."""
    # Without this the library warns on stderr when the process forks after a parallel call.
    # Batches are encoded on one thread here, which does not hold the GIL.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415  an extra, and heavy
    except ImportError as error:
        needed = f"needs the package tokenizers: {install('tokenizers')}"
        raise SetupError(f"the tokenizer of {str(folder)!r} {needed}") from error
    with tokenizing(folder):
        tokenizer = Tokenizer.from_buffer(content)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _template_text(folder: Path, config: Mapping[str, Any]) -> str:
    """The chat template of a model folder: of its own file, else of the tokenizer's `config`."""
    file = folder / "chat_template.jinja"
    if is_there(file):
        return read_text(file)
    template = config.get("chat_template")
    if isinstance(template, list):
        named = [one for one in template if isinstance(one, dict)]
        template = {str(one.get("name")): one.get("template") for one in named}.get("default")
    if not isinstance(template, str):
        raise SetupError(
            f"model folder {str(folder)!r} has no chat template; add chat_template to its"
            " tokenizer_config.json"
        )
    return template


def _compiled(text: str, folder: Path) -> Template:
    """The template, compiled as in transformers; raises `SetupError` if it is not valid."""
    import jinja2  # noqa: PLC0415  loaded with the model
    import jinja2.ext  # noqa: PLC0415
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

    def raise_exception(message: str) -> NoReturn:
        raise jinja2.TemplateError(message)

    def tojson(value: object, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent)

    def strftime_now(form: str) -> str:
        return datetime.now().strftime(form)  # noqa: DTZ005  templates mean local time

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    try:
        return environment.from_string(text)
    except (jinja2.TemplateError, ValueError, RecursionError, MemoryError) as exc:
        raise SetupError(
            f"the chat template of {str(folder)!r} is wrong: {one_line(exc)}; correct the template"
        ) from exc
