"""What the user can do where something else than sight makes replies fail.

A remedy is said only where it can help: more tokens are no help where the server ends replies
itself, and nothing helps replies that were recorded by somebody else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from eyechart.harness.journal.record import Record
from eyechart.harness.journal.thoughts import shows_thinking
from eyechart.harness.plan.resolved_model import ResolvedModel
from eyechart.harness.score.outcomes import Cause
from eyechart.harness.spec import Condition, Settings, TaskSpec
from eyechart.providers.naming import named

MOST_RECORDS = 200
"""Records that are enough to choose a remedy by."""
_FILTER, _MOST_WORDS = "content_filter", 3
"""Why a filter ended a reply, and the most words of servers for it that are shown."""
_ENDLESS = 3
"""After this many requests with more tokens each time, a reply does not end."""


_AROUND = re.compile(r"\bamid\(\s*(\w+)")
"""The filter that writes text or blank space around rows, and the axis of its size."""


def context_of(spec: TaskSpec, condition: Condition) -> str:
    """The axis that sets how much text is around the rows of a condition; empty without text."""
    for axis in _AROUND.findall(spec.prompt):
        if axis in condition and spec.axes[axis].values[condition[axis]]:
            return str(axis)
    return ""


@dataclass(frozen=True, slots=True)
class ReplyRemedies:
    """What helps replies of one model that were asked for with the same settings."""

    model: ResolvedModel
    settings: Settings
    server: Mapping[str, object]
    """Facts about the model's server."""
    context: str = ""
    """See `context_of`."""

    def of(self, causes: Iterable[Cause], records: Sequence[Record]) -> tuple[str, ...]:
        """A remedy for each cause; `records` are some of the replies that failed."""
        found = (self._of(cause, records) for cause in causes)
        return tuple(dict.fromkeys(filter(None, found)))

    def _of(self, cause: Cause, records: Sequence[Record]) -> str:
        if cause is Cause.ROOM:
            return self._of_room([one for one in records if one.is_cut_off])
        if cause is Cause.FORM:
            if records and 2 * sum(not (one.reply or "").strip() for one in records) > len(records):
                return "look at the server and its settings: most of these replies have no text"
            parts = ["look at the replies ('bench samples --outcome unparsed')"]
            if self.settings.api != "completions":
                parts.append(f"a base model wants {named('api', 'completions')}")
            reading = named("reading", "likelihood")
            parts.append(f"{reading} needs no form, where the server gives probabilities")
            return "; ".join(parts)
        if cause is Cause.ERROR:
            return (
                "look at the failures ('bench samples --outcome error') and at the server's log; "
                "the same command asks these samples again"
            )
        if cause is Cause.REFUSAL:
            words = Counter(one.refusal for one in records if one.finish_reason == _FILTER)
            named_by = ", ".join(f"{word!r}" for word, _ in words.most_common(_MOST_WORDS) if word)
            remedy = "change the prompt of the task, or ask another model"
            return f"{remedy}; the server's filter says {named_by}" if named_by else remedy
        if cause is Cause.WINDOW:
            if any(record.failure is None for record in records):
                cuts = "which cuts longer prompts without an error (Ollama: num_ctx)"
                return f"raise the window of the server, {cuts}, or {self._shorter}"
            shorter = f"{self._shorter}, or use a larger window"
            fewer = f", or ask for fewer tokens with {named('max_tokens')}"
            return shorter + (fewer if self.settings.max_tokens else "")
        return ""

    @property
    def _shorter(self) -> str:
        """Most of a prompt is the text around the rows, where there is any."""
        if self.context:
            return f"ask for a smaller value of the axis {self.context} with {named('axes')}"
        return f"ask for shorter rows with {named('lengths')}"

    def _of_room(self, cut: Sequence[Record]) -> str:
        """The remedy for replies that were cut off."""
        parts = [self._more_room(cut)]
        is_off = self.settings.thinking == "off"
        if not is_off and any(map(shows_thinking, cut)):
            parts.append(f"give less to think with {named('thinking')}")
        return ", or ".join(parts)

    def _more_room(self, cut: Sequence[Record]) -> str:
        asked = max((record.max_tokens or 0 for record in cut), default=0)
        given = round(median([record.output_tokens or 0 for record in cut])) if cut else 0
        if cut and sum(record.has_servers_limit for record in cut) * 2 >= len(cut):
            return (
                f"raise the server's own limit, which ended replies at about {given:,} of "
                f"{asked:,} tokens asked"
            )
        is_endless = any((one.cut_off or 0) >= _ENDLESS for one in cut)
        if is_endless and not any(map(shows_thinking, cut)):
            look = "look at the replies ('bench samples')"
            return f"{look}: some were asked with up to {asked:,} tokens, and did not end"
        if asked and asked >= self._most(cut):
            return f"{self._shorter}, or use a larger window: a reply has at most {asked:,} tokens"
        return f"give replies more tokens with {named('max_tokens')}"

    def _most(self, cut: Sequence[Record]) -> float:
        """Most tokens of a reply that are to be had; a reply fills the window but for a few."""
        limits = [float(self.model.facts.max_output or "inf")]
        if (window := self.model.window(self.server)) is not None:
            limits.append(0.9 * (window - max(one.prompt_tokens or 0 for one in cut)))
        return min(limits)
