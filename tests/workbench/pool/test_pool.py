"""A pool: each job counts once, what was disturbed or lost is done again, once."""

from __future__ import annotations

import threading
import time
import tracemalloc
from collections import defaultdict
from concurrent.futures import Future
from itertools import pairwise
from pathlib import Path

import pytest

from benchrigor.errors import WorkloadFailed
from benchrigor.testing import FakeExecutor
from benchrigor.workbench.pool.executors import LocalExecutor
from benchrigor.workbench.pool.host_lock import HostBusy, HostLock
from benchrigor.workbench.pool.leases import Token
from benchrigor.workbench.pool.on_host import BUSY, LATE, LOST, Job, Outcome
from benchrigor.workbench.pool.pool import Pool

HOSTS = ["elm", "oak", "fir"]


def test_hosts_work_at_the_same_time_and_none_on_two_jobs() -> None:
    def last(job: Job) -> Outcome:
        time.sleep(job.arguments["seconds"])
        return Outcome(value=job.arguments["seconds"])

    executor, seconds = FakeExecutor(HOSTS, instead=last), [0.05 + 0.01 * n for n in range(12)]
    begun_s = time.monotonic()
    with Pool(executor, owner="a") as pool:
        jobs = [pool.submit("builtins:dict", {"seconds": each}) for each in seconds]
        assert [job.result().value for job in jobs] == seconds
        elapsed_s = time.monotonic() - begun_s
    by_host = defaultdict(list)
    for host, _, since_s, until_s in executor.log:
        by_host[host].append((since_s, until_s))
    assert set(by_host) == set(HOSTS)
    for spans in by_host.values():
        assert all(before[1] <= after[0] for before, after in pairwise(sorted(spans)))
    slept_s = sum(until_s - since_s for _, _, since_s, until_s in executor.log)
    assert elapsed_s <= 1.2 * slept_s / len(HOSTS) + max(seconds)  # whichever is the last


def test_a_disturbed_job_is_done_again_and_both_are_kept() -> None:
    outcomes = iter([Outcome(value=1, disturbed="others used 2.0 processors"), Outcome(value=2)])
    with Pool(FakeExecutor(HOSTS, instead=lambda _: next(outcomes)), owner="a") as pool:
        done = pool.submit("builtins:dict", {}).result()
    assert done.value == 2
    assert [str(each).partition(" after")[0] for each in done.attempts] == [
        "elm: disturbed",
        "oak: done",
    ]
    assert str(done.attempts[0]).endswith("others used 2.0 processors")


def test_a_job_that_is_disturbed_twice_counts_as_it_is() -> None:
    always = Outcome(value=1, disturbed="others used 2.0 processors")
    with Pool(FakeExecutor(HOSTS, instead=lambda _: always), owner="a") as pool:
        done = pool.submit("builtins:dict", {}).result()
    assert (done.value, len(done.attempts)) == (1, 2)


def test_a_job_of_a_lost_host_goes_to_another_one_once() -> None:
    def lost_on_elm(job: Job) -> Outcome | None:
        return Outcome(kind=LOST, failure="no route") if job.host == "elm" else None

    with Pool(FakeExecutor(HOSTS, instead=lost_on_elm), owner="a") as pool:
        jobs = [pool.submit("builtins:dict", {"n": n}) for n in range(8)]
        done = [job.result() for job in jobs]
        assert [each.value for each in done] == [{"n": n} for n in range(8)]
        assert pool.table.hosts == ("oak", "fir")  # lost twice in a row: it gets no more
    assert {each.host for each in done} == {"oak", "fir"}


def test_where_all_hosts_are_lost_jobs_fail() -> None:
    gone = Outcome(kind=LOST, failure="no route")
    with Pool(FakeExecutor(["elm"], instead=lambda _: gone), owner="a") as pool:
        done = pool.submit("builtins:dict", {}).result()
        assert (done.failure, len(done.attempts)) == ("no route", 2)
        with pytest.raises(WorkloadFailed, match="no host is left"):
            pool.submit("builtins:dict", {}).result()


