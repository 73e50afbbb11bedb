"""Models whose attention is changed while they are asked: `changed/CHANGE/MODEL`, as
`changed/window=64:4/tiny`. The changes are those of `eyechart_lab.probe.intervention`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eyechart.providers.base import ModelSettings, SetupError
from eyechart.providers.hf.files import ModelFiles, file_at, files_in
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.tiny.folder import model_folder

if TYPE_CHECKING:
    from eyechart.providers.hf.provider import HfProvider
    from eyechart_lab.probe.hf.inside import HfInside
    from eyechart_lab.probe.intervention import Intervention


def open_provider(settings: ModelSettings) -> HfProvider:
    """Opens the model, computed by transformers; loads nothing yet.

    Raises:
        SetupError: there is no such change or model, or a setting is not supported.
    """
    from eyechart.providers.hf.provider import HfProvider  # noqa: PLC0415  imports asyncio

    settings.refuse_all_but("temperature", "api", "system", "logprobs", "top_logprobs")
    change, files = _read(settings)

    def load(files: ModelFiles, settings: ModelSettings) -> Any:
        from eyechart_lab.probe.hf.inside import HfInside  # noqa: PLC0415  imports torch

        return HfInside(files, settings, change).changed()

    return HfProvider(files, f"{settings.provider}/{settings.model}", settings, load)


def open_inside(settings: ModelSettings) -> HfInside:
    """Loads the changed model, so that its inner states can be read.

    Raises:
        SetupError: as `open_provider` does.
    """
    from eyechart_lab.probe.hf.inside import HfInside  # noqa: PLC0415  imports torch

    change, files = _read(settings)
    return HfInside(files, settings, change)


def _read(settings: ModelSettings) -> tuple[Intervention, ModelFiles]:
    """The change that the name of a model says, and the files of the model that is changed."""
    from eyechart_lab.probe.intervention import read_intervention  # noqa: PLC0415  imports numpy

    given, _, model = settings.model.partition("/")
    change, name = read_intervention(given), parse_model(model)
    match name.provider:
        case "tiny":
            return change, files_in(str(model_folder(name.model)))
        case "hf":
            return change, files_in(name.model, trust_remote_code=settings.trust_remote_code)
        case "gguf":
            return change, file_at(name.model)
    raise SetupError(
        f"{name.label} cannot be changed: changed/CHANGE/MODEL takes tiny, tiny/FOLDER, hf/FOLDER "
        "and gguf/FILE"
    )
