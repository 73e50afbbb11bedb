"""Models of lm-eval's that live in this process: batches for `generate_until`, and what became of
each reply.

lm-eval cuts a prompt that is too long from the left, and says of no reply whether it ended or was
cut off. So prompts are measured before, and what the model generated is looked at on its way
through `_model_generate`, where the tokens still are.
"""

from __future__ import annotations

import gc
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from providers.base import (
    ModelSettings,
    PromptOverflowError,
    ProviderError,
    Reply,
    Request,
    SampleError,
    SetupError,
    Usage,
)
from providers.documents import as_document, stops
from providers.lm_eval.loading import AT_ONCE, one_line
from providers.one_thread import Job

_OUT_OF_MEMORY = "out of memory"


class StoppedError(Exception):
    """Generation was told to stop before it was done."""


@dataclass(frozen=True, slots=True)
class _Generated:
    """What a model made of one prompt, before lm-eval made a text of it."""

    tokens: Sequence[int]
    """Up to the end token, with it."""
    finish_reason: Literal["stop", "length"] | None
    """`None` where the tokens' number decides."""


@dataclass(slots=True)
class _Asked:
    """A job with what is sent for it."""

    job: Job
    text: str
    ids: Sequence[int] | None
    """`None` where lm-eval has no tokenizer for it."""

    @property
    def request(self) -> Request:
        return self.job.request


@dataclass(slots=True)
class _Seen:
    """What went through `_model_generate` in one batch, by the prompt's tokens."""

    rows: dict[tuple[int, ...], list[_Generated]] = field(default_factory=lambda: defaultdict(list))

    def pop(self, ids: Sequence[int] | None) -> _Generated | None:
        """That of a prompt; equal prompts are taken in the order they were sent."""
        rows = self.rows.get(tuple(ids or ()))
        return rows.pop(0) if rows else None


