"""The embedded model as a provider: questions that wait together are answered together.

One thread takes all that waits, renders, tokenizes and generates, and hands each reply back to the
event loop as it ends. NumPy and the model are loaded by that thread, on the first request.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import threading
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from providers.base import (
    Api,
    BadReplyError,
    BadRequestError,
    ModelSettings,
    PromptOverflowError,
    ProviderError,
    Reply,
    Request,
    SetupError,
    StopRunError,
    Usage,
)
from providers.documents import as_document, until_stop
from providers.one_thread import Job, OneThread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jinja2 import Template
    from tokenizers import Tokenizer

    from providers.tiny.runtime import Generated, TinyModel

_SHIPPED: Final = Path(__file__).with_name("model")
_MOST_WORKERS = 8


def open_provider(settings: ModelSettings) -> TinyProvider:
    """The provider of the shipped model, `tiny`, or of a model folder; loads nothing yet."""
    folder = _SHIPPED if settings.model == "tiny" else Path(settings.model).expanduser()
    _refuse_temperature(settings.temperature)
    if not folder.is_dir():
        raise SetupError(
            f"no model folder {str(folder)!r}; use tiny/tiny, or a folder with config.json,"
            " model.safetensors, tokenizer.json and tokenizer_config.json"
        )
    wanted = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    if missing := [name for name in wanted if not (folder / name).is_file()]:
        raise SetupError(
            f"model folder {str(folder)!r} lacks {', '.join(missing)}; save the model and its"
            " tokenizer there with save_pretrained"
        )
    if settings.logprobs:
        raise SetupError("the embedded model keeps no probabilities; leave --logprobs out")
    name = "tiny" if settings.model == "tiny" else folder.resolve().name
    return TinyProvider(folder, name, api=settings.api, system=settings.system)


def _refuse_temperature(temperature: float) -> None:
    if temperature != 0:
        raise SetupError(
            f"the embedded model is greedy only, temperature {temperature!r} is not possible; use"
            " --temperature 0"
        )


class _Chat:
    """From a prompt to token ids and back, as transformers' apply_chat_template does it."""

    def __init__(self, folder: Path) -> None:
        # The library otherwise warns on stderr when the process forks after a parallel call; the
        # batches here are encoded on one thread with the GIL released.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        from tokenizers import Tokenizer  # noqa: PLC0415  heavy: loaded with the model

        try:
            config = json.loads((folder / "tokenizer_config.json").read_bytes())
            self._tokenizer: Tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as exc:  # the Rust side raises plain Exception
            raise SetupError(
                f"the tokenizer of {str(folder)!r} cannot be read ({exc}); save it again"
            ) from exc
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._special_tokens = {
            key: value["content"] if isinstance(value, dict) else value
            for key, value in config.items()
            if key.endswith("_token") and isinstance(value, str | dict)
        }
        template = _template_text(folder, config)
        self._template = _compiled(template, folder)
        read = (folder / "tokenizer.json").read_bytes() + template.encode()
        self.sha256 = hashlib.sha256(read).hexdigest()
        """Of the tokenizer and the chat template."""

    def ids(self, prompts: Sequence[str], api: Api, system: str | None) -> list[list[int]]:
        """Token ids as a server makes them: special tokens are the template's in a chat, and the
        tokenizer's own in front of a text to be continued.
        """
        chat = api == "chat"
        texts = [self._rendered(one, system) if chat else as_document(one) for one in prompts]
        encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=not chat)
        return [encoding.ids for encoding in encodings]

    def _rendered(self, prompt: str, system: str | None) -> str:
        import jinja2  # noqa: PLC0415  loaded with the model

        before = [{"role": "system", "content": system}] if system else []
        try:
            return self._template.render(
                messages=[*before, {"role": "user", "content": prompt}],
                tools=None,
                documents=None,
                add_generation_prompt=True,
                **self._special_tokens,
            )
        except jinja2.TemplateError as exc:
            raise SetupError(f"the chat template fails: {exc}; mend it and load again") from exc

    def text(self, ids: Sequence[int]) -> str:
        decoded: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return decoded


def _template_text(folder: Path, config: Mapping[str, Any]) -> str:
    beside = folder / "chat_template.jinja"
    if beside.is_file():
        return beside.read_text(encoding="utf-8")
    found = config.get("chat_template")
    if isinstance(found, list):
        found = {one["name"]: one["template"] for one in found}.get("default")
    if not isinstance(found, str):
        raise SetupError(
            f"model folder {str(folder)!r} has no chat template; add chat_template to its"
            " tokenizer_config.json"
        )
    return found


def _compiled(text: str, folder: Path) -> Template:
    """The template in the environment transformers gives it; raises SetupError where it is none."""
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
    except jinja2.TemplateError as exc:
        raise SetupError(f"the chat template of {str(folder)!r} is wrong: {exc}") from exc


