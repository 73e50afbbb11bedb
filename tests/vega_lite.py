"""Whether a spec is valid Vega-Lite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
from altair.utils.schemapi import SchemaBase

_KINDS: Mapping[str, type[SchemaBase]] = {
    "layer": alt.LayerChart,
    "vconcat": alt.VConcatChart,
    "hconcat": alt.HConcatChart,
}


def check_valid(spec: Mapping[str, Any]) -> None:
    """Raises `jsonschema.ValidationError` if it is not. No objects of Altair
    are made, which is slow.
    """
    kind = next((_KINDS[name] for name in _KINDS if name in spec), alt.Chart)
    kind.validate(dict(spec))
