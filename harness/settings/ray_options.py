"""A Ray cluster that asks in place of this process."""

from __future__ import annotations

import re
from dataclasses import dataclass

from eyechart.harness.settings.checks import shown

_FORM = re.compile(r"ray(?::(?P<address>[^\s,]+))?(?:,workers=(?P<workers>[1-9][0-9]{0,4}))?")


@dataclass(frozen=True, slots=True)
class RayOptions:
    """Which cluster of Ray asks, and how much of it."""

    address: str | None = None
    """`HOST:PORT` of a cluster, `auto` for the one of this machine; `None` starts one here."""
    workers: int | None = None
    """Engines or workers; `None` takes as many as the cluster has room for."""

    def __str__(self) -> str:
        address = "" if self.address is None else f":{self.address}"
        return f"ray{address}{'' if self.workers is None else f',workers={self.workers}'}"

    @classmethod
    def read(cls, text: object) -> RayOptions:
        """The cluster that `ray`, `ray:auto` or `ray:HOST:PORT,workers=8` names; raises
        `ValueError` for anything else.
        """
        match = _FORM.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            form = "ray, ray:ADDRESS or ray:ADDRESS,workers=N"
            raise ValueError(f"must be {form}, with N from 1 to 99999, not {shown(text)}")
        return cls(match["address"], int(match["workers"]) if match["workers"] else None)
