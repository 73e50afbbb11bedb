"""The files of a run: its manifest, its records, and the index of its answers."""

from eyechart.harness.journal.files import replace_file, replacing
from eyechart.harness.journal.manifest import MANIFEST, run_folder

__all__ = ["MANIFEST", "replace_file", "replacing", "run_folder"]
