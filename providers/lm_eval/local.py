"""lm-eval's models in this process: batches for `generate_until`, and why each reply ended.

lm-eval removes the beginning of a prompt that is too long, and does not report whether a reply
ended by itself or was cut off. So the tokens of a prompt are counted before it is sent, and the
tokens of a reply are recorded in `_model_generate`, before lm-eval converts them to text.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from eyechart.providers.base import (
    ModelSettings,
    PromptOverflowError,
    ProviderError,
    Reply,
    Request,
    SampleError,
    SetupError,
    Usage,
)
from eyechart.providers.documents import as_document, opened, stops
from eyechart.providers.in_process.halving import Halving, StoppedError, is_out_of_memory
from eyechart.providers.in_process.one_thread import QueuedRequest
from eyechart.providers.lm_eval.likelihood import Scoring
from eyechart.providers.lm_eval.loading import AT_ONCE, one_line
from eyechart.providers.naming import named

_NEUTRAL = {"repetition_penalty": 1.0, "no_repeat_ngram_size": 0}
"""Against the `generation_config.json` of a model of transformers. lm-eval's other models in this
process take nothing from it."""
_NEUTRAL_SAMPLED = _NEUTRAL | {"top_k": 0, "top_p": 1.0}


@dataclass(frozen=True, slots=True)
class _Generated:
    """The tokens that a model generated for one prompt, before lm-eval converts them to text."""

    tokens: Sequence[int]
    """Up to the end token, including it."""
    finish_reason: Literal["stop", "length"] | None
    """`None` if it must be found from the number of tokens."""


@dataclass(slots=True)
class _Prompt:
    """A job with its prompt as it is sent."""

    job: QueuedRequest
    text: str
    ids: Sequence[int] | None
    """Token ids of `text`; `None` if lm-eval has no tokenizer for the model."""

    @property
    def request(self) -> Request:
        return self.job.request


class LocalModel:
    """One model in this process. Only one thread may use it at a time."""

    def __init__(
        self,
        lm: Any,
        kind: str,
        settings: ModelSettings,
        *,
        closed: Callable[[], bool] = lambda: False,
    ) -> None:
        self._lm = lm
        self._kind = kind
        self._settings = settings
        size = str(getattr(lm, "batch_size", AT_ONCE))
        first = int(size) if size.isdecimal() and int(size) else AT_ONCE
        self._halving = Halving(settings.notify, first)
        self.window: int | None = self._window()
        self._padded = hasattr(lm, "tok_batch_encode") and _is_causal(lm)
        """Whether a batch has one token limit and one way to stop, as in transformers."""
        self._own_limits = hasattr(lm, "modify_gen_kwargs")
        """Whether each request of a batch has its own limit and stops, as in engines like vLLM."""
        self._recorded: dict[tuple[int, ...], list[_Generated]] = defaultdict(list)
        """What `_model_generate` gave in one batch, by the tokens of the prompt."""
        self._record_tokens(closed)
        self._text(Request("1", 1))  # fails at once if the template is missing

    @property
    def at_once(self) -> int:
        """Most prompts in one batch."""
        return self._halving.at_once

    def _window(self) -> int | None:
        """Most tokens of prompt and reply together: lm-eval cuts at this number."""
        length = getattr(self._lm, "max_length", None)
        return length if isinstance(length, int) and length > 0 else None

    def _record_tokens(self, closed: Callable[[], bool]) -> None:
        """Replaces the model's `_model_generate` by a function that also records the tokens.

        A PyTorch model raises `StoppedError` before its next token once `closed()` is true.
        """
        generate = getattr(self._lm, "_model_generate", None)
        if generate is None or not _is_causal(self._lm):
            return

        pad = getattr(getattr(self._lm, "tokenizer", None), "pad_token_id", None)

        def recording(*args: Any, **kwargs: Any) -> Any:
            stopping = {}
            if self._padded and self._settings.api == "completions":
                # each row ends at any of the stops; with lm-eval's own criterion the batch goes on
                # until all rows have had the same stop
                stopping = {"stop_strings": kwargs["stop"], "tokenizer": self._lm.tokenizer}
            output = generate(*args, **kwargs, **stopping)
            for ids, row in _rows(output, kwargs, self._end_tokens(), pad):
                self._recorded[tuple(ids)].append(row)
            return output

        self._lm._model_generate = recording  # noqa: SLF001

        def stop(*_: Any) -> None:
            if closed():
                raise StoppedError

        hook = getattr(getattr(self._lm, "model", None), "register_forward_pre_hook", None)
        if hook is not None:
            hook(stop)

    def _end_tokens(self) -> frozenset[int]:
        """Ids of the tokens that end a reply."""
        config = getattr(getattr(self._lm, "model", None), "generation_config", None)
        ends = getattr(config, "eos_token_id", None)
        tokens = list(ends) if isinstance(ends, list | tuple) else [ends]
        tokens.append(getattr(self._lm, "eot_token_id", None))
        return frozenset(token for token in tokens if isinstance(token, int))

    def facts(self) -> dict[str, object]:
        """The window, commit and number type of the model, as far as lm-eval knows them."""
        config = getattr(self._lm, "config", None)
        dtype = getattr(getattr(self._lm, "model", None), "dtype", None)
        facts = {
            "max_model_len": self.window,
            "model_sha": getattr(config, "_commit_hash", None),
            "dtype": None if dtype is None else str(dtype),
        }
        return {name: value for name, value in facts.items() if value is not None}

    def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """Counts with the model's own tokenizer; `None` if lm-eval does not have it."""
        counts = []
        for prompt in prompts:
            ids = self._ids(self._text(Request(prompt, 1)))
            if ids is None:
                return None
            counts.append(len(ids))
        return counts

    def _text(self, request: Request) -> str:
        """The prompt as it is sent: in the chat template, or as a text to continue.

        Raises:
            SetupError: there is no chat template, or it leaves out the system prompt.
        """
        if self._settings.api == "completions":
            return as_document(request.prompt)
        system = self._settings.system
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": request.prompt})
        try:
            text = str(self._lm.apply_chat_template(messages))
        except Exception as error:  # of transformers, jinja or lm-eval
            raise SetupError(
                f"lm-eval's {self._kind} has no chat template for this ({one_line(error)});"
                f" use {named('api', 'completions')}"
            ) from error
        if system and system.strip() not in text:
            raise SetupError(
                f"the chat template of lm-eval's {self._kind} leaves out {named('system')}"
            )
        return text

    def _before(self, request: Request) -> str:
        """The text before the options of a request."""
        if self._settings.api == "completions":
            return opened(request.prompt, request.opening)
        return f"{self._text(request)}{request.opening}"

    def _ids(self, text: str) -> Sequence[int] | None:
        """Token ids of `text`; `None` if lm-eval has no tokenizer for the model."""
        encode = getattr(self._lm, "tok_encode", None)
        if encode is None:
            return None
        ids = encode(text)
        return ids if isinstance(ids, list) else None

    def answer(self, jobs: Sequence[QueuedRequest]) -> None:
        """Settles all jobs, in batches of prompts of similar length, the longest first."""
        groups: dict[tuple[object, ...], list[_Prompt]] = defaultdict(list)
        Scoring(self._lm, self._kind, self._before).settle(
            [job for job in jobs if job.request.options], self.window
        )
        for job in jobs:
            if job.cancelled or job.request.options:
                continue
            try:
                prompt = self._prompt(job)
            except ProviderError as error:
                job.settle(error)
            except Exception as error:  # noqa: BLE001  of a tokenizer, about one prompt
                job.settle(SampleError(f"lm-eval's {self._kind}: {one_line(error)}"))
            else:
                groups[self._batch_key(prompt.request)].append(prompt)
        for group in groups.values():
            group.sort(key=lambda prompt: -len(prompt.ids or prompt.text))
            while group:
                batch = self._fitting(group[: self.at_once])
                del group[: len(batch)]
                self._halving.settle(batch, self._answer, self._failed)

    def _prompt(self, job: QueuedRequest) -> _Prompt:
        """The prompt of a job; raises `PromptOverflowError` if it does not fit into the window."""
        text = self._text(job.request)
        ids = self._ids(text)
        limit = job.request.max_tokens
        if ids is not None and self.window is not None and len(ids) + limit > self.window:
            raise PromptOverflowError(
                f"the prompt has {len(ids)} tokens and the reply may have {limit}, but the window"
                f" has {self.window}; ask for shorter lengths"
            )
        return _Prompt(job, text, ids)

    def _batch_key(self, request: Request) -> tuple[object, ...]:
        """Requests with the same key can share a batch.

        A padded batch gets the largest token limit of its requests, and each reply is cut at its
        own limit afterwards. That is impossible if lm-eval removes thinking from the replies: then
        only requests with the same limit share a batch.
        """
        thinks = getattr(self._lm, "think_end_token", None) is not None
        any_limit = self._own_limits or (self._padded and not thinks)
        until = tuple(stops(request.prompt)) if self._settings.api == "completions" else ()
        limit = None if any_limit else request.max_tokens
        return (request.temperature, request.seed, until, limit)

    def _fitting(self, batch: list[_Prompt]) -> list[_Prompt]:
        """The first prompts of `batch` that fit the window with the largest limit among them."""
        if self.window is None or self._own_limits:
            return batch
        longest = len(batch[0].ids or ())
        limit = 0
        for place, prompt in enumerate(batch):
            limit = max(limit, prompt.request.max_tokens)
            if longest + limit > self.window and place:
                return batch[:place]
        return batch

    def _answer(self, batch: Sequence[_Prompt]) -> None:
        for prompt, reply in zip(batch, self._generate(batch), strict=True):
            prompt.job.settle(reply)

    def _failed(self, prompt: _Prompt, error: Exception) -> None:
        """Settles a prompt that failed alone."""
        tokens = f" of {len(prompt.ids)} tokens" if prompt.ids else ""
        prompt.job.settle(
            SampleError(
                f"not enough memory for one prompt{tokens} and a reply of"
                f" {prompt.request.max_tokens} ({one_line(error)}); ask for shorter lengths"
                if is_out_of_memory(error)
                else f"lm-eval's {self._kind} failed with {one_line(error)}"
            )
        )

    def _generate(self, batch: Sequence[_Prompt]) -> list[Reply | ProviderError]:
        """The result of each prompt, from one call of `generate_until`."""
        from lm_eval.api.instance import Instance  # noqa: PLC0415  loaded with the model

        first = batch[0].request
        largest = max(prompt.request.max_tokens for prompt in batch)
        until = stops(first.prompt) if self._settings.api == "completions" else []
        self._recorded.clear()
        if first.seed is not None:
            _seed(first.seed)
        texts = self._lm.generate_until(
            [
                Instance(
                    "generate_until",
                    {},
                    (prompt.text, self._arguments(prompt.request, largest)),
                    place,
                )
                for place, prompt in enumerate(batch)
            ],
            **self._progress_arguments,
        )
        if len(texts) != len(batch):
            raise SampleError(
                f"lm-eval's {self._kind} gave {len(texts)} replies to {len(batch)} prompts"
            )
        return [
            self._reply(prompt, text, self._taken(prompt), until)
            for prompt, text in zip(batch, texts, strict=True)
        ]

    def _taken(self, prompt: _Prompt) -> _Generated | None:
        """The recorded tokens of a prompt, once: of equal prompts, those of the first one."""
        rows = self._recorded.get(tuple(prompt.ids or ()))
        return rows.pop(0) if rows else None

    def _arguments(self, request: Request, largest: int) -> dict[str, Any]:
        """lm-eval's generation arguments; `largest` is the largest token limit in the batch."""
        arguments = {
            "do_sample": (request.temperature or 0) > 0,
            "temperature": request.temperature,
            "max_gen_toks": request.max_tokens if self._own_limits else largest,
            "until": stops(request.prompt) if self._settings.api == "completions" else [],
        }
        if hasattr(getattr(self._lm, "model", None), "generation_config"):
            arguments |= _NEUTRAL_SAMPLED if arguments["do_sample"] else _NEUTRAL
        if request.seed is not None and hasattr(self._lm, "lora_request"):
            arguments["seed"] = request.seed  # vLLM has a generator for each request
        return arguments

    @property
    def _progress_arguments(self) -> dict[str, bool]:
        """Arguments that turn off lm-eval's progress bar, if the model's type takes them."""
        code = getattr(type(self._lm).generate_until, "__code__", None)
        return {"disable_tqdm": True} if code and "disable_tqdm" in code.co_varnames else {}

    def _reply(
        self, prompt: _Prompt, text: str | None, generated: _Generated | None, until: Sequence[str]
    ) -> Reply | ProviderError:
        """The reply with `text`, cut at the prompt's own token limit.

        `generated` has its tokens, if they were recorded; `until` are the texts that end a reply.
        """
        limit = prompt.request.max_tokens
        if generated is None:
            return self._unrecorded_reply(prompt, text)
        tokens = generated.tokens
        usage = Usage(len(prompt.ids or ()), min(len(tokens), limit))
        if len(tokens) > limit:  # another request of the batch has a larger limit
            cut = str(self._lm.tok_decode(tokens[:limit]))
            if not any(stop in cut for stop in until):
                return Reply(cut, "length", usage)
            return Reply(text or "", "stop", usage, sure_stop=True)
        finish = generated.finish_reason
        if finish is None:
            whole = str(self._lm.tok_decode(tokens))
            full = len(tokens) >= limit and not any(stop in whole for stop in until)
            finish = "length" if full else "stop"
        return Reply(text or "", finish, usage, sure_stop=True)

    def _unrecorded_reply(self, prompt: _Prompt, text: str | None) -> Reply | ProviderError:
        """The reply of a model whose tokens are not recorded.

        An empty text counts as a failure, because lm-eval returns one for requests that fail.
        """
        if not text:
            return SampleError(
                f"lm-eval's {self._kind} gave no text; it does so for requests that fail"
            )
        ids = None if prompt.ids is None else self._ids(text)
        if ids is None:
            return Reply(text)
        usage = Usage(len(prompt.ids or ()), len(ids))
        return Reply(text, "length" if len(ids) >= prompt.request.max_tokens else "stop", usage)


