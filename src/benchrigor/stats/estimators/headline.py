"""What a machine shows when it is quiet, with an interval that other runs of the work agree with.

The level at the quiet pace is found as that at full pace is, from the moments of the run near it:
see `pace`. A run that was quiet has it as it was measured, but for the little that its median
reference is from the quiet pace. The width has the errors of this run, and what is known of the
spread between runs: at first an assumption that is worth five degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchrigor.model import Estimate, Floats, Pace, QuietPace
from benchrigor.model.pace import COMMAND_REST, reference_s
from benchrigor.stats.estimators.pace import AT_FULL_PACE, SENSITIVITY, is_unlike
from benchrigor.stats.series.interval import scale, student_t

AT_QUIET_PACE = "at quiet pace"
FEWEST_QUIET_RUNS = 5
MOST_DELAY = 0.01  # share of the time of a quiet run
# Logarithm of a quiet median reference over full pace, and its sd: what busy runs assume. Of the
# median of one quiet run the sd alone.
ABOVE_FULL, ABOVE_FULL_SD, SD_OF_QUIET_RUN = 0.06, 0.025, 0.01
MOST_REST = 4.0  # times the rest of a command at full pace that one of a quiet run may have
NEAR = 0.05  # log of the pace of a quiet run from the quiet pace, up to which it tells the level
# Relative sd between runs that the reference does not explain, assumed at first: of one process,
# whose memory layout is one of many, and of runs of several processes, which show that part.
BETWEEN_RUNS, BETWEEN_RUNS_OF_PROCESSES = 0.015, 0.01
ASSUMED = 5.0  # degrees of freedom of these
CLUSTER_S = 600.0  # runs that begin closer together than that met the same machine


def quiet_of_runs(medians: Mapping[str, Sequence[float]]) -> QuietPace | None:
    """Return the quiet pace, from the median references of quiet runs by kind; None of too few.

    Examples
    --------
    >>> quiet_of_runs({"interpreter": [4.0e-6, 4.1e-6, 4.2e-6, 4.0e-6, 4.6e-6]}).seconds
    {'interpreter': 4.1e-06}
    """
    enough = {kind: median for kind, median in medians.items() if len(median) >= FEWEST_QUIET_RUNS}
    if not enough:
        return None
    paced = [each for kind, each in enough.items() if kind != COMMAND_REST]
    sds = (
        float(np.std(np.log(references), ddof=1)) / math.sqrt(len(references))
        for references in paced
    )
    return QuietPace(
        seconds={kind: float(np.median(each)) for kind, each in enough.items()},
        sd=max(sds, default=0.0),
        runs=min(map(len, enough.values())),
    )


def quiet_of_references(
    times: Mapping[str, Floats], full_s: Mapping[str, float], *, delay: float
) -> QuietPace:
    """Return what a run's own references, next to undisturbed readings, show of the quiet pace.

    Of a quiet run it is their median. Of a busy one, whose median follows its neighbours, it is the
    usual distance above full pace, if its median is not nearer.
    """
    medians = {kind: float(np.median(time)) for kind, time in times.items()}
    if is_quiet(medians, full_s, delay=delay):
        return QuietPace(seconds=medians, sd=SD_OF_QUIET_RUN)
    above = math.exp(ABOVE_FULL)
    nearer = {kind: min(median, above * full_s[kind]) for kind, median in medians.items()}
    return QuietPace(seconds=nearer, sd=ABOVE_FULL_SD)


def is_quiet(medians: Mapping[str, float], full_s: Mapping[str, float], *, delay: float) -> bool:
    """Whether a run with these median references had the machine nearly for itself.

    Starts of a command that wait far longer than at full pace tell of others, too: no delay is
    counted while the kernel starts a process.
    """
    rest_s = medians.get(COMMAND_REST, 0.0)
    return delay < MOST_DELAY and rest_s <= MOST_REST * full_s.get(COMMAND_REST, rest_s)


def common_quiet(paces: Iterable[QuietPace]) -> QuietPace:
    """Return one quiet pace for several runs: what most quiet runs show, else the fastest.

    How far it is from the true one changes all of them alike.
    """
    best = min(paces, key=lambda pace: (-pace.runs, reference_s(pace.seconds)))
    return replace(best, sd=0.0)


def at_quiet(figure: Estimate, pace: Pace, quiet: QuietPace) -> Estimate:
    """Return the headline of a run with this pace, as it is at another quiet pace."""
    if pace.quiet is None:
        return figure
    ratio = _seconds(quiet, pace) / _seconds(pace.quiet, pace)
    return scale(figure, ratio**pace.sensitivity)


def _seconds(quiet: QuietPace, pace: Pace) -> float:
    """Return the quiet pace of the kinds of reference that a run has; others may be known, too."""
    return reference_s({kind: quiet.seconds[kind] for kind in pace.full_s})


def from_full_pace(figure: Estimate, pace: Pace, quiet: QuietPace, *, is_speed: bool) -> Estimate:
    """Return a figure at full pace, moved to the quiet pace as that of most work would be.

    Only the share of it moves during which a processor worked.
    """
    slower = (_seconds(quiet, pace) / reference_s(pace.full_s)) ** (SENSITIVITY * pace.busy)
    moved = scale(figure, 1.0 / slower if is_speed else slower)
    return replace(moved, method=figure.method.replace(AT_FULL_PACE, AT_QUIET_PACE))


def between_runs(quiet: QuietPace, *, processes: bool) -> float:
    """Return the relative sd between runs that is assumed, with that of the quiet pace."""
    between = BETWEEN_RUNS_OF_PROCESSES if processes else BETWEEN_RUNS
    return math.hypot(between, SENSITIVITY * quiet.sd)


def with_doubt(pace: Pace) -> Pace:
    """Return a pace with twice the component between runs if the reference does not fit."""
    return replace(pace, between=2.0 * pace.between) if is_unlike(pace) else pace


def of_quiet_run(pace: Pace, away: float, measured: Estimate) -> Pace:
    """Return the pace of a quiet run whose median reference is ``away`` from the quiet pace.

    It takes the time measured to the quiet pace, with the error of that. ``pace`` is relative to
    the quiet pace, ``away`` the logarithm.
    """
    t = student_t(max(measured.n_effective - 1.0, 1.0), measured.confidence)
    return replace(
        pace,
        factor=math.exp(-pace.sensitivity * away),
        distance=away,
        error=measured.relative_half_width / t,
        blocks=max(round(measured.n_effective), 2),
        level=None,
        by_piece=(),
    )


def reducible_share(figure: Estimate, pace: Pace) -> float:
    """Return the share of the variance of a figure at this pace that more readings reduce.

    The rest is the uncertainty of the correction, and how far runs differ.
    """
    if not figure.standard_error or figure.value <= 0.0:
        return 1.0
    lasting = math.hypot(pace.away * pace.sensitivity_sd, pace.between)
    return max(1.0 - (lasting * figure.value / figure.standard_error) ** 2, 0.0)


def one_of_each_cluster(began_s: Sequence[float]) -> list[int]:
    """Return the indices of one run of each cluster, the newest first.

    Runs that began within ten minutes of each other met the same machine: they are a cluster.

    Examples
    --------
    >>> one_of_each_cluster([0.0, 300.0, 900.0, 2000.0])
    [3, 2, 1]
    """
    chosen: list[int] = []
    for index in sorted(range(len(began_s)), key=lambda index: -began_s[index]):
        if not chosen or began_s[chosen[-1]] - began_s[index] >= CLUSTER_S:
            chosen.append(index)
    return chosen


class Told(NamedTuple):
    """What a stored run tells of the spread: its log headline, and the variance it assumes."""

    log_value: float
    variance: float


def spread_of(groups: Iterable[Sequence[Told]]) -> tuple[float, float]:
    """Return the sum of squares between like runs, over what they assume, and its freedom."""
    squares = freedom = 0.0
    for group in filter(None, groups):
        values, variances = np.array(group).T
        mean = np.average(values, weights=1.0 / variances)
        squares += float(((values - mean) ** 2 / variances).sum())
        freedom += len(group) - 1.0
    return squares, freedom


def widening(spread: tuple[float, float] = (0.0, 0.0)) -> float:
    """Return the factor of standard errors, from the assumption and the spread of stored runs.

    The posterior of a scale with a scaled inverse chi-squared prior: if all own variances are
    the one assumed, its square is (5 s0^2 + sum nu s^2) / (5 + sum nu) over s0^2.
    """
    squares, freedom = spread
    return math.sqrt((ASSUMED + squares) / (ASSUMED + freedom))


def with_spread(
    figure: Estimate, spread: tuple[float, float] = (0.0, 0.0), before: float = 1.0
) -> Estimate:
    """Return a figure at quiet pace with the interval that the spread between runs asks for.

    ``before`` is the factor that its standard error has already.
    """
    if figure.standard_error is None or figure.value <= 0.0:
        return figure
    error = figure.standard_error / before * widening(spread)
    freedom = min(figure.degrees_of_freedom or math.inf, ASSUMED + spread[1])
    reach = math.exp(student_t(freedom, figure.confidence) * error / figure.value)
    return replace(
        figure,
        low=figure.value / reach,
        high=figure.value * reach,
        method=figure.method.replace(AT_FULL_PACE, AT_QUIET_PACE),
        standard_error=error,
        degrees_of_freedom=freedom,
    )
