"""Where a study keeps its examples, trainings, models, runs and results."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from eyechart.harness.errors import JournalError
from eyechart.providers.in_process.model_files import one_line
from eyechart_lab.variants.reading import Lab
from eyechart_lab.variants.variant import Variant

ROOT = "lab"
CSV, VARIANTS, INSIDE = "lab.csv", "variants.csv", "inside.csv"
PAGE, STUDY = "lab.html", "study.yaml"
CONFIG = "config.json"


@dataclass(frozen=True)
class Model:
    """One model of a study: a variant that was trained with one seed."""

    variant: str
    """The name of the variant in the file."""
    seed: int
    training: Path
    """The folder of its training, which variants that differ only when they are asked share."""
    folder: Path
    """The folder of the model as it is asked."""

    @property
    def label(self) -> str:
        """Its name in tables and messages."""
        return self.folder.name

    @property
    def untrained(self) -> Path:
        """The folder of the model as it was before its training."""
        return self.folder.parent / "before" / self.label

    @property
    def runs(self) -> Path:
        """The folder of its runs."""
        return self.folder.parent


@dataclass(frozen=True)
class LabFolder:
    """The folder of a study."""

    lab: Lab
    path: Path

    @classmethod
    def of(cls, lab: Lab, out: Path) -> LabFolder:
        """The folder of a study in the folder `out` of all results."""
        return cls(lab, out / ROOT / lab.spec.name)

    @property
    def tokenizer(self) -> Path:
        """The file of the tokenizer."""
        return self.path / "examples" / f"{self.lab.data_digest}.json"

    def examples(self, seed: int) -> Path:
        """The file of the examples of a seed."""
        return self.path / "examples" / f"{self.lab.data_digest}-{seed}.npz"

    def models(self) -> Iterator[Model]:
        """All models, seed by seed, so that a study cut short has seen every variant."""
        for seed in range(self.lab.spec.seeds):
            for name, variant in self.lab.spec.variants.items():
                training = f"{self.lab.digest(variant.trained_as)}-{seed}"
                asked = self.lab.digest(variant)
                yield Model(
                    name,
                    seed,
                    self.path / "trainings" / training,
                    self.path / "models" / asked / f"{name}-{seed}",
                )


def keep_model(weights: Path, folder: Path, variant: Variant) -> None:
    """Puts trained weights into the folder in which they are asked as `variant`: the same files but
    for the config. A folder that has all of these files already is left as it is.

    Raises:
        JournalError: the weights are gone, or the folder cannot be written.
    """
    files = sorted(path.name for path in weights.glob("*"))
    if all((folder / name).is_file() for name in files or [CONFIG]):
        return
    if not files:
        raise JournalError(
            f"{weights} is gone; remove {weights.parent}, and the same command trains it again"
        )
    from eyechart_lab.variants.config import LabConfig  # noqa: PLC0415  imports torch

    partial = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(weights, partial)
        config = LabConfig.from_pretrained(weights)
        config.variant = variant.model_dump(mode="json")
        config.save_pretrained(partial)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise JournalError(f"cannot write {folder}: {one_line(error)}") from error
