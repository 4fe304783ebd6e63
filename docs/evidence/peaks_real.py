"""The load generator, and searches with real servers of known peak, on this machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from coverage_tables import Bar, Setting, Tally

import benchrigor as br
from benchrigor.workbench import PeakRun, PeakSearch
from benchrigor.workbench.loadgen import HttpRequest, HttpRequests, OpenLoop

__all__ = ["generator", "real"]

SERVERS = Path(__file__).parents[2] / "tests" / "simulations"
RATE, LIMIT_S, BUDGET_S = 200.0, 0.06, 180.0
AT_ONCE = 6  # searches: each takes a sixth of a processor
MOST_LAG_S = 0.001


@contextmanager
def queue_server(rate: float) -> Iterator[str]:
    """Run a server with exponential service, one request after the other."""
    command = [sys.executable, str(SERVERS / "queue_server.py"), str(rate)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/"
        server.kill()


@contextmanager
def nginx(limit: str = "") -> Iterator[str]:
    """Run nginx, which answers "ok", with a limit of requests per second."""
    sys.path.insert(0, str(SERVERS))
    running = import_module("nginx_server").running  # of the tests

    with TemporaryDirectory() as folder, running(Path(folder), limit) as url:
        yield url


def open_loop(url: str, seed: int) -> OpenLoop:
    """Return a generator for a server."""
    limits = [br.Limit(metric="mean", at_most=LIMIT_S)]
    return OpenLoop(HttpRequests(kinds=[HttpRequest(url=url)]), limits, seed=seed)


def generator(setting: Setting) -> None:
    """Print its error against theory, and the greatest rate of one process."""
    duration_s = 3.0 if setting.quick else 20.0
    with queue_server(RATE) as url:
        offering = open_loop(url, setting.seed)
        for load in (100.0, 150.0):
            means = [
                offering.offer(br.LoadTrial(id=run, load=load, duration_s=duration_s))
                for run in range(setting.runs(10, 2))
            ]
            found = np.array([each.mean_response_s or np.nan for each in means])
            truth_s = 1.0 / (RATE - load)
            error_s = found.std(ddof=1) / np.sqrt(found.size)
            print(
                f"M/M/1, {load:g} of {RATE:g}/s: mean response {found.mean() * 1e3:.2f} ms "
                f"(standard error {error_s * 1e3:.2f}), theory {truth_s * 1e3:.2f} ms: "
                f"{found.mean() / truth_s - 1.0:+.1%}; lag p99 "
                f"{max(each.lag_p99_s or 0.0 for each in means) * 1e3:.2f} ms at most"
            )
    if shutil.which("nginx") is None:
        print("The greatest rate is not measured: there is no nginx.")
        return
    with nginx() as url:
        greatest = 0.0
        for load in (500.0, 1000.0, 2000.0, 3000.0, 4000.0, 6000.0, 8000.0, 10_000.0):
            offering = open_loop(url, setting.seed)
            offering._senders._most_processes = 1  # type: ignore[attr-defined]  # noqa: SLF001  # it is asked what one can do
            result = offering.offer(br.LoadTrial(id=0, load=load, duration_s=duration_s / 4.0))
            lag_s = result.lag_p99_s or 0.0
            print(
                f"{load:g}/s: lag p99 {lag_s * 1e3:.2f} ms, {result.cpu_share or 0.0:.0%} of a "
                f"processor, mean response {(result.mean_response_s or 0.0) * 1e3:.2f} ms"
            )
            greatest = load if lag_s <= MOST_LAG_S and greatest >= 0.0 else greatest
        print(f"greatest rate of one process at a lag of {MOST_LAG_S * 1e3:g} ms: {greatest:g}/s")
        if shutil.which("wrk"):
            command = ["wrk", "-t1", "-c16", f"-d{max(duration_s / 4.0, 1.0):.0f}s", url]
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            rate = re.search(r"Requests/sec: +([\d.]+)", printed)
            print(f"wrk, one thread, closed loop: {rate[1] if rate else '?'}/s")


def _searched(url: str, seed: int) -> br.PeakRate:
    search = PeakSearch(threshold_s=LIMIT_S, budget_s=BUDGET_S, max_load=2000.0)
    return PeakRun(search, name="a real server").carry_out(open_loop(url, seed))


def _on_queue(seed: int) -> br.PeakRate:
    with queue_server(RATE) as url:
        return _searched(url, seed)


def _on_nginx(seed: int) -> br.PeakRate:
    with nginx(f"{RATE:g}r/s") as url:
        return _searched(url, seed)


def real(setting: Setting) -> None:
    """Print searches with the two servers, and how many of their intervals hold."""
    runs = setting.runs(40, 2)
    deterministic = 2.0 * RATE * LIMIT_S  # M/D/1 waits load share / (1 - share) / 2 RATE
    kinds = [("M/M/1 on a socket", _on_queue, RATE - 1.0 / LIMIT_S, runs)]
    if shutil.which("nginx"):
        peak = RATE * deterministic / (1.0 + deterministic)
        kinds.append(("nginx limit_req", _on_nginx, peak, max(runs // 6, 2)))
    for number, (name, run, truth, times) in enumerate(kinds):
        begun = time.monotonic()
        seeds = [
            int(np.random.SeedSequence([setting.seed, number, k]).generate_state(1)[0])
            for k in range(times)
        ]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            # A process for each: an event loop in a thread would wait for the others.
            found = list(pool.map(partial(_apart, run.__name__), seeds))
        known = [each for each in found if each[1] > 0.0]
        errors = np.abs([value / truth - 1.0 for _, value, _, _, _ in known])
        held = sum(low <= truth <= high for _, _, low, high, _ in known)
        costs = [each[4] for each in found]
        near = int(np.sum(errors <= 0.08))
        print(
            f"{name}, peak {truth:.1f}/s, {times} searches of at most {BUDGET_S:g} s, {AT_ONCE} at "
            f"once, {time.monotonic() - begun:.0f} s: cost {np.mean(costs):.0f} s, error median "
            f"{np.median(errors):.3f}, greatest {errors.max():.3f}"
        )
        verdict = setting.verdict(f"{name}: within 8 %", near == times)
        print(f"  within 8 %: {near} of {times}, all: {verdict}")
        told = setting.judged(
            f"{name}: intervals", Bar(0.92, 1.0), Tally(held, times - len(known), times, 0.0)
        )
        print(f"  intervals that hold: {held} of {times}: {told}")


def _apart(run: str, seed: int) -> tuple[str, float, float, float, float]:
    command = [sys.executable, __file__, run, str(seed)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    status, *numbers = printed.split()
    value, low, high, cost_s = map(float, numbers)
    return status, value, low, high, cost_s


if __name__ == "__main__":
    peak = globals()[sys.argv[1]](int(sys.argv[2]))
    load = peak.load
    print(peak.status, *((load.value, load.low, load.high) if load else (0, 0, 0)), peak.cost_s)
