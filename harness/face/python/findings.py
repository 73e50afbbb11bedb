"""Findings as Python shows them."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace

from eyechart.harness.analysis.findings.finding import Finding, below_a_table
from eyechart.providers.naming import in_python


def in_words_of_python(found: Sequence[Finding]) -> list[Finding]:
    """The findings, with settings named as arguments."""
    return [
        replace(one, sentence=in_python(one.sentence), remedy=in_python(one.remedy))
        for one in found
    ]


def paragraphs(found: Sequence[Finding]) -> str:
    """The findings beside a table as HTML, and where the others are."""
    lines, more = below_a_table(found)
    lines += [f"{more}: .findings"] * bool(more)
    return "".join(f"<p>{html.escape(line)}</p>" for line in lines)
