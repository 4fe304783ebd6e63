"""Simulated servers with a known peak: what each answers to a load, for a number of seconds.

Mean responses follow a curve, with noise of trials that goes with 1/sqrt of their duration: noise
of the response itself, and of the capacity, which matters more the nearer a server is to it. One
kind simulates each request instead (Lindley's recursion), so that it is as noisy as a queue.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.optimize import brentq

import benchrigor as br
from benchrigor.workbench import PeakSearch

__all__ = ["ANOMALIES", "SHAPES", "Server", "search", "server_of", "troubled_server"]

NOISE_OF_S = 90.0
LIMIT_S = 0.04
LOW, HIGH = 100.0, 2500.0  # peaks, per second
_NEARLY = 0.97  # of the capacity: from there on a queue grows for as long as a trial lasts
_MOST_REQUESTS = 400_000
Curve = Callable[[float], float]  # from the share of the capacity to the mean response in seconds


@dataclass(kw_only=True)
class Server:
    """A server with a curve of mean responses, and the noise of trials of 90 s."""

    curve: Curve
    peak: float
    limit_s: float
    rng: np.random.Generator
    noise: float
    noise_of_capacity: float
    pole: float = 1.0
    variation: float | None = None  # of service times, where each request is simulated
    trouble: Callable[[Server, float, float], float | None] = lambda *_: None
    crashes_above: float = math.inf
    elapsed_s: float = 0.0
    share_at_peak: float = field(init=False)

    def __post_init__(self) -> None:
        top = self.pole * (1.0 - 1e-9) if self.pole < math.inf else 1e6
        self.share_at_peak = brentq(lambda u: self.curve(u) - self.limit_s, 1e-9, top)

    @property
    def capacity(self) -> float:
        """Load at which a queue begins to grow."""
        return self.peak / self.share_at_peak

    def offer(self, load: float, duration_s: float) -> br.LoadResult:
        """Run a trial."""
        self.elapsed_s += duration_s
        if load > self.crashes_above:
            return br.LoadResult(crashed=True)
        response_s = self.trouble(self, load, duration_s)
        if response_s is None:
            response_s = self.response(load, duration_s)
        return br.LoadResult(mean_response_s=response_s)

    def response(self, load: float, duration_s: float) -> float:
        """Return the mean response of a trial."""
        if self.variation is not None:
            return self._simulated(load, duration_s)
        scale = math.sqrt(NOISE_OF_S / duration_s)
        share = (
            load / self.capacity * math.exp(self.rng.normal(0.0, self.noise_of_capacity * scale))
        )
        steady = self.curve(share) if share < self.pole else math.inf
        near = _NEARLY * self.pole
        if share > near:
            steady = min(steady, 3.0 * self.limit_s + duration_s * (share - near) / share / 2.0)
        return steady * math.exp(self.rng.normal(0.0, self.noise * scale))

    def _simulated(self, load: float, duration_s: float) -> float:
        """Simulate requests one by one, the first tenth for the warm-up."""
        rng, service_s, variation = self.rng, 1.0 / self.capacity, self.variation or 0.0
        n = min(max(int(rng.poisson(load * duration_s)), 20), _MOST_REQUESTS)
        if variation > 1.0:  # two exponential kinds of balanced means
            fast = (1.0 + math.sqrt((variation - 1.0) / (variation + 1.0))) / 2.0
            share = np.where(rng.random(n) < fast, fast, 1.0 - fast)
            service = rng.exponential(service_s / (2.0 * share))
        else:
            service = rng.gamma(1.0 / variation, service_s * variation, n)
        steps = np.append(0.0, np.cumsum(service[:-1] - rng.exponential(1.0 / load, n - 1)))
        response = steps - np.minimum.accumulate(steps) + service
        return float(response[n // 10 :].mean())


def _erlang_c(servers: int, offered: float) -> float:
    """Return the chance that all servers are busy (Erlang's C formula, by the recursion of B)."""
    blocked = 1.0
    for k in range(1, servers + 1):
        blocked = offered * blocked / (k + offered * blocked)
    return blocked / (1.0 - offered / servers * (1.0 - blocked))


def _mm1(idle_s: float, _: np.random.Generator) -> Curve:
    return lambda u: idle_s / (1.0 - u)


def _mmc(idle_s: float, rng: np.random.Generator) -> Curve:
    servers = int(rng.choice([2, 4, 8, 16]))
    return lambda u: idle_s * (1.0 + _erlang_c(servers, servers * u) / (servers * (1.0 - u)))


def _mg1(idle_s: float, rng: np.random.Generator) -> Curve:
    variation = rng.uniform(0.2, 6.0)
    return lambda u: idle_s * (1.0 + (1.0 + variation) / 2.0 * u / (1.0 - u))


def _network(_: float, rng: np.random.Generator) -> Curve:
    far, idle_s = LIMIT_S * rng.uniform(0.2, 0.5), LIMIT_S * rng.uniform(0.03, 0.15)
    return lambda u: far + idle_s / (1.0 - u)


def _cliff(idle_s: float, rng: np.random.Generator) -> Curve:
    power = rng.uniform(8.0, 20.0)
    return lambda u: idle_s * (1.0 + 0.1 * u + u**power / (1.0 - u))


def _tandem(idle_s: float, rng: np.random.Generator) -> Curve:
    other = rng.uniform(0.5, 0.95)
    return lambda u: idle_s * (0.5 / (1.0 - u) + 0.5 / (1.0 - other * u))


def _shallow(idle_s: float, rng: np.random.Generator) -> Curve:
    power, bend = rng.uniform(1.2, 2.5), rng.uniform(0.2, 0.5)
    return lambda u: idle_s * (1.0 + (u / bend) ** power)


_CURVES: dict[str, Callable[[float, np.random.Generator], Curve]] = {
    "M/M/1": _mm1,
    "M/M/c": _mmc,
    "M/G/1": _mg1,
    "M/G/1, each request": _mg1,
    "network and M/M/1": _network,
    "cliff": _cliff,
    "two in a row": _tandem,
    "shallow": _shallow,
}
SHAPES = tuple(_CURVES)


def server_of(shape: str, rng: np.random.Generator) -> Server:
    """Return a server of a shape, its other figures drawn."""
    peak = math.exp(rng.uniform(math.log(LOW), math.log(HIGH)))
    idle_s = LIMIT_S * math.exp(rng.uniform(math.log(0.03), math.log(0.5)))
    made = partial(
        Server,
        peak=peak,
        rng=rng,
        noise=rng.uniform(0.06, 0.14),
        noise_of_capacity=rng.uniform(0.005, 0.02),
        pole=math.inf if shape == "shallow" else 1.0,
    )
    if shape != "M/G/1, each request":
        return made(curve=_CURVES[shape](idle_s, rng), limit_s=LIMIT_S)
    # The response of an idle server is its service time; the limit is a multiple of it.
    variation, share = rng.uniform(0.2, 6.0), rng.uniform(0.6, 0.95)
    service_s = share / peak

    def pollaczek(u: float) -> float:
        return service_s * (1.0 + (1.0 + variation) / 2.0 * u / (1.0 - u))

    return made(curve=pollaczek, limit_s=pollaczek(share), variation=variation)


def _bump(server: Server, load: float, duration_s: float) -> float | None:
    """Be slow with little to do, up to 60 to 150 requests per second."""
    if load > server.peak * 0.2:
        return None
    return server.response(load, duration_s) + server.limit_s * 1.3


def _bistable(server: Server, load: float, _duration_s: float) -> float | None:
    """Above six tenths of the peak, be in a bad state in three trials of ten."""
    if load < 0.6 * server.peak or server.rng.random() > 0.3:
        return None
    return server.limit_s * server.rng.uniform(3.0, 30.0)


def _outliers(server: Server, load: float, duration_s: float) -> float | None:
    """Stall in one trial of twelve."""
    usual = server.response(load, duration_s)
    return usual * (server.rng.uniform(3.0, 20.0) if server.rng.random() < 1.0 / 12.0 else 1.0)


def _drift(server: Server, load: float, duration_s: float) -> float | None:
    """Lose a quarter of the capacity within an hour of trials."""
    lost = 0.25 * min(server.elapsed_s / 3600.0, 1.0)
    return server.response(load / (1.0 - lost), duration_s)


Trouble = Callable[[Server, float, float], float | None]
ANOMALIES: dict[str, Trouble | None] = {
    "slow with little to do": _bump,
    "bistable": _bistable,
    "outliers": _outliers,
    "drift": _drift,
    "crash": None,
}
"""Faults of a server that is otherwise M/M/c; a crash is beyond its capacity."""


def troubled_server(what: str, rng: np.random.Generator) -> Server:
    """Return a server with something wrong."""
    server = server_of("M/M/c", rng)
    trouble = ANOMALIES[what]
    if trouble is None:
        server.crashes_above = server.peak * rng.uniform(1.05, 1.3)
    else:
        server.trouble = trouble
    return server


def search(server: Server, **options: object) -> br.PeakRate:
    """Search for the peak of a server."""
    given = {"threshold_s": server.limit_s, "setup_s": 20.0, **options}
    searching = PeakSearch(**given)  # type: ignore[arg-type]
    while (trial := searching.ask()) is not None:
        searching.tell(trial, server.offer(trial.load, trial.duration_s))
    return searching.result()
