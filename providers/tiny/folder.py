"""The folder of a model that the embedded runtime loads."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from eyechart.providers.base import SetupError

SHIPPED: Final = Path(__file__).with_name("model")
"""Folder of the model that comes with this package."""
_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


def model_folder(model: str) -> Path:
    """The folder of `tiny`, or of the model at this path.

    Raises:
        SetupError: the folder or a file in it is missing.
    """
    folder = SHIPPED if model == "tiny" else Path(model).expanduser()
    if not folder.is_dir():
        raise SetupError(
            f"no model folder {str(folder)!r}; use tiny/tiny, or a folder with {', '.join(_FILES)}"
        )
    if missing := [name for name in _FILES if not (folder / name).is_file()]:
        raise SetupError(
            f"model folder {str(folder)!r} lacks {', '.join(missing)}; save the model and its"
            " tokenizer there with save_pretrained"
        )
    return folder
