"""The `config.json` of a trained variant. transformers is imported here, so this module is imported
late.
"""

from __future__ import annotations

from typing import Any, ClassVar

from transformers import PretrainedConfig

from eyechart_lab.variants.choices import Learned, Randomised, Rope, check_size
from eyechart_lab.variants.tokens import BOS, EOS
from eyechart_lab.variants.variant import Variant, read_variant

MODEL_TYPE = "eyechart_lab"
ARCHITECTURE = "LabForCausalLM"
_INNER = 8 / 3
"""Width of the feed-forward block by the width of the model, as in Llama."""


class LabConfig(PretrainedConfig):
    """The `config.json` of a trained variant."""

    model_type = MODEL_TYPE
    keys_to_ignore_at_inference: ClassVar[list[str]] = ["past_key_values"]

    def __init__(
        self,
        variant: dict[str, Any] | None = None,
        vocab_size: int = 1,
        trained_window: int = 2,
        **others: Any,
    ) -> None:
        """`variant` is as in a study's file; `trained_window` is the number of tokens of the
        longest text of the training.

        Raises:
            ValueError: the variant is none.
        """
        others.setdefault("tie_word_embeddings", True)
        super().__init__(**others)
        read = read_variant(variant or {})
        self.variant = read.model_dump(mode="json")
        self.vocab_size = vocab_size
        self.trained_window = trained_window
        self.hidden_size = read.width
        self.num_hidden_layers = read.layers
        self.num_attention_heads = read.attention_heads
        self.num_key_value_heads = read.attention_heads
        self.head_dim = read.width // read.attention_heads
        self.intermediate_size = read.inner or round(read.width * _INNER)
        self.initializer_range = 0.02
        self.use_cache = True
        if isinstance(read.positions, Rope):
            self.rope_theta = read.positions.base
        if isinstance(read.positions, Learned | Randomised):
            self.max_position_embeddings = read.positions.of

    @property
    def original_max_position_embeddings(self) -> int:
        """`trained_window`, under the name that transformers has for it."""
        return self.trained_window

    @property
    def read(self) -> Variant:
        """The variant."""
        return read_variant(self.variant)


def config_of(variant: Variant, *, vocabulary: int, trained_window: int) -> LabConfig:
    """The config of a variant; `trained_window` is the number of tokens of the longest text of the
    training. A stretched variant has the weights of the one that was trained, and this config.

    Raises:
        ValueError: the texts have more tokens than there are positions.
    """
    if isinstance(variant.positions, Learned | Randomised):
        check_size(variant.positions, trained_window)
    return LabConfig(
        variant.model_dump(mode="json"),
        vocab_size=vocabulary,
        trained_window=trained_window,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=EOS,
        architectures=[ARCHITECTURE],
    )
