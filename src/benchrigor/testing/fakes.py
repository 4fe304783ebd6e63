"""A clock that moves only on request."""

from __future__ import annotations

import math
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from benchrigor.errors import StoreFailed
from benchrigor.model import Round, RoundPlan, RunRecord, Sample
from benchrigor.model.checks import refuse, wrong_values
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import Floats, Ints
from benchrigor.protocols import Recorder


class FakeClock:
    """A clock without time of its own, so that hours of measuring pass in milliseconds.

    Parameters
    ----------
    start_ns
        The first time that it shows.
    resolution_ns
        The clock shows whole multiples of it.
    cost_ns
        How far each read moves the clock.
    script
        The times that it shows first, in any case; it may go backwards or stand still.
        After the last of them the clock goes on from there.

    Examples
    --------
    >>> clock = FakeClock(cost_ns=1)
    >>> clock.sleep_ns(500)
    >>> clock.now_ns(), clock.now_ns()
    (500, 501)
    >>> broken = FakeClock(script=[100, 90])
    >>> broken.now_ns(), broken.now_ns(), broken.now_ns()
    (100, 90, 90)
    """

    def __init__(
        self,
        start_ns: int = 0,
        resolution_ns: int = 1,
        cost_ns: int = 0,
        *,
        script: Iterable[int] = (),
    ) -> None:
        self.resolution_ns = resolution_ns
        self._cost_ns = cost_ns
        self._time_ns = start_ns
        self._script = deque(script)

    def now_ns(self) -> int:
        """Return the time shown, and move on by the cost of a read."""
        if self._script:
            self._time_ns = self._script.popleft()
            return self._time_ns
        shown = self._time_ns - self._time_ns % self.resolution_ns
        self._time_ns += self._cost_ns
        return shown

    def advance(self, duration_ns: int) -> None:
        """Move by ``duration_ns``; a negative duration moves back, which no clock should."""
        self._time_ns += duration_ns

    def sleep_ns(self, duration_ns: int) -> None:
        """Move by ``duration_ns`` without waiting."""
        self.advance(duration_ns)


class FakeMeter:
    """Measures the delay that a test adds, while its clock moves on; a `protocols.DelayMeter`.

    Parameters
    ----------
    clock
        Moves on by each delay.

    Examples
    --------
    >>> clock = FakeClock()
    >>> meter = FakeMeter(clock)
    >>> meter.lose(2_000_000)
    >>> meter.delay_ns(), clock.now_ns()
    (2000000, 2000000)
    """

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._delay_ns = 0

    def lose(self, delay_ns: int) -> None:
        """Wait for a processor for that long."""
        self._delay_ns += delay_ns
        self._clock.advance(delay_ns)

    def delay_ns(self) -> int:
        """Return the delay so far."""
        return self._delay_ns

    def wait_for(self, pid: int) -> Callable[[], tuple[int, int]]:
        """Measure the delay that a test adds until the process ends, and know all of its work."""
        before_ns = self._delay_ns
        with suppress(AttributeError, OSError):  # not every system has waitid
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return lambda: (self._delay_ns - before_ns, sys.maxsize)


class FakeSampler:
    """Reports the values that a test sets; a `protocols.Sampler`.

    Parameters
    ----------
    values
        By name, None for an unknown one; a test may change them.
    name
        Its name for itself.
    clock, cost_s
        Moves on by that many seconds whenever a sample is taken.

    Examples
    --------
    >>> sampler = FakeSampler({"memory available share": 50.0})
    >>> sampler.values["memory available share"] = 3.0
    >>> print(*sampler.sample())
    memory available share: 3
    """

    def __init__(
        self,
        values: Mapping[str, float | str | None],
        *,
        name: str = "fake",
        clock: FakeClock | None = None,
        cost_s: float = 0.0,
    ) -> None:
        self.values = dict(values)
        self._name, self._clock, self._cost_s = name, clock or FakeClock(), cost_s

    def describe(self) -> str:
        """Return its name."""
        return self._name

    def sample(self) -> Iterator[Sample]:
        """Yield the values as they are set now."""
        self._clock.advance(round(self._cost_s * 1e9))
        for name, value in self.values.items():
            yield Sample(name, value, reason="a test hides it" if value is None else "")


