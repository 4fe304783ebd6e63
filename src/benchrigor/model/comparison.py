"""What comparing came to: a comparison, a family of them, a ranking, each with its words."""

from __future__ import annotations

import enum
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from benchrigor.model.decision import Decision, StopReason
from benchrigor.model.estimate import Estimate
from benchrigor.model.notice import Notice, Severity
from benchrigor.model.text import counted, ended, many, percent, show_estimate
from benchrigor.units import Direction, digits_for

__all__ = ["Comparison", "Family", "Ranked", "Verdict", "show_change"]

_WIDTH = 100
_TABLE = 79
_TIMES = 2.0
"""From this ratio on a change is said in times: 2.5 times, not 150% higher."""
_MOST_DIGITS = 4


class Verdict(enum.StrEnum):
    """What the interval of a ratio says, held against the margin that does not matter."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How a candidate stands against a baseline.

    Parameters
    ----------
    statistic
        What was compared: "mean", "median", "p10"…
    direction
        Which way is better.
    margin
        Relative change that does not matter: anything within [1/(1 + margin), 1 + margin].
    confidence
        Nominal coverage of the intervals, in (0, 1).
    paired
        Whether the i-th of one side was compared with the i-th of the other.
    unit
        What both sides count: "reading", "invocation" or "pair"; None where they differ.
    baseline, candidate
        Each side's own estimate; None, like all that follows from them, where what was measured
        allows no honest number, and a Notice says why.
    ratio
        Candidate over baseline; None also where the baseline is not clearly above 0.
    difference
        Candidate minus baseline, in the unit of the readings.
    p_value
        Two-sided, of no difference at all.
    p_beyond
        The smallest chance of error (one minus confidence) at which the whole interval of the
        ratio would lie beyond the margin; 1 where it never does.
    verdict
        BETTER or WORSE when the whole interval of the ratio lies beyond the margin, EQUIVALENT
        when all of it lies within, else UNDECIDED.
    required
        Further units for each side until the half-width of the ratio is half the margin: 0 when
        it is reached; None without a margin, or where it cannot be told.
    notices
        What the reader must know.
    reason, elapsed_s
        Why the measuring ended, and how long it took in seconds; None where the readings were
        made before.

    Examples
    --------
    >>> ratio = Estimate(value=1.031, low=1.02, high=1.042, confidence=0.95, n=20,
    ...                  n_effective=20.0, method="ratio")
    >>> side = Estimate(value=1.0, low=0.99, high=1.01, confidence=0.95, n=10,
    ...                 n_effective=10.0, method="invocation means")
    >>> print(Comparison(statistic="mean", direction=Direction.LOWER, margin=0.01,
    ...                  confidence=0.95, paired=False, unit="invocation", baseline=side,
    ...                  candidate=side, ratio=ratio, difference=side, p_value=0.0003,
    ...                  p_beyond=0.004, verdict=Verdict.WORSE, required=12))
    3.1% higher [+2.0%, +4.2%] 95%: worse (margin 1%) · p=0.0003 · 10 vs 10 invocations
    """

    statistic: str
    direction: Direction
    margin: float
    confidence: float
    paired: bool
    unit: str | None
    baseline: Estimate | None
    candidate: Estimate | None
    ratio: Estimate | None
    difference: Estimate | None
    p_value: float | None
    p_beyond: float
    verdict: Verdict
    required: int | None = None
    notices: tuple[Notice, ...] = ()
    reason: StopReason | None = None
    elapsed_s: float | None = None

    def __str__(self) -> str:
        ending = _ending(self)
        if self.baseline is None or self.candidate is None or self.p_value is None:
            room = _WIDTH - len(ending)
            return textwrap.shorten(_refusal(self), room, placeholder="…") + ending
        found = f"{_found(self)}: {self.verdict} (margin {percent(self.margin)})"
        basis = _basis(self.baseline.n, self.candidate.n, self.unit, paired=self.paired)
        chance, more = f"p{_chance(self.p_value)}", _more(self)
        # What matters less is left out first where a line would grow too long.
        lines = (
            " · ".join(parts) + ending
            for parts in (
                (found, chance, basis + more),
                (found, basis + more),
                (found, *([more.removeprefix(", ")] if more else [basis])),
            )
        )
        short = found + ending.rpartition(",")[0]
        return next((line for line in (*lines, found + ending) if len(line) <= _WIDTH), short)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Comparisons that were judged together, so that many looks do not make discoveries.

    Parameters
    ----------
    comparisons
        By name, each as it stands alone.
    adjusted
        By name, `Comparison.p_beyond` adjusted for the size of the family.
    verdicts
        By name: BETTER and WORSE only where ``adjusted`` is at most ``rate``.
    rate
        Expected share of false ones among the verdicts BETTER and WORSE, at most.
    summary
        Geometric mean of the ratios; None when there is no ratio.
    notices
        What the reader must know.
    """

    comparisons: Mapping[str, Comparison]
    adjusted: Mapping[str, float]
    verdicts: Mapping[str, Verdict]
    rate: float
    summary: Estimate | None
    notices: tuple[Notice, ...] = ()

    def __str__(self) -> str:
        rows = [("name", "change [interval]", "p adj.", "verdict")]
        rows += [
            (name, _found(each, short=True), _chance(self.adjusted[name]).lstrip("="), verdict)
            for (name, each), verdict in zip(
                self.comparisons.items(), self.verdicts.values(), strict=True
            )
        ]
        return "\n".join([*_table(rows), *_footer(self)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One result's place among several.

    Parameters
    ----------
    name
        What was measured.
    estimate
        What it came to.
    place
        1 for the best; results that are not shown to differ from the best of their group share
        its place, and the next group starts after all of them: 1, 1, 3.
    """

    name: str
    estimate: Estimate
    place: int


