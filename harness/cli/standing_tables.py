"""The models of each task by effective length, as tables and charts on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from eyechart.harness.analysis.at_length import probability_text
from eyechart.harness.analysis.cost_at import cost_texts
from eyechart.harness.analysis.findings.finding import of_several
from eyechart.harness.analysis.findings.ranks import of_standing
from eyechart.harness.analysis.interval import span_text
from eyechart.harness.analysis.paper_text import at_texts
from eyechart.harness.analysis.standing import Place
from eyechart.harness.cli.findings import tell_findings
from eyechart.harness.cli.layout import Column, fits, show_blocks, show_title, table
from eyechart.harness.cli.tables import INTERVAL, STAR, chart_title, length_text, sees_text
from eyechart.harness.cli.terminal import echo, show, tell
from eyechart.harness.report.section import Section
from eyechart.harness.report.standings import (
    FURTHEST,
    TESTED_HEADS,
    suited_at,
    tested_counts,
)
from eyechart.harness.spec import Condition


def print_standings(
    of_tasks: Sequence[Section], at: Sequence[int] = (), *, all_findings: bool = False
) -> None:
    """Prints the models of each task, sorted by effective length, with the ranks that each can have
    by the tests and its accuracy at each length in `at`. Tasks with a single model share one table.
    """
    standings = {id(one): one.standing for one in of_tasks}
    alone = [section for section in of_tasks if len(section.standing.places) == 1]
    for section in of_tasks:
        standing = standings[id(section)]
        places = standing.places
        if section in alone:
            continue
        show_title([section.name, *_condition(section)])
        tested = _by_test(places, ranked=standing.has_ranks)
        keys = [*tested, _models(places)] if standing.has_ranks else [_models(places)]
        more = [] if standing.has_ranks else tested
        _show_places(section.threshold, places, keys, at, more)
        for sentence in suited_at(standing, section.threshold, at):
            tell(sentence)
        tell_findings(of_standing(standing, section.threshold), is_all=all_findings)
        echo("")
    if alone:
        places = tuple(standings[id(section)].places[0] for section in alone)
        names = [
            section.name
            if section.standing.default
            else " ".join([section.name, *_condition(section)])
            for section in alone
        ]
        several = len({place.name for place in places}) > 1
        show_title(["tasks with one model" if several else places[0].name])
        models = [_models(places)] if several else []
        keys = [Column(["task"], names, "left"), *models]
        _show_places(alone[0].threshold, places, keys, at)
        tell_of_alone(alone, all_findings=all_findings)
        echo("")


def tell_of_alone(alone: Sequence[Section], *, all_findings: bool = False) -> None:
    """Prints the findings of tasks that have one model each."""
    found = of_several(
        (section.name, of_standing(section.standing, section.threshold)) for section in alone
    )
    tell_findings(found, is_all=all_findings)


def print_chart(of_tasks: Sequence[Section]) -> None:
    """Prints the effective length of each model under each condition, with its interval: a column
    for each model where they fit beside each other, else a row.
    """
    models = list(dict.fromkeys(details.name for section in of_tasks for details in section.runs))
    rows = [
        (section, condition)
        for section in of_tasks
        for condition in dict.fromkeys(series.condition for series in section.series)
    ]

    def cell(section: Section, condition: Condition, model: str) -> str:
        return length_text(section.estimates.get((model, condition.label)))

    def keys(rows: Sequence[tuple[Section, Condition]]) -> list[Column]:
        return [
            Column(["task"], [section.name for section, _ in rows], "left"),
            Column(["condition"], [of.only(section.varied).label for section, of in rows], "left"),
        ]

    columns = [Column([model], [cell(*row, model) for row in rows], "left") for model in models]
    show_title([chart_title(of_tasks[0].threshold)])
    if fits([*keys(rows), *columns]):
        show(table([*keys(rows), *columns]))
    else:
        long = [(row, model) for row in rows for model in models]
        names = [
            *keys([row for row, _ in long]),
            Column(["model"], [model for _, model in long], "left"),
        ]
        seen = Column(["sees to"], [cell(*row, model) for row, model in long], "left")
        parts = range(len(models), len(long), len(models))
        if fits([*names, seen]):
            show(table([*names, seen], parts))
        else:
            show_blocks(names, [seen])
    if any(not one.one_threshold for section in of_tasks for one in section.estimates.values()):
        tell(STAR)
    echo("")


def _condition(section: Section) -> list[str]:
    """The values of the condition of the standing, on the axes that vary."""
    values = section.standing.condition.only(section.varied)
    return [f"{axis}={value}" for axis, value in values.items()]


def _by_test(places: Sequence[Place], *, ranked: bool) -> list[Column]:
    """The ranks; or of many models how probably each sees furthest, and how many it is shown to see
    further than, cannot be told from, and is shown to see less far than.
    """
    if ranked:
        return [Column(["rank"], [place.ranks_text for place in places])]
    counts = [tested_counts(place.by_test) or ("–",) * len(TESTED_HEADS) for place in places]
    tested = [
        Column([head], [str(one[at]) for one in counts]) for at, head in enumerate(TESTED_HEADS)
    ]
    return [Column([FURTHEST], [probability_text(place.p_furthest) for place in places]), *tested]


def _models(places: Sequence[Place]) -> Column:
    names = [
        place.name
        + ", adaptive" * place.adaptive
        + ", recorded" * (place.run.manifest.recorded is not None)
        for place in places
    ]
    return Column(["model"], names, "left")


def _show_places(
    threshold: float,
    places: Sequence[Place],
    keys: Sequence[Column],
    at: Sequence[int],
    more: Sequence[Column] = (),
) -> None:
    """Prints a table of effective lengths, with the accuracy at each length in `at`. Below it
    stands what the star in the table means.
    """
    columns = [
        Column([sees_text(threshold)], [*map(_length, places)]),
        Column([INTERVAL], [*map(_interval, places)], "left"),
    ]
    if any(place.estimate and not place.estimate.limit.is_ranked for place in places):
        limits = [place.estimate.limit.by if place.estimate else "" for place in places]
        columns.append(Column(["limited by"], limits, "left"))
    texts = [at_texts(place.estimate, at, threshold) for place in places]
    prices = cost_texts([place.run.conditions.get(place.condition) for place in places], at)
    for one in (texts, prices):
        columns += [Column([name], [of_place[name] for of_place in one]) for name in one[0]]
    columns += more
    show_blocks(keys, columns)
    if any(place.estimate and not place.estimate.one_threshold for place in places):
        tell(STAR)


def _length(place: Place) -> str:
    """The effective length, with a star if there is no single threshold."""
    if place.estimate is None:
        return "–"
    return f"{place.estimate.length_text}{'' if place.estimate.one_threshold else ' *'}"


def _interval(place: Place) -> str:
    """The interval, with a note if the replies are few."""
    if place.estimate is None:
        return "–"
    parts = span_text(place.estimate.length_ci), place.estimate.few
    return ", ".join(filter(None, parts))
