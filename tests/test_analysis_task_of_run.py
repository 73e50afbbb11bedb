"""Prompts of runs whose task file is gone or has changed: from what the run kept, and from its code
only where the user says so.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from eyechart.harness.analysis.samples.details import (
    RemadePrompts,
    RunDetails,
    prompts_of,
    read_details,
)
from eyechart.harness.analysis.samples.judged_run import JudgedRun, read_run
from eyechart.harness.errors import JournalError
from eyechart.harness.journal.kept import KEPT, MAX_KEPT_BYTES, content_hash, keep, read_kept
from eyechart.harness.journal.manifest import MANIFEST, read_manifest
from eyechart.harness.report.page.packed_samples import pack_samples
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers import secrets
from eyechart.providers.naming import in_python
from tests.conftest import ROWS, Lab

ITEMS = """\
version: 1
title: Capitals
items: capitals.jsonl
prompt: |
  Write "{{ phrase }}" and then the capital of {{ country }}.
answer: text
"""
ITEM = {"variables": {"country": "Ruritania"}, "target": "Strelsau", "length": 1}


def finished(lab: Lab, wanted: RunRequest) -> JudgedRun:
    lab.run(wanted)
    return read_run(wanted.folder)


def shown(run: JudgedRun, prompts: RemadePrompts) -> set[str | None]:
    """The prompts, or `{None}`."""
    return set(prompts.of(RunDetails(run, read_details(run), "test")))


def kept_file(run: JudgedRun) -> Path:
    (path,) = (run.folder / KEPT).iterdir()
    return path


def remove_tasks(lab: Lab) -> None:
    for path in lab.plain.parent.iterdir():
        path.unlink()


def forge(run: JudgedRun, text: str) -> JudgedRun:
    """The run of a stranger who put `text` in place of the generator."""
    kept_file(run).unlink()
    name = f"{content_hash(text.encode())[:16]}-rows.py"
    (run.folder / KEPT / name).write_text(text)
    set_kept(run, name)
    return read_run(run.folder)


def set_kept(run: JudgedRun, name: str) -> None:
    path = run.folder / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"kept": name}))


def test_the_generator_is_kept_once(lab: Lab) -> None:
    """Under its hash: a second command adds nothing, a changed file is kept beside the first."""
    run = finished(lab, lab.wanted(lab.plain))
    before = kept_file(run)
    assert before.read_text() == ROWS
    assert before.name.endswith("-rows.py")
    assert run.manifest.kept == before.name
    lab.run(lab.wanted(lab.plain, samples=5))
    assert kept_file(run) == before
    rows = lab.plain.with_name("rows.py")
    rows.write_text(f"{ROWS}\n# the same rows\n")
    lab.run(lab.wanted(lab.plain, samples=6))
    assert len(list((run.folder / KEPT).iterdir())) == 2
    now = read_manifest(run.folder).kept
    assert now != before.name
    assert read_kept(run.folder, now) == rows.read_bytes()


def test_kept_code_is_executed_only_where_asked(lab: Lab) -> None:
    """Without the option a line says how; with it every prompt is there."""
    run = finished(lab, lab.wanted(lab.plain))
    remove_tasks(lab)
    executed = lab.folder / "executed"
    run = forge(run, f"{ROWS}\nopen({str(executed)!r}, 'w').close()\n")
    prompts = prompts_of(run)
    assert prompts.why == "the task file of lab/plain is not at hand"
    assert in_python(prompts.remedy) == (
        "name its file with tasks, or execute the code that came with the run with "
        "run_kept_code=True"
    )
    assert shown(run, prompts) == {None}
    (unknown,) = pack_samples([("lab/plain", RunDetails(run, read_details(run), "test"))]).unknown
    assert unknown == f"lab/plain are not shown: {prompts.remedy}"
    assert not executed.exists()
    texts = shown(run, prompts_of(replace(run, settings=JudgeSettings(run_kept_code=True))))
    assert executed.exists()
    assert len(texts) == 3
    assert all(text and "How many ones?" in text for text in texts)


@pytest.mark.parametrize("path", ["absolute", "inside"])
def test_the_task_file_that_a_manifest_names_is_not_executed(lab: Lab, path: str) -> None:
    """The path in a stranger's manifest may be that of a file of the stranger."""
    run = finished(lab, lab.wanted(lab.plain))
    executed = lab.folder / "executed"
    rows = lab.plain.with_name("rows.py")
    rows.write_text(f"{ROWS}\nopen({str(executed)!r}, 'w').close()\n")
    manifest = json.loads((run.folder / MANIFEST).read_bytes())
    if path == "inside":
        for file in (rows, lab.plain):
            file.rename(run.folder / file.name)
        manifest["file"] = str(run.folder / lab.plain.name)
    else:
        assert manifest["file"] == str(lab.plain)
    (run.folder / MANIFEST).write_text(json.dumps(manifest))
    assert shown(run, prompts_of(read_run(run.folder))) == {None}
    assert not executed.exists()