class LocalModel:
    """One model in this process. Not to be used by two threads at once."""

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
        self.at_once = int(size) if size.isdecimal() and int(size) else AT_ONCE
        """Prompts in one batch; fewer once memory was short."""
        self.window: int | None = self._window()
        self._padded = hasattr(lm, "tok_batch_encode") and _is_causal(lm)
        """One budget and one way to stop for a whole batch, as transformers has it."""
        self._each = hasattr(lm, "modify_gen_kwargs")
        """Each request has its own, as engines have it."""
        self._seen = _Seen()
        self._observe(closed)
        self._text(Request("1", 1))  # a missing template is said now

    def _window(self) -> int | None:
        """Tokens that prompt and reply may have: lm-eval cuts there, whatever the model takes."""
        length = getattr(self._lm, "max_length", None)
        return length if isinstance(length, int) and length > 0 else None

    def _observe(self, closed: Callable[[], bool]) -> None:
        """Looks at the tokens on their way, and stops a model of PyTorch's between two of them."""
        generate = getattr(self._lm, "_model_generate", None)
        if generate is None or not _is_causal(self._lm):
            return

        pad = getattr(getattr(self._lm, "tokenizer", None), "pad_token_id", None)

        def observed(*args: Any, **kwargs: Any) -> Any:
            more = {}
            if self._padded and self._settings.api == "completions":
                # a row ends at its own stop, and the batch with the last row; lm-eval's criterion
                # goes on until all have met the same one
                more = {"stop_strings": kwargs["stop"], "tokenizer": self._lm.tokenizer}
            made = generate(*args, **kwargs, **more)
            for ids, row in _rows(made, kwargs, self._ends(), pad):
                self._seen.rows[tuple(ids)].append(row)
            return made

        self._lm._model_generate = observed  # noqa: SLF001

        def stop(*_: Any) -> None:
            if closed():
                raise StoppedError

        hook = getattr(getattr(self._lm, "model", None), "register_forward_pre_hook", None)
        if hook is not None:
            hook(stop)

    def _ends(self) -> frozenset[int]:
        """Tokens that end a reply."""
        config = getattr(getattr(self._lm, "model", None), "generation_config", None)
        ends = getattr(config, "eos_token_id", None)
        several = list(ends) if isinstance(ends, list | tuple) else [ends]
        several.append(getattr(self._lm, "eot_token_id", None))
        return frozenset(end for end in several if isinstance(end, int))

    def facts(self) -> dict[str, object]:
        """What lm-eval knows of the model, without asking a hub."""
        config = getattr(self._lm, "config", None)
        dtype = getattr(getattr(self._lm, "model", None), "dtype", None)
        told = {
            "max_model_len": self.window,
            "model_sha": getattr(config, "_commit_hash", None),
            "dtype": None if dtype is None else str(dtype),
        }
        return {name: value for name, value in told.items() if value is not None}

    def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """By the model's own tokenizer, as it is sent them."""
        counts = []
        for prompt in prompts:
            ids = self._ids(self._text(Request(prompt, 1)))
            if ids is None:
                return None
            counts.append(len(ids))
        return counts

    def _text(self, request: Request) -> str:
        if self._settings.api == "completions":
            return as_document(request.prompt)
        system = self._settings.system
        before = [{"role": "system", "content": system}] if system else []
        history = [*before, {"role": "user", "content": request.prompt}]
        try:
            text = str(self._lm.apply_chat_template(history))
        except Exception as error:  # transformers', jinja's, lm-eval's own
            raise SetupError(
                f"lm-eval's {self._kind} has no chat template for this ({one_line(error)});"
                " use --api completions"
            ) from error
        if system and system.strip() not in text:
            raise SetupError(f"the chat template of lm-eval's {self._kind} leaves out --system")
        return text

    def _ids(self, text: str) -> Sequence[int] | None:
        encode = getattr(self._lm, "tok_encode", None)
        if encode is None:
            return None
        ids = encode(text)
        return ids if isinstance(ids, list) else None

    def answer(self, jobs: Sequence[Job]) -> None:
        """Settles each job, in batches of prompts of similar length, the longest first."""
        groups: dict[tuple[object, ...], list[_Asked]] = defaultdict(list)
        for job in jobs:
            if job.cancelled:
                continue
            try:
                asked = self._asked(job)
            except ProviderError as error:
                job.settle(error)
            except Exception as error:  # noqa: BLE001  a tokenizer's, of one prompt
                job.settle(SampleError(f"lm-eval's {self._kind}: {one_line(error)}"))
            else:
                groups[self._key(asked.request)].append(asked)
        for group in groups.values():
            group.sort(key=lambda one: -len(one.ids or one.text))
            while group:
                batch = self._fitting(group[: self.at_once])
                del group[: len(batch)]
                self._answer(batch)

    def _asked(self, job: Job) -> _Asked:
        text = self._text(job.request)
        ids = self._ids(text)
        if ids is not None and self.window is not None:
            most = self.window - job.request.max_tokens
            if len(ids) > most:
                raise PromptOverflowError(
                    f"the prompt has {len(ids)} tokens, and {self.window} take them and"
                    f" {job.request.max_tokens} of reply; ask for shorter lengths"
                )
        return _Asked(job, text, ids)

    def _key(self, request: Request) -> tuple[object, ...]:
        """Requests of one key can share a batch.

        Rows of a padded one are cut here each at its own budget, and the batch has the largest;
        not so where lm-eval takes thinking out of them, so that nobody knows what is left.
        """
        thinks = getattr(self._lm, "think_end_token", None) is not None
        shared = self._each or (self._padded and not thinks)
        until = tuple(stops(request.prompt)) if self._settings.api == "completions" else ()
        budget = None if shared else request.max_tokens
        return (request.temperature, request.seed, until, budget)

    def _fitting(self, batch: list[_Asked]) -> list[_Asked]:
        """As many of the batch as the window takes with the largest budget among them."""
        if self.window is None or self._each:
            return batch
        longest = len(batch[0].ids or ())
        budget = 0
        for place, one in enumerate(batch):
            budget = max(budget, one.request.max_tokens)
            if longest + budget > self.window and place:
                return batch[:place]
        return batch

    def _answer(self, batch: list[_Asked]) -> None:
        """Settles the batch; one that fails is halved until it is clear whose fault it was."""
        try:
            replies = self._generate(batch)
        except StoppedError:
            raise
        except Exception as error:  # noqa: BLE001  whatever a model's library raises
            short = _is_memory(error)
            if len(batch) == 1:
                batch[0].job.settle(self._failure(error, batch[0], short=short))
                return
            half = (len(batch) + 1) // 2
            if short and half < self.at_once:
                self.at_once = half
                self._settings.notify(f"memory is short: {half} prompts at once from here on")
            del error
            _free_memory()
            self._answer(batch[:half])
            self._answer(batch[half:])
        else:
            for one, reply in zip(batch, replies, strict=True):
                one.job.settle(reply)

    def _failure(self, error: Exception, one: _Asked, *, short: bool) -> ProviderError:
        if short:
            tokens = f" of {len(one.ids)} tokens" if one.ids else ""
            return SampleError(
                f"no memory for one prompt{tokens} and {one.request.max_tokens} of reply"
                f" ({one_line(error)}); ask for shorter lengths"
            )
        return SampleError(f"lm-eval's {self._kind} failed with {one_line(error)}")

    def _generate(self, batch: Sequence[_Asked]) -> list[Reply | ProviderError]:
        from lm_eval.api.instance import Instance  # noqa: PLC0415  loaded with the model

        first = batch[0].request
        most = max(one.request.max_tokens for one in batch)
        until = stops(first.prompt) if self._settings.api == "completions" else []
        self._seen.rows.clear()
        if first.seed is not None:
            _seed(first.seed)
        texts = self._lm.generate_until(
            [
                Instance("generate_until", {}, (one.text, self._wanted(one.request, most)), place)
                for place, one in enumerate(batch)
            ],
            **self._quietly,
        )
        if len(texts) != len(batch):
            raise SampleError(f"lm-eval's {self._kind} gave {len(texts)} replies to {len(batch)}")
        return [
            self._reply(one, text, self._seen.pop(one.ids), until)
            for one, text in zip(batch, texts, strict=True)
        ]

    def _wanted(self, request: Request, most: int) -> dict[str, Any]:
        """lm-eval's generation arguments."""
        wanted = {
            "do_sample": request.temperature > 0,
            "temperature": request.temperature,
            "max_gen_toks": request.max_tokens if self._each else most,
            "until": stops(request.prompt) if self._settings.api == "completions" else [],
        }
        if request.seed is not None and hasattr(self._lm, "lora_request"):
            wanted["seed"] = request.seed  # vLLM has a generator for each request
        return wanted

    @property
    def _quietly(self) -> dict[str, bool]:
        code = getattr(type(self._lm).generate_until, "__code__", None)
        return {"disable_tqdm": True} if code and "disable_tqdm" in code.co_varnames else {}

    def _reply(
        self, one: _Asked, text: str | None, made: _Generated | None, until: Sequence[str]
    ) -> Reply | ProviderError:
        budget = one.request.max_tokens
        if made is None:
            return self._unseen(one, text)
        usage = Usage(len(one.ids or ()), min(len(made.tokens), budget))
        if len(made.tokens) > budget:  # the batch had more room than this one asked for
            cut = str(self._lm.tok_decode(made.tokens[:budget]))
            if not any(stop in cut for stop in until):
                return Reply(cut, "length", usage)
            return Reply(text or "", "stop", usage)
        finish = made.finish_reason
        if finish is None:
            whole = str(self._lm.tok_decode(made.tokens))
            full = len(made.tokens) >= budget and not any(stop in whole for stop in until)
            finish = "length" if full else "stop"
        return Reply(text or "", finish, usage)

    def _unseen(self, one: _Asked, text: str | None) -> Reply | ProviderError:
        """Of a type whose tokens cannot be looked at: nothing said may be anything that failed."""
        if not text:
            return SampleError(
                f"lm-eval's {self._kind} gave no text, as it does for requests that fail"
            )
        ids = None if one.ids is None else self._ids(text)
        if ids is None:
            return Reply(text)
        usage = Usage(len(one.ids or ()), len(ids))
        return Reply(text, "length" if len(ids) >= one.request.max_tokens else "stop", usage)


