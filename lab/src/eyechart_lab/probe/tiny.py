"""The inside of the embedded model, or of a model in a folder that its runtime can load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eyechart.providers.base import ModelSettings, SetupError, Tokens
from eyechart.providers.intervention import read_intervention
from eyechart.providers.model_files import check_ids
from eyechart.providers.naming import named, turned_on
from eyechart.providers.tiny.chat import Chat
from eyechart.providers.tiny.folder import model_folder
from eyechart.providers.tiny.weights import Array, Tensors, read_config
from eyechart_lab.probe.inside import Anatomy, Precision, Trunk, Watcher, fitting
from eyechart_lab.probe.tiny_layers import Layers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def open_inside(settings: ModelSettings) -> TinyInside:
    """Loads `tiny`, or the model in a folder.

    Raises:
        SetupError: a file is missing or damaged, or has a feature that is not implemented.
    """
    if settings.device not in (None, "cpu"):
        raise SetupError(
            f"tiny computes on the CPU, not on {settings.device!r}: leave out {named('device')}"
        )
    if settings.trust_remote_code:
        raise SetupError(
            f"tiny has no code in its folder: leave out {turned_on('trust_remote_code')}"
        )
    return TinyInside(model_folder(settings.model), settings)


class TinyInside:
    """A Llama-style model in NumPy; see `eyechart_lab.probe.inside.Inside`."""

    def __init__(self, folder: Path, settings: ModelSettings) -> None:
        self._config = config = read_config(folder)
        self._tensors = Tensors(folder / "model.safetensors", config)
        self._intervention = read_intervention(settings.intervention)
        self._layers: dict[Precision, Layers] = {}
        self._chat = Chat(folder)
        self._api, self._system = settings.api, settings.system
        self.anatomy = Anatomy(
            architecture="LlamaForCausalLM",
            layers=config.layers,
            hidden=config.hidden,
            heads=config.heads,
            key_heads=config.key_heads,
            head_width=config.head_width,
            vocabulary=config.vocabulary,
            window=config.window,
            rotary_base=config.rope_theta,
            rotary_width=config.head_width,
        )

    def facts(self) -> dict[str, object]:
        """The hashes of weights and tokenizer, as in a run's manifest."""
        return {
            "engine": "numpy",
            **self._intervention.facts(),
            "weights_sha256": self._tensors.sha256[:16],
            "tokenizer_sha256": self._chat.sha256[:16],
        }

    def tokens(self, prompt: str) -> Tokens:
        return fitting(self._chat.tokens(prompt, self._api, self._system), self.anatomy)

    def answer_ids(self, prompt: str, answer: str) -> tuple[int, ...]:
        ids = self._chat.answer_ids(prompt, answer, self._api, self._system)
        return check_ids(ids, self._config.vocabulary)

    def forward(
        self,
        ids: Sequence[int],
        watcher: Watcher | None = None,
        *,
        precision: Precision = "float32",
        last: int = 1,
        trunk: Trunk | None = None,
    ) -> Array:
        return self._at(precision).forward(ids, watcher, last, trunk)

    def embedded(self, ids: Sequence[int]) -> Array:
        rows: Array = self._at("float32").embedding[list(ids)]
        return rows

    def logits_of(self, embedded: Array) -> Array:
        logits: Array = self._at("float32").forward_from(embedded, None, 1)[0]
        return logits

    def gradients(self, ids: Sequence[int], weights: Array) -> Array:
        return self._at("float32").gradients(ids, weights)

    def matrices(self) -> Iterator[tuple[int, str, Array]]:
        for layer, block in enumerate(self._at("float32").blocks):
            for name, matrix in block.maps():
                yield layer, name, matrix

    def close(self) -> None:
        self._layers.clear()

    def _at(self, precision: Precision) -> Layers:
        """The layers in this precision, read when they are first asked for."""
        if precision not in self._layers:
            self._layers[precision] = Layers(
                self._config, self._tensors, precision, self._intervention
            )
        return self._layers[precision]
