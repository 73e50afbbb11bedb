"""What the command prints at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.benchmarks.mutation.mutants import Mutant
from tests.benchmarks.mutation.reasons import REASONS
from tests.benchmarks.mutation.runner import Outcome


def print_report(outcomes: Sequence[Outcome], mutants: dict[str, list[Mutant]]) -> None:
    """Prints the table of packages, the survivors, reasons that are out of date, and the tests that
    killed most mutants.

    `mutants` are all mutants of each package, drawn or not.
    """
    total = sum(map(len, mutants.values()))
    print("| package | mutants | tried | killed | share | 95 % interval |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    for package, in_package in mutants.items():
        tried = [outcome for outcome in outcomes if outcome.mutant.package == package]
        print_row(package, len(in_package), tried)
    print_row("all", total, outcomes)
    survivors = [outcome.mutant for outcome in outcomes if not outcome.killer]
    unexplained = [
        outcome for outcome in outcomes if outcome.killer or outcome.mutant.key not in REASONS
    ]
    print_row("without those of REASONS", total, unexplained)
    print("\nsurvived:")
    for mutant in sorted(survivors, key=lambda mutant: (mutant.path, mutant.line)):
        print(f"{mutant}  {REASONS.get(mutant.key, '(no reason yet)')}")
    keys = {mutant.key for in_package in mutants.values() for mutant in in_package}
    for key in REASONS:
        if key not in keys and key[0].partition("/")[0] in mutants:
            print(f"REASONS has no mutant any more: {key}")
    killers = Counter(outcome.killer.split("[")[0] for outcome in outcomes if outcome.killer)
    print("\nmost killed by:", ", ".join(f"{test} {n}" for test, n in killers.most_common(8)))


def print_row(name: str, count: int, tried: Sequence[Outcome]) -> None:
    """Prints one row of the table: `count` mutants, of which `tried` met the tests."""
    # Not earlier: a process that is forked for a mutant must import its own copy of `harness`.
    from eyechart.harness.analysis.length.interval import wilson

    killed = sum(bool(outcome.killer) for outcome in tried)
    low, high = wilson(killed, len(tried)) or (0.0, 1.0)
    share = killed / len(tried) if tried else 0.0
    print(f"| {name} | {count} | {len(tried)} | {killed} | {share:.1%} | {low:.1%} to {high:.1%} |")
