"""Simulated workloads that tell work and duration only, and sessions over them.

A round of work w lasts overhead + w / speed, plus noise of one of seven kinds. The speed is known.
Sizes are those of the default schedule: its 50 rounds of a quick result last 1.2 s in the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from coverage_tables import Interval, interval, of
from scipy import special
from scipy.signal import lfilter

import benchrigor as br
from benchrigor.model import Analysis, Estimate

__all__ = [
    "CASES",
    "MEAN_S",
    "NOISES",
    "SPEED",
    "Case",
    "Floats",
    "Ran",
    "bisecting",
    "estimate_of",
    "naive",
    "noisy",
    "plain",
    "session",
    "student",
    "through_origin",
]

Floats = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]
Noise = Callable[["Case", int, float, float], float]

SPEED = 1e8
"""Bytes per second, say."""
MEAN_S, TOP_S = 1.2, 2.4
"""Mean and longest round of a quick result in 60 s."""
DRIFT = 40
"""Rounds over which a drifting overhead rises by half of itself."""
MOST_ROUNDS = 400


def normal(rng: np.random.Generator, n: int) -> Floats:
    """Return independent noise of variance 1."""
    return rng.standard_normal(n)


def lognormal(rng: np.random.Generator, n: int) -> Floats:
    """Return skewed noise about 0, of variance 4.7."""
    return rng.lognormal(0.0, 1.0, n) - math.exp(0.5)


def persistent(rng: np.random.Generator, n: int) -> Floats:
    """Return AR(1) noise with coefficient 0.7, of variance 1."""
    shocks = rng.standard_normal(n) * math.sqrt(1.0 - 0.7**2)
    shocks[0] /= math.sqrt(1.0 - 0.7**2)
    found: Floats = lfilter([1.0], [1.0, -0.7], shocks)
    return found


def added(_case: Case, _index: int, _work_s: float, draw: float) -> float:
    """Return noise of 5 % of the mean round, whatever the work."""
    return 0.05 * MEAN_S * draw


def in_proportion(case: Case, _index: int, work_s: float, draw: float) -> float:
    """Return noise of 5 % of the round."""
    return 0.05 * (case.overhead_s + work_s) * draw


def drifting(case: Case, index: int, _work_s: float, draw: float) -> float:
    """Return an overhead that rises by half of itself in 40 rounds, and a little noise."""
    return case.overhead_s * 0.5 * index / DRIFT + 0.02 * MEAN_S * draw


def fanning(_case: Case, _index: int, work_s: float, draw: float) -> float:
    """Return noise that grows with the square of the work, to 8 % of the longest round."""
    return 0.08 * work_s * (work_s / TOP_S) * draw


NOISES: dict[str, tuple[Draw, Noise]] = {
    "additive": (normal, added),
    "multiplicative": (normal, in_proportion),
    "skewed": (lognormal, added),
    "AR(1) 0.7 additive": (persistent, added),
    "AR(1) 0.7 multiplicative": (persistent, in_proportion),
    "drifting overhead": (normal, drifting),
    "fanning": (normal, fanning),
}
"""Draws, and what becomes of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A workload, and the range of work that a session is given.

    Parameters
    ----------
    share
        Overhead over the mean round of a quick result.
    work
        Range of amounts.
    """

    share: float = 0.0
    work: tuple[float, float | None] = (0, 10**12)

    @property
    def overhead_s(self) -> float:
        """Seconds that each round adds."""
        return self.share * MEAN_S

    def duration(self, noise: str, index: int, work: float, draw: float) -> float:
        """Return how long a round takes; never less than a tenth of its work's own time."""
        work_s = work / SPEED
        found = self.overhead_s + work_s + NOISES[noise][1](self, index, work_s, draw)
        return max(found, 0.1 * work_s)