class _Loaded:
    """What the thread works with."""

    def __init__(self, folder: Path) -> None:
        self.workers = _take_cores()
        from providers.tiny.runtime import TinyModel  # noqa: PLC0415  imports numpy

        self.model: TinyModel = TinyModel.load(folder)
        self.chat = _Chat(folder)


def _take_cores() -> int:
    """How many batches run side by side, each on one core.

    That is twice as fast as one batch on OpenBLAS's own threads, whose idle spinning gets in the
    way of everything between the products. OpenBLAS reads its setting once, as NumPy is imported:
    where that has happened already, one batch at a time is left to its threads.
    """
    single = os.environ.get("OPENBLAS_NUM_THREADS") == "1"
    if not single and "numpy" not in sys.modules:
        before = os.environ.get("OPENBLAS_NUM_THREADS")
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        import numpy as np  # noqa: F401, PLC0415  imported for its reading of the setting

        if before is None:
            del os.environ["OPENBLAS_NUM_THREADS"]
        else:
            os.environ["OPENBLAS_NUM_THREADS"] = before
        single = True
    if not single:
        return 1
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(cores, _MOST_WORKERS)


class TinyProvider:
    """Answers with an embedded model. Safe to call from many asyncio tasks."""

    def __init__(
        self, folder: Path, name: str, *, api: Api = "chat", system: str | None = None
    ) -> None:
        self._folder = folder
        self._api: Api = api
        self._system = system
        self._name = name
        self._thread = OneThread("tiny-model", self._answer, _error)
        self._loaded: _Loaded | None = None
        self._loading = threading.Lock()

    async def complete(self, request: Request) -> Reply:
        """The greedy reply; raises a ProviderError and nothing else."""
        _refuse_temperature(request.temperature)
        if request.max_tokens < 1:
            raise BadRequestError(f"max_tokens is {request.max_tokens!r}; ask for one at least")
        return await self._thread.reply(request)

    async def facts(self) -> Mapping[str, object]:
        """What defines the answers; loads the model."""
        loaded = await asyncio.to_thread(self._load)
        model = loaded.model
        return {
            "engine": "numpy",
            "weights_sha256": model.weights_sha256[:16],
            "tokenizer_sha256": loaded.chat.sha256[:16],
            "max_model_len": model.config.window,
            "parameters": model.parameters,
        }

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """By the model's own tokenizer and template."""
        loaded = await asyncio.to_thread(self._load)
        return list(map(len, await asyncio.to_thread(self._ids, loaded, prompts)))

    def _ids(self, loaded: _Loaded, prompts: Sequence[str]) -> list[list[int]]:
        return loaded.chat.ids(prompts, self._api, self._system)

    async def aclose(self) -> None:
        """Stops the thread within one step of the model; whoever still waits gets an error."""
        await self._thread.aclose()

    def _load(self) -> _Loaded:
        with self._loading:
            if self._loaded is None:
                self._loaded = _Loaded(self._folder)
            return self._loaded

    def _answer(self, jobs: list[Job]) -> None:
        loaded = self._load()
        window = loaded.model.config.window
        wanted = [job for job in jobs if not job.cancelled]
        prompts: list[list[int]] = []
        fitting: list[Job] = []
        for job, ids in zip(
            wanted, self._ids(loaded, [job.request.prompt for job in wanted]), strict=True
        ):
            if len(ids) < window:
                prompts.append(ids)
                fitting.append(job)
            else:
                job.settle(
                    PromptOverflowError(
                        f"the prompt has {len(ids)} tokens, the window of {self._name} takes"
                        f" {window - 1} and one of reply; ask for shorter lengths"
                    )
                )

        def settle(index: int, generated: Generated) -> None:
            text, finish_reason = loaded.chat.text(generated.ids), generated.finish_reason
            if self._api == "completions":
                cut = until_stop(text, fitting[index].request.prompt)
                if cut is not None:
                    text, finish_reason = cut, "stop"
            fitting[index].settle(
                Reply(
                    text=text,
                    finish_reason=finish_reason,
                    usage=Usage(len(prompts[index]), len(generated.ids)),
                    model=self._name,
                )
            )

        loaded.model.generate(
            prompts,
            [job.request.max_tokens for job in fitting],
            workers=loaded.workers,
            on_finished=settle,
            should_stop=lambda: self._thread.closed,
        )


def _error(cause: BaseException | None) -> ProviderError:
    """What is raised where the thread failed by `cause`, or was closed."""
    if cause is None:
        return StopRunError("the embedded model was closed before it answered; open it again")
    if isinstance(cause, SetupError):
        return SetupError(str(cause))
    return BadReplyError(f"the embedded model failed with {cause!r}; please report this")
