from __future__ import annotations

from collections.abc import Sequence

from eyechart.harness.report.charts.charts import accuracy_chart
from eyechart.harness.report.charts.kept_specs import kept
from eyechart.harness.report.charts.looks import Look, Spec


def test_a_spec_is_made_once_and_each_caller_has_its_own() -> None:
    """What one page writes into its copy is not on the next."""
    made: list[object] = []

    @kept
    def chart(look: Look, ticks: Sequence[int], *, over: str = "symbols") -> Spec:
        made.append((look, ticks, over))
        return {"axis": {"values": list(ticks), "title": over}, "colours": list(look.colours)}

    first = chart(Look(("a", "b"), ()), [1, 5])
    first["axis"]["values"].append(9)
    again = chart(Look(("a", "b"), ()), [1, 5])
    assert again == {"axis": {"values": [1, 5], "title": "symbols"}, "colours": ["a", "b"]}
    assert len(made) == 1
    assert chart(Look(("a", "c"), ()), [1, 5])["colours"] == ["a", "c"]
    assert chart(Look(("a", "b"), ()), [1, 6])["axis"]["values"] == [1, 6]
    assert chart(Look(("a", "b"), ()), [1, 5], over="tokens")["axis"]["title"] == "tokens"
    assert len(made) == 4


def test_charts_of_a_page_are_kept() -> None:
    """Equal arguments, equal specs, in dictionaries of their own."""
    one, other = (accuracy_chart(Look(("a",), ()), [5, 10], 1, "", over="row") for _ in range(2))
    assert one == other
    assert one["vconcat"] is not other["vconcat"]
