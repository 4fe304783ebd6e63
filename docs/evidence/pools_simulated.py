"""Pools of simulated hosts: their cost, their makespan, their gangs."""

from __future__ import annotations

import gc
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from coverage_tables import Setting

from benchrigor.testing import FakeExecutor
from benchrigor.workbench.pool.leases import LeaseTable
from benchrigor.workbench.pool.on_host import Job, Outcome
from benchrigor.workbench.pool.pool import Pool

__all__ = ["cost", "gangs", "makespan"]

_CALL = "builtins:dict"


def cost(setting: Setting) -> None:
    """Print what a trial costs the controller, and what it leaves in memory."""
    hosts, trials = [f"host {number}" for number in range(100)], 2_000
    executor = FakeExecutor(hosts, instead=lambda _: Outcome())
    with Pool(executor, owner="a") as pool:
        begun_s, begun_cpu_s = time.perf_counter(), time.process_time()
        _do(pool, trials)
        wall_ms = (time.perf_counter() - begun_s) * 1e3 / trials
        cpu_ms = (time.process_time() - begun_cpu_s) * 1e3 / trials
    print(f"{wall_ms:.2f} ms of wall time per trial, {cpu_ms:.2f} ms of processor")
    print(f"less than 5 ms: {setting.verdict('overhead per trial', met=wall_ms < 5.0)}")
    tracemalloc.start()  # before the pool, so that what is freed later counts, too
    executor = FakeExecutor(hosts, instead=lambda _: Outcome())
    kept = []
    with Pool(executor, owner="a") as pool:
        for _ in range(2 if setting.quick else 6):
            _do(pool, trials)
            executor.log.clear()  # which the fake keeps, not the pool
            gc.collect()
            kept.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    grown = (kept[-1] - kept[0]) / (trials * (len(kept) - 1))
    print(f"\n{grown:.0f} bytes per trial stay, after the first {trials}")
    print(f"less than 50: {setting.verdict('memory', met=grown < 50)}")


def _do(pool: Pool, trials: int) -> None:
    jobs = [pool.submit(_CALL, {}) for _ in range(trials)]
    assert all(job.result().failure == "" for job in jobs)


def makespan(setting: Setting) -> None:
    """Print how long trials take on hosts, against an equal share for each."""
    hosts, trials = 10, 100 if setting.quick else 400
    rng = np.random.default_rng(setting.seed)
    times_s = rng.uniform(0.05, 0.25, trials)

    def nap(job: Job) -> Outcome:
        time.sleep(job.arguments["seconds"])
        return Outcome()

    executor = FakeExecutor([f"host {number}" for number in range(hosts)], instead=nap)
    with Pool(executor, owner="a") as pool:
        begun_s = time.perf_counter()
        jobs = [pool.submit(_CALL, {"seconds": float(seconds)}) for seconds in times_s]
        assert all(job.result().failure == "" for job in jobs)
        took_s = time.perf_counter() - begun_s
    ratio = took_s / (float(times_s.sum()) / hosts)
    print(f"{trials} trials: {ratio:.3f} times (sum of trials / hosts)")
    print(f"at most 1.2: {setting.verdict('makespan', met=ratio <= 1.2)}")


def gangs(setting: Setting) -> None:
    """Print how many of the runs in which gangs share hosts come to an end."""
    runs = 50 if setting.quick else 200
    ended = 0
    for _ in range(runs):
        table = LeaseTable(["elm", "oak", "fir"], owner="a")
        with ThreadPoolExecutor(4) as threads:
            ended += all(threads.map(_use, [table] * 4))
    print(f"{ended} of {runs} ended")
    print(f"all: {setting.verdict('gangs', met=ended == runs)}")


def _use(table: LeaseTable) -> bool:
    for _ in range(5):
        lease = table.acquire(2, timeout_s=30.0)
        if lease is None:
            return False
        time.sleep(1e-4)
        table.release(lease)
    return True