def _is_causal(lm: Any) -> bool:
    return getattr(lm, "backend", "causal") == "causal"


def _rows(
    made: Any, kwargs: Mapping[str, Any], ends: frozenset[int], pad: int | None
) -> Iterator[tuple[list[int], _Generated]]:
    """Each prompt's tokens and what was generated, as transformers, vLLM and SGLang give it."""
    if "context" in kwargs:
        context, mask = kwargs["context"], kwargs.get("attention_mask")
        width = context.shape[1]
        for place, row in enumerate(made.tolist()):
            ids = context[place].tolist()
            kept = [1] * width if mask is None else mask[place].tolist()
            said = row[width:]
            end = next((at for at, token in enumerate(said) if token in ends), None)
            prompt = [token for token, keep in zip(ids, kept, strict=True) if keep]
            if end is None:
                while said and said[-1] == pad:  # it ended at a stop before others did
                    said.pop()
                yield prompt, _Generated(said, None)
            else:
                yield prompt, _Generated(said[: end + 1], "stop")
        return
    for ids, output in zip(kwargs.get("requests") or (), made, strict=False):
        if isinstance(output, dict):
            about = output.get("meta_info") or {}
            finish = (about.get("finish_reason") or {}).get("type")
            tokens = [0] * int(about.get("completion_tokens") or 0)
        else:
            finish, tokens = output.outputs[0].finish_reason, list(output.outputs[0].token_ids)
        yield list(ids), _Generated(tokens, "length" if finish == "length" else "stop")


def _is_memory(error: BaseException) -> bool:
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or _OUT_OF_MEMORY in str(error).lower()
    )


def _free_memory() -> None:
    """Gives back what a failed batch held."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def _seed(seed: int) -> None:
    """For models that draw from PyTorch's own generator; a batch is one draw."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)
