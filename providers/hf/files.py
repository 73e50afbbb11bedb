"""The files of a model on this machine, checked before a library reads them.

They may come from a stranger: weights are read from safetensors and GGUF alone, which hold no code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from eyechart.providers.base import SetupError
from eyechart.providers.in_process.model_files import is_there, one_line, read_content, read_object
from eyechart.providers.naming import turned_on

_CHUNK = 1 << 20
_TEXTS = (".json", ".jinja", ".model", ".txt")
"""Endings of the files that transformers may read besides the weights."""
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
"""Names of the number of layers in configs."""
_MAGIC = b"GGUF"
"""The first bytes of a GGUF file."""
_SUFFIX = ".gguf"
_BYTES = 4
"""Of a number in float32."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model in a folder, or in one file of it."""

    folder: Path
    gguf: str = ""
    """The name of the GGUF file; empty for weights in safetensors, with a config beside them."""

    @property
    def place(self) -> Path:
        """What the user named."""
        return self.folder / self.gguf

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `from_pretrained`; the network is never asked."""
        return {"local_files_only": True} | ({"gguf_file": self.gguf} if self.gguf else {})

    @property
    def weights(self) -> list[Path]:
        """The files of weights, in the order of their names."""
        return [self.place] if self.gguf else sorted(self.folder.glob("*.safetensors"))

    def weights_sha256(self) -> str:
        """The hash of all files of weights."""
        digest = hashlib.sha256()
        for path in self.weights:
            with path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
        return digest.hexdigest()

    def config_sha256(self) -> str | None:
        """The hash of `config.json`, which tells models apart that compute otherwise with the same
        weights, such as with stretched positions; `None` for GGUF, which has all in one file.
        """
        if self.gguf:
            return None
        return hashlib.sha256((self.folder / "config.json").read_bytes()).hexdigest()

    def tensors(self) -> dict[str, tuple[str, list[int]]]:
        """Name -> type and shape of each tensor in safetensors; of GGUF none, since a tensor has
        another name there.

        Raises:
            SetupError: a file of weights is damaged or cannot be read.
        """
        found: dict[str, tuple[str, list[int]]] = {}
        for path in [] if self.gguf else self.weights:
            try:
                with safe_open(path, "np") as file:
                    slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  no dict
                    found |= {
                        name: (one.get_dtype(), one.get_shape()) for name, one in slices.items()
                    }
            except OSError as error:
                raise SetupError(f"{str(path)!r} cannot be read: {one_line(error)}") from error
            except SafetensorError as error:
                raise SetupError(
                    f"{str(path)!r} is damaged ({one_line(error)}); save the model again"
                ) from error
        return found

    def float32_bytes(self) -> int:
        """Bytes of the weights in float32; 0 where that is not known before they are read."""
        return _BYTES * sum(prod(shape) for _, shape in self.tensors().values())


def files_in(model: str, *, trust_remote_code: bool | None = None) -> ModelFiles:
    """The model in a folder. `trust_remote_code`: whether the user lets code in it be executed;
    `None` where the user cannot.

    Raises:
        SetupError: it is not there, has no weights in safetensors, is an adapter, or needs code of
            its own.
    """
    folder = Path(model).expanduser()
    if folder.is_file():
        hint = f"; gguf/{model} asks it" if folder.suffix == _SUFFIX else ""
        raise SetupError(f"{str(folder)!r} is a file, and hf/ takes a model's folder{hint}")
    if not (folder / "config.json").is_file():
        if (folder / "adapter_config.json").is_file():
            raise SetupError(
                f"{str(folder)!r} is an adapter and no whole model; merge it into its model "
                "(merge_and_unload) and save that"
            )
        what = "it has no config.json" if folder.is_dir() else "there is no such folder"
        raise SetupError(
            f"no model in {str(folder)!r}: {what}; give the folder of a model that "
            "was saved with save_pretrained or downloaded"
        )
    if not any(folder.glob("*.safetensors")):
        raise SetupError(
            f"{str(folder)!r} has no weights in safetensors; other forms can execute code when "
            "they are read: save it again with save_pretrained(…, safe_serialization=True)"
        )
    for path in folder.iterdir():
        if path.suffix in _TEXTS:
            read_content(path)
    for name in ("config.json", "tokenizer_config.json"):
        is_mapped = is_there(folder / name) and read_object(folder / name).get("auto_map")
        if is_mapped and not trust_remote_code:
            raise SetupError(
                f"{str(folder)!r} has Python code of its own (auto_map in {name}); "
                + (
                    "it is never executed here: ask the model through vllm/ or lm-eval/"
                    if trust_remote_code is None
                    else f"{turned_on('trust_remote_code')} executes it"
                )
            )
    found = ModelFiles(folder)
    _check_layers(found, read_object(folder / "config.json"))
    return found


def file_at(model: str) -> ModelFiles:
    """The model in a GGUF file.

    Raises:
        SetupError: there is none.
    """
    path = Path(model).expanduser()
    if not path.is_file():
        inside = sorted(path.glob(f"*{_SUFFIX}")) if path.is_dir() else []
        hint = f"gguf/{inside[0]}" if inside else "give the path of the file"
        raise SetupError(f"no GGUF file {str(path)!r}; {hint}")
    try:
        with path.open("rb") as file:
            begins = file.read(len(_MAGIC))
    except OSError as error:
        raise SetupError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    if begins != _MAGIC:
        raise SetupError(
            f"{str(path)!r} is no GGUF file: it does not begin with GGUF; download it again"
        )
    return ModelFiles(path.parent, path.name)


def _check_layers(files: ModelFiles, config: Mapping[str, Any]) -> None:
    """Raises `SetupError` if a config has more layers than the weights have tensors: transformers
    would make all of them before it looks at the weights.
    """
    tensors = len(files.tensors())
    for part in (config, *(one for one in config.values() if isinstance(one, dict))):
        for name in _LAYERS:
            layers = part.get(name)
            if isinstance(layers, int) and not 0 < layers <= tensors:
                raise SetupError(
                    f"config.json in {str(files.folder)!r} has {one_line(layers)} as {name}, and "
                    f"the weights are {tensors:,} tensors; its config.json is not that of its "
                    "weights"
                )
