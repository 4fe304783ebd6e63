"""The distribution of the peak, the greatest load within limits, from a few noisy trials."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchrigor.model.series import Floats

Numbers = npt.NDArray[np.floating]

NOISE_OF_S = 60.0  # seconds of the trials with the given noise; noise falls as 1/sqrt(seconds)
# Logarithms of response over limit beyond which a trial only shows that it is far away.
FAR_ABOVE, FAR_BELOW = 2.0, -3.5

# The grid of further unknowns: response of an idle server over the limit, relative sd of a trial of
# 60 s, and distance of the true curve from one of its family (see `Curves` for the bend).
_BASES = np.array([0.01, 0.03, 0.09, 0.2, 0.4, 0.7])
_NOISES = np.array([0.04, 0.08, 0.16, 0.32, 0.64])
_MISFITS = np.array([0.03, 0.12, 0.4])
_NOISE, _NOISE_SD = 0.12, 0.5  # of a lognormal prior
_TRUSTED = 0.75  # power of the likelihood, as curves and noise only resemble the model
_FREEDOM = 4.0  # of Student's t: a machine that stalls for a moment spoils one trial in ten or so
_NEAR = 1.0  # log of response over limit of trials with the same own noise as at the peak
_LOUDER = 1.5  # noise grows as the response does, up to this logarithm over the limit
_BEHIND_POLES = 100.0  # times the peak: farther away all curves are saturated
_ABOVE_ALL = 6.0  # maximum log of the part that grows with the load
_STEP = 1e-4  # of the load, for the slope at the peak
_LOAD_OFF = 0.02  # possible error of a trial's load, which matters near a pole

# The grid of peaks: even points, and points at either side of the likeliest; the number of its
# refinements; the number of peaks to evaluate at once.
_EVENLY, _CLOSER, _CLOSEST, _LOOKS = 40, 10, 0.001, 3
_AT_ONCE = 4
_LIKELY = 1e-6  # of the density of the most likely
_WIDER = 1.0  # of the range, at either side: other noises reach further


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PeakPosterior:
    """The distribution of the peak, given trials.

    Parameters
    ----------
    log_loads, weights
        Logarithms of possible peaks, ascending, and their probabilities, shape (m,).
    slope
        Growth of the response in per cent with 1 % more load, at the peak.
    noise
        Relative standard deviation of the response of a trial of 60 s.
    own
        The same by the trial's own readings, near the peak; 0 if unknown.
    residuals
        By trial, shape (n,): its distance, in standard deviations, above the range of the most
        likely curve within 2 % of the load (negative if below).
    method
        The method of estimates by the family of curves.
    """

    log_loads: Floats
    weights: Floats
    slope: float
    noise: float
    own: float
    residuals: Floats
    method: str

    def quantile(self, q: float) -> float:
        """Return the load below which the peak lies with probability q."""
        middle = (self.log_loads[1:] + self.log_loads[:-1]) / 2.0
        edges = np.concatenate([self.log_loads[:1], middle, self.log_loads[-1:]])
        return math.exp(float(np.interp(q, np.append(0.0, np.cumsum(self.weights)), edges)))

    @property
    def sd(self) -> float:
        """Standard deviation of the logarithm of the peak."""
        return _sd(self.log_loads, self.weights)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curves:
    """A family of responses r over the limit, by loads u over the peak: at u = 1 r is 1.

    Parameters
    ----------
    method
        The method of estimates by these curves.
    formula
        For people.
    log_response
        Returns log r at loads u, given an idle server's r = b and a bend k.
    powers, power_sd
        Bends, and the standard deviation of their logarithm around 0.
    """

    method: str
    formula: str
    log_response: Callable[[Numbers, Numbers, Numbers], Numbers]
    powers: Floats
    power_sd: float


def _with_pole(load: Numbers, base: Numbers, power: Numbers) -> Numbers:
    left = (1.0 - (1.0 - base) * np.minimum(load, _BEHIND_POLES) ** power) / base
    found: Numbers = np.maximum(-np.log(np.maximum(left, math.exp(-FAR_ABOVE))), FAR_BELOW)
    return found


def _without_pole(load: Numbers, base: Numbers, power: Numbers) -> Numbers:
    rise = np.exp(np.minimum(power * np.log(load), _ABOVE_ALL))
    found: Numbers = np.clip(np.log(base + (1.0 - base) * rise), FAR_BELOW, FAR_ABOVE)
    return found


OPEN_LOOP = Curves(
    method="posterior of the peak",
    formula="1/r = (1 - (1 - b) u^k) / b",
    log_response=_with_pole,
    powers=np.array([0.5, 1.0, 2.0, 5.0, 15.0]),
    power_sd=1.0,
)
"""Requests that are independent of earlier ones: beyond a pole the queue grows for ever.

