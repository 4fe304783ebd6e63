"""Up to which load servers keep their limits: what searches cost, and how right they are.

    python docs/evidence/peaks.py [--quick] [--seed N] [--only shapes,real] [--repetitions N]

Every draw is default_rng([seed, kind, run]). The sections real and rates are on this machine: make
sure that it does nothing else.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

import benchrigor as br
from benchrigor.workbench import PeakRun, PeakSearch
from benchrigor.workbench.loadgen import HttpRequest, HttpRequests, OpenLoop
from shared.running import Bar, Run, Script, tally
from shared.servers import ANOMALIES, SHAPES, search, server_of, troubled_server

script = Script(__doc__)
SEED = 20320417


class Found(NamedTuple):
    """What became of a search: relative error (NaN for no number), and whether a Notice warns."""

    status: str
    error: float
    held: bool
    cost_s: float
    warned: bool = False


def found_of(peak: br.PeakRate, truth: float) -> Found:
    """Compare a peak with the truth."""
    load = peak.load
    held = load is not None and load.low <= truth <= load.high
    error = math.nan if load is None else load.value / truth - 1.0
    return Found(str(peak.status), error, held, peak.cost_s, bool(peak.notices))


def one(seed: int, kind: int, number: int) -> Found:
    """Search with a server of a kind: the first kinds are shapes, the others anomalies."""
    rng = np.random.default_rng([seed, kind, number])
    if kind < len(SHAPES):
        server = server_of(SHAPES[kind], rng)
    else:
        server = troubled_server([*ANOMALIES][kind - len(SHAPES)], rng)
    return found_of(search(server), server.peak)


def mean_cost(found: Sequence[Found]) -> float:
    """Return the geometric mean of the costs."""
    return math.exp(float(np.mean([math.log(outcome.cost_s) for outcome in found])))


@script.section("Servers of eight shapes: error, coverage, cost", seed=SEED)
def shapes(run: Run) -> None:
    """Print them for each shape, and judge all together."""
    run.heading("shape", "cost", "median error", "within 5 %", "held")
    every: list[Found] = []
    for kind, shape in enumerate(SHAPES):
        found = run.repeated(partial(one, run.seed, kind), run.runs(50, 10))
        every += found
        errors = np.abs([outcome.error for outcome in found])
        near, held = np.mean(errors <= 0.05), np.mean([outcome.held for outcome in found])
        cost = f"{mean_cost(found):.0f} s"
        run.row(shape, cost, f"{np.nanmedian(errors):.3f}", f"{near:.2f}", f"{held:.2f}")
    for name, bar, hits in (
        ("within 5 %", Bar(0.95), [abs(outcome.error) <= 0.05 for outcome in every]),
        ("within 10 %", Bar(0.98), [abs(outcome.error) <= 0.10 for outcome in every]),
        ("intervals hold the peak", Bar(0.92, 0.98), [outcome.held for outcome in every]),
    ):
        run.share(name, bar, hits)


@script.section("Servers with something wrong", seed=SEED)
def anomalies(run: Run) -> None:
    """Print how often a wrong number, or none, has no warning."""
    run.heading("anomaly", "statuses", "within 10 %", "wrong without a word", "bar")
    for number, what in enumerate(ANOMALIES):
        found = run.repeated(partial(one, run.seed, len(SHAPES) + number), run.runs(100, 10))
        bounds_only = ("saturated-at-lowest", "not-saturated")
        silent = tally(
            (abs(outcome.error) > 0.10 or outcome.status in bounds_only) and not outcome.warned
            for outcome in found
        )
        statuses = ", ".join(f"{n} {name}" for name, n in Counter(f.status for f in found).items())
        near = np.mean([abs(outcome.error) <= 0.10 for outcome in found])
        verdict = run.judged(f"wrong without a word: {what}", Bar(0.0, 0.05), silent)
        run.row(what, statuses, f"{near:.2f}", silent, verdict)


def status_without_response(seed: int, response_s: float, number: int) -> str:
    """Return the status of a search with a server that responds the same at any load."""
    rng = np.random.default_rng([seed, 99, number])
    found = PeakSearch(threshold_s=0.04, setup_s=20.0, max_load=rng.uniform(300.0, 30_000.0))
    while (trial := found.ask()) is not None:
        mean_s = response_s * math.exp(rng.normal(0.0, 0.1))
        found.tell(trial, br.LoadResult(mean_response_s=mean_s))
    return str(found.result().status)


@script.section("Never and always saturated", seed=SEED)
def bounds(run: Run) -> None:
    """Print how often searches say that no load saturates, or that all do."""
    for response_s, status in ((0.01, "not-saturated"), (0.1, "saturated-at-lowest")):
        told = run.repeated(
            partial(status_without_response, run.seed, response_s), run.runs(50, 10)
        )
        share = told.count(status) / len(told)
        run.say(f"{status}: {share:.3f}, {run.bar(status, share, '==', 1.0)}")


def responses_s(demands_s: np.ndarray, pause_s: float, most: int) -> np.ndarray:
    """Return mean responses to 0, 1, ... users, by exact mean value analysis.

    Reiser and Lavenberg, Journal of the ACM 27 (1980).
    """
    queues, found = np.zeros_like(demands_s), [0.0]
    for users in range(1, most + 1):
        each_s = demands_s * (1.0 + queues)
        found.append(float(each_s.sum()))
        queues = each_s * users / (found[-1] + pause_s)
    return np.array(found)


def is_held(seed: int, kind: int, number: int) -> bool:
    """Search with a closed loop drawn each time, of one station or more."""
    rng = np.random.default_rng([seed, 77, kind, number])
    others = 0 if kind == 0 else int(rng.integers(1, 3))
    demands_s = rng.uniform(0.001, 0.02) * np.append(1.0, rng.uniform(0.1, 1.0, others))
    pause_s = demands_s[0] * math.exp(rng.uniform(0.0, math.log(100.0)))
    peak = int(math.exp(rng.uniform(math.log(5.0), math.log(500.0))))
    most = 64 * peak  # the response of more users is taken for a line
    known_s = responses_s(demands_s, pause_s, most)
    noise = rng.uniform(0.03, 0.15)  # of a trial of a minute
    limit_s = float(known_s[peak] + known_s[peak + 1]) / 2.0
    searching = PeakSearch(threshold_s=limit_s, setup_s=20.0, whole=True, seed_load=4)
    while (trial := searching.ask()) is not None:
        mean_s = known_s[min(int(trial.load), most)] * max(trial.load / most, 1.0)
        mean_s *= math.exp(rng.normal(0.0, noise * math.sqrt(60.0 / trial.duration_s)))
        searching.tell(trial, br.LoadResult(mean_response_s=float(mean_s)))
    return found_of(searching.result(), peak).held


@script.section("Users who wait for answers", seed=SEED)
def users(run: Run) -> None:
    """Print how often the interval holds the greatest number of users that keeps the limit."""
    loops = ("one station", "two or three stations")
    rows = ((loop, partial(is_held, run.seed, kind), Bar(0.92)) for kind, loop in enumerate(loops))
    run.shares(rows, run.runs(150, 20))


PUBLISHED = {"width": 0.10, "accuracy": 0.10}


def by_policy(seed: int, policy: str, options: dict[str, float], number: int) -> Found:
    """Search by a published policy, perhaps seeded by a neighbour's peak that is up to 30 % off."""
    kind, again = number % len(SHAPES), number // len(SHAPES)
    server = server_of(SHAPES[kind], np.random.default_rng([seed, kind, again]))
    given: dict[str, object] = {"policy": policy.removeprefix("seeded "), **options}
    if policy.startswith("seeded"):
        given["seed_load"] = server.peak * math.exp(server.rng.uniform(-0.3, 0.3))
    return found_of(search(server, **given), server.peak)


