"""What the end of a prompt holds of the right answer, and what the model makes of it.

The end is the token from whose state the model chooses the first token by which answers differ. All
rows of a line are measured together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyechart_lab.probe.inside import (
    Array,
    Inside,
    Precision,
    PromptCache,
    ReplacedState,
    shared,
)
from eyechart_lab.probe.measures.readout import (
    FOLDS,
    LEAST,
    ReadAnswers,
    best_layers,
    cosines,
    held_out,
    random_cosine,
    random_largest,
)
from eyechart_lab.probe.measures.ridge import Matrix, Ridges
from eyechart_lab.probe.measures.states import States
from eyechart_lab.probe.reading import ROUNDING, SampleReading

READOUT = "readout"
FEW, ONE_ANSWER = (
    f"a line needs {LEAST} rows to be read from others",
    "all rows of a line have the same answer",
)
Readings = list[SampleReading]


@dataclass(frozen=True, slots=True)
class ReadRow:
    """A row of a line."""

    ids: tuple[int, ...]
    """Tokens of the prompt, of the phrase before the answer, and of all that answers begin with."""
    answer: tuple[int, ...]
    """The other tokens of the right answer, one at least."""
    index: int
    length: int
    """Symbols of the row."""
    count: int | None
    """The right answer where it is a number."""


@dataclass(slots=True)
class ReadLine:
    """What was measured on the rows of a line."""

    rows: list[Readings] = field(default_factory=list)
    """For each row; empty where the line could not be measured."""
    why: str = ""
    """Why it could not be measured."""


@dataclass(frozen=True, eq=False)
class _Ends:
    """The states at the ends of the N rows of a line."""

    exact: Array
    """(L + 1, N, C)"""
    rounded: Array
    """The same in bfloat16."""


def measure_readout(inside: Inside, rows: Sequence[ReadRow], digits: Sequence[int]) -> ReadLine:
    """Measures the rows of one line; `digits` are the tokens of the digits 1 to 9, the first of
    each, for answers that are numbers.

    Memory: a state of each layer of each row, and the keys and values of one row.
    """
    answers, tokens = _answers(rows, digits)
    if len(rows) < LEAST or len(set(answers.folds.tolist())) < FOLDS:
        return ReadLine(why=FEW)
    if answers.are_one:
        return ReadLine(why=ONE_ANSWER)
    position: Matrix = np.array([[row.length, len(row.ids)] for row in rows], float)
    alone = held_out(position, answers)
    if answers.right(alone.read).all():
        return ReadLine(why="the length of a row alone says its answer, so states show nothing")
    ends = _Ends(
        *(np.stack([_end(inside, row.ids, to) for row in rows], axis=1) for to in _PRECISIONS)
    )
    found: list[Readings] = [[] for _ in rows]
    _add(found, "position_readable", None, answers.right(alone.read))
    _add(found, "position_r2", None, answers.r2(alone.read))
    _read(inside, ends, answers, tokens, found)
    _look(inside, rows, ends, found)
    for row, of_row in zip(rows, found, strict=True):
        if (donor := _donor(row, rows)) is not None:
            of_row.extend(_patched(inside, row, donor))
    return ReadLine(found)


_PRECISIONS: tuple[Precision, Precision] = ("float32", "bfloat16")


def _answers(rows: Sequence[ReadRow], digits: Sequence[int]) -> tuple[ReadAnswers, list[int]]:
    """The answers, and the tokens whose rows of the output matrix directions are compared with."""
    folds = np.array([row.index % FOLDS for row in rows])
    counts = [row.count for row in rows]
    if None not in counts:
        return ReadAnswers(np.array(counts, float)[:, None], folds), list(digits)
    first = [row.answer[0] for row in rows]
    symbols = sorted(set(first))
    is_symbol = np.array(first)[:, None] == np.array(symbols)
    return ReadAnswers(is_symbol.astype(float), folds), symbols


def _end(inside: Inside, ids: Sequence[int], precision: Precision) -> Array:
    """(L + 1, C): the stream at the last token before each layer, and after the last one."""
    kept = States([len(ids) - 1], frozenset(["residual"]))
    inside.forward(ids, kept, precision=precision)
    return np.concatenate([kept.streams[layer] for layer in sorted(kept.streams)])


def _read(
    inside: Inside, ends: _Ends, answers: ReadAnswers, tokens: Sequence[int], found: list[Readings]
) -> None:
    """Adds what linear maps read, layer by layer, and how their directions lie."""
    output = inside.output_rows(tokens)
    largest = random_largest(output, is_one=answers.are_counts)
    found[0] += [
        SampleReading("random_cosine", random_cosine(output.shape[1])),
        SampleReading("random_cosine_largest", largest),
    ]
    inner: list[Matrix] = []
    right: list[Matrix] = []
    rounded: list[Matrix] = []
    drawn: list[Matrix] = []
    for layer, (exact, of_rounded) in enumerate(zip(ends.exact, ends.rounded, strict=True)):
        states = exact.astype(float)
        read = held_out(states, answers, [of_rounded.astype(float)])
        inner.append(read.inner)
        right.append(answers.right(read.read).astype(float))
        rounded.append(answers.right(read.others[0]).astype(float))
        of_random = [one.right(held_out(states, one).read) for one in answers.like(states)]
        drawn.append(np.sum(of_random, axis=0) / max(1, len(of_random)) + np.zeros(len(found)))
        _add(found, "readable", layer, right[-1], rounded[-1])
        _add(found, "r2", layer, answers.r2(read.read), answers.r2(read.others[0]))
        _add(found, "control_readable", layer, drawn[-1])
        if states.std(axis=0).any():
            directions = Ridges(states, answers.targets).directions(read.ridge)
            near = cosines(directions, output)
            found[0].append(SampleReading("cosine", float(near.mean()), layer))
            found[0].append(SampleReading("cosine_largest", float(near.max()), layer))
    best = best_layers(inner, answers)[answers.folds]
    rows = np.arange(len(found))
    _add(found, "best_readable", None, np.array(right)[best, rows], np.array(rounded)[best, rows])
    _add(found, "best_control", None, np.array(drawn)[best, rows])
    _add(found, "best_layer", None, best.astype(float))


def _look(inside: Inside, rows: Sequence[ReadRow], ends: _Ends, found: list[Readings]) -> None:
    """Adds the rank that the right token has in each layer, if its stream were the last one."""
    first = Counter(row.answer[0] for row in rows)
    commonest = max(first.values())
    for number, row in enumerate(rows):
        token = row.answer[0]
        exact, rounded = (
            (logits >= logits[:, [token]]).sum(axis=1)
            for logits in (inside.unembedded(one[:, number]) for one in (ends.exact, ends.rounded))
        )
        one = [found[number]]
        for layer in range(len(exact)):
            _add(one, "rank", layer, exact[[layer]], rounded[[layer]])
            _add(one, "ranked_first", layer, exact[[layer]] == 1, rounded[[layer]] == 1)
        found[number].append(SampleReading("same_token", float(first[token] == commonest)))


def _donor(row: ReadRow, rows: Sequence[ReadRow]) -> ReadRow | None:
    """The next row of the line whose answer differs at a token that both answers have."""
    place = rows.index(row)
    for other in (*rows[place + 1 :], *rows[:place]):
        common = shared(row.answer, other.answer)
        if common < min(len(row.answer), len(other.answer)):
            return other
    return None


def _patched(inside: Inside, row: ReadRow, donor: ReadRow) -> Iterator[SampleReading]:
    """Whether the model's next token is that of the row, or of the donor whose state at the end is
    put in, layer by layer. Both answers are given up to the first token by which they differ.
    Nothing where the model says the same after both.
    """
    common = shared(row.answer, donor.answer)
    ids, other = ((*one.ids, *one.answer[:common]) for one in (row, donor))
    kept = States([len(other) - 1], frozenset(["residual"]))
    its = int(inside.forward(other, kept)[0].argmax())
    trunk = PromptCache()
    own = int(inside.forward(ids, trunk=trunk)[0].argmax())
    if own == its:
        return
    for layer, state in sorted(kept.streams.items()):
        put_in = ReplacedState(layer, len(ids) - 1, state[0])
        said = int(inside.forward(ids, trunk=trunk, replaced=put_in)[0].argmax())
        yield SampleReading("follows", float(said == its), layer)
        yield SampleReading("stays", float(said == own), layer)


def _add(
    found: Sequence[Readings],
    quantity: str,
    layer: int | None,
    values: NDArray[Any],
    rounded: NDArray[Any] | None = None,
) -> None:
    """Adds a value for each row, and how far rounding alone moves it."""
    for number, row in enumerate(found):
        value = float(values[number])
        row.append(SampleReading(quantity, value, layer))
        if rounded is not None:
            moved = abs(value - float(rounded[number]))
            row.append(SampleReading(quantity + ROUNDING, moved, layer))