With k = 1 it is 1/R = A - B load, the form of the model-guided policy (seed 002, Algorithm 4),
which describes an M/M/1 server.
"""

CLOSED_LOOP = Curves(
    method="posterior of the peak of a closed loop",
    formula="r = b + (1 - b) u^k",
    log_response=_without_pole,
    powers=np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]),
    power_sd=1.5,
)
"""Users who wait for an answer: there is no pole, as their number limits the queue.

Beyond the capacity the response is load over capacity less their pause, steep if that is long.
"""


def peak_posterior(
    load: Floats,
    ratio: Floats,
    duration_s: Floats,
    *,
    low: float,
    high: float,
    error: Floats | None = None,
    curves: Curves = OPEN_LOOP,
) -> PeakPosterior:
    """Return the distribution of the peak, over all base, power, noise and misfit.

    The log of a trial's response over the limit follows Student's t with 4 degrees of freedom
    around the curve. Its variance has two parts: noise, proportional to 1 / duration and growing
    with the response; and the square of a share of the curve's own log, so that the family is
    trusted near the limit, and hardly far from it. The trial's own readings give a lower limit of
    the noise: a nearly full queue changes so slowly that a few seconds hold hardly one independent
    reading. The posterior is summed over a grid.

    Parameters
    ----------
    load
        Offered loads, shape (n,), more than 0.
    ratio
        Their responses over the limit, 0 or more; infinite if the server broke down, which only
        shows that the peak is below.
    duration_s
        Their durations in seconds.
    low, high
        Bounds of the peak, which is uniform between them on a logarithmic scale.
    error
        Relative standard errors of the responses, from their own readings, shape (n,); 0, or None
        for all, if unknown.
    curves
        The family of responses.

    Returns
    -------
    PeakPosterior

    Examples
    --------
    Trials of a server that serves 200 a second, one after the other, with a limit of 40 ms:

    >>> load = np.array([50.0, 150.0, 170.0, 175.0, 180.0, 250.0])
    >>> ratio = np.array([1 / (200 - x) / 0.04 if x < 200 else np.inf for x in load])
    >>> found = peak_posterior(load, ratio, np.full(6, 60.0), low=10.0, high=1000.0)
    >>> found.quantile(0.025) < 175.0 < found.quantile(0.975)
    True
    """
    trials = _Trials(
        load=load,
        log_ratio=np.clip(np.log(np.maximum(ratio, 1e-9)), FAR_BELOW, FAR_ABOVE).astype("f4"),
        share=(NOISE_OF_S / duration_s).astype("f4"),
        own=(np.zeros_like(load) if error is None else np.minimum(error, 1.0)).astype("f4"),
        broke_down=np.isinf(ratio),
        curves=curves,
    )
    ends = math.log(low), math.log(high)
    nearest = float(np.log(load[np.abs(trials.log_ratio).argmin()]))
    grid = _points(nearest, *ends)
    for _ in range(_LOOKS):  # one noise and one misfit show roughly where the peak is
        p = trials.posterior(grid, _NOISES[2:3], _MISFITS[1:2])
        grid, _ = _zoom(grid, p)
    reach = (grid[-1] - grid[0]) * _WIDER
    mode = grid[_of_peaks(trials.posterior(grid, _NOISES[2:3], _MISFITS[1:2])).argmax()]
    grid = _points(mode, max(grid[0] - reach, ends[0]), min(grid[-1] + reach, ends[1]))
    p = trials.posterior(grid, _NOISES, _MISFITS)
    for _ in range(_LOOKS - 1):
        zoomed, is_fine = _zoom(grid, p)
        if is_fine:
            break
        grid, p = zoomed, trials.posterior(zoomed, _NOISES, _MISFITS)
    return _describe(grid, p, trials)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Trials:
    """Loads, logs of response over limit, variance of noise relative to 60 s, and own noise."""

    load: Floats
    log_ratio: Numbers
    share: Numbers
    own: Numbers
    broke_down: npt.NDArray[np.bool_]
    curves: Curves

    def variance(self, expected: Numbers, noise: Numbers, misfit: Numbers) -> Numbers:
        """Return the variance of the logs around those expected."""
        louder = np.exp(2.0 * np.clip(expected, 0.0, _LOUDER))
        of_trial = np.maximum(noise**2 * louder * self.share, self.own**2)
        found: Numbers = of_trial + misfit**2 * expected**2
        return found

    def posterior(self, grid: Floats, noises: Floats, misfits: Floats) -> Floats:
        """Return probabilities, shape (peaks, bases, powers, noises, misfits)."""
        # Parts that fit into a processor's cache are three times as fast.
        parts = np.array_split(np.exp(grid), math.ceil(grid.size / _AT_ONCE))
        log_p = np.concatenate([self._log_likelihood(part, noises, misfits) for part in parts])
        log_p *= _TRUSTED
        powers = self.curves.powers
        _, _, power, noise, _ = np.ix_(grid, _BASES, powers, noises, misfits)
        log_p += np.log(np.gradient(grid))[:, np.newaxis, np.newaxis, np.newaxis, np.newaxis]
        log_p -= _square(power, 1.0, self.curves.power_sd) + _square(noise, _NOISE, _NOISE_SD)
        p: Floats = np.exp(log_p - log_p.max())
        p /= p.sum()
        return p

    def _log_likelihood(self, peaks: Floats, noises: Floats, misfits: Floats) -> Floats:
        """Return logs, without a constant."""
        # Single precision is enough for terms of a sum, and takes a third of the time.
        peak, base, power, noise, misfit = (
            axis[..., np.newaxis].astype(np.float32)
            for axis in np.ix_(peaks, _BASES, self.curves.powers, noises, misfits)
        )
        expected = self.curves.log_response(self.load.astype(np.float32) / peak, base, power)
        variance = self.variance(expected, noise, misfit)
        far = (self.log_ratio - expected) ** 2 / _FREEDOM
        far *= ~self.broke_down | (expected <= 0.0)
        # Sums are products with vectors, and log1p is not needed as only the sum counts: both take
        # a third of the time that way.
        whole = np.full(self.load.size, _FREEDOM + 1.0, dtype=np.float32)
        terms = np.log(1.0 + far / variance) @ whole
        terms += np.log(variance) @ (~self.broke_down).astype(np.float32)
        found: Floats = -0.5 * terms.astype(np.float64)
        return found


def _square(value: Floats, typical: float, sd: float) -> Floats:
    """Return minus the log density of a lognormal prior, without a constant."""
    return 0.5 * (np.log(value) / sd - math.log(typical) / sd) ** 2


def _sd(values: Floats, weights: Floats) -> float:
    return math.sqrt(float(weights @ (values - weights @ values) ** 2))


def _of_peaks(p: Floats) -> Floats:
    weights: Floats = p.sum(axis=(1, 2, 3, 4))
    return weights


def _points(center: float, low: float, high: float) -> Floats:
    """Return logs of possible peaks: evenly, and more densely near the center.

    On a steep curve a few trials determine the peak to a thousandth, and even points over the whole
    range would all miss it.
    """
    steps = np.geomspace(min(_CLOSEST, (high - low) / _EVENLY), high - low, _CLOSER)
    near = np.concatenate([center - steps, [center], center + steps])
    evenly = np.linspace(low, high, _EVENLY)
    return np.unique(np.concatenate([evenly, near[(near > low) & (near < high)]]))


def _zoom(grid: Floats, p: Floats) -> tuple[Floats, bool]:
    """Return a grid of the likely peaks, and whether this one was fine enough already."""
    weights = _of_peaks(p)
    density = weights / np.gradient(grid)
    likely = np.flatnonzero(density > _LIKELY * density.max())
    first, last = max(likely[0] - 1, 0), min(likely[-1] + 1, grid.size - 1)
    is_fine = bool(np.diff(grid[first : last + 1]).max() <= _sd(grid, weights))
    return _points(float(grid[density.argmax()]), float(grid[first]), float(grid[last])), is_fine


def _describe(grid: Floats, p: Floats, trials: _Trials) -> PeakPosterior:
    """Return the distribution of the peak, and the most likely other parameters."""
    curves = trials.curves
    before, after = (
        curves.log_response(np.array(1.0 + step), *np.ix_(_BASES, curves.powers))
        for step in (-_STEP, _STEP)
    )
    slope = np.log((after - before) / (2.0 * _STEP))
    noise = math.exp(float(p.sum(axis=(0, 1, 2, 4)) @ np.log(_NOISES)))
    misfit = float(p.sum(axis=(0, 1, 2, 3)) @ np.log(_MISFITS))
    best = np.unravel_index(p.argmax(), p.shape)
    share = trials.load / math.exp(grid[best[0]])
    below, expected, above = (
        curves.log_response(share * off, _BASES[best[1]], curves.powers[best[2]])
        for off in (1.0 - _LOAD_OFF, 1.0, 1.0 + _LOAD_OFF)
    )
    variance = trials.variance(expected, np.array(noise), np.exp(misfit))
    near = np.abs(trials.log_ratio) < _NEAR
    own = float(np.median((trials.own / np.sqrt(trials.share))[near])) if near.any() else 0.0
    return PeakPosterior(
        log_loads=grid,
        weights=_of_peaks(p),
        slope=math.exp(float((p.sum(axis=(0, 3, 4)) * slope).sum())),
        noise=max(noise, own),
        own=own,
        residuals=(trials.log_ratio - np.clip(trials.log_ratio, below, above)) / np.sqrt(variance),
        method=curves.method,
    )
