"""Every error of the harness whose text is for the user, with the exit code of `bench`.

    EyechartError                    1
    ├── UsageError                   2   the command line asks for something impossible
    │   ├── UnknownTaskError         2   no task by that name or path
    │   │   └── AbsentTaskError      2   the task file of a run is not known
    │   ├── TaskFileError            2   a task file has mistakes, a line each
    │   ├── StudyFileError           2   a study's file has mistakes, a line each
    │   ├── TaskError                2   a task fails while its samples are made
    │   │   └── ChangedTaskError     2   a task has changed since a run was made
    │   ├── PlanError                2   a task does not have what was asked for
    │   ├── CompareError             2   runs that cannot be compared
    │   └── LeaderboardError         2   a leaderboard's file that cannot be used as asked
    └── JournalError                 1   a run's folder that cannot be used as asked
        └── IncompleteError          1   runs with samples that have no reply

Providers have a tree of their own, `providers.base.ProviderError`, whose classes have an exit code
as well: providers import nothing of the harness.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from eyechart.providers.naming import in_python

COMPLETE, INCOMPLETE, USAGE, INTERRUPTED = 0, 1, 2, 130
WORSE, UNDECIDED = 3, 4
"""Of a gate: a run is worse than the one that it is compared with; it is open whether one is."""


class EyechartError(Exception):
    """An error whose text is for the user."""

    exit_code: ClassVar[int] = INCOMPLETE

    def __init__(self, *lines: str, setting: str = "", value: object = None) -> None:
        """`lines` are what is said, one line or several, in which `providers.naming.named` names
        settings of a run. `setting` is the one whose `value` is wrong, where it is one.
        """
        self.lines: Sequence[str] = lines
        self.setting = setting
        self.value = value
        super().__init__("\n".join(map(in_python, lines)))

    def __str__(self) -> str:
        return in_python("\n".join(self.lines))


class UsageError(EyechartError):
    """The command line asks for something impossible."""

    exit_code = USAGE


class UnknownTaskError(UsageError):
    """No task by that name or path."""


class AbsentTaskError(UnknownTaskError):
    """The task file of a run is not known."""


class TaskFileError(UsageError):
    """A task file has mistakes; a line for each, as `file:line:column: what`."""


class StudyFileError(UsageError):
    """A study's file has mistakes; a line for each, as `file:line:column: what`."""


class TaskError(UsageError):
    """A task fails while its samples are made."""


class ChangedTaskError(TaskError):
    """A task has changed since a run was made."""


class PlanError(UsageError):
    """A task does not have what was asked for."""


class CompareError(UsageError):
    """Runs that cannot be compared."""


class NoneSharedError(CompareError):
    """Sides without a sample that is scored in both."""


class LeaderboardError(UsageError):
    """A leaderboard's file that cannot be used as asked."""


class JournalError(EyechartError):
    """A run's folder that cannot be used as asked."""


class IncompleteError(JournalError):
    """Runs with samples that have no reply."""
