"""Sample sizes planned from a run: its cost, and the least that its stop rule takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Analysis, Code, Estimate, Notice, RunRecord
from benchrigor.model.comparison import Plan
from benchrigor.model.notice import Severity, weakening
from benchrigor.model.series import short
from benchrigor.stats.planning import plan_sizes
from benchrigor.stats.readings.inference_units import PIECES, unit_of
from benchrigor.stats.statistic import MIN_PIECES


def plan(
    known: RunRecord | Estimate,
    *,
    change: float = 0.03,
    power: float = 0.8,
    confidence: float | None = None,
    margin: float = 0.0,
    half_widths: Sequence[float] = (0.05, 0.02, 0.01, 0.005),
    metric: str | None = None,
) -> Plan:
    """Plan the measurements that show a change, and the cost of narrower intervals.

    The pilot run may be short and may have missed its target.

    Parameters
    ----------
    known
        A run, which also shows the time per reading; or an estimate alone.
    change
        Relative change of the mean to detect, more than ``margin``: 0.03 for 3%.
    power
        Probability of detecting it, in (0, 1).
    confidence
        Confidence of the comparison's interval and of the prices, in (0, 1); None as for
        ``known``.
    margin
        The change is detected if the ratio's whole interval lies beyond this relative margin; 0
        for the classical test.
    half_widths
        Relative half-widths to price.
    metric
        Metric of a run; None for the first that must be satisfied.

    Returns
    -------
    Plan
        ``print(plan)`` shows it. ``n`` counts readings or invocations of one side. The cost
        includes readings that were cut, once per run. An invocation includes its own warm-up and
        its share of failed invocations.

    Raises
    ------
    InvalidInput
        When an argument is out of range, the value is (nearly) 0, or the change is out of reach.
    NotEstimable
        When no estimate is known, or it has no noise (a single invocation, constant readings).

    Notes
    -----
    See `stats.planning.plan_sizes`. The prices of a run cover at least the minimum of its
    stop rule. If all readings are of one process, the plan lacks the variance between processes,
    and a Notice says so.

    Examples
    --------
    >>> pilot = Estimate(value=10.0, low=9.9, high=10.1, confidence=0.95, n=400,
    ...                  n_effective=400.0, method="long-run-variance")
    >>> print(plan(pilot, change=0.02, half_widths=(0.01, 0.005)))
    10.000 [9.900, 10.100] 95% from 400 readings
      to see    a change of 2% with power 80%
      takes     408 readings a side (357 to 470)
      so far    400 readings a side: power 79.3%, finds changes from 2.02%
      costs     half-width 1%:      400 readings  (350 to 462)
                half-width 0.5%:  1,600 readings  (1,400 to 1,848)
    """
    sized = partial(
        plan_sizes,
        change=change,
        power=power,
        confidence=confidence,
        margin=margin,
        half_widths=half_widths,
    )
    if isinstance(known, Estimate):
        return sized(known, least=2)
    if not isinstance(known, RunRecord):
        raise InvalidInput(f"known is {short(known)}, expected a RunRecord or an Estimate")
    analysis = known.analysis(metric)
    if analysis is None or analysis.estimate is None:
        raise NotEstimable(_why_none(known.name, analysis))
    pilot = analysis.estimate
    unit = unit_of(analysis)
    evidence = unit.evidence(known.options.preset)
    effective = evidence.effective * pilot.n / pilot.n_effective
    least = max(evidence.second_check, math.ceil(effective * (1.0 - 1e-12)))
    if unit is PIECES:
        least = MIN_PIECES
    return _add_prices(sized(pilot, least=least), known, analysis)


def _why_none(name: str, analysis: Analysis | None) -> Notice:
    """Return why a run has no estimate."""
    notices = () if analysis is None else analysis.notices
    nothing = Notice.of(Code.NO_DATA, "plan", name_=name)
    return next((notice for notice in notices if notice.severity is Severity.REFUSAL), nothing)


def _add_prices(sizes: Plan, record: RunRecord, analysis: Analysis) -> Plan:
    """Add name and unit, wall times, and a warning of a single process."""
    # Every invocation pays for its warm-up, a series only once.
    cut = 0 if analysis.is_combined else max(analysis.n - sizes.pilot.n, 0)
    # Readings that were recorded elsewhere have no duration.
    spent = record.elapsed_s or None

    def seconds(size: int) -> float | None:
        return None if spent is None else spent * (size + cut) / (sizes.pilot.n + cut)

    notices = sizes.notices
    if unit_of(analysis).one_process:
        notices = (Notice.of(Code.THIS_PROCESS_ONLY, "plan"), *notices)
    known = {notice.code for notice in notices}
    of_run = (notice for notice in weakening(record.session_notices) if notice.code not in known)
    notices = (*of_run, *notices)
    return replace(
        sizes,
        name=record.name,
        unit=analysis.metric.unit,
        seconds=seconds(sizes.n),
        pilot_seconds=spent,
        prices=tuple(replace(price, seconds=seconds(price.n)) for price in sizes.prices),
        notices=notices,
    )
