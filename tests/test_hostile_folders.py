"""A folder of a run that cannot be read is left out by name, and the runs beside it are shown."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import eyechart
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.errors import JournalError
from eyechart.harness.journal import files
from eyechart.harness.journal.manifest import MANIFEST, find_runs
from eyechart.harness.journal.record import SAMPLES
from tests.conftest import Lab, right

SOUND = ("scripted/a", "scripted/b", "scripted/c")
SPOILT = "scripted/spoilt"
TOKEN = "@@"  # noqa: S105  stands for a value
VALUES = {
    "null": "null",
    "true": "true",
    "negative": "-3",
    "huge": f"1{'0' * 30}",
    "too many digits": "1" * 5000,
    "fraction": "1.5",
    "NaN": "NaN",
    "Infinity": "-Infinity",
    "1e999": "1e999",
    "NaN after a long integer": f"[{'1' * 400}, NaN]",
    "NUL": '"a\\u0000b"',
    "control characters": '"\\u001b[2J\\r\\nx\\u202e"',
    "lone surrogate": '"\\ud800"',
    "lone surrogate after a long integer": f'[{"1" * 400}, "\\ud800"]',
    "path": '"../../../x"',
    "list": "[]",
    "mapping": '{"x": {}}',
    "250 deep": f"{'[' * 250}{']' * 250}",
    "900 deep": f"{'[' * 900}{']' * 900}",
    "10,000 deep": f"{'[' * 10_000}{']' * 10_000}",
    "long": f'"{"a" * 200_000}"',
}
"""A value for each field, as JSON or nearly so."""


class Folders:
    """Three sound runs, and one to be spoilt."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.bench = lab.bench
        for model in (*SOUND, SPOILT):
            lab.asked(lab.wanted(samples=2, lengths=[3, 4], model=model), right)
        (self.spoilt,) = find_runs(lab.out, SPOILT)
        self.sound = [folder for model in SOUND for folder in find_runs(lab.out, model)]
        (lab.folder / "here").mkdir()
        lab.monkeypatch.chdir(lab.folder / "here")

    def doors(self) -> dict[str, Callable[[], str]]:
        """Each way to look at many runs at once -> what it prints."""
        new = self.lab.folder / "new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        first, *others = self.sound
        every = (first, self.spoilt, *others)
        of_one = ("--organization", "X", "--relationship", "third_party", "--task", self.lab.ones)
        return {
            "runs": lambda: self._said(SOUND, "runs", "--out", self.lab.out),
            "leaderboard": lambda: self._said(
                SOUND, "leaderboard", "--out", self.lab.out, "-o", new / "l.csv"
            ),
            "score": lambda: self._said(SOUND, "score", *every),
            "score --json": lambda: self._said(SOUND, "score", *every, "--json"),
            "report": lambda: self._said(("page.html",), "report", *every, "-o", new / "page.html"),
            "eee": lambda: self._said(
                (".json",), "export", "every-eval-ever", *every, "-o", new / "eee", *of_one
            ),
        }

    def _said(self, words: tuple[str, ...], *command: str | Path) -> str:
        done = self.bench(*command)
        assert done.code == (command[0] != "leaderboard"), done  # its runs are not named one by one
        assert "Traceback" not in done.err
        assert all(word in done.out + done.err for word in words), done
        (line,) = {line for line in done.err.splitlines() if str(self.spoilt) in line}
        assert len(line) < 1000, line[:2000]
        return line

    def is_read(self) -> bool:
        """Whether the spoilt run can still be read: then it may be shown."""
        try:
            read_run(self.spoilt)
        except JournalError:
            return False
        return True

    def check_python(self) -> None:
        """`list_runs` shows the sound runs, and names the other or shows it too."""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            table = eyechart.list_runs(self.lab.out)
        assert {*SOUND} <= {*table["model"]}
        named = [*map(str, table["folder"]), *(str(one.message) for one in said)]
        assert any(str(self.spoilt) in name for name in named)
        if not self.is_read():
            with pytest.raises(JournalError, match="spoilt"):
                eyechart.load_run(self.spoilt)

    def check_alone(self) -> None:
        """A verb on the bad run itself says one line."""
        for command in (
            ("score", self.spoilt),
            ("samples", self.spoilt),
            ("compare", self.sound[0], self.spoilt),
            ("report", self.spoilt, "-o", self.lab.folder / "new" / "alone.html"),
        ):
            said = self.bench(*command).one_line(1, str(self.spoilt))
            assert "move the folder away" in said or "bench runs" in said
        assert self.bench("compare", *self.sound[:2]).code == 0


@pytest.fixture
def folders(lab: Lab) -> Folders:
    return Folders(lab)


def damaged(sound: bytes, at: tuple[str | int, ...], value: str) -> bytes:
    """A JSON object with `value` in one place."""
    whole = json.loads(sound)
    node = whole
    for name in at[:-1]:
        node = node[name]
    node[at[-1]] = TOKEN
    return json.dumps(whole).replace(f'"{TOKEN}"', value).encode()


