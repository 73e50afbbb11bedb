"""What `--model-arg KEY=VALUE` says of a model of lm-eval's: its name, and what is told of it.

Reads no value: what lm-eval makes of `dtype=float32` or `batch_size=8` is lm-eval's own business.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from providers.base import SetupError
from providers.secrets import keep_address, keep_secret, redact

_NAMES = ("model", "pretrained", "path", "model_path", "engine", "load", "base_url")
"""Arguments that say which model it is, the first of them that is given."""
_WEIGHTS = (
    *("revision", "subfolder", "gguf_file", "peft", "delta", "lora_local_path", "steer_path"),
    *("autogptq", "quantization"),
)
"""Arguments that make other weights of the same model."""
_HOW = frozenset(
    {
        *("batch_size", "max_batch_size", "num_concurrent", "max_retries", "timeout"),
        *("verify_certificate", "ca_cert_path", "trust_remote_code", "offload_folder"),
    }
)
"""Arguments that say how to run it, and change no answer."""
_SECRET = re.compile(
    r"key$|secret|password|credential|auth|header|cookie|^(?:hf_|access_)?token$", re.IGNORECASE
)
_SECOND = re.compile(r",\s*([A-Za-z_]\w*)=")


def read_args(given: Sequence[str]) -> dict[str, str]:
    """Name -> value as it was typed; values of secret names are kept out of all that is written.

    Raises:
        SetupError: one is not of the form KEY=VALUE, or comes twice.
    """
    args: dict[str, str] = {}
    for argument in given:
        name, equals, value = argument.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise SetupError(f"--model-arg wants KEY=VALUE, not {redact(argument)!r}")
        if "://" in value:
            keep_address(value)
        if is_secret(name):
            keep_secret(value)
            for header, text in _items(value):
                if is_secret(header):
                    keep_secret(text)
        elif not value.startswith(("{", "[", "(", "'", '"')) and (second := _SECOND.search(value)):
            raise SetupError(f"give {second[1]!r} in a --model-arg of its own, not after a comma")
        if name in args:
            raise SetupError(f"--model-arg {name!r} is given twice")
        args[name] = value
    return args


def _items(value: str) -> Iterator[tuple[str, str]]:
    """Names and texts of a value that is a table: `header={"Authorization": "Bearer …"}`."""
    try:
        read = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return
    for name, said in read.items() if isinstance(read, dict) else ():
        yield str(name), str(said)


def is_secret(name: str) -> bool:
    """Whether the value of an argument called `name` is secret."""
    return bool(_SECRET.search(name))


def label_of(args: Mapping[str, str]) -> str:
    """What follows `lm-eval/TYPE/` in tables and folders: the model, then what makes other weights.

    `EleutherAI/pythia-70m`, or `EleutherAI/pythia-70m,revision=step1000,peft=my/adapter`: two
    checkpoints never share a run's folder or a leaderboard's row. The model is the first of
    `model`, `pretrained`, `path`, `model_path`, `engine`, `load` and `base_url` that is given;
    empty for types that need none. Other arguments (`dtype`) are no part of it: they are in the
    manifest, and a run is not continued under others.
    """
    model = next((args[name] for name in _NAMES if name in args), "")
    others = (f"{name}={args[name]}" for name in _WEIGHTS if name in args)
    return redact(",".join(filter(None, [model, *others])))


def told_of(args: Mapping[str, str]) -> dict[str, str]:
    """The arguments that shape answers, for the manifest; never a key."""
    return {
        name: redact(value)
        for name, value in sorted(args.items())
        if name not in _HOW and not is_secret(name)
    }


def facts_of(args: Mapping[str, str]) -> dict[str, object]:
    """What the arguments say of who answers, before anything is loaded: themselves, and what lies
    in folders and files of weights that they name.
    """
    digests = {
        name: _digest(files)
        for name in (*_NAMES, *_WEIGHTS)
        if name in args and (files := list(_weights_in(Path(args[name]).expanduser())))
    }
    told: dict[str, object] = {"model_args": told_of(args)}
    return told | ({"weights": digests} if digests else {})


_PROBES, _PROBE = 8, 65_536
"""Places in a file that are looked at, and bytes at each: training changes all of them."""


def _weights_in(path: Path) -> Iterator[Path]:
    try:
        if path.is_file():
            yield path
        elif (path / "config.json").is_file() or (path / "adapter_config.json").is_file():
            yield from sorted(one for one in path.iterdir() if one.is_file())
    except (OSError, ValueError):  # a name that no file can have
        return


def _digest(files: Sequence[Path]) -> str:
    """Of names, sizes and samples of the content, so that many gigabytes take no time."""
    digest = hashlib.sha256()
    for path in files:
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode(errors="replace"))
        with path.open("rb") as file:
            for place in range(_PROBES):
                file.seek(max(0, size - _PROBE) * place // (_PROBES - 1))
                digest.update(file.read(_PROBE))
    return digest.hexdigest()[:16]
