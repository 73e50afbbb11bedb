"""Writes the folder of a study: what was asked last, the results and the leaderboard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from eyechart.harness.analysis.ranking.leaderboard_file import only_writer
from eyechart.harness.cli.terminal import warn
from eyechart.harness.cli.work import leaderboard as ranks
from eyechart.harness.face.options.study import StudyRuns
from eyechart.harness.journal.files import replace_file
from eyechart.harness.journal.manifest import MANIFEST as RUN
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.providers.secrets import redact

if TYPE_CHECKING:
    from eyechart.harness.report.page.section import Section

STUDY, MANIFEST, LEADERBOARD = "study.yaml", "study.json", "leaderboard.csv"
"""Files in a study's folder: the study as it was last asked, its results, and the ranks."""


def keep(
    runs: StudyRuns, out: Path, folders: Sequence[Path], judging: JudgeSettings
) -> tuple[Path, Sequence[Section]]:
    """Keeps a study as it was asked, with the runs in `folders` and those of earlier commands, and
    writes their leaderboard. Returns its file and the sections of its page.
    """
    folder = runs.folder(out)
    file = folder / LEADERBOARD
    if not folders:
        return file, []
    tasks = ",".join(str(plan.task.path) for plan in runs.plans if not plan.task.is_installed)
    judging = replace(judging, tasks=tasks)
    ranked, _ = ranks.write(_keep(runs, folder, folders, out), file, None, judging, study=runs)
    return file, ranked


def _keep(runs: StudyRuns, folder: Path, folders: Sequence[Path], out: Path) -> list[Path]:
    """Writes the study's file as it was asked, and the results of this and earlier commands;
    returns the folders of all runs.
    """
    with only_writer(folder / MANIFEST, warn):
        models, known = _before(folder / MANIFEST)
        here = [path.relative_to(out).as_posix() for path in folders]
        kept = [path for path in known if path not in here and (out / path / RUN).exists()]
        document = {
            "study": runs.label,
            "digest": runs.digest,
            "tasks": {
                plan.task.name: {
                    "version": plan.task.spec.version,
                    "digest": plan.task.spec.digest(),
                }
                for plan in runs.plans
            },
            "models": list(
                dict.fromkeys([*models, *(options.model.label for options in runs.models)])
            ),
            "runs": [*kept, *here],
        }
        replace_file(folder / STUDY, redact(runs.study.text).encode())
        replace_file(folder / MANIFEST, orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
    return [out / path for path in [*kept, *here]]


def _before(path: Path) -> tuple[list[str], list[str]]:
    """The models and the runs of earlier commands, from `study.json`."""
    if not path.exists():
        return [], []
    try:
        document = orjson.loads(path.read_bytes())
        return list(map(str, document["models"])), list(map(str, document["runs"]))
    except (ValueError, KeyError, TypeError) as error:
        why = " ".join(str(error).split())
        warn(f"{path} cannot be read and is written anew, without earlier models: {why}")
        return [], []
