"""All kinds of findings, the most important of each level first."""

from __future__ import annotations

from collections.abc import Mapping

from eyechart.harness.analysis.findings import (
    at_lengths,
    confidence,
    finding,
    gate,
    level,
    moved,
    not_known,
    pair,
    patterns,
    ranks,
    right_to,
    same_mistake,
    served,
    unread,
)
from eyechart.harness.analysis.samples.reply_and_choice import KNOWN
from eyechart.harness.analysis.tables.tokens_text import OTHER_TOKENS, SHARED_TOKENS, UNKNOWN_TOKENS

OF_A_RUN: tuple[finding.Kind, ...] = (
    right_to.RIGHT_TO,
    moved.MOVED,
    confidence.CONFIDENCE,
    confidence.SURE_AND_BLIND,
    served.DRAWS,
    not_known.NOT_KNOWN,
    unread.UNREAD,
    unread.RIGHT_IN_WRONG,
    patterns.PATTERN,
    same_mistake.SAME_ANSWER,
    same_mistake.SAME_ERROR,
    served.CUT_PROMPTS,
    served.ONE_COUNT,
    served.SEVERAL_MODELS,
    served.DRIFT,
    served.NOT_ALL_SCORED,
    served.LOST,
    served.REPEATED,
    confidence.BELOW_CHANCE,
    confidence.READ_BY_LIKELIHOOD,
    confidence.TIED,
    served.RECORDED,
    served.REFUSED_SETTINGS,
    served.STEPS,
    moved.NOT_MOVED,
    level.LEVEL,
    SHARED_TOKENS,
    OTHER_TOKENS,
    UNKNOWN_TOKENS,
)
OF_A_COMPARISON: tuple[finding.Kind, ...] = (
    pair.VERDICT,
    KNOWN,
    ranks.RANKS,
    ranks.OF_TASKS,
    at_lengths.SUITED,
    pair.FEW_PAIRS,
    pair.LINES_APART,
    pair.ADAPTIVE,
    pair.UNPAIRED,
    pair.OTHER_SETTINGS,
    pair.CONFOUNDED,
    ranks.NOT_BY_LENGTH,
    ranks.LENGTHS_ALONE,
    ranks.APART,
    at_lengths.LONGER_REPLIES,
    gate.SINCE,
    gate.WITHOUT_PARTNER,
    gate.LIMITED_BASELINE,
    gate.BASELINE_AT_FLOOR,
    gate.UNLUCKY,
)
KINDS: Mapping[str, finding.Kind] = {one.name: one for one in (*OF_A_RUN, *OF_A_COMPARISON)}
