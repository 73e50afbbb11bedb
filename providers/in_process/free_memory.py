"""The memory of this machine that is free."""

from __future__ import annotations

from pathlib import Path

GIB = 1 << 30
_MEMORY = Path("/proc/meminfo")
_FREE = "MemAvailable:"


def free_bytes() -> int | None:
    """Bytes of memory that are free; `None` if the system does not say."""
    try:
        lines = _MEMORY.read_text(encoding="ascii").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(_FREE))
    except (OSError, ValueError, IndexError, StopIteration):
        return None
