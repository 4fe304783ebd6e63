"""Planning from a run: what it knows of cost, and what the stopping rule asks for at least."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Kind, Notice, Plan, RunRecord, Severity
from benchrigor.model.series import short
from benchrigor.session.stop_rules import floor_for
from benchrigor.stats.planning.power import plan_sizes


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
    """Tell how much to measure to see a change, and what narrower intervals cost.

    A short run is enough to plan a long one: it need not have reached its target.

    Parameters
    ----------
    known
        A run, which also tells what time it took; or an estimate alone.
    change
        Relative change of the mean that is to be seen, more than ``margin``: 0.03 for 3%.
    power
        Chance of seeing it that is wanted, in (0, 1).
    confidence
        Of the comparison's interval and of the price list, in (0, 1); None for that of ``known``.
    margin
        The change counts as seen when the whole interval of the ratio lies beyond this relative
        margin, as in a comparison; 0 for the classical test.
    half_widths
        Relative half-widths whose prices are wanted.
    metric
        Of a run: which of its metrics; None for the first that must be satisfied.

    Returns
    -------
    Plan
        ``print(plan)`` shows it. ``n`` counts readings or invocations, as the estimate does, and
        is meant per side. Readings that were cut are paid for once per run; invocations bring
        their own warm-up, and failed ones their share of failure.

    Raises
    ------
    InvalidInput
        When an argument is out of range, the value is (nearly) 0, or the change is out of reach.
    NotEstimable
        When there is no estimate, or it tells nothing of the noise (a single invocation, constant
        readings).

    Notes
    -----
    How sizes are found stands with `stats.planning.power.plan_sizes`. A run's prices are never
    below what its stopping rule looks at first. Where the readings came from one process, what
    differs from process to process is not in the plan, which a Notice says.

    Examples
    --------
    >>> pilot = Estimate(value=10.0, low=9.9, high=10.1, confidence=0.95, n=400,
    ...                  n_effective=400.0, method="long-run-variance")
    >>> print(plan(pilot, change=0.02, half_widths=(0.01, 0.005)))
    10.000 [9.900, 10.100] 95% from 400 readings
      to see    a change of 2% with power 80%
      takes     408 readings a side (357 to 470)
      so far    400 readings a side: power 79.3%, smallest change seen 2.02%
      costs     half-width 1%:     400 readings (350 to 462)
                half-width 0.5%: 1,600 readings (1,400 to 1,848)
    """
    if isinstance(known, Estimate):
        pilot, least = known, 2
    elif isinstance(known, RunRecord):
        pilot = _estimate_of(known, metric)
        least = _least(known, metric, pilot)
    else:
        raise InvalidInput(f"known is {short(known)}, expected a RunRecord or an Estimate")
    sizes = plan_sizes(
        pilot,
        change=change,
        power=power,
        confidence=confidence,
        margin=margin,
        half_widths=half_widths,
        least=least,
    )
    return sizes if isinstance(known, Estimate) else _priced(sizes, known, metric)


def _estimate_of(record: RunRecord, metric: str | None) -> Estimate:
    analysis = record.analysis(metric)
    if analysis is not None and analysis.estimate is not None:
        return analysis.estimate
    nothing = Notice.refusal(
        Code.NO_DATA, f"The run of {record.name} has no estimate that a plan could start from."
    )
    notices = () if analysis is None else analysis.notices
    raise NotEstimable(
        next((each for each in notices if each.severity is Severity.REFUSAL), nothing)
    )


def _least(record: RunRecord, metric: str | None, pilot: Estimate) -> int:
    """Return the size below which the run's own stopping rule would not have stopped."""
    analysis = record.analysis(metric)
    by_round = analysis is None or analysis.kind is not Kind.UNIT_READINGS
    floor = floor_for(record.options, by_round=by_round)
    effective = floor.effective * pilot.n / pilot.n_effective
    return max(floor.first_check, math.ceil(effective * (1.0 - 1e-12)))


def _priced(sizes: Plan, record: RunRecord, metric: str | None) -> Plan:
    """Add the name, the wall times, and what one process does not tell."""
    analysis = record.analysis(metric)
    if analysis is None:  # for the type checker: there is an estimate
        return sizes
    # An invocation pays for its own warm-up, each time; a series only once.
    cut = 0 if analysis.kind is Kind.INVOCATIONS else max(analysis.n - sizes.pilot.n, 0)
    # Readings that were recorded elsewhere took no time here.
    spent = record.elapsed_s or None

    def seconds(size: int) -> float | None:
        return None if spent is None else spent * (size + cut) / (sizes.pilot.n + cut)

    notices = (_one_process(),) if analysis.kind is Kind.UNIT_READINGS else ()
    return replace(
        sizes,
        name=record.name,
        unit=analysis.metric.unit,
        seconds=seconds(sizes.n),
        pilot_seconds=spent,
        prices=tuple(replace(each, seconds=seconds(each.n)) for each in sizes.prices),
        notices=(*notices, *sizes.notices),
    )


def _one_process() -> Notice:
    return Notice.warning(
        Code.THIS_PROCESS_ONLY,
        "The pilot is one process: what differs from process to process is not in the plan.",
    )