@script.section(
    "What published policies cost, and the orderings of the paper", seed=SEED, quick=False
)
def rivals(run: Run) -> None:
    """Print costs as often as ours, and whether they are ordered as sections 5.2 and 5.3 say."""
    runs = len(SHAPES) * run.runs(50, 2)

    def cost(policy: str, **options: float) -> float:
        given = {} if policy == "adaptive" else {**PUBLISHED, **options}
        return mean_cost(run.repeated(partial(by_policy, run.seed, policy, given), runs))

    ours = cost("adaptive")
    costs = {policy: cost(policy) for policy in ("strawman", "linear", "binsearch")}
    for (policy, spent), least in zip(costs.items(), (50.0, 8.0, 3.5), strict=True):
        verdict = run.bar(f"cost of {policy}", spent / ours, ">=", least)
        run.say(f"{policy}: {spent / ours:.2f} times ours ({ours:.0f} s), {verdict}")
    runs //= 5
    wide, narrow = (cost("linear", width=s) / cost("binsearch", width=s) for s in (0.20, 0.02))
    for name, values in (
        ("policies", [*costs.values(), cost("seeded binsearch")]),
        ("accuracy", [cost("binsearch", accuracy=accuracy) for accuracy in (0.05, 0.1, 0.2)]),
        (
            "confidence",
            [cost("binsearch", confidence=confidence) for confidence in (0.99, 0.95, 0.8)],
        ),
        ("linear over binsearch, by width", [wide, narrow]),
    ):
        met = all(a > b for a, b in pairwise(values))
        shown = " > ".join(f"{value:,.4g}" for value in values)
        run.say(f"{name}: {run.verdict(f'ordering by {name}', values, shown, met=met)}")


