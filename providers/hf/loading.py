"""Loads a causal language model of Hugging Face from a local folder, and nothing else."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from providers.base import ModelSettings, SetupError
from providers.hf import attention
from providers.intervention import Intervention

_CHUNK = 1 << 20


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
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except ValueError as error:
        raise SetupError(f"{str(folder / 'config.json')!r} is not JSON: {error}") from None
    if isinstance(config, dict) and config.get("auto_map") and not settings.trust_remote_code:
        raise SetupError(
            f"{str(folder)!r} has Python code of its own; --trust-remote-code executes it"
        )
    return folder


def load(folder: Path, settings: ModelSettings) -> tuple[Any, Any, bool]:
    """Model, tokenizer, and whether the model's attention can be watched.

    Raises:
        SetupError: transformers cannot load them; its reason in one line.
    """
    attention.register()
    options = _options(settings)
    transformers.utils.logging.disable_progress_bar()
    try:
        config = AutoConfig.from_pretrained(folder, **options)
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        model, is_watched = _open(folder, config, options)
        model = model.to(_device(settings))
    except SetupError:
        raise
    except Exception as error:  # transformers raises all kinds
        raise SetupError(f"{str(folder)!r} cannot be loaded: {_one_line(error)}") from error
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
    model, found = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, **options)
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
    return model


def rounded(folder: Path, settings: ModelSettings, *, is_watched: bool) -> Any:
    """The model in bfloat16 as transformers loads it: rotary frequencies and the like stay in
    float32.
    """
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


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else f"{text[:300]}…"  # noqa: PLR2004  of a line
