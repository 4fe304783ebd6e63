"""Recorded readings under other rules: their estimates, and when they would have stopped."""

from __future__ import annotations

from dataclasses import dataclass

from benchrigor.model.estimate import Estimate
from benchrigor.model.one_line import OneLine, Reported


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling(OneLine):
    """The result of one rule.

    Parameters
    ----------
    stopped
        Number of readings (or rounds) after which the rule stops; None if it would go on beyond
        the recording.
    estimate
        Its estimate at the stop; None if it does not stop.
    final
        Its estimate of the whole recording; None if it refuses.
    sentence
        Why a number or a stop is missing; empty if neither is.
    later
        Estimate of the recording after the stop, by its long-run variance (for restarted rounds,
        by their spread); None without a stop, or if too little follows.
    held
        Whether ``estimate`` agrees with ``later``, given both standard errors. None if too little
        follows, or if ``later`` is so wide that nearly anything agrees with it.
    """

    name: str
    stopped: int | None = None
    estimate: Estimate | None = None
    final: Estimate | None = None
    sentence: str = ""
    later: Estimate | None = None
    held: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay(Reported):
    """Recorded readings, judged under one or more rules; ``print(replay)`` is a table.

    Parameters
    ----------
    n
        Number of recorded readings (or rounds).
    counted_in
        Unit of ``n`` and `Ruling.stopped`: "reading", "round" or "piece".
    target
        Relative half-width to reach; None if the target was absolute or missing.
    confidence
        Nominal coverage, in (0, 1).
    unit
        Of the readings.
    rulings
        One per rule, in the order in which they were given.

    Examples
    --------
    >>> early = Estimate(value=0.010, low=0.0096, high=0.0104, confidence=0.95, n=500,
    ...                  n_effective=500.0, method="long-run-variance")
    >>> print(Replay(name="sort", n=800, counted_in="reading", target=0.05, confidence=0.95,
    ...              unit="s", rulings=(Ruling(name="mine", stopped=500, estimate=early,
    ...                                        final=early, held=True),)))
    sort: 800 readings replayed, half-width wanted 5%
    rule  would stop at  estimate                    later
    mine            500  10.00 ms [9.60, 10.40] 95%  yes
                 in all  10.00 ms [9.60, 10.40] 95%
    later: whether the interval at the stop agrees with the readings after it
    """

    _page = "benchrigor.report.planning_text:replay_page"

    name: str
    n: int
    counted_in: str
    target: float | None
    confidence: float
    unit: str
    rulings: tuple[Ruling, ...]