class MemoryStore:
    """Keeps runs as long as it lives; the ids count up from ``"run-1"``.

    It passes the same laws as the journal, apart from outliving its process.

    Examples
    --------
    >>> from benchrigor.model import Options, RoundPlan
    >>> store = MemoryStore()
    >>> run_id = store.begin(RunRecord(name="sort", options=Options(), metrics=(), seed=1,
    ...                                rounds=(), analyses=()))
    >>> store.append(run_id, Round(plan=RoundPlan(index=0), elapsed_ns=5, readings={"time": 5e-9}))
    >>> run_id, len(store.load(run_id).rounds)
    ('run-1', 1)
    """

    def __init__(self) -> None:
        self._headers: dict[str, RunRecord] = {}
        self._rounds: dict[str, dict[int, Round]] = {}
        self._results: dict[str, list[tuple[int, RunRecord]]] = {}

    def begin(self, header: RunRecord) -> str:
        """Open a run and return its id."""
        run_id = f"run-{len(self._headers) + 1}"
        self._headers[run_id] = header
        self._rounds[run_id] = {}
        self._results[run_id] = []
        return run_id

    def append(self, run_id: str, finished: Round) -> None:
        """Keep a finished round; StoreFailed if the run holds a round of that index."""
        rounds = self._rounds[self._full_id(run_id)]
        index = finished.plan.index
        if index in rounds:
            raise StoreFailed(f"round {index} of run {run_id} is stored already")
        rounds[index] = finished

    def finish(self, run_id: str, record: RunRecord) -> None:
        """Keep the result of a run, as of the rounds appended so far."""
        self._results[self._full_id(run_id)].append((len(self._rounds[run_id]), record))

    def runs(self, query: str = "") -> list[dict[str, Any]]:
        """List the runs with ``query`` in their id or name, newest first."""
        return [
            self._summary(run_id, header)
            for run_id, header in reversed(self._headers.items())
            if query in run_id or query in header.name
        ]

    def load(self, run_id: str) -> RunRecord:
        """Return the record of a run, finished or not."""
        rounds = self._rounds[self._full_id(run_id)]
        record = self._result(run_id) or self._headers[run_id]
        in_order = tuple(rounds[index] for index in sorted(rounds))
        return replace(record, rounds=in_order, run_id=run_id)

    def _full_id(self, run_id: str) -> str:
        if run_id not in self._headers:
            raise StoreFailed(f"no run {run_id!r}, expected one of {list(self._headers)}")
        return run_id

    def _result(self, run_id: str) -> RunRecord | None:
        """Return the latest result, unless a round was appended after it."""
        count, record = next(reversed(self._results[run_id]), (None, None))
        return record if count == len(self._rounds[run_id]) else None

    def _summary(self, run_id: str, header: RunRecord) -> dict[str, Any]:
        result = self._result(run_id)
        decision = result.decision if result else None
        return {
            "run_id": run_id,
            "name": header.name,
            "started_at": header.provenance.started_at if header.provenance else "",
            "commit": header.provenance.commit if header.provenance else None,
            "rounds": len(self._rounds[run_id]),
            "finished": result is not None,
            "reason": str(decision.reason) if decision and decision.reason else None,
            "headline": str(result) if result else "",
        }


_BETWEEN = 0.9  # share of a bimodal variance that lies between its modes
_SIGMAS = 6.0  # standard deviations that a normal variable falls short in one of 1e9 draws
# How many standard deviations a series of each kind falls short; None if it stays above 0.
_REACH = {
    "normal": _SIGMAS,
    "bimodal": math.sqrt(_BETWEEN) + _SIGMAS * math.sqrt(1 - _BETWEEN),
    "lognormal": None,
}
_TERMS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialWarmUp(OneLine):
    """Adds ``mean * amplitude * exp(-i / time_constant)`` to reading i."""

    amplitude: float
    time_constant: float

    def at(self, index: Ints) -> Floats:
        """Return the increase of the readings of these indices, over the mean."""
        return np.asarray(self.amplitude * np.exp(-index / self.time_constant))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWarmUp(OneLine):
    """Adds ``mean * amplitude`` to the first ``length`` readings."""

    amplitude: float
    length: int

    def at(self, index: Ints) -> Floats:
        """Return the increase of the readings of these indices, over the mean."""
        return np.where(index < self.length, self.amplitude, 0.0)


