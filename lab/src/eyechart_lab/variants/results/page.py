"""The page of a study: its sentences, a table and the curves of each condition.

It is a self-contained HTML file, a pure function of the rows of `lab.csv` and the study's file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from eyechart.harness.report.page.assets import style
from eyechart.providers.base import SetupError
from eyechart_lab.extras import install
from eyechart_lab.variants.probing import TRAINED, UNTRAINED, InsideRow
from eyechart_lab.variants.results.results import (
    Result,
    interval_text,
    length_text,
    p_text,
    share_span_text,
    share_text,
)
from eyechart_lab.variants.results.words import (
    ceilings_text,
    method,
    missing,
    recipe,
    sentence,
    shared_training,
    summary,
)
from eyechart_lab.variants.study import LabSpec

_WIDTH, _HEIGHT = 480, 280
_STEP = 26
"""Height of a variant where lengths are drawn, in pixels."""
_LABEL = 200
_MOST_BANDS = 3
_TEMPLATE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{{ title }}</title>
<style>{{ css }}
figure { margin: 1rem 0 }
figure svg { max-width: 100%; height: auto; background: #fff }
.charts { display: flex; flex-wrap: wrap; gap: 0 2rem }
.charts figure { flex: 1 1 24rem; min-width: 0; max-width: 40rem }
section { margin-top: 2rem }
p { margin: .4rem 0 }
.wide { overflow-x: auto }
td, th { padding: .15rem .8rem .15rem 0; text-align: left; white-space: nowrap }</style>
</head>
<body>
<main>
<h1>{{ title }}</h1>
{% if description %}<p>{{ description }}</p>
{% endif %}
<p>{{ recipe }}{% if missing %} {{ missing }}{% endif %}</p>
<p>{{ method }}</p>
{% if shared %}<p>{{ shared }}</p>
{% endif %}{% for part in parts %}
<section>
<h2>{{ part.task }}</h2>
<p>{{ part.condition }}; trained on rows to {{ part.trained_to }}, \
{{ "asked to " ~ part.longest if part.longest else "nothing was asked" }}.</p>
{% if part.ceilings %}<p>{{ part.ceilings }}</p>
{% endif %}{% if part.summary %}<p><strong>{{ part.summary }}</strong></p>
{% endif %}
<div class="charts">
{% if part.reach %}<figure>{{ part.reach }}<figcaption>How far each variant is right: the mean
over seeds with its 95 % interval, and each seed below it. A triangle points to where a bound is
open. The dashed line is the longest row of the training.</figcaption></figure>
{% endif %}
{% if part.chart %}<figure>{{ part.chart }}<figcaption>Accuracy by length, the mean over seeds\
{% if part.has_bands %}; a band spans the seeds{% endif %}. The dotted line is the share of rows
whose answer the training had.</figcaption></figure>
{% endif %}
</div>
<div class="wide">
<table>
<thead><tr>{% for head in part.heads %}<th>{{ head }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in part.rows %}
<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
</table>
</div>
<details>
<summary>Each variant in a sentence</summary>
<ul>
{% for said in part.sentences %}
<li>{{ said }}</li>
{% endfor %}
</ul>
</details>
<div class="charts">
{% for chart, measure in part.inside %}<figure>{{ chart }}<figcaption>{{ measure }} by length, the
mean over seeds and heads, of the last layer; dashed before the training.</figcaption></figure>
{% endfor %}
</div>
</section>
{% endfor %}
</main>
</body>
</html>
"""
_COLUMNS: Mapping[str, Callable[[Result], str]] = {
    "variant": lambda one: one.variant,
    "learned": lambda one: f"{one.learnt} of {len(one.seeds)}",
    "diverged": lambda one: f"{one.diverged or ''}",
    "right at trained lengths": lambda one: share_text(one.within),
    "its interval": lambda one: share_span_text(one.within),
    "p there": lambda one: p_text(one.by_within.p),
    "verdict there": lambda one: one.by_within.verdict if one.within else "",
    "right to": length_text,
    "95 % interval over rows and seeds": interval_text,
    "length not known": lambda one: f"{one.unknown or ''}",
    "p": lambda one: p_text(one.by_length.p),
    "smallest possible p": lambda one: p_text(one.by_length.smallest_p),
    "verdict": lambda one: one.by_length.verdict,
    "right on longer rows": lambda one: share_text(one.beyond),
    "its 95 % interval": lambda one: share_span_text(one.beyond),
    "its p": lambda one: p_text(one.by_beyond.p),
    "its verdict": lambda one: one.by_beyond.verdict if one.beyond else "",
}
"""Head of a column -> the text of a variant; a column without any text is left out."""


def page(spec: LabSpec, results: Sequence[Result], inside: Sequence[InsideRow] = ()) -> str:
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
        shared=shared_training(spec),
        parts=parts,
    )


