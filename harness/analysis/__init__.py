"""Judged runs: curves, intervals, tests, tables, leaderboards."""

from eyechart.harness.analysis.comparison.paired_curves import holm
from eyechart.harness.analysis.length.curve import SIGNIFICANT, curve
from eyechart.harness.analysis.length.fit import fit
from eyechart.harness.analysis.length.interval import Bound, Span, span_text, student, wilson
from eyechart.harness.analysis.order.apart import named_length
from eyechart.harness.analysis.samples.judged_run import (
    JudgedCondition,
    JudgedRun,
    part_of,
    read_run,
)
from eyechart.harness.analysis.tables.results import has_results, write_results

__all__ = [
    "SIGNIFICANT",
    "Bound",
    "JudgedCondition",
    "JudgedRun",
    "Span",
    "curve",
    "fit",
    "has_results",
    "holm",
    "named_length",
    "part_of",
    "read_run",
    "span_text",
    "student",
    "wilson",
    "write_results",
]
