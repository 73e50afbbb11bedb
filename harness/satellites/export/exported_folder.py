"""A folder that an export writes: all of it or nothing, beside files of other origin or none."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from eyechart.harness import score
from eyechart.harness.analysis.tables.cells import escaped
from eyechart.harness.errors import UsageError
from eyechart.harness.journal.software import software
from eyechart.providers.secrets import redact

STAMP = "eyechart.json"
"""File that marks a folder as an export and lists the files of the export."""
_SCORE = Path(score.__file__).parent


@dataclass(slots=True)
class ExportedFolder:
    """The temporary folder that an export is written to before it is moved to its place."""

    path: Path
    files: list[str] = field(default_factory=list)
    """Names of the files, relative to the folder."""

    def write(self, name: str, text: str) -> None:
        self.open(name).write_text(text, encoding="utf-8")

    def open(self, name: str) -> Path:
        """The path of a new file, whose folder is created."""
        self.files.append(name)
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def copy(self, name: str, source: Path) -> None:
        """Writes the text of a file of ours, below a line that says who wrote it."""
        self.write(name, f"# {maker()}\n{source.read_text(encoding='utf-8')}")

    def write_scoring(self, folder: str) -> None:
        """Copies the package `harness.score`; it imports nothing outside itself."""
        for source in sorted(_SCORE.glob("*.py")):
            self.copy(f"{folder}/{source.name}", source)


@contextmanager
def exported_folder(output: Path) -> Iterator[ExportedFolder]:
    """The folder to write into, which takes the place of an earlier export in `output` at the end.

    Raises:
        UsageError: `output` is a file, or a folder with files that are not of an export.
    """
    old_files = _files_of(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}-") as temporary:
        folder = ExportedFolder(Path(temporary))
        yield folder
        _place(folder, output, old_files)


def maker() -> str:
    """The version of this program and the command, on one line and without keys."""
    command = " ".join(map(redact, ["bench", *sys.argv[1:]]))
    line = escaped(f"eyechart {software()['eyechart']}: {command}")
    return line.encode(errors="backslashreplace").decode()


def _files_of(output: Path) -> list[str]:
    """The files that an earlier export wrote there."""
    if output.exists() and not output.is_dir():
        raise UsageError(f"{str(output)!r} is a file; name a folder")
    stamp = output / STAMP
    if stamp.is_file():
        try:
            files = json.loads(stamp.read_text(encoding="utf-8"))["files"]
            return [name for name in files if isinstance(name, str) and ".." not in name]
        except (KeyError, TypeError, ValueError):
            raise UsageError(f"{stamp} cannot be read; name an empty folder") from None
    if output.exists() and any(output.iterdir()):
        raise UsageError(f"folder {str(output)!r} has files of another origin; name an empty one")
    return []


def _place(folder: ExportedFolder, output: Path, old_files: Sequence[str]) -> None:
    """Moves the export to its place; files there that are not of an export stay.

    The stamp is written first and names all files, old and new, so that the next command can
    complete a folder that an interrupted command left.
    """
    output.mkdir(exist_ok=True)

    def stamp(files: Iterable[str]) -> None:
        content = {"written_by": maker(), "files": sorted({*files, STAMP})}
        (output / STAMP).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    stamp([*old_files, *folder.files])
    for name in old_files:
        if name != STAMP:
            (output / name).unlink(missing_ok=True)
    for name in folder.files:
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(folder.path / name, output / name)
    parents = {parent for name in old_files for parent in Path(name).parents}
    for parent in sorted(parents - {Path()}, key=lambda path: len(path.parts), reverse=True):
        if (output / parent).is_dir() and not any((output / parent).iterdir()):
            (output / parent).rmdir()
    stamp(folder.files)
