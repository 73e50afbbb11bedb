"""Passes of a model of transformers over a batch of rows, whose keys and values are kept.

Letters in shape comments: B rows, T tokens of the longest row, V vocabulary.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch

from eyechart.providers.base import SetupError
from eyechart.providers.in_process.free_memory import GIB

_CPU_BYTES = GIB
"""Bytes for keys and values of one batch on the CPU, and for its logits."""
_GPU_SHARE = 0.5
"""The part of the free memory of a GPU that one batch takes."""
_MOST_ROWS = 16
"""Rows in a batch on a CPU: more rows read more keys and values than they save weights."""
_MOST_GPU_ROWS = 256
_BYTES = 4
"""Of a logit."""


class LoadedModel:
    """A model with what is known of its passes. Only one thread may use it at a time."""

    def __init__(self, model: Any) -> None:
        """Raises `SetupError` if the model gives no logits of two tokens."""
        self.model = model
        self.device = model.device
        config = model.config.get_text_config()
        self.vocabulary = int(model.get_input_embeddings().weight.shape[0])
        window = getattr(config, "max_position_embeddings", None)
        self.window: int | None = window if isinstance(window, int) and window > 0 else None
        """Most tokens of prompt and reply together."""
        names = inspect.signature(model.forward).parameters
        self._takes_positions = "position_ids" in names
        self._takes_last = "logits_to_keep" in names
        self.keeps = self._can_keep()
        """Whether keys and values are kept from pass to pass; otherwise each row is computed alone,
        and from its beginning for each token."""
        self.bytes_a_token = self._bytes_a_token(config) if self.keeps else 0
        """Bytes of the keys and values of one token."""

    def _can_keep(self) -> bool:
        given = torch.zeros((1, 2), dtype=torch.long, device=self.device)
        try:
            with torch.inference_mode():
                output = self.model(input_ids=given, use_cache=True)
        except Exception as error:
            raise SetupError(
                f"{type(self.model).__name__} fails on two tokens ({error}); ask it through "
                "vllm/ or lm-eval/"
            ) from error
        return hasattr(getattr(output, "past_key_values", None), "reorder_cache")

    def _bytes_a_token(self, config: Any) -> int:
        heads = config.num_attention_heads
        kept = getattr(config, "num_key_value_heads", None) or heads
        width = getattr(config, "head_dim", None) or config.hidden_size // heads
        number = torch.finfo(self.model.dtype).bits // 8
        return int(2 * config.num_hidden_layers * kept * width * number)

    def rows_at_once(self, tokens: int, prompt_tokens: int) -> int:
        """How many rows of this many tokens, with the reply, fit into one batch; at least one."""
        if not self.keeps:
            return 1
        most = _MOST_ROWS if self.device.type == "cpu" else _MOST_GPU_ROWS
        logits = 1 if self._takes_last else prompt_tokens
        return max(1, min(most, self._space() // self._row(tokens, logits)))

    def options_at_once(self, tokens: int, longest: int) -> int:
        """How many options of at most `longest` tokens, of texts of this many tokens, fit into one
        batch; at least one.
        """
        return max(1, self._space() // self._row(tokens, longest))

    def _row(self, tokens: int, logits: int) -> int:
        """Bytes of a row with the logits of some of its tokens."""
        return tokens * self.bytes_a_token + logits * self.vocabulary * _BYTES

    def _space(self) -> int:
        """Bytes for one batch."""
        if self.device.type != "cuda":
            return _CPU_BYTES
        free, _ = torch.cuda.mem_get_info(self.device)
        return int(free * _GPU_SHARE)

    def begin(self, rows: Sequence[Sequence[int]]) -> tuple[Any, CachedBatch]:
        """(B, V) logits after the last token of each row, and the batch that goes on from there.
        Shorter rows are padded on the left, where nothing attends.
        """
        longest = max(map(len, rows))
        ids = torch.zeros((len(rows), longest), dtype=torch.long)
        mask = torch.zeros((len(rows), longest), dtype=torch.long)
        for place, row in enumerate(rows):
            ids[place, longest - len(row) :] = torch.tensor(list(row))
            mask[place, longest - len(row) :] = 1
        batch = CachedBatch(self, mask.to(self.device))
        return batch.go_on(ids.to(self.device), last=1)[:, -1], batch

    def forward(self, ids: Any, mask: Any, past: Any, last: int) -> tuple[Any, Any]:
        """(B, last or T, V) logits in float32, and what is kept."""
        given: dict[str, Any] = {"input_ids": ids, "use_cache": self.keeps}
        if (mask == 0).any():
            given["attention_mask"] = mask
        if self._takes_positions:
            positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
            given["position_ids"] = positions[:, -ids.shape[1] :]
        if self._takes_last:
            given["logits_to_keep"] = last
        if past is not None:
            given["past_key_values"] = past
        output = self.model(**given)
        return output.logits[:, -last:].float(), getattr(output, "past_key_values", None)


class CachedBatch:
    """Rows with their keys and values; ids and masks are tensors on the device of the model."""

    def __init__(self, computing: LoadedModel, mask: Any) -> None:
        self._computing = computing
        self._mask = mask
        """(B, T): 1 for a token, 0 for padding; also of the tokens that `go_on` adds."""
        self._past: Any = None
        self._seen: Any = None
        """(B, T): the tokens so far, where nothing else is kept."""

    def go_on(self, ids: Any, mask: Any = None, *, last: int) -> Any:
        """Adds the tokens `ids`, shape (B, n), to the rows, and returns the logits at the last
        `last` of them, shape (B, last, V). `mask` has 0 for padding after a row's last token.
        """
        if self._past is not None or self._seen is not None:
            added = torch.ones_like(ids) if mask is None else mask
            self._mask = torch.cat([self._mask, added], dim=1)
        if self._computing.keeps:
            logits, self._past = self._computing.forward(ids, self._mask, self._past, last)
            return logits
        self._seen = ids if self._seen is None else torch.cat([self._seen, ids], dim=1)
        return self._computing.forward(self._seen, self._mask, None, last)[0]

    def keep(self, rows: Sequence[int]) -> None:
        """Goes on with these rows, in this order; a row may stand several times."""
        places = torch.tensor(list(rows), device=self._mask.device)
        self._mask = self._mask[places]
        if self._past is not None:
            self._past.reorder_cache(places)
        if self._seen is not None:
            self._seen = self._seen[places]
