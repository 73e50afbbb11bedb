"""Whether the first replies of a run can be used, so that the rest is worth paying for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from eyechart.harness.analysis.findings.unread import SHOWN, reply_text
from eyechart.harness.analysis.samples.remedies import ReplyRemedies, context_of
from eyechart.harness.analysis.samples.verdicts import judge_of_task
from eyechart.harness.errors import TaskError
from eyechart.harness.journal.manifest import read_manifest
from eyechart.harness.journal.record import Record
from eyechart.harness.run.first_replies import FirstVerdict
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.score.outcomes import Cause, Outcome
from eyechart.providers.base import BadRequestError, sampling_of
from eyechart.providers.naming import named

_FAILS = f"look at the server and its log, and at the address ({named('base_url')})"
"""What the user can do where no sample has a reply."""
_NO_DIFFERENCE = "in each of the first {} forced choices all options have the same probability"
_READS_REPLIES = (
    "such log-probabilities say nothing of the model: mend the server, or read its replies "
    f"(without {named('reading')})"
)


def check_first(request: RunRequest, records: Sequence[Record]) -> FirstVerdict:
    """Judges the first replies: the run stops if none of them has an answer that can be read, or if
    no sample has a reply.
    """
    judge = judge_of_task(request.plan.task, request.plan.seed, request.settings.api)
    try:
        verdicts = [judge.verdict(record) for record in records]
    except TaskError:  # of the task's own scorer; the tables report it
        return FirstVerdict()
    pairs = [
        (record, one)
        for record, one in zip(records, verdicts, strict=True)
        if one.outcome.about.scored  # a sample without any reply is asked again
    ]
    if not pairs:
        return _without_replies(records, is_code=request.model.is_code)
    if all(_tells_nothing(record) for record, _ in pairs):
        return FirstVerdict((_NO_DIFFERENCE.format(len(pairs)), _READS_REPLIES))
    usable = {record.condition for record, one in pairs if one.outcome.about.answered}
    if usable:
        without = dict.fromkeys(
            record.condition.label for record, _ in pairs if record.condition not in usable
        )
        unread = f"no first reply under {' and '.join(without)} has an answer that can be read"
        return FirstVerdict(warning=f"{request.name}: {unread}" if without else "")
    causes = Counter(one.outcome.about.cause or Cause.FORM for _, one in pairs)
    reasons = Counter(_reason(record, one.outcome, one.why) for record, one in pairs)
    first = f"none of the first {len(pairs)} replies has an"
    if len(pairs) == 1:
        first = "the first reply has no"
    said = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common(SHOWN))
    replies = [record for record, _ in pairs if record.failure is None]
    server = read_manifest(request.folder).server or request.known_facts
    context = context_of(request.plan.task.spec, pairs[0][0].condition)
    remedies = ReplyRemedies(request.model, request.settings, server, context)
    said = f"{first} answer that can be read: {said}"
    if {one.outcome for _, one in pairs} == {Outcome.OVERFLOW}:
        why = next(record.failure.message for record in records if record.failure is not None)
        said = f"none of the first {len(pairs)} prompts fits the window of the model ({why})"
    return FirstVerdict(
        (
            said,
            *(f"  {reply_text(record)}" for record in replies[:SHOWN]),
            *remedies.of([cause for cause, _ in causes.most_common(1)], records),
        )
    )


def _tells_nothing(record: Record) -> bool:
    """Whether all options of a forced choice have the same probability."""
    return record.options is not None and len({one.logprob for one in record.options}) == 1


def _reason(record: Record, outcome: Outcome, unread: str) -> str:
    """`not readable (no answer after the phrase)`, `cut off`, `refused (400: …)`."""
    cause = outcome.about.cause or Cause.FORM
    why = record.failure.message if record.failure is not None else unread
    return f"{cause.said} ({why})" if why and cause is not Cause.ROOM else cause.said


def _without_replies(records: Sequence[Record], *, is_code: bool) -> FirstVerdict:
    """Why none of the first samples has a reply."""
    failures = [record.failure for record in records if record.failure is not None]
    messages = Counter(failure.message for failure in failures)
    rejected = {failure.type for failure in failures} == {BadRequestError.__name__}
    first = f"none of the first {len(records)} samples" if len(records) > 1 else "no first sample"
    reasons = messages.most_common(SHOWN)
    return FirstVerdict(
        (
            f"{first} got a reply",
            *(f"  {times} time{'s' * (times > 1)}: {message}" for message, times in reasons),
            _rejected(messages) if rejected else "correct the function" if is_code else _FAILS,
        ),
        asks_again=True,
    )


def _rejected(messages: Iterable[str]) -> str:
    """What the user can do where a server rejects all requests, by the parameters that it names."""
    words = {word for message in messages for word in re.findall(r"[a-z_]+", message)}
    none = named("temperature", "none")
    options = [
        none if name == "temperature" else named("params", f"{name}=…")
        for name in sampling_of(words)
    ]
    such = ", ".join(options or [named("params"), none])
    return (
        f"leave out or correct what the server rejects (such as {such}, {named('max_tokens')}, "
        f"{named('api')} or {named('system')}), or change the server"
    )
