"""The page of a study: its sentences, a table and the curves of each condition.

It is a self-contained HTML file, a pure function of the rows of `lab.csv` and the study's file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import pandas as pd
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from eyechart.harness.analysis.interval import span_text
from eyechart.harness.report.page import style
from eyechart.harness.satellites.lab.probing import TRAINED, UNTRAINED, Inside
from eyechart.harness.satellites.lab.results import LEARNT, Result, length_text
from eyechart.harness.satellites.lab.study import LabSpec
from eyechart.harness.satellites.lab.words import method, missing, recipe, sentence
from eyechart.providers.base import SetupError, install

_WIDTH, _HEIGHT = 560, 280
_TEMPLATE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{{ title }}</title>
<style>{{ css }}
figure svg { max-width: 100%; height: auto; background: #fff }</style>
</head>
<body>
<main>
<h1>{{ title }}</h1>
{% if description %}<p>{{ description }}</p>
{% endif %}
<p>{{ recipe }}{% if missing %} {{ missing }}{% endif %}</p>
<p>{{ method }}</p>
{% for part in parts %}
<section>
<h2>{{ part.task }}</h2>
<p>{{ part.condition }}; trained on rows to {{ part.trained_to }}, \
{{ "asked to " ~ part.longest if part.longest else "nothing was asked" }}.</p>
<ul>
{% for said in part.sentences %}
<li>{{ said }}</li>
{% endfor %}
</ul>
<table>
<thead><tr>{% for head in heads %}<th>{{ head }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in part.rows %}
<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
</table>
{% if part.chart %}<figure>{{ part.chart }}<figcaption>Accuracy by length, the mean over seeds.
A band spans the seeds. The vertical line is the longest row of the training.</figcaption></figure>
{% endif %}
{% for chart, measure in part.inside %}<figure>{{ chart }}<figcaption>{{ measure }} by length, the
mean over seeds and heads, of the last layer; dashed before the training.</figcaption></figure>
{% endfor %}
</section>
{% endfor %}
</main>
</body>
</html>
"""
_HEADS = (
    "variant",
    "seeds",
    "learned",
    "diverged",
    "sees to",
    "95 % interval over rows and seeds",
    "p",
    "smallest possible p",
    "verdict",
)


@dataclass(frozen=True)
class _Part:
    """What the page says of one condition of a task."""

    task: str
    condition: str
    trained_to: int
    longest: int
    sentences: Sequence[str]
    rows: Sequence[Sequence[str]]
    chart: Markup | None
    inside: Sequence[tuple[Markup, str]]
    """A chart of each quantity that was measured inside, and its name."""


def page(spec: LabSpec, results: Sequence[Result], inside: Sequence[Inside] = ()) -> str:
    """The page as HTML."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    wheres = dict.fromkeys(one.where for one in results)
    parts = [
        _part(spec, [one for one in results if one.where == where], inside) for where in wheres
    ]
    return environment.from_string(_TEMPLATE).render(
        css=Markup(style()),  # noqa: S704  our own files
        title=spec.title,
        description=spec.description,
        recipe=recipe(spec),
        missing=missing(spec, results),
        method=method(results, spec.reference),
        heads=_HEADS,
        parts=parts,
    )


def _part(spec: LabSpec, mine: Sequence[Result], inside: Sequence[Inside]) -> _Part:
    first = mine[0]
    return _Part(
        first.task,
        first.condition.replace(",", ", "),
        first.trained_to,
        first.longest,
        [sentence(one, spec.reference) for one in mine],
        [_row(one) for one in mine],
        _chart(mine),
        _of_inside(mine, [one for one in inside if (one.task, one.condition) == first.where]),
    )


def _row(one: Result) -> list[str]:
    count = len(one.seeds)
    return [
        one.variant,
        str(count),
        f"{one.learnt} of {count}",
        str(one.diverged or ""),
        length_text(one),
        "" if one.span is None else span_text(one.span),
        "" if one.p is None else f"{one.p:.2g}",
        "" if one.smallest_p is None else f"{one.smallest_p:.2g}",
        one.verdict,
    ]


def _chart(mine: Sequence[Result]) -> Markup | None:
    """The curves as SVG; `None` if nothing was asked."""
    rows = pd.DataFrame(
        [
            (one.variant, length, mean, low, high)
            for one in mine
            for length, mean, low, high in one.curve()
        ],
        columns=["variant", "length", "accuracy", "low", "high"],
    )
    if rows.empty:
        return None
    scale = alt.Scale(type="log", nice=False)
    names = [one.variant for one in mine]
    base = alt.Chart(rows).encode(
        alt.X("length:Q", title="length (symbols)", scale=scale, axis=alt.Axis(grid=False)),
        alt.Color("variant:N", scale=alt.Scale(domain=names), sort=names),
    )
    share = alt.Scale(domain=[0, 1])
    bands = base.mark_area(opacity=0.12).encode(
        alt.Y("low:Q", scale=share, title="accuracy"), alt.Y2("high:Q")
    )
    lines = base.mark_line(strokeWidth=1.5, point=True).encode(alt.Y("accuracy:Q", scale=share))
    ends = pd.DataFrame({"length": [mine[0].trained_to], "accuracy": [LEARNT]})
    trained = alt.Chart(ends).mark_rule(strokeDash=[4, 4]).encode(alt.X("length:Q", scale=scale))
    chart = alt.layer(bands, lines, trained).properties(width=_WIDTH, height=_HEIGHT)
    return _svg(chart)


def _of_inside(mine: Sequence[Result], inside: Sequence[Inside]) -> list[tuple[Markup, str]]:
    """A chart of each quantity that was measured, with its name."""
    names = [one.variant for one in mine]
    charts = []
    for measure, quantity in dict.fromkeys((one.measure, one.quantity) for one in inside):
        rows = pd.DataFrame(
            [
                (one.variant, one.state, one.length, one.value)
                for one in inside
                if (one.measure, one.quantity) == (measure, quantity)
            ],
            columns=["variant", "state", "length", "value"],
        )
        rows = rows.groupby(["variant", "state", "length"])["value"].mean().reset_index()
        scale = alt.Scale(type="log", nice=False)
        lines = alt.Chart(rows).mark_line(strokeWidth=1.5)
        dashes = alt.Scale(domain=[TRAINED, UNTRAINED], range=[[1, 0], [3, 3]])
        title = f"{measure}, {quantity}"
        chart = lines.encode(
            alt.X("length:Q", title="length (symbols)", scale=scale, axis=alt.Axis(grid=False)),
            alt.Y("value:Q", title=title),
            alt.Color("variant:N", scale=alt.Scale(domain=names), sort=names),
            alt.StrokeDash("state:N", scale=dashes),
        )
        charts.append((_svg(chart.properties(width=_WIDTH, height=_HEIGHT // 2)), title))
    return charts


def _svg(chart: alt.TopLevelMixin) -> Markup:
    """A chart as SVG.

    Raises:
        SetupError: the package that draws is not installed.
    """
    try:
        import vl_convert  # noqa: PLC0415  an extra
    except ImportError as error:
        raise SetupError(f"the page of a study needs vl-convert: {install('lab')}") from error
    svg: str = vl_convert.vegalite_to_svg(chart.to_dict())
    return Markup(svg)  # noqa: S704  drawn here, of numbers and names of variants
