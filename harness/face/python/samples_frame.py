"""The samples of a run as a DataFrame."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pandas as pd

from eyechart.harness.face.samples import ShownSample

_FIELDS = (
    *("id", "length", "true_length", "index", "draw", "seed", "metadata", "prompt"),
    *("first_wrong_turn", "reply", "reasoning", "target", "answer", "answer_start", "answer_end"),
    *("outcome", "why", "options", "rank", "margin", "logprobs", "top_logprobs"),
    *("recorded_verdict", "finish_reason", "prompt_tokens", "output_tokens", "thinking_tokens"),
    *("thinking_characters", "latency_s"),
)
_COUNTS = (
    *("length", "true_length", "index", "draw", "seed", "answer_start", "answer_end", "rank"),
    *("first_wrong_turn", "prompt_tokens", "output_tokens", "thinking_tokens"),
    "thinking_characters",
)
"""Columns of integers that may be missing; targets and answers may be texts or long integers."""


def samples_frame(samples: Sequence[ShownSample], axes: Collection[str]) -> pd.DataFrame:
    """A row for each sample: the fields of `ShownSample.row`, after `id` a column for each axis.

    The column of an axis with the name of another column is `axis_NAME`.
    """
    names = {axis: f"axis_{axis}" if axis in _FIELDS else axis for axis in axes}
    rows = []
    for sample in samples:
        row = sample.row()
        condition = row.pop("condition")
        rows.append(row | {name: condition[axis] for axis, name in names.items()})
    first, *others = _FIELDS
    columns = [first, *names.values(), *others]
    frame = pd.DataFrame(rows, columns=columns, dtype=object)
    for name in _COUNTS:
        frame[name] = frame[name].astype("Int64")
    for name in ("margin", "latency_s"):
        frame[name] = frame[name].astype(float)
    return frame
