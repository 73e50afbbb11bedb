"""The folders of a run's shards: `shards/03-of-16` in the folder of the run."""

from __future__ import annotations

import re
from pathlib import Path

from eyechart.harness.settings.shard import Shard

SHARDS = "shards"
_NAME = re.compile(r"[0-9]+-of-[0-9]+")


def shard_folder(run: Path, shard: Shard) -> Path:
    """The folder of a shard of the run in folder `run`."""
    digits = len(str(shard.of))
    return run / SHARDS / f"{shard.number:0{digits}}-of-{shard.of}"


def is_shard(folder: Path) -> bool:
    return folder.parent.name == SHARDS and _NAME.fullmatch(folder.name) is not None
