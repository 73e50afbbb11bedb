"""The samples of a condition that were asked, to find those that two runs have in common."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

Places: TypeAlias = npt.NDArray[np.intp]
Lines: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SampleSet:
    """N samples, by line and index."""

    keys: npt.NDArray[np.int64]
    """The columns `LINE` and the index of each sample: shape (N, 4)."""
    true_lengths: npt.NDArray[Any]
    """Symbols in each row: shape (N,)."""
    prompts: npt.NDArray[Any]
    """Hash of each prompt: shape (N,)."""
    targets: npt.NDArray[Any]
    """`target_mark` of each target: shape (N,)."""

    @cached_property
    def prompt_of(self) -> dict[bytes, int]:
        """Key of a sample, as bytes -> hash of its prompt."""
        return dict(zip(map(bytes, self.keys), self.prompts.tolist(), strict=True))


def asked_of(samples: pd.DataFrame, recorded: npt.NDArray[np.bool_], lines: Lines) -> SampleSet:
    """The `recorded` ones, each once; `lines` has the columns `LINE` of each cell: (cells, 3)."""
    cells, index = (samples[name].to_numpy(np.int64)[recorded] for name in ("cell", "index"))
    keys = np.column_stack([lines[cells], index])
    order = _order(keys)
    keys = keys[order]
    first = np.append(True, (keys[1:] != keys[:-1]).any(axis=1))[: len(keys)]
    return SampleSet(
        np.ascontiguousarray(keys[first]),
        *(
            samples[name].to_numpy()[recorded][order[first]]
            for name in ("true_length", "prompt", "target")
        ),
    )


def in_both(first: SampleSet, second: SampleSet) -> tuple[Places, Places]:
    """The places of the samples that both have, in each of the two."""
    if np.array_equal(first.keys, second.keys):
        places = np.arange(len(first.keys))
        return places, places
    keys = np.concatenate([first.keys, second.keys])
    order = _order(keys)
    same = (keys[order][1:] == keys[order][:-1]).all(axis=1)
    return order[:-1][same], order[1:][same] - len(first.keys)


def _order(keys: npt.NDArray[np.int64]) -> Places:
    """By line and then by index; of equal keys the earlier one first."""
    return np.lexsort(keys.T[::-1])