def test_a_changed_prompt_is_shown_as_it_was(lab: Lab) -> None:
    """The spec is in the manifest, and the named file's generator is the one of the run."""
    run = finished(lab, lab.wanted(lab.plain))
    lab.plain.write_text(lab.plain.read_text().replace("How many", "Count the"))
    assert prompts_of(run).task is None
    texts = shown(run, prompts_of(replace(run, settings=JudgeSettings(tasks=str(lab.plain)))))
    assert all(text and "How many ones?" in text for text in texts)


def test_a_built_in_task_that_changed_is_made_by_the_installed_generator(lab: Lab) -> None:
    """If that is still the same file; a file with its name and other content is not executed."""
    name = "counting/ones"
    changed = lab.folder / "tasks" / "counting" / "ones.yaml"
    changed.parent.mkdir(parents=True)
    installed = built_in_files()[name]
    text = installed.read_text()
    changed.write_text(text.replace("prompt: |\n", "prompt: |\n  Earlier. "))
    changed.with_name("rows.py").write_bytes((installed.parent / "rows.py").read_bytes())
    wanted = lab.wanted(changed, lengths=[5], samples=2)
    plan = wanted.plan
    object.__setattr__(plan.task, "name", name)
    run = finished(lab, wanted)
    assert prompts_of(run).task is not None
    texts = shown(run, prompts_of(run))
    assert all(text and text.startswith("Earlier. ") for text in texts)
    assert prompts_of(forge(run, f"{ROWS}\n")).task is None


def test_kept_items_need_no_option(lab: Lab) -> None:
    """They are data; broken ones are no prompts and no traceback."""
    path = lab.plain.with_name("capitals.yaml")
    path.write_text(ITEMS)
    path.with_name("capitals.jsonl").write_text(json.dumps(ITEM))
    run = finished(lab, lab.wanted(path))
    remove_tasks(lab)
    (text,) = shown(run, prompts_of(run))
    assert text
    assert "Ruritania" in text
    prompts = prompts_of(forge(run, "no items"))
    assert "the items of lab/capitals cannot be made" in prompts.why
    assert prompts.remedy == ""


def test_a_copy_that_changed_is_not_used(lab: Lab) -> None:
    """Its name says what it was."""
    run = finished(lab, lab.wanted(lab.plain))
    remove_tasks(lab)
    kept_file(run).write_text(f"{ROWS}\n# changed\n")
    prompts = prompts_of(replace(run, settings=JudgeSettings(run_kept_code=True)))
    assert prompts.task is None
    assert in_python(prompts.remedy) == "name its file with tasks"


@pytest.mark.parametrize("name", ["../rows.py", "/etc/hosts", "0123456789abcdef-../x", "rows.py"])
def test_a_path_is_no_kept_file(lab: Lab, name: str) -> None:
    """A manifest names files in one folder of its run."""
    run = finished(lab, lab.wanted(lab.plain))
    set_kept(run, name)
    with pytest.raises(JournalError, match="kept"):
        read_run(run.folder)


def test_what_is_large_or_gone_is_not_kept(tmp_path: Path) -> None:
    """The run goes on without it."""
    large = tmp_path / "large.jsonl"
    large.write_bytes(b" " * (MAX_KEPT_BYTES + 1))
    assert keep(tmp_path, large) == ""
    assert keep(tmp_path, tmp_path / "gone.py") == ""
    assert not (tmp_path / KEPT).exists()
    large.write_bytes(b" " * MAX_KEPT_BYTES)
    assert read_kept(tmp_path, keep(tmp_path, large)) == large.read_bytes()
    assert read_kept(tmp_path, "") is None


def test_a_file_with_a_key_is_not_kept(tmp_path: Path) -> None:
    """A run's folder is published, and never has a key."""
    source = tmp_path / "rows.py"
    source.write_text("KEY = 'sk-very-secret-0123456789'")
    assert keep(tmp_path, source)
    secrets.keep_secret("sk-very-secret-0123456789")
    other = tmp_path / "other"
    other.mkdir()
    assert keep(other, source) == ""
    assert not list(other.iterdir())


def test_every_built_in_task_has_a_small_source() -> None:
    """So that every run keeps it."""
    for name, path in built_in_files().items():
        assert open_task(name, path, trial=False).source.stat().st_size < MAX_KEPT_BYTES / 10
