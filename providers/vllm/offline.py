"""vLLM's engine without a server, for engines on a cluster: converts prompts to tokens, and reads
replies.

A prompt becomes the same tokens as at `vllm serve`, with the model's chat template and the defaults
of its generation config, so the replies are the same.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any

from eyechart.providers.base import (
    BadRequestError,
    FinishReason,
    ModelSettings,
    PromptOverflowError,
    ProviderError,
    Reply,
    Request,
    SampleError,
    SetupError,
    Usage,
    install,
)
from eyechart.providers.catalog.endpoints import OPEN_SERVER, VLLM_NEUTRAL
from eyechart.providers.documents import as_document, stops
from eyechart.providers.naming import named
from eyechart.providers.openai.form import asked_fields, body_of, template_fields
from eyechart.providers.openai.neutral import NeutralFields, neutral_of
from eyechart.providers.secrets import redact
from eyechart.providers.vllm.server import check_folder, read_arguments

_ERROR_CHARS = 400
_TOO_LONG = "maximum model length"
"""vLLM's message about a prompt that is longer than its window."""


@dataclass(frozen=True)
class OfflineVllm:
    """A model as vLLM's engine loads it. Reading its config imports vLLM, which takes seconds."""

    settings: ModelSettings
    given: tuple[str, ...]
    """The arguments of the user, as vLLM spells them."""

    @classmethod
    def of(cls, settings: ModelSettings) -> OfflineVllm:
        """Checks what can be checked without vLLM.

        Raises:
            SetupError: vLLM is not installed, the model's folder does not exist, or an argument is
                not allowed.
        """
        if importlib.util.find_spec("vllm") is None:
            raise SetupError(f"vllm/{settings.model} needs vLLM here too: {install('vllm')}")
        check_folder(settings.model)
        return cls(settings, read_arguments(settings.model_args))

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """The engine's arguments that are not vLLM's defaults.

        Raises:
            SetupError: vLLM does not know an argument or its value.
        """
        given, usual = self._parsed(self.given), self._parsed(())
        names = [field.name for field in fields(given) if field.init and field.name != "model"]
        return {
            name: getattr(given, name)
            for name in names
            if getattr(given, name) != getattr(usual, name)
        } | {"enable_prefix_caching": given.enable_prefix_caching is not False}

    def _parsed(self, arguments: Sequence[str]) -> Any:
        from vllm import AsyncEngineArgs  # noqa: PLC0415  slow
        from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: PLC0415

        parser = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser())
        said = io.StringIO()
        try:
            with redirect_stderr(said):
                read = parser.parse_args(["--model", self.settings.model, *arguments])
            return AsyncEngineArgs.from_cli_args(read)
        except (Exception, SystemExit) as error:
            printed = said.getvalue().strip().rpartition("error: ")[2]
            why = _one_line(printed if isinstance(error, SystemExit) else error)
            raise SetupError(f"vLLM does not take {named('model_args')}: {why}") from error

    @cached_property
    def config(self) -> Any:
        """The model's config as vLLM reads it.

        Raises:
            SetupError: vLLM cannot load the model.
        """
        try:
            return self._parsed(self.given).create_model_config()
        except ProviderError:
            raise
        except Exception as error:
            raise SetupError(
                f"vLLM cannot load {self.settings.model}: {_one_line(error)}"
            ) from error

    @property
    def workers(self) -> int:
        """GPUs of one engine: its tensor times its pipeline parallel size."""
        sizes = ("tensor_parallel_size", "pipeline_parallel_size")
        first, second = (int(self.arguments.get(name, 1)) for name in sizes)
        return first * second

    def facts(self) -> dict[str, object]:
        """Facts that may change the replies."""
        import vllm  # noqa: PLC0415  slow

        return {
            "engine": "vllm",
            "model": self.settings.model,
            "served_by": "ray",
            "max_model_len": self.config.max_model_len,
            "version": vllm.__version__,
            "server_args": list(self.given),
        }

    def plan(self) -> OfflinePlan:
        """The data that a worker needs."""
        config = self.config
        generation = config.try_get_generation_config()
        ends = generation.get("eos_token_id")
        return OfflinePlan(
            self.settings,
            tokenizer=config.tokenizer,
            trust_remote_code=bool(config.trust_remote_code),
            defaults=dict(config.get_diff_sampling_param()),
            ends=frozenset(ends if isinstance(ends, list) else [ends] if ends is not None else []),
            window=config.max_model_len,
        )


