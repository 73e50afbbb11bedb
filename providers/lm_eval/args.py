"""Reads `model_args`, each KEY=VALUE, for lm-eval's models: the name of the model, and the values
for the manifest.

Values are not interpreted: lm-eval itself reads `dtype=float32` or `batch_size=8`.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from eyechart.providers.base import SetupError
from eyechart.providers.naming import named
from eyechart.providers.secrets import keep_address, keep_secret, redact

_NAMES = ("model", "pretrained", "path", "model_path", "engine", "load", "base_url")
"""Arguments that name the model; the first of them that is given counts."""
_WEIGHTS = (
    *("revision", "subfolder", "gguf_file", "peft", "delta", "lora_local_path", "steer_path"),
    *("autogptq", "quantization"),
)
"""Arguments that choose other weights of the same model."""
_HOW = frozenset(
    {
        *("batch_size", "max_batch_size", "num_concurrent", "max_retries", "timeout"),
        *("verify_certificate", "ca_cert_path", "trust_remote_code", "offload_folder"),
    }
)
"""Arguments about how the model is run; they do not change its replies."""
_SECRET = re.compile(
    r"key$|secret|password|credential|auth|header|cookie|^(?:hf_|access_)?token$", re.IGNORECASE
)
_SECOND = re.compile(r",\s*([A-Za-z_]\w*)=")


def read_args(given: Sequence[str]) -> dict[str, str]:
    """Name -> value as it was typed. Values of secret names are masked in all that is written.

    Raises:
        SetupError: an argument is not of the form KEY=VALUE, or is given twice.
    """
    args: dict[str, str] = {}
    for argument in given:
        name, equals, value = argument.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise SetupError(f"{named('model_args')} wants KEY=VALUE, not {redact(argument)!r}")
        if "://" in value:
            keep_address(value)
        if is_secret(name):
            keep_secret(value)
            for header, text in _items(value):
                if is_secret(header):
                    keep_secret(text)
        elif not value.startswith(("{", "[", "(", "'", '"')) and (second := _SECOND.search(value)):
            raise SetupError(
                f"give {second[1]!r} in a {named('model_args')} of its own, not after a comma"
            )
        if name in args:
            raise SetupError(f"{named('model_args')} {name!r} is given twice")
        args[name] = value
    return args


def _items(value: str) -> Iterator[tuple[str, str]]:
    """Names and texts in a value that is a table: `header={"Authorization": "Bearer …"}`."""
    try:
        read = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return
    for name, text in read.items() if isinstance(read, dict) else ():
        yield str(name), str(text)


def is_secret(name: str) -> bool:
    """Whether the value of an argument called `name` is secret."""
    return bool(_SECRET.search(name))


def label_of(args: Mapping[str, str]) -> str:
    """The part after `lm-eval/TYPE/` in tables and folders: the model, then the arguments that
    choose its weights.

    `EleutherAI/pythia-70m`, or `EleutherAI/pythia-70m,revision=step1000,peft=my/adapter`: two
    checkpoints never share a run's folder or a leaderboard's row. The model is the first of
    `model`, `pretrained`, `path`, `model_path`, `engine`, `load` and `base_url` that is given;
    empty for types that need none. Other arguments (`dtype`) are not in the label but in the
    manifest, and a run is not continued if they change.
    """
    model = next((args[name] for name in _NAMES if name in args), "")
    others = (f"{name}={args[name]}" for name in _WEIGHTS if name in args)
    return redact(",".join(filter(None, [model, *others])))


def manifest_args(args: Mapping[str, str]) -> dict[str, str]:
    """The arguments that may change replies, for the manifest; never a key."""
    return {
        name: redact(value)
        for name, value in sorted(args.items())
        if name not in _HOW and not is_secret(name)
    }


def facts_of(args: Mapping[str, str]) -> dict[str, object]:
    """The facts that are known before the model is loaded: the arguments, and hashes of the folders
    and files of weights that they name.
    """
    digests = {
        name: _digest(files)
        for name in (*_NAMES, *_WEIGHTS)
        if name in args and (files := list(_weights_in(Path(args[name]).expanduser())))
    }
    facts: dict[str, object] = {"model_args": manifest_args(args)}
    return facts | ({"weights": digests} if digests else {})


_PROBES, _PROBE = 8, 65_536
"""Number of samples of a file, and bytes of each; training changes every sample."""


def _weights_in(path: Path) -> Iterator[Path]:
    try:
        if path.is_file():
            yield path
        elif (path / "config.json").is_file() or (path / "adapter_config.json").is_file():
            yield from sorted(file for file in path.iterdir() if file.is_file())
    except (OSError, ValueError):  # a name that no file can have
        return


def _digest(files: Sequence[Path]) -> str:
    """Hash of names, sizes and samples of the content: many gigabytes would take too long."""
    digest = hashlib.sha256()
    for path in files:
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode(errors="replace"))
        with path.open("rb") as file:
            for place in range(_PROBES):
                file.seek(max(0, size - _PROBE) * place // (_PROBES - 1))
                digest.update(file.read(_PROBE))
    return digest.hexdigest()[:16]