def fields(manifest: Any) -> Iterator[tuple[str | int, ...]]:
    """The places of a manifest's fields, also of those that it may have."""
    yield from ((name,) for name in sorted({*manifest, "recorded"}))
    yield from (("spec", name) for name in manifest["spec"])
    yield from (("settings", name) for name in manifest["settings"])
    yield from (("cells", 0, name) for name in manifest["cells"][0])


def test_every_field_of_a_manifest(folders: Folders) -> None:
    """Whatever stands in a field, the run is read or refused by name. Each field has a third of the
    values; in some of the cases Python shows the sound runs, and one verb in turn.
    """
    path = folders.spoilt / MANIFEST
    sound = path.read_bytes()
    doors = cycle(folders.doors())
    for number, at in enumerate(fields(json.loads(sound))):
        for place, (name, value) in list(enumerate(VALUES.items()))[number % 3 :: 3]:
            path.write_bytes(damaged(sound, at, value))
            try:
                folders.is_read()
                if (number + place) % 7 == 0:
                    folders.check_python()
                if (number + place) % 25 == 0 and not folders.is_read():
                    folders.doors()[next(doors)]()
            except BaseException as error:
                error.add_note(f"{at} is {name}")
                raise


def test_every_field_of_a_record(folders: Folders) -> None:
    """A line that is no record is passed over with its number; the run stays."""
    path = folders.spoilt / SAMPLES
    sound = path.read_bytes()
    first = sound.splitlines()[0]
    values = {**VALUES, "zeros": "\0" * 100}
    cases = [value.encode() for value in values.values()]
    cases += [damaged(first, (at,), value) for at in json.loads(first) for value in VALUES.values()]
    for number, line in enumerate(cases):
        path.write_bytes(line + b"\n" + sound)
        assert folders.is_read()
        if number % 80 == 0:
            done = folders.bench("runs", "--out", folders.lab.out)
            assert all(model in done.out for model in (*SOUND, SPOILT)), line[:200]


def test_a_line_that_is_too_long(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is passed over like any line that is no record, and is never in memory as a whole."""
    path = folders.spoilt / SAMPLES
    sound = path.read_bytes()
    monkeypatch.setattr(files, "MAX_LINE", len(sound))
    path.write_bytes(sound.splitlines()[0].ljust(3 * len(sound)) + b"\n" + sound)
    done = folders.bench("score", folders.spoilt)
    assert done.code == 0
    assert f"{path}:1: not a record" in done.err


def as_folder(path: Path) -> None:
    path.mkdir()


def as_pipe(path: Path) -> None:
    os.mkfifo(path)


def as_circle(path: Path) -> None:
    path.symlink_to(path.name)


def as_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def as_locked(path: Path) -> None:
    path.touch(mode=0)


def as_link_to_nothing(path: Path) -> None:
    path.symlink_to("nothing")


@pytest.mark.parametrize(
    "make", [as_folder, as_pipe, as_circle, as_device, as_locked, as_link_to_nothing]
)
@pytest.mark.parametrize("name", [MANIFEST, SAMPLES])
def test_something_else_in_place_of_a_file(
    folders: Folders, name: str, make: Callable[[Path], None]
) -> None:
    """Nothing waits for a pipe or reads a device; the run is left out."""
    if make is as_locked and os.geteuid() == 0:
        pytest.skip("root may read everything")
    if make is as_link_to_nothing and name == SAMPLES:
        pytest.skip("a run without a journal has no replies")
    (folders.spoilt / name).unlink()
    make(folders.spoilt / name)
    assert not folders.is_read()
    folders.check_python()
    for door in [*folders.doors().values()][name == SAMPLES :: 2]:
        door()
    folders.check_alone()


def test_a_lost_manifest(folders: Folders) -> None:
    """The replies are named, for they may be paid for."""
    (folders.spoilt / MANIFEST).unlink()
    folders.check_python()
    for door in folders.doors().values():
        assert "has replies but no manifest.json; restore the file" in door()
    folders.check_alone()


def test_a_long_system_prompt(folders: Folders) -> None:
    """The leaderboard's file, which has it, can be read again."""
    path = folders.spoilt / MANIFEST
    changed = damaged(path.read_bytes(), ("settings", "system"), VALUES["long"])
    path.write_bytes(damaged(changed, ("run",), '""'))
    for _ in range(2):
        done = folders.bench("leaderboard", "--out", folders.lab.out)
        assert done.code == 0, done.err
        assert all(model in done.out for model in (*SOUND, SPOILT))


def test_a_plan_without_cells(folders: Folders) -> None:
    """Its answers are shown, and nothing is planned; the others follow."""
    path = folders.spoilt / MANIFEST
    path.write_bytes(damaged(path.read_bytes(), ("cells",), "[]"))
    done = folders.bench("score", folders.spoilt, *folders.sound)
    assert done.code == 0, done.err
    assert f"It is not known how far {SPOILT} " in " ".join(done.out.split())
    assert "0 of 0" in folders.bench("runs", "--out", folders.lab.out).out


def test_another_run_of_the_label_may_be_damaged(folders: Folders) -> None:
    """A new run of a model does not depend on the manifests of its other runs."""
    (folders.spoilt / MANIFEST).write_text("{")
    done = folders.lab.bench_run("--model", folders.lab.model(), "--name", "@x")
    assert done.code in (0, 1), done.err