class _Movable(Protocol):
    """A clock that can be moved, such as FakeClock."""

    def advance(self, duration_ns: int) -> None: ...


@dataclass(slots=True, kw_only=True, eq=False)
class SyntheticWorkload(OneLine):
    """Gives readings of a known process: a stationary series, and a warm-up added to it.

    A series is the same however it is cut into rounds.

    Parameters
    ----------
    mean
        Of the stationary part, more than 0.
    noise
        "normal": Gaussian, its autocorrelation at lag k is ``phi**k``. "lognormal": skewed, the
        exponential of such a series. "bimodal": two modes, equally often; the next reading is of
        the other mode with probability ``(1 - phi) / 2``; a little Gaussian noise in each.
    cv
        Standard deviation of the stationary part over its mean.
    phi
        Memory of the reading before, in (-1, 1).
    warm_up
        Transient at the beginning of a series.
    total
        Readings in a series, after which it ends; None for no end.
    restarted
        Each round is an invocation: a series of its own, drawn from the seed and the round's
        index, with its own warm-up.
    between_cv
        Standard deviation of the levels of restarted rounds, over the mean; Gaussian.
    seed
        Of everything that is drawn.
    clock
        Moved by the sum of the readings.
    metric
        Name of the metric that the readings are of, in seconds.

    Raises
    ------
    InvalidInput
        Naming every parameter that is out of range. Durations are positive, so what could give
        negative ones is refused: a normal ``cv`` above 1/6, or a bimodal one above 0.35.

    Examples
    --------
    >>> workload = SyntheticWorkload(mean=2.0, cv=0.1, phi=0.5, seed=1)
    >>> workload.truth, round(workload.long_run_variance, 9)
    (2.0, 0.12)
    >>> workload.draw(RoundPlan(index=0, readings=3)).shape
    (3,)
    """

    mean: float = 1.0
    noise: str = "normal"
    cv: float = 0.1
    phi: float = 0.0
    warm_up: ExponentialWarmUp | StepWarmUp | None = None
    total: int | None = None
    restarted: bool = False
    between_cv: float = 0.0
    seed: int = 0
    clock: _Movable | None = None
    metric: str = "time"
    _series: _Series = field(init=False, repr=False)
    _drawn: int = field(init=False, repr=False, default=0)

    def __post_init__(self) -> None:
        refuse(self._problems())
        self._series = self._new_series()

    @property
    def truth(self) -> float:
        """The mean of the stationary part, exactly."""
        return self.mean

    @property
    def long_run_variance(self) -> float:
        """Variance of the mean of n readings of one series, times n, for large n.

        The sum of the autocovariances at all lags. Geometric ones add up to the variance times
        (1 + phi) / (1 - phi). Those of a lognormal series of mean 1, exp(s phi**abs(k)) - 1 with
        s the variance of its logarithm, are expanded in powers of s, each of them geometric.
        """
        if self.noise == "lognormal":
            log_variance = math.log1p(self.cv**2)
            coefficient, terms = 1.0, []
            for power in range(1, _TERMS):
                coefficient *= log_variance / power
                terms.append(coefficient * _memory(self.phi**power))
            return self.mean**2 * math.fsum(terms)
        lasting = _BETWEEN if self.noise == "bimodal" else 1.0
        return (self.mean * self.cv) ** 2 * (lasting * _memory(self.phi) + 1 - lasting)

    def draw(self, plan: RoundPlan) -> Floats:
        """Return the readings of a round; StopIteration when the series has ended."""
        series, first = self._series, self._drawn
        if self.restarted:
            series, first = self._new_series(plan.index), 0
        n = plan.readings if self.total is None else min(plan.readings, self.total - first)
        if n <= 0:
            raise StopIteration
        self._drawn += n
        index = np.arange(first, first + n)
        readings = series.draw(n)
        if self.warm_up is not None:
            readings += self.warm_up.at(index)
        return readings * (self.mean * (1 + self.between_cv * series.level))

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        """Record the readings of a round; ``total`` may cut the last one short."""
        readings = self.draw(plan)
        if self.clock is not None:
            self.clock.advance(round(float(readings.sum()) * 1e9))
        recorder.unit_readings(self.metric, readings)

    def _new_series(self, *key: int) -> _Series:
        return _Series(self.noise, self.cv, self.phi, np.random.SeedSequence([self.seed, *key]))

    def _problems(self) -> list[str]:
        between, kinds = self.between_cv, ", ".join(_REACH)
        problems = wrong_values(
            [
                ("mean", self.mean, 0 < self.mean < math.inf, "more than 0"),
                ("noise", self.noise, self.noise in _REACH, f"one of {kinds}"),
                ("cv", self.cv, 0 <= self.cv < math.inf, "0 or more"),
                ("phi", self.phi, -1 < self.phi < 1, "between -1 and 1, both excluded"),
                ("between_cv", between, 0 <= between <= 1 / _SIGMAS, "from 0 to 1/6"),
                ("between_cv", between, self.restarted or between == 0, "0 unless restarted"),
            ]
        )
        if not problems and self._lowest() < 0:
            problems.append(
                f"readings could fall to {self.mean * self._lowest():.3g}, expected durations; "
                f"lower cv ({self.cv}) or raise a negative amplitude"
            )
        return problems

    def _lowest(self) -> float:
        """Return how low readings could fall, over their mean."""
        reach = _REACH[self.noise]
        noise = 0.0 if reach is None else 1 - reach * self.cv
        return noise + (0.0 if self.warm_up is None else min(0.0, self.warm_up.amplitude))


