"""How long trials are to be, and how many of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy.typing as npt

from benchrigor.model.checks import refuse, wrong_number, wrong_share
from benchrigor.model.one_line import OneLine, Reported
from benchrigor.model.series import as_series
from benchrigor.stats.series.interval import student_t
from benchrigor.units import many

_MOST_TRIALS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLength(OneLine):
    """Trials of one length: their required number and cost.

    Parameters
    ----------
    duration_s
        Of one trial, in seconds.
    variation
        Standard deviation of its mean over the mean.
    trials
        The number that reaches the target accuracy, two or more; None if 10,000 are not enough.
    cost_s
        Seconds of all of them, with set-up; None if ``trials`` is.
    """

    duration_s: float
    variation: float
    trials: int | None
    cost_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLengthPlan(Reported):
    """The costs of run lengths; ``print(plan)`` shows a row per length.

    Parameters
    ----------
    lengths
        By duration, ascending.
    best
        The cheapest of them; None if all miss the accuracy.
    """

    _page = "benchrigor.workbench.report:run_length_page"

    lengths: tuple[RunLength, ...]
    best: RunLength | None

    def _line(self) -> str:
        return f"{many(len(self.lengths), 'length')}, the cheapest: {self.best}"


def plan_runlength(
    pilots: Mapping[float, npt.ArrayLike],
    accuracy: float,
    confidence: float = 0.95,
    *,
    setup_s: float = 0.0,
) -> RunLengthPlan:
    """Return the required number of trials by length, and the cheapest length.

    The interval of a mean over t trials is Student's t with t - 1 degrees of freedom. The standard
    deviation between trials is estimated from the pilots, and rough if they are few: with five it
    is known within a factor of two or so.

    Parameters
    ----------
    pilots
        By duration in seconds, two or more means of trials of that length at one load.
    accuracy
        Target relative half-width: .10 for the published accuracy of 90 %.
    confidence
        Of that interval.
    setup_s
        Seconds that a trial costs in addition to its duration.

    Returns
    -------
    RunLengthPlan

    Raises
    ------
    InvalidInput
        When an argument is out of range, or a length has less than two trials.

    Notes
    -----
    Shivam et al. (USENIX ATC 2008), section 3.3 and Figure 6.

    Examples
    --------
    >>> plan = plan_runlength({90: [35, 42, 38, 44], 300: [39, 40.5, 41, 39.5]}, 0.1, setup_s=20)
    >>> print(plan)
    seconds  variation  trials      cost
         90      10.1%       7  12.8 min  cheapest
        300       2.3%       3    16 min
    """
    found = [
        (duration_s, as_series(means, name=f"pilots[{duration_s!r}]"))
        for duration_s, means in pilots.items()
    ]
    refuse(
        [] if found else ["pilots is empty, expected means of trials by their duration"],
        wrong_share("accuracy", accuracy),
        wrong_share("confidence", confidence),
        wrong_number("setup_s", setup_s, zero=True),
        *(wrong_number("a duration", seconds) for seconds, _ in found),
        (
            f"pilots[{seconds!r}] holds {means.size} trial, expected two at least"
            for seconds, means in found
            if means.size < 2
        ),
        (
            f"pilots[{seconds!r}] has a mean of {means.mean():g}, expected one above 0"
            for seconds, means in found
            if not means.mean() > 0.0
        ),
    )
    lengths = []
    for duration_s, means in sorted(found):
        variation = float(means.std(ddof=1) / means.mean())
        # The normal quantile is the least of all, so it gives a lower bound of the number.
        wide = variation / accuracy
        least = math.floor((student_t(math.inf, confidence) * wide) ** 2)
        numbers = range(max(2, least), _MOST_TRIALS + 1)
        trials = next(
            (t for t in numbers if student_t(t - 1.0, confidence) * wide <= math.sqrt(t)), None
        )
        cost_s = None if trials is None else trials * (duration_s + setup_s)
        lengths.append(
            RunLength(duration_s=duration_s, variation=variation, trials=trials, cost_s=cost_s)
        )
    known = [length for length in lengths if length.cost_s is not None]
    best = min(known, key=lambda length: length.cost_s or 0.0, default=None)
    return RunLengthPlan(lengths=tuple(lengths), best=best)
