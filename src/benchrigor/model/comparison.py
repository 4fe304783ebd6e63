"""Comparisons of runs: verdicts, what one takes, and how often the intervals of runs held."""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from benchrigor.model.analysis import Observed
from benchrigor.model.decision import StopReason
from benchrigor.model.estimate import Estimate, show_change
from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine, Reported
from benchrigor.units import Direction, many


class Verdict(enum.StrEnum):
    """The position of a ratio's interval relative to the margin that does not matter."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"
    DIFFERENT = "different"  # Beyond the margin, without a better direction


FAILING: Mapping[str, frozenset[Verdict]] = {
    "worse": frozenset({Verdict.WORSE}),
    "undecided": frozenset({Verdict.WORSE, Verdict.UNDECIDED}),
    "never": frozenset(),
}
THESE_RUNS = "these two runs"
_NULL_LEVEL = 0.01  # chance at which a null arm fails although its copies are alike


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Reported):
    """A candidate compared with a baseline; ``print(comparison)`` is one line.

    Parameters
    ----------
    statistic
        Statistic of both sides: "mean", "median", "p10"…
    direction
        The better direction; None if it is not known.
    margin
        Relative change that does not matter: ratios within [1/(1 + margin), 1 + margin].
    confidence
        Nominal coverage of the intervals, in (0, 1).
    paired
        Whether the i-th reading of one side was compared with the i-th of the other.
    unit
        Unit of inference of both sides: "reading", "invocation" or "pair"; None if they differ.
    baseline, candidate
        Estimates of both sides. If the readings allow no number, they are None, as are fields that
        depend on them, and a Notice gives the reason.
    ratio
        Candidate over baseline. If the baseline is not clearly above 0, the interval of positive
        quantities has no end (``math.inf``), and other quantities have no ratio.
    difference
        Candidate minus baseline, in ``readings_in``.
    p_value
        Two-sided p-value of no difference, by the test that the interval of the ratio inverts. If
        the interval has no end, a lower bound: the error probability at which it gets one.
    p_beyond
        Smallest error probability (one minus confidence) at which the whole interval of the ratio
        would lie beyond the margin; 1 if it never does.
    verdict
        BETTER or WORSE if the whole interval of the ratio lies beyond the margin (DIFFERENT if no
        direction is known), EQUIVALENT if the whole interval lies within it, else UNDECIDED. An
        interval that begins at 0 or has no end is UNDECIDED.
    median_ratio
        Median of the ratios of pairs if a few pairs dominate the ratio of means, which a Notice
        explains; else None.
    required
        Further units per side until the half-width of the ratio is half the margin; 0 if it
        is reached, None without a margin or without a forecast.
    reason, elapsed_s
        Why the measurement ended, and its duration in seconds; None for earlier readings.
    readings_in
        Unit of the readings, such as "s"; empty if it is not known.
    observed
        Summary of the readings if pairs have no ratio, under the names "baseline", "candidate" and
        "ratio" (candidate over baseline, from pairs of positive readings).
    names
        Names of baseline and candidate; empty if they are not known.
    scope
        The scope of the verdict: "these two runs" if they were not measured in turn and share no
        reference, so that the machine may be what differs; empty if it is about the code.

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
    the candidate is 3.1% higher than the baseline [2.0%, 4.2%]
    """

    _facts = "benchrigor.report.facts.comparison_facts:facts_of_comparison"
    _page = "benchrigor.report.facts.comparison_facts:line_of_comparison"
    _sheet = "benchrigor.report.sheets:sheet_of_comparison"

    statistic: str
    direction: Direction | None
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
    median_ratio: Estimate | None = None
    notices: tuple[Notice, ...] = ()
    reason: StopReason | None = None
    elapsed_s: float | None = None
    readings_in: str = ""
    observed: Mapping[str, Observed] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    scope: str = ""

    def fails(self, fail_on: str | None) -> bool:
        """Return whether the verdict is one to fail on, "worse" by default.

        Runs that may differ by the machine fail only if asked for.
        """
        asked = fail_on or ("never" if self.scope else "worse")
        return self.verdict in FAILING[asked]

    def show_change(self) -> str:
        """Show the change from the baseline with its interval, without names."""
        if self.ratio is None:
            return "no ratio"
        return show_change(self.ratio, self.readings_in, self.direction)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family(Reported):
    """Comparisons judged together: more comparisons do not mean more false discoveries.

    Parameters
    ----------
    comparisons
        Each comparison by itself, by name.
    adjusted
        By name, `Comparison.p_beyond` adjusted for the size of the family.
    verdicts
        By name; BETTER and WORSE only if ``adjusted`` does not exceed ``rate``.
    rate
        Maximum expected share of false verdicts among the verdicts BETTER and WORSE.
    visible
        By name, the smallest relative change that gets a verdict in 80 % of such families if no
        other benchmark changes; None without an interval.
    summary
        Geometric mean of the ratios; None without a ratio. Its interval has no end
        (``math.inf``) if the ratios depend on each other, like the ratios of two sessions.
    """

    _facts = "benchrigor.report.facts.comparison_facts:facts_of_family"
    _sheet = "benchrigor.report.sheets:sheet_of_family"

    comparisons: Mapping[str, Comparison]
    adjusted: Mapping[str, float]
    verdicts: Mapping[str, Verdict]
    rate: float
    summary: Estimate | None
    notices: tuple[Notice, ...] = ()
    visible: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def counts(self) -> str:
        """The number of comparisons with each verdict, the worst verdict first."""
        counts = Counter(self.verdicts.values())
        return ", ".join(f"{counts[kind]} {kind}" for kind in WORST_FIRST if counts[kind])

    def _line(self) -> str:
        mean = "" if self.summary is None else f" · geometric mean {mean_change(self.summary)}"
        return f"{many(len(self.comparisons), 'comparison')}: {self.counts}{mean}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NullArm(OneLine):
    """Two copies of the old code, measured and judged like old and new: what chance alone shows.

    Parameters
    ----------
    blocks
        In how many blocks both copies ran.
    ratio_spread
        Largest relative change between the copies; None without any ratio.
    visible_change
        Smallest relative change that gets a verdict in 90 % of cases, averaged over the benchmarks;
        None without intervals.
    called
        Benchmarks whose copies the rule of the family calls different.
    p_value
        Chance that copies of the same code differ by as much, over all benchmarks; None if too few
        blocks tell.
    """

    blocks: int
    ratio_spread: float | None
    visible_change: float | None
    called: tuple[str, ...] = ()
    p_value: float | None = None

    @property
    def verdict(self) -> str:
        """Return "failed" if the copies seem to differ, so that nothing else counts, or "held"."""
        is_unlikely = self.p_value is not None and self.p_value < _NULL_LEVEL
        return "failed" if self.called or is_unlikely else "held"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteComparison(Reported):
    """Files of benchmarks, compared with the first file; equal names are the same benchmark.

    Parameters
    ----------
    baseline
        Name of the first file.
    names
        Benchmarks in the first file and in another one, in the order of the first file.
    families
        By name of a further file, its comparisons; the comparisons of all files are judged
        together. A file without any comparison has no entry.
    refused
        By file and benchmark, why a benchmark of both files has no comparison.
    missing
        By file, the benchmarks that only other files have.
    figures
        By file and benchmark, the figures in the file if it has no raw readings.
    """

    _facts = "benchrigor.report.tables:facts_of_suites"
    _sheet = "benchrigor.report.sheets:sheet_of_suites"

    baseline: str
    names: tuple[str, ...]
    families: Mapping[str, Family]
    refused: Mapping[str, Mapping[str, Notice]]
    missing: Mapping[str, tuple[str, ...]]
    figures: Mapping[str, Mapping[str, Mapping[str, float]]]

    def _line(self) -> str:
        shown = (f"{file}: {family!r}" for file, family in self.families.items())
        return f"against {self.baseline}: {'; '.join(shown) or 'nothing compared'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked(OneLine):
    """One result's place among several.

    Parameters
    ----------
    name, estimate
        Name of the result, and its estimate.
    place
        1 for the best; results that are not shown to differ from the best of their group share
        its place, and the next group starts after all of them: 1, 1, 3.
    """

    name: str
    estimate: Estimate
    place: int


WORST_FIRST = (
    *(Verdict.WORSE, Verdict.UNDECIDED, Verdict.DIFFERENT, Verdict.BETTER, Verdict.EQUIVALENT),
)


def worst_first(
    comparisons: Mapping[str, Comparison], verdicts: Mapping[str, Verdict]
) -> list[str]:
    """Return the names by their verdicts, within one verdict by how much worse they became."""

    def badness(name: str) -> tuple[int, float]:
        ratio = comparisons[name].ratio
        grown = 0.0 if ratio is None else ratio.value
        is_higher = comparisons[name].direction is Direction.HIGHER
        return WORST_FIRST.index(verdicts[name]), grown if is_higher else -grown

    return sorted(comparisons, key=badness)


def is_alone(summary: Estimate) -> bool:
    """Whether a summary is a value without an interval."""
    return math.isinf(summary.high)


def mean_change(summary: Estimate, unit: str = "", direction: Direction | None = None) -> str:
    """Show the geometric mean of ratios as a change, with its interval if it has one."""
    if not is_alone(summary):
        return show_change(summary, unit, direction)
    value = round(summary.value, 3) or summary.value
    exact = replace(summary, value=value, low=value, high=value)
    return show_change(exact, unit, direction).partition(" [")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Price(OneLine):
    """The cost of a mean with a given relative half-width.

    Parameters
    ----------
    half_width
        Relative half-width of the interval.
    n
        Readings (or invocations) in all.
    n_low, n_high
        Range of that number: the variance is known from a pilot only.
    seconds
        Wall time; None if the wall time of the pilot is not known.
    """

    half_width: float
    n: int
    n_low: int
    n_high: int
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Reported):
    """How much to measure, from a pilot; ``print(plan)`` shows it in a few lines.

    Parameters
    ----------
    pilot
        The estimate that the plan starts from; the comparison has the same confidence.
    counted_in
        Unit of the sizes: "reading" or "invocation".
    change, margin, power
        The relative change to detect, the margin that it must exceed, and the probability of
        detecting it.
    n
        Readings (or invocations) per side of the comparison.
    n_low, n_high
        Range of that number: the variance is known from a pilot only.
    power_now
        Probability of detecting the change if both sides have the size of the pilot.
    change_now
        Smallest relative change that this size detects with the requested power.
    prices
        Costs of narrower and narrower intervals of one mean.
    name, unit
        Name of the pilot, and the unit of its value; empty if they are not known.
    seconds
        Wall time per side; None if the wall time of the pilot is not known.
    pilot_seconds
        Wall time of the pilot; None if it is not known.
    notices
        Notices on the pilot and on the plan.
    """

    _facts = "benchrigor.report.planning_text:facts_of_plan"

    pilot: Estimate
    counted_in: str
    change: float
    margin: float
    power: float
    n: int
    n_low: int
    n_high: int
    power_now: float
    change_now: float
    prices: tuple[Price, ...]
    name: str = ""
    unit: str = ""
    seconds: float | None = None
    pilot_seconds: float | None = None
    notices: tuple[Notice, ...] = ()


class Standing(enum.StrEnum):
    """How often intervals held, compared with their claim."""

    AS_CLAIMED = "as claimed"  # The counts do not contradict the claim
    LESS = "less than claimed"
    MORE = "more than claimed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPair(OneLine):
    """Two successive runs of the same thing on one machine; stored runs have ids."""

    name: str
    host: str
    earlier: Estimate
    later: Estimate
    earlier_id: str | None = None
    later_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally(OneLine):
    """How often the intervals of one thing held: ``held`` of ``pairs``."""

    name: str
    held: int
    pairs: int

    @property
    def share(self) -> float:
        """Share of the intervals that held."""
        return self.held / self.pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackRecord(Reported):
    """How often earlier intervals agreed with a later, independent run.

    ``print(record)`` is a sentence or two.

    Parameters
    ----------
    held, pairs
        Number of intervals that held, and number of pairs of runs.
    low, high
        Wilson interval of the share that holds, 95%.
    confidence
        Claimed share of intervals that hold.
    standing
        Whether the counts agree with the claim.
    widening
        Factor by which wider intervals would have held as often as they claim; None with too few
        pairs.
    host
        Name of the machine; None for this one, or if it is not known.
    by_name
        Tallies of the measured things, the worst first; empty if no names are known.
    """

    _facts = "benchrigor.report.planning_text:facts_of_track_record"

    held: int
    pairs: int
    low: float
    high: float
    confidence: float
    standing: Standing
    widening: float | None = None
    host: str | None = None
    by_name: tuple[Tally, ...] = ()

    @property
    def share(self) -> float:
        """Share of the intervals that held."""
        return self.held / self.pairs
