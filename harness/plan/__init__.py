"""Plans: the samples of a run, their requests and cost, and the proof of a task."""

from eyechart.harness.plan.forced_choice import ForcedChoice
from eyechart.harness.plan.plan import Plan, item_of, make_sample
from eyechart.harness.plan.request import request_of

__all__ = ["ForcedChoice", "Plan", "item_of", "make_sample", "request_of"]
