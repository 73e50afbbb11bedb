"""The list of a run's batches under way, kept in its folder so that no batch is submitted twice.

A batch's token is saved before the batch is submitted, and its id after. If a command is killed in
between, the next command finds the batch by its token. The file of the batch's requests stays in
the folder until the batch is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from eyechart.harness.errors import JournalError
from eyechart.harness.journal.answers import AnswerIndex
from eyechart.harness.journal.files import replace_file
from eyechart.harness.journal.line_finder import LineFinder
from eyechart.harness.run.batch.files import condition_tag, read_custom_id, reply_lines
from eyechart.harness.spec import Cell, exact_json
from eyechart.harness.spec.file_mistakes import first_mistake

PENDING_FILE = "batches.json"
"""Name of the file in a run's folder."""
_REQUESTS = "batch-{}.jsonl"


class BatchJob(BaseModel):
    """One batch of a run."""

    model_config = ConfigDict(extra="forbid")

    token: Annotated[str, Field(pattern=r"^[0-9a-f]+$")]
    """The part of the batch's file names that tells it from other batches."""
    address: str
    """The address of the Batch API that has the batch."""
    requests: int
    most: float
    """Most dollars that the batch can cost; 0 if no price is known."""
    since_s: float
    """When its file of requests was written, in seconds since 1970."""
    id: str | None = None
    """The vendor's name for the batch; `None` until it is known."""
    status: str = ""
    """The last status that the vendor reported."""


class PendingBatches:
    """The batches of one run that are not imported yet."""

    def __init__(self, folder: Path) -> None:
        """Raises `JournalError` if the file cannot be read."""
        self.folder = folder
        self.jobs: list[BatchJob] = []
        try:
            data = exact_json.loads((folder / PENDING_FILE).read_bytes())
            self.jobs = TypeAdapter(list[BatchJob]).validate_python(data)
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            if isinstance(error, ValidationError):
                reason = first_mistake(error, data)
            raise JournalError(
                f"{folder / PENDING_FILE} cannot be read ({reason}); it lists batches that may be "
                "paid for: repair it, or delete it to submit their requests again"
            ) from error

    def requests_of(self, batch: BatchJob) -> Path:
        """The file with a batch's requests."""
        return self.folder / _REQUESTS.format(batch.token)

    def partial(self, token: str) -> Path:
        """The file with a batch's requests while it is being written."""
        return self.folder / _REQUESTS.format(f"{token}-partial")

    def replies_of(self, batch: BatchJob, what: str) -> Path:
        """The file with a batch's output or errors; it stays if some of its lines were not used."""
        return self.folder / f"replies-{batch.token}-{what}.jsonl"

    def add(self, batch: BatchJob) -> None:
        """Saves a batch that is about to be submitted."""
        self.jobs.append(batch)
        self.save()

    def close(self, batch: BatchJob) -> None:
        """Removes a batch that was imported or refused."""
        self.jobs.remove(batch)
        self.save()
        self.requests_of(batch).unlink(missing_ok=True)

    def save(self) -> None:
        """Writes the file, or removes it if no batch is under way."""
        if self.jobs:
            dumped = [batch.model_dump() for batch in self.jobs]
            text = orjson.dumps(dumped, option=orjson.OPT_INDENT_2)
            replace_file(self.folder / PENDING_FILE, text, durable=True)
        else:
            (self.folder / PENDING_FILE).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Removes the files of commands that were killed before they submitted anything."""
        known = {self.requests_of(batch) for batch in self.jobs}
        leftovers = [*self.folder.glob(_REQUESTS.format("*")), *self.folder.glob("replies-*.tmp")]
        for path in leftovers:
            if path not in known:
                path.unlink(missing_ok=True)

    def samples(self, cells: Sequence[Cell], start: int) -> AnswerIndex | None:
        """The samples of `cells` in batches under way; `None` if a file of requests is missing, so
        that they are not known. `start`: see `Line.length_of`.
        """
        by_tag = {condition_tag(cell.condition): cell.condition for cell in cells}
        in_batches = AnswerIndex(LineFinder((cell.line for cell in cells), start))
        for batch in self.jobs:
            path = self.requests_of(batch)
            if not path.is_file():
                return None
            for line in reply_lines(path):
                custom_id = read_custom_id((line.read or {}).get("custom_id"))
                condition = by_tag.get(custom_id.condition) if custom_id else None
                if custom_id is not None and condition is not None:
                    place = custom_id.length, custom_id.index
                    in_batches.add(condition, *place, mark=1, draw=custom_id.draw)
        return in_batches


def refuse_if_under_way(folder: Path) -> None:
    """Raises `JournalError` if samples of a run are in a batch: asking would cost twice."""
    if batches := PendingBatches(folder).jobs:
        names = ", ".join(batch.id or "one whose id is not known yet" for batch in batches)
        requests = sum(batch.requests for batch in batches)
        raise JournalError(
            f"{requests:,} samples of {folder} are being asked in a batch ({names}); 'bench run "
            f"--tier batch' waits for it; to give it up, delete {folder / PENDING_FILE}"
        )
