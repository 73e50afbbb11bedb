"""What changed when the samples of a run were asked again: the texts of replies, and verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pandas as pd

from eyechart.harness.analysis.judged_run import JudgedCondition, JudgedRun
from eyechart.harness.errors import CompareError
from eyechart.harness.journal.record import read_records
from eyechart.harness.journal.server import differences, unknown_addresses
from eyechart.harness.score.outcomes import OUTCOMES, Outcome

_SHOWN = 10
_SAMPLE = ["true_length", "index"]
_BOTH = ["record", "record_other", "outcome", "outcome_other"]


@dataclass(frozen=True, slots=True)
class ChangedVerdict:
    """A sample whose outcome in the repeat is another one."""

    id: str
    before: str
    now: str

    def __str__(self) -> str:
        return f"{self.id}: {self.before}, now {self.now}"


@dataclass(frozen=True, slots=True)
class Repetition:
    """A run against its repeat, on the samples that have a reply in both."""

    task: str
    asked: int
    same_text: int
    changed: tuple[ChangedVerdict, ...]
    """In the order of the run's journal."""

    def lines(self) -> Iterator[str]:
        """The numbers in one line, then the first samples with a changed verdict."""
        same = self.asked - len(self.changed)
        text = (
            f"{self.task}: {self.asked:,} samples asked again; {self.same_text:,} replies are the "
            f"same text, {same:,} verdicts the same"
        )
        kinds = Counter((change.before, change.now) for change in self.changed)
        counts = ", ".join(f"{many:,} {was} now {now}" for (was, now), many in kinds.most_common())
        yield f"{text}; {len(self.changed):,} changed: {counts}" if counts else text
        yield from (f"  {change}" for change in self.changed[:_SHOWN])
        if len(self.changed) > _SHOWN:
            yield f"  … and {len(self.changed) - _SHOWN:,} more"


def repetition(run: JudgedRun, repeat: JudgedRun) -> Repetition:
    """Compares a run with its repeat, or with any other run of the same samples.

    Samples without a reply in one of the two, and samples that were not sent, do not count.

    Raises:
        CompareError: a sample had another prompt.
    """
    parts = [
        _both(run.conditions[condition], repeat.conditions[condition])
        for condition in repeat.conditions
        if condition in run.conditions
    ]
    both = pd.concat(parts) if parts else pd.DataFrame(columns=_BOTH)
    texts, ids = _texts(run, set(both["record"]))
    other_texts, _ = _texts(repeat, set(both["record_other"]))
    asked, same_text, changed = 0, 0, []
    for record, other_record, before, now in sorted(both.to_numpy(int).tolist()):
        if record not in texts or other_record not in other_texts:
            continue
        asked += 1
        same_text += texts[record] == other_texts[other_record]
        if before != now:
            changed.append(ChangedVerdict(ids[record], OUTCOMES[before], OUTCOMES[now]))
    return Repetition(run.manifest.task, asked, same_text, tuple(changed))


def other_model(run: JudgedRun, repeat: JudgedRun) -> Iterator[str]:
    """A line for each sign that another model or server answered the repeat."""
    before, now = run.manifest, repeat.manifest
    if before.answered_by and (
        new := [name for name in now.answered_by if name not in before.answered_by]
    ):
        yield (
            f"the repeat was answered by {', '.join(map(repr, new))}, and the run by "
            f"{', '.join(map(repr, before.answered_by))}"
        )
    for name in differences(before.server, now.server):
        was, is_now = before.server.get(name), now.server.get(name)
        yield f"the server is another one: {name} was {was!r}, is {is_now!r}"
    if new := unknown_addresses(before.server, now.server):
        yield f"the server is another one: the repeat was answered at {', '.join(new)}"


def _both(first: JudgedCondition, second: JudgedCondition) -> pd.DataFrame:
    """The columns `_BOTH` of the samples with a reply on both sides, each once."""
    columns = [*_SAMPLE, "outcome", "record", "prompt"]
    sides = []
    for judged in (first, second):
        recorded = judged.recorded
        replied = recorded[recorded["outcome"] != Outcome.ERROR.place]
        sides.append(replied[columns].drop_duplicates(_SAMPLE))
    both = sides[0].merge(sides[1], on=_SAMPLE, suffixes=("", "_other"))
    if (both["prompt"] != both["prompt_other"]).any():
        raise CompareError(
            f"{second.run.folder}: its prompts are not those of {first.run.folder}: the task's "
            "generator or items changed and its version did not"
        )
    return both[_BOTH]


def _texts(run: JudgedRun, numbers: Collection[int]) -> tuple[dict[int, int], dict[int, str]]:
    """Number of a record -> hash of its reply, and its id; without samples that were not sent.

    All replies together may be too large for memory, so only their hashes are kept.
    """
    texts, ids = {}, {}
    for number, record in enumerate(read_records(run.folder)):
        if number in numbers and record.attempts != 0:
            texts[number] = hash(record.reply)
            ids[number] = record.id
    return texts, ids
