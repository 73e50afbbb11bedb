"""Findings as Python shows them."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace

from eyechart.harness.analysis.findings.finding import Finding
from eyechart.providers.naming import in_python


def in_words_of_python(found: Sequence[Finding]) -> list[Finding]:
    """The findings, with settings named as arguments."""
    return [
        replace(one, sentence=in_python(one.sentence), remedy=in_python(one.remedy))
        for one in found
    ]


def paragraphs(found: Sequence[Finding]) -> str:
    """Findings as HTML."""
    return "".join(f"<p>{html.escape(str(one))}</p>" for one in found)
