"""Tokens a symbol as usage gives them, against the tokenizer itself, on rows of built-in tasks.

    pip install tiktoken tokenizers sentencepiece
    pip install --no-deps litellm mistral-common dashscope
    python -m tests.benchmarks.tokens_a_symbol

Packages that have tokenizers as files: litellm those of GPT-4o, GPT-4, DeepSeek V2 and Claude 2,
mistral-common those of Mistral, and dashscope that of Qwen. None of them is imported, and nothing
is fetched; a tokenizer whose package is missing is left out.

Each prompt of a task has so many tokens, and 40 of a chat template; the slope is what `bench`
estimates. The truth is in the rows alone: the tokens that the longest one has more than the
shortest one, by symbol, in the mean of all rows.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eyechart.harness.analysis.length.tokens_of_row import TokensASymbol, fitted
from eyechart.harness.plan.plan import item_of, plan
from eyechart.harness.spec import Condition, write_row
from eyechart.harness.task.catalogue import Task, built_in_files, open_task
from eyechart.providers.tiny.folder import model_folder

Count = Callable[[str], int]
_TEMPLATE = 40
_ROWS = 20
_QWEN = (
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"""
    r"""\s*[\r\n]+|\s+(?!\S)|\s+"""
)
_ROWS_OF = {
    "ones": ("counting/ones", {"separator": "none"}),
    "ones, space": ("counting/ones", {"separator": "space"}),
    "ones, comma": ("counting/ones", {"separator": "comma"}),
    "0/1": ("counting/bernoulli", {"separator": "none"}),
    "letters": ("separators/letters", {"format": "pure"}),
    "letters in quotes": ("separators/letters", {"format": "quoted_list"}),
    "words": ("counting/words", {}),
}
"""Name of a column -> task, and the values of its condition that are not the default."""
_CONTROLLED = "controlled/separators"
"""The task whose symbols should have the same tokens under every separator."""


class Measured(NamedTuple):
    """One tokenizer on the rows of one condition."""

    found: TokensASymbol
    truth: float

    @property
    def error(self) -> float:
        return abs(self.found.value / self.truth - 1)

    @property
    def half_width(self) -> float:
        return (self.found.high - self.found.low) / 2 / self.found.value


def _folder(package: str) -> Path | None:
    spec = find_spec(package)
    places = () if spec is None else spec.submodule_search_locations or ()
    return next(iter(map(Path, places)), None)


def _file(package: str, name: str) -> Path | None:
    folder = _folder(package)
    return None if folder is None or not (folder / name).exists() else folder / name


def _json_file(path: Path) -> Count:

    tokenizer = import_module("tokenizers").Tokenizer.from_file(str(path))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def _ranked(ranks: dict[bytes, int], pattern: str) -> Count:

    encoding = import_module("tiktoken").Encoding(
        "x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={}
    )
    return lambda text: len(encoding.encode_ordinary(text))


def _known(name: str) -> Callable[[Path], Count]:
    """An encoding that tiktoken knows by name, whose file is in a folder as in its cache."""

    def opened(path: Path) -> Count:

        os.environ["TIKTOKEN_CACHE_DIR"] = str(path.parent)
        encoding = import_module("tiktoken").get_encoding(name)
        return lambda text: len(encoding.encode_ordinary(text))

    return opened


def _qwen(path: Path) -> Count:
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return _ranked({base64.b64decode(token): int(rank) for token, rank in lines}, _QWEN)


def _tekken(path: Path) -> Count:
    content = json.loads(path.read_text(encoding="utf-8"))
    size = content["config"]["default_vocab_size"]
    size -= content["config"]["default_num_special_tokens"]
    tokens = [base64.b64decode(one["token_bytes"]) for one in content["vocab"][:size]]
    return _ranked({token: rank for rank, token in enumerate(tokens)}, content["config"]["pattern"])


def _pieces(path: Path) -> Count:

    processor = import_module("sentencepiece").SentencePieceProcessor(model_file=str(path))
    return lambda text: len(processor.encode(text))


