"""Options of a forced choice as a tree of tokens, for servers that give the probabilities of chosen
next tokens: vLLM (`logprob_token_ids`), and llama.cpp.

vLLM reads nothing from its cache of prefixes when it lists the tokens of a prompt
(`prompt_logprobs`): it computes the whole prompt once for each option. Here one token is generated
behind each inner node of the tree, so the prompt is computed once and read from the cache for all
nodes. Eleven counts have one to four inner nodes in usual tokenizers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from eyechart.providers.base import ModelSettings, Reply, Request
from eyechart.providers.likelihood import shared_tokens
from eyechart.providers.openai.form import reply_of
from eyechart.providers.openai.scoring import UnreadableError, choices_of, reply_from

_MOST_IDS = 128
"""Most tokens that vLLM takes in one request (`MAX_LOGPROB_TOKEN_IDS` of vLLM 0.32)."""
_ID = "token_id:"
"""Before the number of a token, where vLLM names tokens by number."""


class TokenTree(NamedTuple):
    """The tokens before the options, and those of each option after them."""

    before: tuple[int, ...]
    options: tuple[tuple[int, ...], ...]

    @property
    def following(self) -> dict[tuple[int, ...], list[int]]:
        """Each of these beginnings with the tokens that follow it, each once."""
        found: dict[tuple[int, ...], dict[int, None]] = {}
        for option in self.options:
            for at, token in enumerate(option):
                found.setdefault(option[:at], {})[token] = None
        return {node: list(tokens) for node, tokens in found.items()}

    @property
    def nodes(self) -> list[tuple[int, ...]]:
        """The beginnings of options that another token of an option follows, each once."""
        return list(self.following)

    @property
    def tokens(self) -> list[int]:
        """The tokens of all options, each once."""
        return sorted({token for option in self.options for token in option})

    def body(self, settings: ModelSettings) -> dict[str, Any]:
        """The body for `/v1/completions` of vLLM, with the model."""
        return {
            "model": settings.model,
            "prompt": [[*self.before, *node] for node in self.nodes],
            "max_tokens": 1,
            "temperature": 0.0,
            **settings.params,
            "logprobs": 1,
            "logprob_token_ids": self.tokens,
            "return_tokens_as_token_ids": True,
        }

    def reply(self, request: Request, read: Any, body: dict[str, Any]) -> Reply:
        """The reply to a request with this body.

        Raises:
            UnreadableError: the server does not give the probabilities of these tokens.
            ProviderError: see `form.reply_of`; or a probability cannot be true.
        """
        whole = reply_of(read)
        choices = choices_of(read, len(self.nodes))
        tables = dict(zip(self.nodes, map(_next_tokens, choices), strict=True))
        return reply_from(request, whole, body, len(self.before), self.logprobs(tables))

    def logprobs(self, tables: Mapping[tuple[int, ...], Mapping[int, float]]) -> list[list[float]]:
        """The log-probabilities of the tokens of each option, from those of the tokens that follow
        each beginning.

        Raises:
            UnreadableError: one is missing.
        """
        try:
            return [
                [tables[option[:at]][token] for at, token in enumerate(option)]
                for option in self.options
            ]
        except KeyError as error:
            raise UnreadableError(f"token {error} is missing") from error


def token_tree(before: Sequence[int], wholes: Sequence[Sequence[int]]) -> TokenTree | None:
    """The tree of the tokens of all options and of what comes before them. `None` where asking it
    takes more prompts than asking each option, as with long options, or too many tokens.

    Raises:
        BadReplyError: see `likelihood.shared_tokens`.
    """
    tree = tree_of(before, wholes)
    fits = len(tree.nodes) <= len(wholes) + 1 and len(tree.tokens) <= _MOST_IDS
    return tree if fits else None


def tree_of(before: Sequence[int], wholes: Sequence[Sequence[int]]) -> TokenTree:
    """The tree, of whatever size; raises `BadReplyError`, see `likelihood.shared_tokens`."""
    shared = shared_tokens(before, wholes)
    return TokenTree(tuple(before[:shared]), tuple(tuple(one[shared:]) for one in wholes))


def _next_tokens(choice: Any) -> dict[int, float]:
    """Log-probabilities of the tokens that may come next, by their number."""
    try:
        table = choice["logprobs"]["top_logprobs"][0]
        return {
            int(name.removeprefix(_ID)): float(value)
            for name, value in table.items()
            if name.startswith(_ID)
        }
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise UnreadableError("no top_logprobs") from error
