"""Prompts as the texts and tokens that a model of transformers gets."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eyechart.providers.base import ModelSettings, Request, SetupError
from eyechart.providers.documents import as_document, opened
from eyechart.providers.in_process.model_files import check_rendered, rendering, tokenizing
from eyechart.providers.likelihood import shared_tokens, texts_with
from eyechart.providers.naming import named


class ChatPrompts:
    """A tokenizer with its chat template. A tokenizer without one has texts to continue."""

    def __init__(self, tokenizer: Any, place: Path, settings: ModelSettings) -> None:
        """Raises `SetupError` if there is a system prompt and no chat template to put it in."""
        self._tokenizer = tokenizer
        self._place = place
        self._system = settings.system
        self.is_chat = settings.api == "chat" and bool(tokenizer.chat_template)
        """Whether prompts are put into the chat template."""
        self.lacks_template = settings.api == "chat" and not self.is_chat
        if self.lacks_template and settings.system:
            raise SetupError(
                f"{str(place)!r} has no chat template, so it takes no system prompt; give an empty "
                f"{named('system')}"
            )

    @property
    def template_sha256(self) -> str | None:
        """Hash of the chat template; `None` where prompts are texts to continue."""
        template = str(self._tokenizer.chat_template)
        return hashlib.sha256(template.encode()).hexdigest() if self.is_chat else None

    def text(self, prompt: str) -> str:
        """The text that the model gets; raises `SetupError` if the template fails."""
        if not self.is_chat:
            return as_document(prompt)
        messages = [{"role": "system", "content": self._system}] if self._system else []
        messages.append({"role": "user", "content": prompt})
        with rendering():
            text = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
        return check_rendered(str(text), prompt)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of texts. The template has the special tokens of a chat; the tokenizer adds
        those before a text to continue.

        Raises:
            BadRequestError: a text has a lone surrogate.
        """
        if not texts:
            return []
        with tokenizing(self._place):
            encoded = self._tokenizer(list(texts), add_special_tokens=not self.is_chat)
        return [list(ids) for ids in encoded["input_ids"]]

    def option_ids(self, request: Request) -> tuple[list[int], list[list[int]]]:
        """The tokens before the options of a request, and those of each option after them; raises
        `BadReplyError` like `shared_tokens`.
        """
        before = opened(request.prompt, request.opening)
        if self.is_chat:
            before = f"{self.text(request.prompt)}{request.opening}"
        text, texts = texts_with(before, request)
        first, *wholes = self.ids([text, *texts])
        shared = shared_tokens(first, wholes)
        return first[:shared], [whole[shared:] for whole in wholes]

    def decoded(self, ids: Sequence[int]) -> str:
        """The text of tokens, without special ones."""
        with tokenizing(self._place):
            return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def token_text(self, token: int) -> str:
        """The text of one token. A special token, such as the end of a text, has a text too."""
        with tokenizing(self._place):
            return str(self._tokenizer.decode([token]))