def _part(spec: LabSpec, mine: Sequence[Result], inside: Sequence[InsideRow]) -> dict[str, Any]:
    """What the page says of one condition of a task."""
    first = mine[0]
    columns = {head: [text(one) for one in mine] for head, text in _COLUMNS.items()}
    columns = {head: texts for head, texts in columns.items() if any(texts)}
    return {
        "task": first.task,
        "condition": first.condition.replace(",", ", "),
        "trained_to": first.trained_to,
        "longest": first.longest,
        "ceilings": ceilings_text(mine),
        "summary": summary(mine, spec.reference),
        "heads": list(columns),
        "rows": list(zip(*columns.values(), strict=True)),
        "sentences": [sentence(one, spec.reference) for one in mine],
        "reach": _reach(mine),
        "chart": _chart(mine),
        "has_bands": _has_bands(mine),
        "inside": _of_inside(
            mine, [one for one in inside if (one.task, one.condition) == first.where]
        ),
    }


def _has_bands(mine: Sequence[Result]) -> bool:
    """More bands than this hide each other."""
    return len(mine) <= _MOST_BANDS


def _trained(mine: Sequence[Result], scale: alt.Scale) -> alt.Chart:
    """The line at the longest row of the training."""
    ends = pd.DataFrame({"length": [mine[0].trained_to]})
    rule: alt.Chart = alt.Chart(ends).mark_rule(strokeDash=[4, 4])
    return rule.encode(alt.X("length:Q", scale=scale))


def _known(mine: Sequence[Result], scale: alt.Scale) -> alt.Chart:
    """The share of the rows of each line whose answer the training had."""
    rows = pd.DataFrame(
        [(one.length, one.ceiling) for one in mine[0].lines], columns=["length", "ceiling"]
    )
    line: alt.Chart = alt.Chart(rows).mark_line(strokeDash=[1, 3], color="#000")
    return line.encode(alt.X("length:Q", scale=scale), alt.Y("ceiling:Q"))


_SHAPES = {"=": "circle", ">": "triangle-right", "<": "triangle-left"}


def _reach(mine: Sequence[Result]) -> Markup | None:
    """How far each variant is right, with interval and seeds, as SVG; `None` if nothing was
    trained.
    """
    means, seeds = [], []
    for one in mine:
        if one.length is None:
            continue
        low, high = one.span or (one.length, one.length)
        means.append((one.variant, one.length.length, low.length, high.length, one.length.sign))
        seeds += [(one.variant, seen.length.length) for seen in one.seen]
    if not means:
        return None
    names = [one.variant for one in mine]
    scale = alt.Scale(type="log", nice=False, domain=[mine[0].shortest, mine[0].longest])
    rows = pd.DataFrame(means, columns=["variant", "length", "low", "high", "sign"])
    axis = alt.Axis(title=None, labelLimit=_LABEL)
    base = alt.Chart(rows).encode(alt.Y("variant:N", sort=names, axis=axis))
    x = alt.X("low:Q", title="right to (symbols)", scale=scale, axis=alt.Axis(grid=False))
    shapes = alt.Scale(domain=list(_SHAPES), range=list(_SHAPES.values()))
    each = pd.DataFrame(seeds, columns=["variant", "length"])
    layers = [
        base.mark_rule().encode(x, alt.X2("high:Q")),
        base.mark_point(filled=True, opacity=1, size=60, color="#000").encode(
            alt.X("length:Q", scale=scale), alt.Shape("sign:N", scale=shapes, legend=None)
        ),
        alt.Chart(each)
        .mark_tick(thickness=1, yOffset=7, height=6, color="#555")
        .encode(alt.X("length:Q", scale=scale), alt.Y("variant:N", sort=names)),
        _trained(mine, scale),
    ]
    chart = alt.layer(*layers).properties(width=_WIDTH, height=alt.Step(_STEP))
    return _svg(chart)


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
    layers = [
        base.mark_line(strokeWidth=1.5, point=True).encode(
            alt.Y("accuracy:Q", scale=share, title="accuracy")
        ),
        _known(mine, scale),
        _trained(mine, scale),
    ]
    if _has_bands(mine):
        band = base.mark_area(opacity=0.12).encode(alt.Y("low:Q", scale=share), alt.Y2("high:Q"))
        layers.insert(0, band)
    return _svg(alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT))


def _of_inside(mine: Sequence[Result], inside: Sequence[InsideRow]) -> list[tuple[Markup, str]]:
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
        raise SetupError(f"the page of a study needs vl-convert: {install('train')}") from error
    svg: str = vl_convert.vegalite_to_svg(chart.to_dict())
    return Markup(svg)  # noqa: S704  drawn here, of numbers and names of variants
