"""``benchrigor compare``: whether a candidate is better or worse than a baseline."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from benchrigor.cli.exits import ExitCode
from benchrigor.cli.options import json_option, share, store_option
from benchrigor.cli.output import print_json
from benchrigor.cli.recordings import recording
from benchrigor.cli.sources import name_of
from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import (
    Code,
    Comparison,
    Estimate,
    Kind,
    Light,
    Notice,
    RunRecord,
    Severity,
    Verdict,
    codec,
)
from benchrigor.model.text import ended, many, show_estimate
from benchrigor.session.replays.recorded_run import Recorded, recorded
from benchrigor.stats.comparison.multiple_testing import rank
from benchrigor.stats.comparison.two_sample import compare as compared
from benchrigor.stats.estimators.estimation import INVOCATION_MEANS as INVOCATIONS
from benchrigor.stats.series.interval import METHOD
from benchrigor.units import Direction

__all__ = ["compare"]

_WIDTH = 79
_LABEL = 13
_ONE_PROCESS = Notice.warning(Code.THIS_PROCESS_ONLY, "All rounds ran in one process.")
_CODES = {Verdict.WORSE: ExitCode.WORSE, Verdict.UNDECIDED: ExitCode.NOT_CONVERGED}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Side:
    """What was given for one side; ``run`` is None for a file."""

    source: str
    run: RunRecord | None
    given: Recorded

    @property
    def label(self) -> str:
        if self.run is None:
            return name_of(self.source)
        return f"{self.run.name} ({self.run.run_id})" if self.run.run_id else self.run.name

    @property
    def counts_processes(self) -> bool:
        """Whether each reading is that of a process of its own."""
        by_round = self.given.kind in (Kind.READINGS, Kind.WORK)
        return by_round and self.run is not None and self.run.subject.get("kind") == "command"

    @property
    def counted_in(self) -> str:
        """What its estimate counts: "reading" or "invocation"."""
        if self.given.kind is Kind.WORK:
            return "round"
        processes = self.given.kind is Kind.INVOCATIONS or self.counts_processes
        return "invocation" if processes else "reading"

    def estimate(self, statistic: str, confidence: float) -> Estimate:
        """Estimate the stable phase; all sides are cut alike, whatever they were measured for."""
        if self.given.kind is Kind.WORK and statistic != "mean":
            raise InvalidInput(f"{self.label}: --statistic is {statistic}, but a speed is a mean")
        options = replace(
            self.given.options,
            target=None,
            statistic=statistic,
            confidence=confidence,
            method=METHOD,
        )
        found = self.given.judged(options)
        if found.estimate is None:
            why = found.notices[0]
            raise NotEstimable(replace(why, sentence=f"{self.label}: {why.sentence}"))
        return found.estimate

    def counted(self, found: Estimate) -> Estimate:
        """Let its estimate say whether it speaks for one process only."""
        if self.given.kind is Kind.WORK:
            notices = found.notices if self.counts_processes else (_ONE_PROCESS, *found.notices)
            return replace(found, notices=notices)
        return replace(found, method=INVOCATIONS) if self.counts_processes else found

    def document(self) -> dict[str, Any]:
        """Say for programs where it comes from."""
        where = None if self.run is None else self.run.provenance
        return {
            "source": self.source,
            "run_id": None if self.run is None else self.run.run_id,
            "name": self.given.name if self.run is not None else name_of(self.source),
            "metric": self.given.metric.name,
            "unit": self.given.metric.unit,
            "host": None if where is None else where.host,
        }


@click.command(short_help="Tell whether a candidate is better or worse than a baseline.")
@click.argument("sources", nargs=-1, required=True, metavar="BASELINE CANDIDATE [MORE]...")
@click.option(
    "--statistic",
    help="mean, median, or a percentile such as p10.  [default: that of the runs; mean for files]",
)
@click.option(
    "--margin",
    type=share,
    default="1%",
    show_default=True,
    help="Change that does not matter; 0 for the classical test.",
)
@click.option("--confidence", type=share, default="95%", show_default=True, help="Of the interval.")
@click.option(
    "--direction",
    type=click.Choice(["lower", "higher"]),
    help="Which way is better.  [default: that of the runs' metric; lower for files]",
)
@click.option("--metric", help="Of runs.  [default: the first that must be satisfied]")
@click.option("--paired", is_flag=True, help="Of two files: line i of one was taken beside line i.")
@click.option(
    "--column", help="Of files: name or number (from 0) of the CSV column, or key of the JSON."
)
@click.option("--unit", help="Of files' readings, such as s.  [default: that of the run]")
@store_option
@json_option
def compare(sources: tuple[str, ...], *, store: Path | None, as_json: bool, **given: Any) -> None:
    """Tell whether a candidate is better or worse than a baseline.

    Each is a stored run (the beginning of its id is enough) or a CSV or JSON file of readings.
    Warm-up and cool-down are left out. Restarted rounds, and commands run once a round, count
    one by one; a single series speaks for its own process only, which is said. More than two
    are ranked: the best first, those that cannot be told apart in one place.

    It is worse when the whole interval of the ratio lies beyond the margin, equivalent when all
    of it lies within, else undecided. Exit codes: 0 better or equivalent, 3 undecided, 4 a side
    allows no number, 7 worse.

    \b
    Examples:
      benchrigor compare 3f2a 81bc
      benchrigor compare old.csv new.csv --column time --unit s --margin 2%
      benchrigor compare old.csv new.csv --paired --statistic median --json
      benchrigor compare 3f2a 81bc 9d07
    """  # noqa: D301  # click wants the backspace itself
    sides = [_side(source, store, given) for source in sources]
    _check(sides, given)
    options = {
        "statistic": given["statistic"] or _shared(sides, "statistic") or "mean",
        "direction": Direction(given["direction"] or _shared(sides, "direction") or "lower"),
        "confidence": given["confidence"],
    }
    unit = next((each.given.metric.unit for each in sides if each.given.metric.unit), "")
    if len(sides) > 2:
        _rank(sides, options, unit, as_json=as_json)
        return
    options["margin"] = given["margin"]
    found = _paired(sides, options) if given["paired"] else _apart(sides, options)
    if as_json:
        roles = zip(("baseline", "candidate"), sides, strict=True)
        where = {role: each.document() for role, each in roles}
        print_json({**codec.versions(), "comparison": found, **where, "warnings": _warnings(sides)})
    else:
        click.echo("\n".join(_report(found, sides, unit)))
    click.get_current_context().exit(_CODES.get(found.verdict, ExitCode.SATISFIED))


def _side(source: str, store: Path | None, given: dict[str, Any]) -> _Side:
    found = recording(source, column=given["column"], store=store)
    if isinstance(found, RunRecord):
        return _Side(source=source, run=found, given=recorded(found, metric=given["metric"]))
    return _Side(source=source, run=None, given=recorded(found, unit=given["unit"] or ""))


def _check(sides: Sequence[_Side], given: dict[str, Any]) -> None:
    """Raise once for all that keeps these sides from being compared."""
    problems = []
    runs = [each for each in sides if each.run is not None]
    if len(sides) < 2:
        problems.append(f"{sides[0].source} stands alone, expected a baseline and a candidate")
    labels = [each.label for each in sides]
    double = sorted({label for label in labels if labels.count(label) > 1})
    problems += [f"{label} is given twice, expected each once" for label in double]
    if given["paired"] and (runs or len(sides) != 2):
        problems.append("--paired is for two files, whose lines were taken side by side")
    if given["metric"] and not runs:
        problems.append("--metric is for runs, and there are files only: --column names theirs")
    units = {each.given.metric.unit: each.label for each in runs}
    if given["unit"] is not None:
        files = [each.label for each in sides if each.run is None]
        units |= dict.fromkeys([given["unit"]], ", ".join(files)) if files else {}
    if len(units) > 1:
        said = ", ".join(f"{label} in {unit or 'no unit'}" for unit, label in units.items())
        problems.append(f"units differ: {said}")
    for option, chosen in (("direction", "better"), ("statistic", "estimated")):
        known = _known(runs, option)
        if len(known) > 1 and not given[option]:
            words = " and ".join(sorted(known))
            problems.append(f"runs differ in what is {chosen}, {words}: choose with --{option}")
    if problems:
        raise InvalidInput(problems)


def _known(sides: Sequence[_Side], option: str) -> set[str]:
    return {
        str(each.given.metric.direction)
        if option == "direction"
        else str(each.given.options.statistic)
        for each in sides
        if each.run is not None
    }


def _shared(sides: Sequence[_Side], option: str) -> str | None:
    """Return what all runs share; None where there is no run."""
    return next(iter(_known(sides, option)), None)


def _warnings(sides: Sequence[_Side]) -> list[str]:
    """Say what else differs than what is to be compared."""
    runs = [each.run for each in sides if each.run is not None]
    hosts = {each.provenance.host for each in runs if each.provenance is not None}
    names = {each.given.metric.name for each in sides if each.run is not None}
    warnings = [
        f"{each.label} was {ended(each.run.decision)}."
        for each in sides
        if each.run is not None and ended(each.run.decision) != "satisfied"
    ]
    warnings += [
        f"{each.label} has a {lost.light} light: {lost.total_percent:.1f}% of its time was lost to "
        f"others, which may be what differs. [{Code.DISTURBED}]"
        for each in sides
        if each.run is not None
        and (lost := each.run.interference) is not None
        and lost.light is not Light.GREEN
    ]
    if len(hosts) > 1:
        warnings.append(
            f"Made on different machines ({', '.join(sorted(hosts))}): what differs may be "
            "the machine."
        )
    if len(names) > 1:
        warnings.append(f"The metrics have different names: {', '.join(sorted(names))}.")
    return warnings


def _paired(sides: Sequence[_Side], options: dict[str, Any]) -> Comparison:
    """Compare line by line what is steady in both files, or in their ratio."""
    first, second = (each.given.series[0] for each in sides)
    if first.size != second.size:
        raise InvalidInput(
            f"--paired is given {many(first.size, 'line')} and {many(second.size, 'line')}, "
            "expected as many of each"
        )
    return compared(first, second, paired=True, trim=True, **options)


def _apart(sides: Sequence[_Side], options: dict[str, Any]) -> Comparison:
    """Compare the estimates of both sides; a reading of a process of its own is an invocation."""
    true = [each.estimate(options["statistic"], options["confidence"]) for each in sides]
    counted = [side.counted(found) for side, found in zip(sides, true, strict=True)]
    found = compared(counted[0], counted[1], **options)
    return replace(found, baseline=true[0], candidate=true[1])


def _report(found: Comparison, sides: Sequence[_Side], unit: str) -> list[str]:
    lines = textwrap.wrap(str(found), _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    estimates = (found.baseline, found.candidate)
    for role, side, each in zip(("baseline", "candidate"), sides, estimates, strict=True):
        if each is not None:
            size = many(each.n, side.counted_in)
            lines += _row(role, f"{side.label}: {show_estimate(each, unit)}, {size}")
    if found.difference is not None and found.p_value is not None:
        chance = "below 0.0001" if found.p_value < 0.0001 else f"{found.p_value:.2g}"
        lines += _row("difference", show_estimate(found.difference, unit))
        lines += _row("p-value", f"{chance} (of no difference at all)")
    return [*lines, *_notes(_warnings(sides), found.notices)]


def _rank(sides: Sequence[_Side], options: dict[str, Any], unit: str, *, as_json: bool) -> None:
    """Print the places of several sides."""
    how = options["statistic"], options["confidence"]
    places = rank({each.label: each.estimate(*how) for each in sides}, **options)
    warnings = _warnings(sides)
    if any(each.counted_in == "reading" for each in sides):
        warnings.append("Of a single series the place holds for its own process only.")
    if as_json:
        where = [each.document() for each in sides]
        print_json({**codec.versions(), "places": places, "sides": where, "warnings": warnings})
        return
    lines = [
        line
        for each in places
        for line in _row(f"{each.place}.", f"{each.name}: {show_estimate(each.estimate, unit)}")
    ]
    said = [
        replace(notice, sentence=f"{each.name}: {notice.sentence}")
        for each in places
        for notice in each.estimate.notices
    ]
    click.echo("\n".join([*lines, *_notes(warnings, said)]))


def _row(label: str, text: str) -> list[str]:
    first = f"  {label:<{_LABEL - 2}}"
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=" " * _LABEL,
        break_on_hyphens=False,
    )


def _notes(warnings: Sequence[str], notices: Sequence[Notice]) -> list[str]:
    marked = [f"  ! {warning}" for warning in warnings]
    marked += [f"  {'·' if each.severity is Severity.NOTE else '!'} {each}" for each in notices]
    return [
        line
        for each in marked
        for line in textwrap.wrap(each, _WIDTH, subsequent_indent="    ", break_on_hyphens=False)
    ]
