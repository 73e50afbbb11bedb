"""Loads a causal language model with transformers, from files of this machine and nothing else."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from eyechart.providers.base import ModelSettings, SetupError, install

try:
    import torch
    import transformers
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
except ImportError as error:
    raise SetupError(
        f"models of hf/ and gguf/ need torch and transformers: {install('hf')}"
    ) from error

from eyechart.providers.hf.files import ModelFiles
from eyechart.providers.in_process.free_memory import GIB, free_bytes
from eyechart.providers.in_process.model_files import one_line, read_object
from eyechart.providers.plugins import plugins
from eyechart.providers.plugins.contract import described

_GGUF_NEEDS = ("gguf", "accelerate")
"""Packages with which transformers reads GGUF."""


def load_tokenizer(files: ModelFiles, settings: ModelSettings) -> Any:
    """The tokenizer of a model; raises `SetupError` like `_loaded`."""
    return _loaded(AutoTokenizer, files, settings)


def load_config(files: ModelFiles, settings: ModelSettings) -> Any:
    """The config of a model; raises `SetupError` like `_loaded`."""
    return _loaded(AutoConfig, files, settings)


def _loaded(kind: Any, files: ModelFiles, settings: ModelSettings) -> Any:
    """What a class of transformers reads of a model.

    Raises:
        SetupError: transformers cannot load it; its reason in one line.
    """
    _prepare(files)
    try:
        return kind.from_pretrained(files.folder, **options_of(files, settings))
    except Exception as error:  # transformers raises all kinds
        raise not_loaded(files, error) from error


def load_model(files: ModelFiles, settings: ModelSettings) -> Any:
    """The model, ready to be asked: in float32, or on a GPU in the type of its config.

    Raises:
        SetupError: it does not fit the memory, or transformers cannot load it.
    """
    config = load_config(files, settings)
    device = device_of(settings)
    dtype = torch.float32
    if device != "cpu":
        dtype = getattr(config.get_text_config(), "dtype", None) or dtype
    else:
        _check_memory(files)
    try:
        model = whole(files, options_of(files, settings) | {"config": config, "dtype": dtype})
        return model.to(device).eval()
    except SetupError:
        raise
    except Exception as error:  # transformers raises all kinds
        raise not_loaded(files, error) from error


def not_loaded(files: ModelFiles, error: BaseException) -> SetupError:
    """The error for files that transformers cannot load."""
    return SetupError(f"{str(files.place)!r} cannot be loaded: {one_line(error)}")


def options_of(files: ModelFiles, settings: ModelSettings) -> dict[str, Any]:
    """Arguments of `from_pretrained`."""
    return files.options | {"trust_remote_code": settings.trust_remote_code}


def device_of(settings: ModelSettings) -> str:
    """Where the model computes."""
    return settings.device or ("cuda" if torch.cuda.is_available() else "cpu")


def _prepare(files: ModelFiles) -> None:
    """Keeps transformers quiet, and makes it know architectures that entry points add; raises
    `SetupError` if a package is missing that reads GGUF.
    """
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()  # what it reports of weights is said below
    if not files.gguf:
        _register(str(read_object(files.folder / "config.json").get("model_type")))
        return
    if missing := [name for name in _GGUF_NEEDS if not find_spec(name)]:
        raise SetupError(
            f"models of gguf/ need {' and '.join(missing)} beside transformers: {install('gguf')}"
        )
    from transformers import modeling_gguf_pytorch_utils as reading  # noqa: PLC0415  needs gguf

    reading.tqdm = lambda tensors, **_: tensors  # a bar of its own, which nothing turns off


def _register(model_type: str) -> None:
    """Makes transformers know an architecture that an entry point adds, if one adds it. The entry
    point has the name of the `model_type`; its function registers the classes.
    """
    plugin = plugins.find(plugins.ARCHITECTURES, model_type)
    if plugin is not None:
        register = plugin.load()
        if not callable(register):
            raise plugin.error("it should be a function that registers classes")
        try:
            register()
        except Exception as error:  # code of others, which may raise anything
            raise plugin.error(f"calling it raised {described(error)}") from error


def _check_memory(files: ModelFiles) -> None:
    """Raises `SetupError` if the weights need more memory than is free, as far as that is known."""
    needed, free = files.float32_bytes(), free_bytes()
    if free is not None and needed > free:
        raise SetupError(
            f"{str(files.place)!r} needs {needed / GIB:.1f} GiB of memory in float32, and "
            f"{free / GIB:.1f} GiB are free; free some, or ask a server that has room for it"
        )


def whole(files: ModelFiles, options: dict[str, Any]) -> Any:
    """The model, with all its weights from the files.

    Raises:
        SetupError: some are not there or have another shape; transformers would draw them at
            random.
    """
    options = options | {"output_loading_info": True}
    if not files.gguf:
        options["use_safetensors"] = True
    try:
        model, found = AutoModelForCausalLM.from_pretrained(files.folder, **options)
    except RuntimeError as error:
        if "ignore_mismatched_sizes" not in str(error):
            raise
        found = {"mismatched_keys": _misshapen(files, options)}
    for kind, what in (
        ("missing_keys", "has no weights for"),
        ("mismatched_keys", "has weights of another shape for"),
        ("unexpected_keys", "has weights that its config.json has no place for:"),
    ):
        if names := sorted(str(name) for name in found.get(kind) or ()):
            more = f" and {len(names) - 1} more" if names[1:] else ""
            raise SetupError(
                f"{str(files.place)!r} {what} {names[0]}{more}; its config.json is not that of its "
                "weights"
            )
    _check_numbers(files, model)
    return model


def _misshapen(files: ModelFiles, options: dict[str, Any]) -> list[str]:
    """The tensors whose shape is not that in the config's model, which gets no memory here."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(options["config"])
    shapes = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    return [
        name for name, (_, shape) in files.tensors().items() if shapes.get(name, shape) != shape
    ] or ["some of them"]


def _check_numbers(files: ModelFiles, model: Any) -> None:
    """Raises `SetupError` if weights are whole numbers in the file, or are not finite."""
    types = {name: kind for name, (kind, _) in files.tensors().items()}
    for name, weights in model.named_parameters():
        if not weights.is_floating_point():
            continue
        if types.get(name, "F32")[0] in "IU":
            raise SetupError(
                f"{str(files.place)!r} has {name} as {types[name]}; save the model as F32, F16 or "
                "BF16"
            )
        if not torch.isfinite(weights).all():
            raise SetupError(
                f"{str(files.place)!r} has numbers that are not finite in {name}; save the model "
                "again"
            )
