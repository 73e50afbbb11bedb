"""What a run's folder knows of its batches that are under way, so that none is submitted twice.

A batch's token is written before it is submitted and its id after, so that one that was submitted
in between is found by its token. Beside each lies the file of its requests, until it is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import orjson
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from harness.errors import JournalError
from harness.journal.journal import Answered, replace_file
from harness.run.batch.files import condition_tag, read_custom_id, reply_lines
from harness.spec import CellKey

STATE = "batches.json"
_REQUESTS = "batch-{}.jsonl"


class Submitted(BaseModel):
    """One batch of a run."""

    model_config = ConfigDict(extra="forbid")

    token: str
    address: str
    """Of the Batch API that has it."""
    requests: int
    most: float
    """Dollars that it costs at most; 0 where no price is known."""
    since_s: float
    """When it was made ready, in seconds of the epoch."""
    id: str | None = None
    """By which the vendor knows it; `None` until it says so."""
    status: str = ""
    """As the vendor gave it last."""


class Ledger:
    """The batches of one run that are not imported yet."""

    def __init__(self, folder: Path) -> None:
        """Raises `JournalError` where the file cannot be read."""
        self.folder = folder
        self.batches: list[Submitted] = []
        try:
            content = (folder / STATE).read_bytes()
            self.batches = TypeAdapter(list[Submitted]).validate_json(content)
        except FileNotFoundError:
            pass
        except (OSError, ValidationError) as error:
            said = " ".join(str(error).split())
            raise JournalError(
                f"{folder / STATE} cannot be read ({said}); it names batches that may be paid for: "
                "mend it, or delete it to submit them anew"
            ) from error

    def requests_of(self, batch: Submitted) -> Path:
        """The file of a batch's requests."""
        return self.folder / _REQUESTS.format(batch.token)

    def partial(self, token: str) -> Path:
        """The same while it is being written."""
        return self.folder / _REQUESTS.format(f"{token}-partial")

    def replies_of(self, batch: Submitted, what: str) -> Path:
        """The file of a batch's output or errors; one that was not wholly used stays."""
        return self.folder / f"replies-{batch.token}-{what}.jsonl"

    def add(self, batch: Submitted) -> None:
        """Keeps a batch that is about to be submitted."""
        self.batches.append(batch)
        self.save()

    def close(self, batch: Submitted) -> None:
        """Forgets a batch that is imported, or that came to nothing."""
        self.batches.remove(batch)
        self.save()
        self.requests_of(batch).unlink(missing_ok=True)

    def save(self) -> None:
        """Writes the file, or removes it where there is nothing to say."""
        if self.batches:
            said = [batch.model_dump() for batch in self.batches]
            text = orjson.dumps(said, option=orjson.OPT_INDENT_2)
            replace_file(self.folder / STATE, text, durable=True)
        else:
            (self.folder / STATE).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Removes what a command left that was killed before it submitted anything."""
        known = {self.requests_of(batch) for batch in self.batches}
        left = [*self.folder.glob(_REQUESTS.format("*")), *self.folder.glob("replies-*.tmp")]
        for path in left:
            if path not in known:
                path.unlink(missing_ok=True)

    def asked(self, keys: Iterable[CellKey]) -> Answered | None:
        """The samples that batches under way hold; `None` where a file of requests is gone, so
        that nobody knows.
        """
        by_tag: Mapping[tuple[str, int], CellKey] = {
            (condition_tag(label), length): (label, length) for label, length in keys
        }
        asked = Answered()
        for batch in self.batches:
            path = self.requests_of(batch)
            if not path.is_file():
                return None
            for line in reply_lines(path):
                place = read_custom_id((line.read or {}).get("custom_id"))
                key = by_tag.get((place.condition, place.length)) if place else None
                if place is not None and key is not None:
                    asked.add(key, place.index, 1)
        return asked


def refuse_if_under_way(folder: Path) -> None:
    """Raises `JournalError` where samples of a run are in a batch: they would be paid for twice."""
    if batches := Ledger(folder).batches:
        names = ", ".join(batch.id or "one whose id is not known yet" for batch in batches)
        requests = sum(batch.requests for batch in batches)
        raise JournalError(
            f"{requests:,} samples of {folder} are being asked in a batch ({names}); 'bench run "
            f"--batch' waits for it, and deleting {folder / STATE} gives it up"
        )