def test_a_job_that_fails_by_itself_is_not_done_again() -> None:
    with Pool(FakeExecutor(HOSTS), owner="a") as pool:
        done = pool.submit("builtins:int", {"bass": 7}).result()
    assert done.failure.startswith("TypeError")
    assert len(done.attempts) == 1


def test_a_host_that_works_for_others_ends_it() -> None:
    busy = Outcome(kind=BUSY, failure="elm works for b")
    with Pool(FakeExecutor(HOSTS, instead=lambda _: busy), owner="a") as pool:
        job = pool.submit("builtins:dict", {})
        with pytest.raises(HostBusy, match="elm works for b"):
            job.result()


def test_a_controller_that_was_followed_by_another_ends() -> None:
    late = Outcome(kind=LATE, failure="elm has worked for a later job of a")
    with Pool(FakeExecutor(HOSTS, instead=lambda _: late), owner="a") as pool:
        job = pool.submit("builtins:dict", {})
        with pytest.raises(WorkloadFailed, match="another process goes on with this run"):
            job.result()


def test_an_outcome_that_comes_after_its_lease_does_not_count() -> None:
    released = threading.Event()

    class Slow(FakeExecutor):
        def submit(self, host: str, job: Job) -> Future[Outcome]:
            pool.table.release(leases[-1])
            return super().submit(host, job)

    leases = []
    pool = Pool(Slow(HOSTS), owner="a")
    acquire = pool.table.acquire

    def noted(*given: object, **named: object) -> object:
        leases.append(acquire(*given, **named))  # type: ignore[arg-type]
        return leases[-1]

    pool.table.acquire = noted  # type: ignore[method-assign,assignment]
    with pool, pytest.raises(WorkloadFailed, match="after its lease had ended"):
        pool.submit("builtins:dict", {}).result()
    released.set()


def test_clocks_an_hour_apart_are_told_and_harm_nothing() -> None:
    def ahead(job: Job) -> Outcome:
        now_s = time.time() + 3600.0
        return Outcome(value=7, received_s=now_s, sent_s=now_s)

    with Pool(FakeExecutor(HOSTS, instead=ahead), owner="a") as pool:
        done = pool.submit("builtins:dict", {}).result()
    (attempt,) = done.attempts
    assert done.value == 7
    assert attempt.offset_s is not None
    assert attempt.offset_error_s is not None
    assert abs(attempt.offset_s - 3600.0) <= attempt.offset_error_s + 1e-3


def test_a_gang_is_told_its_hosts() -> None:
    with Pool(FakeExecutor(HOSTS), owner="a") as pool:
        done = pool.submit("builtins:dict", {"hosts": []}, n_hosts=2).result()
        assert done.value == {"hosts": ["elm", "oak"]}
        with pytest.raises(WorkloadFailed, match="no host is left"):
            pool.submit("builtins:dict", {}, n_hosts=4).result()


def test_a_hundred_hosts_take_little_of_the_controller() -> None:
    """Five milliseconds of processor time a job, and memory that does not grow with jobs."""
    hosts = [f"h{number}" for number in range(100)]
    done = Outcome(value=1)
    peaks = []
    with Pool(FakeExecutor(hosts, instead=lambda _: done), owner="a") as pool:
        for _ in range(2):
            tracemalloc.start()
            begun_s = time.process_time()
            jobs = [pool.submit("builtins:dict", {}) for _ in range(1000)]
            assert all(job.result().value == 1 for job in jobs)
            used_s = time.process_time() - begun_s
            del jobs
            peaks.append(tracemalloc.get_traced_memory()[0])
            tracemalloc.stop()
    assert (
        used_s / 1000 < 0.005 * 4
    )  # tracing and a busy machine; `docs/evidence/pools.py` measures
    assert peaks[1] < 2e6


def test_another_controller_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    """Also between its jobs; in processes, with the lock that hosts have."""
    with Pool(LocalExecutor(["elm", "oak"]), owner="first", lock_folder=str(tmp_path)) as pool:
        assert pool.submit("builtins:dict", {}).result().value == {}
        with pytest.raises(HostBusy):
            HostLock("elm", Token(owner="second", number=1), folder=tmp_path).take()
    HostLock("elm", Token(owner="second", number=1), folder=tmp_path).take()
