"""Studies: models, tasks and settings in one file, asked by one command."""

from eyechart.harness.study.reading import StudyFile, read_as
from eyechart.harness.study.spec import TASK, StudyTask, Text
from eyechart.harness.task.source import Problem, YamlFile

__all__ = ["TASK", "Problem", "StudyFile", "StudyTask", "Text", "YamlFile", "read_as"]