# --- real servers

SERVERS = Path(__file__).parents[2] / "tests" / "simulations"
RATE, LIMIT_S = 200.0, 0.06


@contextmanager
def queue_server() -> Iterator[str]:
    """Run a server with exponential service, one request after the other."""
    command = [sys.executable, str(SERVERS / "queue_server.py"), str(RATE)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/"
        server.kill()


@contextmanager
def nginx() -> Iterator[str]:
    """Run nginx with a limit of requests per second."""
    sys.path.insert(0, str(SERVERS))
    running = import_module("nginx_server").running  # of the tests
    with TemporaryDirectory() as folder, running(Path(folder), f"{RATE:g}r/s") as url:
        yield url


def search_server(kind: str, seed: int) -> br.PeakRate:
    """Search with a real server for three minutes."""
    with (nginx if kind == "nginx" else queue_server)() as url:
        limits = [br.Limit(metric="mean", at_most=LIMIT_S)]
        offering = OpenLoop(HttpRequests(kinds=[HttpRequest(url=url)]), limits, seed=seed)
        searching = PeakSearch(threshold_s=LIMIT_S, budget_s=180.0, max_load=2000.0)
        return PeakRun(searching, name="a real server").carry_out(offering)


@script.section("Real servers of known peak, six searches at once", seed=SEED, quick=False)
def real(run: Run) -> None:
    """Print searches with two servers, and how many of their intervals hold."""
    waiting = 2.0 * RATE * LIMIT_S  # M/D/1 waits load share / (1 - share) / 2 RATE
    kinds = {"M/M/1": RATE - 1.0 / LIMIT_S, "nginx": RATE * waiting / (1.0 + waiting)}
    for number, (kind, truth) in enumerate(kinds.items()):
        if kind == "nginx" and shutil.which("nginx") is None:
            continue
        seeds = [
            int(np.random.SeedSequence([run.seed, number, seed]).generate_state(1)[0])
            for seed in range(run.runs(40, 2) // (6 if number else 1))
        ]
        with ProcessPoolExecutor(6) as pool:
            peaks = pool.map(partial(search_server, kind), seeds)
            found = [found_of(peak, truth) for peak in peaks]
        held, most = (
            tally(outcome.held for outcome in found),
            max(abs(outcome.error) for outcome in found),
        )
        run.say(f"{kind}, peak {truth:.1f}: most off {run.bar(f'{kind}, error', most, '<=', 0.08)}")
        run.say(f"intervals hold: {held}, {run.judged(f'{kind}, intervals', Bar(0.92), held)}")


if __name__ == "__main__":
    raise SystemExit(script.main())
