"""Loads a causal language model of Hugging Face from a local folder, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from eyechart.harness.satellites.probe.hf import attention
from eyechart.providers.base import ModelSettings, SetupError
from eyechart.providers.intervention import Intervention
from eyechart.providers.model_files import is_there, one_line, read_content, read_object
from eyechart.providers.naming import turned_on

_CHUNK = 1 << 20
_TEXTS = (".json", ".jinja", ".model", ".txt")
"""Endings of the files that transformers may read besides the weights."""
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
"""Names of the number of layers in configs."""


def folder_of(settings: ModelSettings) -> Path:
    """The folder of the model.

    Raises:
        SetupError: it is not there, has no weights in safetensors, or needs code of its own.
    """
    folder = Path(settings.model).expanduser()
    if not (folder / "config.json").is_file():
        raise SetupError(
            f"no model in {str(folder)!r}: it has no config.json; give the folder of a model that "
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
        if is_mapped and not settings.trust_remote_code:
            raise SetupError(
                f"{str(folder)!r} has Python code of its own (auto_map in {name}); "
                f"{turned_on('trust_remote_code')} executes it"
            )
    _check_layers(folder, read_object(folder / "config.json"))
    return folder


def _check_layers(folder: Path, config: Mapping[str, Any]) -> None:
    """Raises `SetupError` if a config has more layers than the weights have tensors: transformers
    would make all of them before it looks at the weights.
    """
    tensors = len(_tensors(folder))
    for part in (config, *(one for one in config.values() if isinstance(one, dict))):
        for name in _LAYERS:
            layers = part.get(name)
            if isinstance(layers, int) and not 0 < layers <= tensors:
                raise SetupError(
                    f"config.json in {str(folder)!r} has {one_line(layers)} as {name}, and the "
                    f"weights are {tensors:,} tensors; its config.json is not that of its weights"
                )


def _tensors(folder: Path) -> dict[str, tuple[str, list[int]]]:
    """Name -> type and shape of each tensor of the weights.

    Raises:
        SetupError: a file of weights is damaged.
    """
    found: dict[str, tuple[str, list[int]]] = {}
    for path in folder.glob("*.safetensors"):
        try:
            with safe_open(path, "pt") as file:
                slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  no dict
                found |= {name: (one.get_dtype(), one.get_shape()) for name, one in slices.items()}
        except (SafetensorError, OSError) as error:
            raise SetupError(
                f"{str(path)!r} is damaged ({one_line(error)}); save the model again"
            ) from error
    return found


def load(folder: Path, settings: ModelSettings) -> tuple[Any, Any, bool]:
    """Model, tokenizer, and whether the model's attention can be watched.

    Raises:
        SetupError: transformers cannot load them; its reason in one line.
    """
    attention.register()
    options = _options(settings)
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()  # what it reports of weights is said below
    try:
        config = AutoConfig.from_pretrained(folder, **options)
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        model, is_watched = _open(folder, config, options)
        model = model.to(_device(settings))
    except SetupError:
        raise
    except Exception as error:  # transformers raises all kinds
        raise SetupError(f"{str(folder)!r} cannot be loaded: {one_line(error)}") from error
    if not getattr(tokenizer, "is_fast", False):
        raise SetupError(
            f"the tokenizer of {str(folder)!r} does not say which characters its tokens stand for; "
            "save it as a fast tokenizer (tokenizer.json)"
        )
    return model.eval(), tokenizer, is_watched


def _options(settings: ModelSettings) -> dict[str, Any]:
    return {"local_files_only": True, "trust_remote_code": settings.trust_remote_code}


def _device(settings: ModelSettings) -> str:
    return settings.device or ("cuda" if torch.cuda.is_available() else "cpu")


def _open(folder: Path, config: Any, options: dict[str, Any]) -> tuple[Any, bool]:
    """The model in float32, with our attention where its architecture can have it."""
    options = options | {"config": config, "dtype": torch.float32, "use_safetensors": True}
    try:
        model = _whole(folder, options | {"attn_implementation": attention.NAME})
    except (ValueError, TypeError):
        return _whole(folder, options), False
    current = attention.Pass(Intervention())
    token = attention.CURRENT.set(current)
    try:
        with torch.no_grad():
            model(torch.zeros((1, 2), dtype=torch.long), use_cache=False)
    finally:
        attention.CURRENT.reset(token)
    if current.ignored or len(current.called) < config.get_text_config().num_hidden_layers:
        return _whole(folder, options), False
    return model, True


def _whole(folder: Path, options: dict[str, Any]) -> Any:
    """The model, with all its weights from the folder.

    Raises:
        SetupError: some are not there or have another shape; transformers would draw them at
            random.
    """
    try:
        model, found = AutoModelForCausalLM.from_pretrained(
            folder, output_loading_info=True, **options
        )
    except RuntimeError as error:
        if "ignore_mismatched_sizes" not in str(error):
            raise
        found = {"mismatched_keys": _misshapen(folder, options)}
    for kind, what in (
        ("missing_keys", "has no weights for"),
        ("mismatched_keys", "has weights of another shape for"),
        ("unexpected_keys", "has weights that its config.json has no place for:"),
    ):
        if names := sorted(str(name) for name in found.get(kind) or ()):
            more = f" and {len(names) - 1} more" if names[1:] else ""
            raise SetupError(
                f"{str(folder)!r} {what} {names[0]}{more}; its config.json is not that of its "
                "weights"
            )
    _check_numbers(folder, model)
    return model


def _misshapen(folder: Path, options: dict[str, Any]) -> list[str]:
    """The tensors whose shape is not that in the config's model, which gets no memory here."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(options["config"])
    shapes = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    return [
        name for name, (_, shape) in _tensors(folder).items() if shapes.get(name, shape) != shape
    ] or ["some of them"]


def _check_numbers(folder: Path, model: Any) -> None:
    """Raises `SetupError` if weights are whole numbers in the file, or are not finite."""
    types = {name: kind for name, (kind, _) in _tensors(folder).items()}
    for name, weights in model.named_parameters():
        if not weights.is_floating_point():
            continue
        if types.get(name, "F32")[0] in "IU":
            raise SetupError(
                f"{str(folder)!r} has {name} as {types[name]}; save the model as F32, F16 or BF16"
            )
        if not torch.isfinite(weights).all():
            raise SetupError(
                f"{str(folder)!r} has numbers that are not finite in {name}; save the model again"
            )


def rounded(folder: Path, settings: ModelSettings, *, is_watched: bool) -> Any:
    """The model in bfloat16 as transformers loads it; rotary frequencies stay in float32."""
    options = _options(settings) | {"dtype": torch.bfloat16, "use_safetensors": True}
    if is_watched:
        options["attn_implementation"] = attention.NAME
    model = AutoModelForCausalLM.from_pretrained(folder, **options)
    return model.to(_device(settings)).eval()


def weights_sha256(folder: Path) -> str:
    """The hash of all files of weights, in the order of their names."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()
