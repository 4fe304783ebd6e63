"""Pools of simulated hosts: processor time and memory of the controller, and the makespan."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
from coverage_tables import Setting

from benchrigor.testing import FakeExecutor
from benchrigor.workbench.pool.on_host import Job, Outcome
from benchrigor.workbench.pool.pool import Pool

__all__ = ["controller", "makespan"]

HOSTS = 100
CALL = "builtins:dict"


def controller(setting: Setting) -> None:
    """Print what trials that take no time cost the controller."""
    trials = setting.runs(2_000, 400)
    names = [f"h{number}" for number in range(HOSTS)]
    with Pool(FakeExecutor(names, instead=lambda _: Outcome(value=1)), owner="a") as pool:
        begun_s = time.process_time()
        jobs = [pool.submit(CALL, {"n": number}) for number in range(trials)]
        assert all(job.result().value == 1 for job in jobs)
        each_ms = 1e3 * (time.process_time() - begun_s) / trials
    del jobs
    held = [_held(names, number) for number in (trials // 4, trials)]
    cheap = setting.verdict("controller", each_ms < 5.0)
    print(f"processor time of the controller: {each_ms:.2f} ms a trial, below 5: {cheap}")
    grown = held[1] - held[0]
    flat = setting.verdict("memory", grown < 1e5)
    print(f"memory after {trials // 4} and {trials} trials: {grown / 1e3:+.1f} kB, flat: {flat}")


def _held(names: list[str], trials: int) -> int:
    """Return the bytes that a pool holds when so many trials are over."""
    tracemalloc.start()
    executor = FakeExecutor(names, instead=lambda _: Outcome(value=1))
    with Pool(executor, owner="a") as pool:
        for _ in range(trials // HOSTS):
            for job in [pool.submit(CALL, {}) for _ in range(HOSTS)]:
                job.result()
            executor.log.clear()  # which tests look at
        held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return held


def makespan(setting: Setting) -> None:
    """Print how long trials of unequal length take on hosts, over the sum of both."""
    rng = np.random.default_rng(setting.seed)
    trials = setting.runs(200, 60)
    seconds = rng.uniform(0.02, 0.2, trials)

    def last(job: Job) -> Outcome:
        time.sleep(job.arguments["seconds"])
        return Outcome()

    names = [f"h{number}" for number in range(10)]
    with Pool(FakeExecutor(names, instead=last), owner="a") as pool:
        begun_s = time.monotonic()
        jobs = [pool.submit(CALL, {"seconds": float(each)}) for each in seconds]
        for job in jobs:
            job.result()
        took_s = time.monotonic() - begun_s
    ratio = took_s / (float(np.sum(seconds)) / len(names))
    met = setting.verdict("makespan", ratio <= 1.2)
    print(
        f"{trials} trials on {len(names)} hosts: {ratio:.3f} times the sum over hosts, 1.2: {met}"
    )