CASES = {
    "no overhead": Case(),
    "overhead 5 %": Case(share=0.05),
    # The schedule leaves out work that takes less than the overhead, and lets rounds grow to four
    # times the shortest: an overhead is then a fifth of the mean round at most.
    "overhead 20 %": Case(share=0.3),
    # Where the range ends before that: its mean round is again one of 1.2 s.
    "overhead 30 %, range ends": Case(share=0.3, work=(0, int(SPEED * MEAN_S * (1.4 - 0.3)))),
    "overhead 5 %, given range": Case(share=0.05, work=(0.2 * SPEED, 2.0 * SPEED)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What one session gave.

    Parameters
    ----------
    work, duration_s
        Of the rounds that count, in order.
    early
        Its interval of the speed when so many rounds counted; None where it had none.
    analysis
        The last one.
    satisfied
        Whether it stopped at its target.
    rounds, seconds
        All rounds, and what they took.
    """

    work: Floats
    duration_s: Floats
    early: dict[int, Estimate | None] = field(default_factory=dict)
    analysis: Analysis
    satisfied: bool
    rounds: int
    seconds: float


def session(
    case: Case,
    noise: str,
    rng: np.random.Generator,
    *,
    looks: tuple[int, ...] = (40,),
    target: float | None = None,
    order: str = "bisecting",
    method: str = "long-run-variance",
    amounts: Floats | None = None,
) -> Ran:
    """Run a session until so many rounds count as the last look asks for, or to its target.

    The session is asked and told; ``amounts``, where given, override those that it chooses, in
    turn.
    """
    draws = NOISES[noise][0](rng, MOST_ROUNDS)
    options = br.Options(
        target=target or 1e-12,
        work=case.work,
        work_order=order,
        method=method,
        analysis="wps",
        budget_s=math.inf,
        max_rounds=MOST_ROUNDS,
    )
    chosen = None if amounts is None else (lambda plan: float(amounts[plan.index % amounts.size]))
    running = br.Session(options, seed=int(rng.integers(2**32)), next_work=chosen)
    early: dict[int, Estimate | None] = {}
    seconds, kept = 0.0, 0
    while (plan := running.ask()) is not None:
        assert plan.work is not None
        duration = case.duration(noise, plan.index, plan.work, float(draws[plan.index]))
        seconds += duration
        elapsed_ns = math.ceil(duration * 1e9)
        running.tell(br.Round(plan=plan, elapsed_ns=elapsed_ns, readings={"time": duration}))
        assert running.progress is not None
        (analysis,) = running.progress.analyses
        for look in looks:
            if analysis.n_kept < kept:  # small amounts that counted do so no longer
                early.pop(look, None)
            if analysis.n_kept >= look:
                early.setdefault(look, analysis.estimate)
        kept = analysis.n_kept
        if target is None and analysis.n_kept >= looks[-1]:
            running.request_stop()
    return _ran(running.result(), early, seconds)


def _ran(record: br.RunRecord, early: dict[int, Estimate | None], seconds: float) -> Ran:
    (analysis,) = record.analyses
    counts = np.ones(len(record.rounds), dtype=bool)
    counts[list(analysis.left_out)] = False
    return Ran(
        work=np.array([float(each.plan.work or 0.0) for each in record.rounds])[counts],
        duration_s=np.array([each.duration_s for each in record.rounds])[counts],
        early=early,
        analysis=analysis,
        satisfied=record.decision is not None and record.decision.reason == "satisfied",
        rounds=len(record.rounds),
        seconds=seconds,
    )


def bisecting(n: int) -> Floats:
    """Return 1/2, 1/4, 3/4, 1/8 ... : the order of van der Corput."""
    digits = (np.arange(1, n + 1)[:, None] >> np.arange(n.bit_length())) & 1
    found: Floats = digits @ 0.5 ** np.arange(1, n.bit_length() + 1)
    return found


def noisy(case: Case, noise: str, rng: np.random.Generator, work: Floats) -> Floats:
    """Return the durations of rounds of given work."""
    draws = NOISES[noise][0](rng, work.size)
    pairs = enumerate(zip(work.tolist(), draws.tolist(), strict=True))
    return np.array([case.duration(noise, index, *pair) for index, pair in pairs])


def estimate_of(found: Estimate | None) -> Interval | None:
    """Compare an estimate of the speed with the truth."""
    return None if found is None else of(found, SPEED)


def student(freedom: float) -> float:
    """Return the quantile of a two-sided 95 % interval."""
    return float(special.stdtrit(freedom, 0.975))


def plain(work: Floats, duration_s: Floats) -> Interval | None:
    """Ordinary least squares, Student t: its slope's interval, turned over."""
    centred = work - work.mean()
    square = float(centred @ centred)
    slope = float(centred @ duration_s) / square
    rest = duration_s - duration_s.mean() - slope * centred
    freedom = work.size - 2
    reach = student(freedom) * math.sqrt(float(rest @ rest) / freedom / square)
    if slope <= reach:
        return None
    return interval(1.0 / (slope + reach), 1.0 / (slope - reach), SPEED)


def naive(work: Floats, duration_s: Floats) -> Interval:
    """Mean work per second of the rounds, Student t."""
    rates = work / duration_s
    reach = student(rates.size - 1) * float(rates.std(ddof=1)) / math.sqrt(rates.size)
    return interval(float(rates.mean()) - reach, float(rates.mean()) + reach, SPEED)


def through_origin(work: Floats, duration_s: Floats) -> float:
    """Return the speed of a line without overhead."""
    return float(work @ work) / float(work @ duration_s)
