"""`--dry-run` of asking until a comparison is decided: what the first wave and all waves take, in
words or as the document of `--json`. Sends and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.terminal import echo, take_logs
from eyechart.harness.cli.work.dry_run.dry_run import bill_text
from eyechart.harness.cli.work.dry_run.preview import Bill, bill_of
from eyechart.harness.cli.work.dry_run.previewing import preview_of
from eyechart.harness.errors import COMPLETE
from eyechart.harness.face.asking.ask_pair import AskUntilDecided
from eyechart.harness.face.asking.ask_run import AskedRequest
from eyechart.harness.spec.dollars import at_most_text


@dataclass(frozen=True, slots=True)
class _First:
    """What a run is asked in the first wave."""

    model: str
    task: str
    folder: str
    expected: Bill


def show_asking(asking: AskUntilDecided, *, as_json: bool) -> int:
    """Prints what would be asked."""
    take_logs()
    if as_json:
        print_document({"asking": _document(asking)})
        return COMPLETE
    echo(f"{asking.tasks}:", f"  {asking.before()}", *(f"  {line}" for line in _lines(asking)))
    return COMPLETE


def _lines(asking: AskUntilDecided) -> Iterator[str]:
    first = asking.first_wave()
    if isinstance(first, str):
        yield f"no sample is asked: {first}"
        return
    for one in map(_first, first):
        on = f" on {one.task}" * (one.task != asking.tasks)
        yield f"{one.model}{on}: about {bill_text(one.expected)} in the first wave"
    if (most := _most_of(asking)) is not None:
        bound = bill_text(most, at_most_text)
        yield f"all waves: at most {bound}, all of them on the longest lines"


def _document(asking: AskUntilDecided) -> dict[str, Any]:
    first, found = asking.first_wave(), {"tasks": asking.tasks, "most_samples": asking.price}
    if isinstance(first, str):
        return {**found, "nothing": first, "first_wave": [], "most": None}
    most = _most_of(asking)
    return {
        **found,
        "nothing": "",
        "first_wave": [asdict(_first(one)) for one in first],
        "most": None if most is None else asdict(most),
    }


def _first(one: AskedRequest) -> _First:
    options, request = one
    bill = bill_of(preview_of(request, options), options.model.prices, is_most=False)
    return _First(options.model.label, request.plan.task.name, str(request.folder), bill)


def _most_of(asking: AskUntilDecided) -> Bill | None:
    """An upper bound of all waves: every sample on the longest line that has room in the window, of
    the run and the condition where it costs most; `None` where none has room.
    """
    bills = []
    for lines in asking.longest_first():
        for options, request in lines:
            preview = preview_of(request, options, of_all=True)
            if preview.forecast.requests:
                bill = bill_of(preview, options.model.prices, is_most=True)
                bills.append(bill.times(asking.price / bill.requests))
                break
    if not bills:
        return None
    return Bill(
        asking.price,
        max(bill.prompt_tokens for bill in bills),
        max(bill.output_tokens for bill in bills),
        max((bill.dollars for bill in bills if bill.dollars is not None), default=None)
        if all(bill.dollars is not None for bill in bills)
        else None,
    )
