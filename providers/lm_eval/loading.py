"""Loads a model through lm-eval's own registry, and redirects what libraries print."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from eyechart.providers.base import ProviderError, SetupError
from eyechart.providers.close_match import did_you_mean
from eyechart.providers.lm_eval.args import is_secret
from eyechart.providers.naming import named
from eyechart.providers.plugins.contract import described
from eyechart.providers.secrets import redact, scrub

AT_ONCE = 32
"""Prompts in one batch, unless `model_args` have `batch_size=N`; less if memory is short."""
_ENGINES = {"vllm": 256, "vllm-vlm": 256, "sglang": 256, "trtllm": 256}
"""The same for engines that make their own batches."""
_AUTO = 64
"""First batch size for `batch_size=auto`, as in lm-eval; it gets smaller if memory is short."""
_DEVICE = "cuda:0"
"""The default device of lm-eval; its models use the CPU if there is no GPU."""
_EXTRA = {"torch": "hf", "transformers": "hf", "accelerate": "hf", "peft": "hf", "vllm": "vllm"}
"""Package -> the extra of lm-eval that installs it; others have their own names."""
_SHOWN = 400
_STDOUT = 1
_QUIET = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TQDM_DISABLE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}
"""Environment variables that progress bars and tokenizers read when they are imported."""


class QuietOutput:
    """Until it is closed, standard output and the logs of libraries go to a file, or are discarded.

    The file descriptor of standard output is redirected, because engines with processes of their
    own write to it.
    """

    def __init__(self, log: Path | None) -> None:
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        self._log = log
        self._file = Path(log or os.devnull).open(  # noqa: SIM115  closed by `close`
            "a", encoding="utf-8", errors="replace"
        )
        self._begins = self._file.tell()
        self._handler = logging.StreamHandler(self._file)
        logging.getLogger().addHandler(self._handler)
        logging.captureWarnings(capture=True)
        self._stdout: int | None = None
        with suppress(OSError, ValueError):  # it may be closed
            sys.stdout.flush()
            self._stdout = os.dup(_STDOUT)
            os.dup2(self._file.fileno(), _STDOUT)

    def loggers(self) -> None:
        """Removes the log handlers that libraries have made when they were imported."""
        for name in ("lm_eval", "transformers", "huggingface_hub", "datasets"):
            logging.getLogger(name).handlers.clear()
            logging.getLogger(name).propagate = True

    def close(self) -> None:
        """Restores standard output and the logs."""
        if self._stdout is not None:
            with suppress(OSError, ValueError):
                sys.stdout.flush()
            os.dup2(self._stdout, _STDOUT)
            os.close(self._stdout)
            self._stdout = None
        logging.captureWarnings(capture=False)
        logging.getLogger().removeHandler(self._handler)
        self._file.close()
        if self._log is not None:
            with suppress(OSError):
                scrub(self._log, self._begins)


def one_line(error: BaseException) -> str:
    """Class and message of another library's error, as a part of a message of ours."""
    return redact(described(error))[:_SHOWN]


def load(kind: str, args: Mapping[str, str], quiet: QuietOutput) -> tuple[Any, type]:
    """The model of lm-eval's type `kind`, and the base class of all types that send HTTP requests.

    Raises:
        SetupError: there is no such type, or it cannot be loaded.
    """
    try:
        importlib.import_module("lm_eval.models")
        registry = importlib.import_module("lm_eval.api.registry")
        over_http = importlib.import_module("lm_eval.models.api_models").TemplateAPI
        _check_kind(kind, list(registry.MODEL_REGISTRY))
        model_class = registry.get_model(kind)
        quiet.loggers()
        is_remote = issubclass(model_class, over_http)
        values = _values(args)
        if not is_remote and str(values.get("batch_size")).startswith("auto"):
            values["batch_size"] = int(values.get("max_batch_size", _AUTO))
        defaults = _defaults(kind, args, is_remote=is_remote)
        return model_class.create_from_arg_obj(values, defaults), over_http
    except ProviderError:
        raise
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        requirement = f"'lm-eval[{_EXTRA[package]}]'" if package in _EXTRA else package or "…"
        raise SetupError(
            f"lm-eval's {kind} lacks a package ({one_line(error)}): pip install {requirement}"
        ) from error
    except (Exception, SystemExit) as error:  # whatever a model's library raises
        raise SetupError(
            f"lm-eval cannot load {kind} ({one_line(error)}); look at its {named('model_args')} "
            "values"
        ) from error


def _check_kind(kind: str, known: list[str]) -> None:
    if kind in known:
        return
    guess = did_you_mean(kind, known, f"it has {', '.join(sorted(known))}")
    hint = f" (the model goes into {named('model_args', 'pretrained=…')})" if "/" in kind else ""
    raise SetupError(f"lm-eval has no model type {kind!r}{hint}; {guess}")


def _values(args: Mapping[str, str]) -> dict[str, Any]:
    """Values as lm-eval reads those of its own --model_args; secrets stay as they are typed."""
    try:
        read = importlib.import_module("lm_eval._cli.utils").handle_cli_value_string
    except (ImportError, AttributeError):  # before 0.4.10
        read = importlib.import_module("lm_eval.utils").handle_arg_string
    return {
        name: value if is_secret(name) and not value.startswith("{") else read(value)
        for name, value in args.items()
    }


def _defaults(kind: str, args: Mapping[str, str], *, is_remote: bool) -> dict[str, Any]:
    """Default arguments, without those of the user; a type behind a server needs no tokenizer."""
    if is_remote:
        defaults: dict[str, Any] = {"batch_size": 1, "tokenizer_backend": "none"}
        if "tokenizer" in args:
            del defaults["tokenizer_backend"]
    else:
        defaults = {"batch_size": _ENGINES.get(kind, AT_ONCE), "device": _DEVICE}
    return {name: value for name, value in defaults.items() if name not in args}