def _is_causal(lm: Any) -> bool:
    """Whether the model continues its prompt; the others are encoder-decoder models."""
    return getattr(lm, "backend", "causal") == "causal"


def _rows(
    output: Any, kwargs: Mapping[str, Any], end_tokens: frozenset[int], pad: int | None
) -> Iterator[tuple[list[int], _Generated]]:
    """Each prompt's token ids, and the tokens generated for it.

    `output` is the result of transformers, vLLM or SGLang for the arguments `kwargs`.
    """
    if "context" in kwargs:
        context, mask = kwargs["context"], kwargs.get("attention_mask")
        width = context.shape[1]
        for place, row in enumerate(output.tolist()):
            padded = context[place].tolist()
            attended = [1] * width if mask is None else mask[place].tolist()
            prompt = [token for token, keep in zip(padded, attended, strict=True) if keep]
            tokens = row[width:]
            end = next((at for at, token in enumerate(tokens) if token in end_tokens), None)
            if end is None:
                while tokens and tokens[-1] == pad:  # it ended at a stop, before other rows
                    tokens.pop()
                yield prompt, _Generated(tokens, None)
            else:
                yield prompt, _Generated(tokens[: end + 1], "stop")
        return
    for ids, result in zip(kwargs.get("requests") or (), output, strict=False):
        if isinstance(result, dict):  # of SGLang, without token ids: only their number is right
            meta_info = result.get("meta_info") or {}
            finish = (meta_info.get("finish_reason") or {}).get("type")
            tokens = [0] * int(meta_info.get("completion_tokens") or 0)
        else:
            finish, tokens = result.outputs[0].finish_reason, list(result.outputs[0].token_ids)
        yield list(ids), _Generated(tokens, "length" if finish == "length" else "stop")


def _seed(seed: int) -> None:
    """Sets the seed of PyTorch's generator, from which all replies of a batch are sampled."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)