def _memory(phi: float) -> float:
    """Return the sum of ``phi**abs(k)`` over all lags k."""
    return (1 + phi) / (1 - phi)


class _Series:
    """A stationary series of mean 1 that goes on where the last draw ended."""

    def __init__(self, noise: str, cv: float, phi: float, seed: np.random.SeedSequence) -> None:
        # One stream for each kind of draw, lest the length of a draw of one shift the others.
        gauss, modes, level = (np.random.default_rng(each) for each in seed.spawn(3))
        self.level = float(level.standard_normal())
        self._noise = noise
        self._cv = cv
        self._phi = phi
        self._gauss = gauss
        self._modes = modes
        self._last = float(gauss.standard_normal())
        self._mode = 1.0 if modes.random() < 0.5 else -1.0

    def draw(self, n: int) -> Floats:
        if self._noise == "bimodal":
            within = math.sqrt(1 - _BETWEEN) * self._gauss.standard_normal(n)
            return 1 + self._cv * (math.sqrt(_BETWEEN) * self._switching(n) + within)
        if self._noise == "lognormal":
            log_variance = math.log1p(self._cv**2)
            return np.exp(math.sqrt(log_variance) * self._autoregressive(n) - log_variance / 2)
        return 1 + self._cv * self._autoregressive(n)

    def _autoregressive(self, n: int) -> Floats:
        """Draw a Gaussian AR(1) of variance 1, z[i] = phi z[i-1] + sqrt(1 - phi**2) e[i]."""
        shocks = self._gauss.standard_normal(n)
        if self._phi == 0:
            return shocks
        # Imported here: it takes half a second, for autocorrelated series only.
        from scipy import signal  # noqa: PLC0415

        start = [self._phi * self._last]
        series, _ = signal.lfilter([math.sqrt(1 - self._phi**2)], [1, -self._phi], shocks, zi=start)
        self._last = float(series[-1])
        return np.asarray(series)

    def _switching(self, n: int) -> Floats:
        """Draw a symmetric Markov chain of -1 and 1 with the autocorrelation phi**k at lag k."""
        changes = self._modes.random(n) < (1 - self._phi) / 2
        modes: Floats = self._mode * np.where(changes, -1.0, 1.0).cumprod()
        self._mode = float(modes[-1])
        return modes