_LITELLM = "litellm_core_utils/tokenizers"
_OPENERS: dict[str, tuple[str, str, Callable[[Path], Count]]] = {
    "GPT-4o": (
        *("litellm", f"{_LITELLM}/fb374d419588a4632f3f557e76b4b70aebbca790"),
        _known("o200k_base"),
    ),
    "GPT-4": (
        *("litellm", f"{_LITELLM}/9b5ad71b2ce5302211f9c61530b329a4922fc6a4"),
        _known("cl100k_base"),
    ),
    "DeepSeek V2": ("litellm", f"{_LITELLM}/deepseek_tokenizer.json", _json_file),
    "Claude 2": ("litellm", f"{_LITELLM}/anthropic_tokenizer.json", _json_file),
    "Qwen": ("dashscope", "resources/qwen.tiktoken", _qwen),
    "Mistral NeMo": ("mistral_common", "data/tekken_240911.json", _tekken),
    "Mistral 7B": ("mistral_common", "data/mistral_instruct_tokenizer_240323.model.v3", _pieces),
}
"""Tokenizer -> the package that has its file, the file, and how it is opened."""


def tokenizers() -> Iterator[tuple[str, Count]]:
    """The tokenizers that can be had here."""
    for name, (package, file, opened) in _OPENERS.items():
        path = _file(package, file)
        if path is None:
            print(f"{name}: no {file} of {package}")
            continue
        try:
            yield name, opened(path)
        except ImportError as error:
            print(f"{name}: {error}")
    yield "tiny", _json_file(model_folder("tiny") / "tokenizer.json")


def measured(task: Task, condition: Condition, count: Count) -> Measured:
    """The estimate from prompts, and the truth from rows."""
    return Measured(_found(task, condition, count), _truth(task, condition, count))


def _found(task: Task, condition: Condition, count: Count) -> TokensASymbol:
    planned = plan(task, samples=_ROWS, axes={axis: [value] for axis, value in condition.items()})
    samples = list(planned)
    tokens = [_TEMPLATE + count(sample.prompt) for sample in samples]
    found = fitted(
        np.array([sample.length for sample in samples], float),
        np.array(tokens, float),
        np.array([sample.index for sample in samples]),
        "usage",
    )
    assert found is not None
    return found


def _truth(task: Task, condition: Condition, count: Count) -> float:
    axis = next((axis for axis in ("separator", "format") if axis in task.spec.axes), "")
    separator: Any = task.spec.axes[axis].values[condition[axis]] if axis else ""
    ends = min(task.lengths), max(task.lengths)
    more = []
    for index in range(_ROWS):
        short, long = (
            count(write_row(item_of(task, condition, length, index, 0).symbols, separator))
            for length in ends
        )
        more.append(long - short)
    return float(np.mean(more)) / (ends[1] - ends[0])


def main() -> None:
    """Prints two tables in Markdown."""
    known = list(tokenizers())
    _print_estimates(known)
    print()
    _print_controlled(known)


def _opened(name: str) -> Task:
    return open_task(name, built_in_files()[name])


def _usual(task: Task, values: Mapping[str, str]) -> Condition:
    axes = {axis: of.default[0] for axis, of in task.spec.axes.items()}
    return Condition({**axes, **values})


def _print_controlled(known: Sequence[tuple[str, Count]]) -> None:
    """Tokens a symbol of every separator of the task that holds them equal."""
    task = _opened(_CONTROLLED)
    separators = task.spec.axes["separator"].values
    shares = task.spec.axes["share"].values
    print("| tokenizer |", " | ".join(f"`{one}`" for one in separators), "|")
    print("| --- " * (len(separators) + 1) + "|")
    for name, count in known:
        cells = []
        for separator in separators:
            found = [
                _found(task, Condition({"separator": separator, "share": share}), count).value
                for share in shares
            ]
            low, high = min(found), max(found)
            cells.append(f"{low:.3f}" if f"{low:.3f}" == f"{high:.3f}" else f"{low:.3f}–{high:.3f}")
        print(f"| {name} |", " | ".join(cells), "|")


def _print_estimates(known: Sequence[tuple[str, Count]]) -> None:
    """The estimates on the rows of several tasks, and how many intervals have the truth."""
    print("| tokenizer |", " | ".join(_ROWS_OF), "| largest error |")
    print("| --- " * (len(_ROWS_OF) + 2) + "|")
    every: list[Measured] = []
    for name, count in known:
        cells = []
        for task_name, values in _ROWS_OF.values():
            task = _opened(task_name)
            cells.append(measured(task, _usual(task, values), count))
        every += cells
        shown = " | ".join(f"{one.found.value:.3f}" for one in cells)
        print(f"| {name} | {shown} | {100 * max(one.error for one in cells):.2f} % |")
    covered = sum(one.found.low - 1e-9 <= one.truth <= one.found.high + 1e-9 for one in every)
    widest = 100 * max(one.half_width for one in every)
    print(
        f"{covered} of {len(every)} intervals have the truth; they reach at most {widest:.1f} % to "
        "either side"
    )


if __name__ == "__main__":
    main()