def _one_line(error: object) -> str:
    """An error in one line; pydantic adds what was given after it."""
    text = str(error).partition(" [type=")[0]
    return redact(" ".join(text.split()))[:_ERROR_CHARS]


@lru_cache(maxsize=2)
def _tokenizer(name: str, *, trust_remote_code: bool) -> Any:
    from vllm.tokenizers import get_tokenizer  # noqa: PLC0415  slow

    return get_tokenizer(name, trust_remote_code=trust_remote_code)


@dataclass(frozen=True, slots=True)
class OfflinePlan:
    """Makes requests for the engine and reads its results; is sent to the workers."""

    settings: ModelSettings
    tokenizer: str
    trust_remote_code: bool
    defaults: Mapping[str, Any]
    """Sampling parameters of the model's generation config."""
    ends: frozenset[int]
    """Tokens of its generation config that end a reply."""
    window: int

    def tokens(self, prompt: str) -> list[int]:
        """The tokens of a prompt, as `vllm serve` makes them."""
        tokenizer = _tokenizer(self.tokenizer, trust_remote_code=self.trust_remote_code)
        if self.settings.api == "completions":
            return list(tokenizer(as_document(prompt)).input_ids)
        messages = body_of(Request(prompt, 1), self.settings)["messages"]
        return list(
            tokenizer.apply_chat_template(
                messages,
                add_generation_prompt=True,
                tokenize=True,
                return_dict=False,
                **template_fields(self.settings),
            )
        )

    def sampling(self, request: Request) -> dict[str, Any]:
        parameters = {
            **self.defaults,
            **NeutralFields(neutral_of(VLLM_NEUTRAL, self.settings.params)).fields,
            "max_tokens": request.max_tokens,
            "seed": request.seed,
        }
        if request.temperature is not None:
            parameters["temperature"] = request.temperature
        if self.settings.api == "completions":
            parameters["stop"] = stops(request.prompt)
        if self.settings.logprobs:
            parameters["logprobs"] = self.settings.top_logprobs
        fields = asked_fields(self.settings, OPEN_SERVER)
        fields.pop("chat_template_kwargs", None)
        return parameters | fields

    def reply(self, row: Mapping[str, Any], request: Request) -> Reply:
        """The reply in a row of the engine; its finish reason, which Ray drops, is inferred."""
        tokens = [int(token) for token in row["generated_tokens"]]
        asked = int(row["num_input_tokens"])
        return Reply(
            text=str(row["generated_text"]),
            finish_reason=self._finish(tokens, asked, request.max_tokens),
            usage=Usage(asked, len(tokens)),
            model=self.settings.model,
            logprobs=_logprobs(row.get("logprobs"), tokens) if self.settings.logprobs else None,
            top_logprobs=_top(row.get("logprobs"), self.settings.top_logprobs),
            sure_stop=True,
        )

    def _finish(self, tokens: Sequence[int], asked: int, max_tokens: int) -> FinishReason:
        tokenizer = _tokenizer(self.tokenizer, trust_remote_code=self.trust_remote_code)
        if tokens and tokens[-1] in {tokenizer.eos_token_id, *self.ends}:
            return "stop"
        full = len(tokens) >= max_tokens or asked + len(tokens) >= self.window
        return "length" if full else "stop"

    @staticmethod
    def error(message: str) -> SampleError:
        """The error of a prompt that the engine refused."""
        line = redact(" ".join(message.split()))
        return PromptOverflowError(line) if _TOO_LONG in line else BadRequestError(line)


def _logprobs(given: Any, tokens: Sequence[int]) -> tuple[tuple[str, float], ...] | None:
    """Each token of the reply with its log probability."""
    if given is None:
        return None
    pairs = []
    for token, candidates in zip(tokens, given, strict=False):
        one = candidates.get(token, candidates.get(str(token)))
        if one is None:
            return None
        pairs.append((str(one["decoded_token"]), float(one["logprob"])))
    return tuple(pairs)


def _top(given: Any, most: int) -> tuple[tuple[tuple[str, float], ...], ...] | None:
    """The most probable tokens at each place of the reply."""
    if given is None or not most:
        return None
    return tuple(
        tuple(
            sorted(
                ((str(one["decoded_token"]), float(one["logprob"])) for one in candidates.values()),
                key=lambda pair: -pair[1],
            )[:most]
        )
        for candidates in given
    )
