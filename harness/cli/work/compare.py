"""The verb `compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from eyechart.harness.analysis.comparison.comparison import (
    Comparison,
    compare_conditions,
    compare_runs,
)
from eyechart.harness.analysis.comparison.comparison_table import (
    ALL,
    comparison_table,
    sized_table,
)
from eyechart.harness.analysis.comparison.family import Ranking, rank_runs
from eyechart.harness.analysis.comparison.gate import GateResult, exit_code, gated
from eyechart.harness.analysis.findings.pair import of_pair
from eyechart.harness.analysis.findings.ranks import of_ranking
from eyechart.harness.analysis.length.in_tokens import token_columns
from eyechart.harness.analysis.samples.judged_run import JudgedRun, read_run
from eyechart.harness.analysis.tables.tables import (
    estimate_columns,
    finding_columns,
    to_csv,
)
from eyechart.harness.cli.documents import print_document, rows_of
from eyechart.harness.cli.findings import tell_findings
from eyechart.harness.cli.outputs import check_output
from eyechart.harness.cli.progress import LiveDisplay, counting
from eyechart.harness.cli.tables.comparison_tables import print_comparison, print_ranking
from eyechart.harness.cli.terminal import echo, prints_elsewhere, say, take_logs, warn
from eyechart.harness.cli.work.dry_run.ask_dry_run import show_asking
from eyechart.harness.cli.work.next_command import page_next
from eyechart.harness.errors import COMPLETE, INCOMPLETE, UsageError
from eyechart.harness.face.asking.ask_pair import AskUntilDecided
from eyechart.harness.face.asking.ask_ranks import asking_of
from eyechart.harness.face.asking.ask_run import Limits
from eyechart.harness.face.asking.engine import RunNotices
from eyechart.harness.journal.files import make_folder_of
from eyechart.harness.run.event_loop import run_in_loop
from eyechart.harness.settings.judging import JudgeSettings, Margin
from eyechart.harness.settings.run_settings import SETTINGS
from eyechart.harness.spec.columns import COMPARISON

_TWO = 2


def compare(
    folders: Sequence[Path],
    axis: str | None,
    output: Path | None,
    judging: JudgeSettings,
    *,
    as_json: bool,
    asking: Limits | None,
    settle: str | None,
    is_dry: bool,
    all_findings: bool,
    form: str | None,
) -> int:
    """Prints the differences between runs, or between two conditions of each run, and writes them
    to `output` if that is given; returns the exit code.

    Of several runs each pair is compared. With `judging.fail_if` the verdicts alone give the code,
    by `gate.exit_code`: of all runs compared with the first run, or of the second condition
    compared with the first. Else it is `INCOMPLETE` where samples that were asked have no reply.
    With `form` the tables are those of a paper, alone.
    """
    margin = judging.margin
    others = {"--json": as_json, "--all-findings": all_findings}
    _check_output(None if is_dry else output, form, others)
    _check(len(folders), axis, asks=asking is not None)
    is_short = is_decided = False
    if asking is not None:
        more = asking_of(folders, asking, judging, warn=warn, question=settle)
        if is_dry:
            return show_asking(more, as_json=as_json)
        ask_until_decided(more)
        is_short, is_decided = more.is_short, more.is_decided
    several = axis is None and len(folders) > _TWO
    with counting() as counted:
        runs = [read_run(folder, warn, judging) for folder in counted("runs read", folders)]
        of_pairs = partial(counted, "pairs compared")
        ranking = rank_runs(runs, of=of_pairs) if several else None
    if ranking is not None:
        comparisons = list(ranking.comparisons.values())
        of_interest = [comparison for _, comparison in ranking.against_reference]
    else:
        comparisons = of_interest = _comparisons(runs, axis)
    if as_json:
        print_document(_document(comparisons, ranking, judging))
    elif form is not None:
        _print_for_paper(comparisons, ranking, margin, form)
    else:
        _print(comparisons, ranking, margin, all_findings=all_findings)
    if output is not None:
        to_csv(comparison_table(comparisons, margin), output)
    if not as_json and form is None:
        written = [] if output is None else [str(output)]
        echo("", *written, page_next([run.folder for run in runs], judging))
    if judging.fail_if is None:
        return INCOMPLETE if is_short else COMPLETE
    found = [gated(one, margin, is_decided=is_decided) for one in of_interest]
    return _said_code(found, judging.fail_if)


def _said_code(found: Sequence[GateResult], fail_if: str) -> int:
    """The exit code, and a line for each verdict that it follows from."""
    for one in found:
        if one.fails(fail_if):
            model = "" if one.comparison.model is None else f"{one.comparison.model} with "
            warn(f"--fail-if {fail_if}: {model}{one.comparison.second} is {one.verdict}")
    return exit_code(found, fail_if)


def _check_output(output: Path | None, form: str | None, others: Mapping[str, object]) -> None:
    """Raises an `EyechartError` for a file that cannot be written, or would be lost, and for a
    form that there is not.
    """
    if form is not None:
        from eyechart.harness.cli.tables.paper_tables import check_form

        check_form(form, others)
    check_output("-o", output, ",".join(COMPARISON[:5]).encode())
    if output is not None and output.suffix != ".csv":
        raise UsageError(f"-o {str(output)!r} is no .csv file, the only kind that is written")
    if output is not None:
        make_folder_of(output)


def ask_until_decided(asking: AskUntilDecided) -> None:
    """Asks until a comparison is decided; says before what it may cost, and at the end what it did;
    raises `ProviderError` if a model cannot be asked. What was answered is saved.
    """
    say(asking.before())
    if not asking.price:
        return
    take_logs()
    try:
        with prints_elsewhere():
            done = asking.ask(RunNotices(LiveDisplay(), say, warn, announce=say), run_in_loop)
    except KeyboardInterrupt:
        say("what was answered is saved, and the same command goes on, for the same price anew")
        raise
    say(done)
    if after := asking.after():
        say(after)


def _check(runs: int, axis: str | None, *, asks: bool) -> None:
    """Raises `UsageError` for options that contradict each other or the runs."""
    if axis is None and runs < _TWO:
        raise UsageError(
            f"compare needs two runs or more, not {runs}; "
            "--axis AXIS=VALUE,VALUE compares two conditions of each run"
        )
    if axis is not None and asks:
        raise UsageError("--ask compares runs, and --axis conditions; leave out one of them")


def _comparisons(runs: Sequence[JudgedRun], axis: str | None) -> list[Comparison]:
    if axis is None:
        return [compare_runs(runs[0], runs[1], unpaired=True)]
    ((name, values),) = SETTINGS["axes"].read([axis]).items()
    return [compare_conditions(run, name, values, unpaired=True) for run in runs]


def _print(
    comparisons: Sequence[Comparison],
    ranking: Ranking | None,
    margin: Margin,
    *,
    all_findings: bool,
) -> None:
    if ranking is not None:
        print_ranking(ranking, margin)
        tell_findings(of_ranking(ranking, margin), is_all=all_findings)
        return
    for comparison in comparisons:
        print_comparison(comparison)
        tell_findings(of_pair(comparison, margin), is_all=all_findings)


def _print_for_paper(
    comparisons: Sequence[Comparison], ranking: Ranking | None, margin: Margin, form: str
) -> None:
    from eyechart.harness.cli.tables.paper_tables import print_tables
    from eyechart.harness.report.paper.tables import comparison_tables, ranking_tables

    if ranking is not None:
        print_tables([ranking_tables(ranking, margin)], form)
    else:
        print_tables((comparison_tables(one, margin) for one in comparisons), form)


def _document(
    comparisons: Sequence[Comparison], ranking: Ranking | None, judging: JudgeSettings
) -> dict[str, Any]:
    """One JSON document: `runs` by effective length, where there are three or more; `pairs`, each
    with its verdicts, and with its `rows` as in the CSV file.
    """
    margin = judging.margin
    document: dict[str, Any] = {**judging.of_runs, "margin": margin}
    if ranking is not None:
        document["runs"] = [
            {
                "name": ranked.name,
                "folder": str(ranked.run.folder),
                "reference": place == ranking.reference,
                "ranked": ranked.is_ranked,
                "rank_best": best,
                "rank_last": last,
                "recorded": ranked.run.manifest.recorded is not None,
                "conditions": [
                    {
                        "condition": condition.label,
                        **estimate_columns(
                            estimate, adaptive=ranked.run.conditions[condition].adaptive
                        ),
                        **token_columns(ranked.run.conditions[condition]),
                    }
                    for condition, estimate in ranked.estimates.items()
                ],
                "further_than": [ranking.runs[other].name for other in ranking.further_than(place)],
            }
            for place, ranked in enumerate(ranking.runs)
            for best, last in [ranking.ranks(place) or (None, None)]
        ]
        document["findings"] = [*map(finding_columns, of_ranking(ranking, margin))]
    document["pairs"] = pair_documents(comparisons, margin)
    return document


def pair_documents(comparisons: Sequence[Comparison], margin: Margin) -> list[dict[str, Any]]:
    """Each comparison as one of the `pairs`: the columns of its row of the pair as a whole for
    effective lengths, and as `area` of that for areas; then what no row has, and all rows.
    """
    table, sizes = sized_table(comparisons, margin)
    rows = iter(rows_of(table))
    found = []
    for comparison, size in zip(comparisons, sizes, strict=True):
        its_rows = list(islice(rows, size))
        whole = {row["measure"]: row for row in its_rows if row["condition"] == ALL}
        found.append(
            {
                **whole["effective_length"],
                "area": whole.get("area"),
                "one_threshold": comparison.length.one_threshold,
                "paired": comparison.is_paired,
                "findings": [*map(finding_columns, of_pair(comparison, margin))],
                "rows": its_rows,
            }
        )
    return found