def show_change(ratio: Estimate) -> str:
    """Say a ratio as a change, with its interval.

    Examples
    --------
    >>> show_change(Estimate(value=0.982, low=0.971, high=0.994, confidence=0.95, n=20,
    ...                      n_effective=20.0, method="ratio"))
    '1.8% lower [-2.9%, -0.6%]'
    >>> show_change(Estimate(value=2.5, low=2.31, high=2.71, confidence=0.95, n=20,
    ...                      n_effective=20.0, method="ratio"))
    '2.50 times [2.31, 2.71]'
    """
    if ratio.value >= _TIMES:
        digits = min(digits_for(ratio.half_width, ratio.value), _MOST_DIGITS)
        value, low, high = (f"{each:,.{digits}f}" for each in (ratio.value, ratio.low, ratio.high))
        return f"{value} times [{low}, {high}]"
    changes = [100.0 * (each - 1.0) for each in (ratio.value, ratio.low, ratio.high)]
    digits = min(digits_for(100.0 * ratio.half_width, changes[0]), _MOST_DIGITS)
    value, low, high = (f"{round(each, digits) + 0.0:+,.{digits}f}%" for each in changes)
    words = f"{value[1:]} {'higher' if value[0] == '+' else 'lower'}"
    if round(changes[0], digits) == 0.0:
        words = "unchanged"
    return f"{words} [{low}, {high}]"


def _found(comparison: Comparison, *, short: bool = False) -> str:
    if comparison.ratio is None:
        return "no ratio" if short else f"no ratio, difference {_difference(comparison)}"
    change = show_change(comparison.ratio)
    return change if short else f"{change} {percent(comparison.confidence, digits=10)}"


def _difference(comparison: Comparison) -> str:
    return "unknown" if comparison.difference is None else show_estimate(comparison.difference, "")


def _refusal(comparison: Comparison) -> str:
    refusals = (each for each in comparison.notices if each.severity is Severity.REFUSAL)
    why = next((each.sentence for each in refusals), "nothing was measured.")
    return f"{comparison.verdict}, no number: {why}"


def _ending(comparison: Comparison) -> str:
    if comparison.reason is None:
        return ""
    spent = "" if comparison.elapsed_s is None else f", {comparison.elapsed_s:.3g} s"
    return f" · {ended(Decision(stop=True, reason=comparison.reason))}{spent}"


def _chance(chance: float) -> str:
    return "<0.0001" if chance < 0.0001 else f"={chance:.2g}"


def _basis(first: int, second: int, unit: str | None, *, paired: bool) -> str:
    if unit is None:
        return f"n={counted(first)} vs {counted(second)}"
    if paired:
        return many(first, unit)
    return f"{counted(first)} vs {many(second, unit)}"


def _more(comparison: Comparison) -> str:
    if comparison.verdict is not Verdict.UNDECIDED or not comparison.required:
        return ""
    return f", {counted(comparison.required)} more{'' if comparison.paired else ' each'}"


def _table(rows: list[tuple[str, str, str, str]]) -> list[str]:
    """Lay out rows; a name too long for the table stands on lines of its own."""
    shown, chance, verdict = (max(len(row[column]) for row in rows) for column in (1, 2, 3))
    room = max(_TABLE - shown - chance - verdict - 6, len(rows[0][0]))
    names = min(max(len(row[0]) for row in rows), room)
    lines = []
    for name, *cells in rows:
        if len(name) > names:
            lines += textwrap.wrap(name, _TABLE, break_on_hyphens=False)
        first = name if len(name) <= names else ""
        lines.append(f"{first:<{names}}  {cells[0]:<{shown}}  {cells[1]:>{chance}}  {cells[2]}")
    return lines


def _footer(family: Family) -> list[str]:
    example = next(iter(family.comparisons.values()))
    told = []
    if family.summary is not None:
        told.append(f"geometric mean of {many(family.summary.n, 'ratio')}: ")
        told[0] += f"{show_change(family.summary)} {percent(family.summary.confidence, digits=10)}"
    told.append(
        f"{percent(example.confidence, digits=10)} intervals, margin {percent(example.margin)}, "
        f"false discoveries at most {percent(family.rate)}"
    )
    told += [f"! {notice}" for notice in family.notices]
    return [
        line
        for each in told
        for line in textwrap.wrap(each, _TABLE, subsequent_indent="  ", break_on_hyphens=False)
    ]
