from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from benchrigor.errors import WorkloadFailed
from benchrigor.testing import FakeExecutor
from benchrigor.workbench.pool.leases import HostBusy
from benchrigor.workbench.pool.on_host import HOLD, Job, Outcome
from benchrigor.workbench.pool.pool import Pool

CALL = "builtins:dict"


def pool_of(hosts: list[str], instead: Callable[[Job], Outcome | None], **given: object) -> Pool:
    return Pool(FakeExecutor(hosts, instead=instead), owner="a", **given)


def in_turn(*outcomes: Outcome) -> Callable[[Job], Outcome]:
    left = iter(outcomes)
    return lambda _: next(left)


LOST, AWAY = Outcome(kind="lost", failure="gone"), Outcome(value=1, disturbed="others used 1.0")


@pytest.mark.parametrize(
    ("outcomes", "first", "value", "hosts"),
    [
        ([AWAY, replace(AWAY, value=2), Outcome()], None, 2, ["elm", "oak"]),  # once, both are kept
        ([LOST, Outcome(value=7)], None, 7, ["elm", "oak"]),
        ([LOST, LOST], None, None, ["elm", "oak"]),
        ([Outcome(kind="failed", failure="no"), Outcome()], None, None, ["elm"]),  # by itself
        # One that needs a host is done again there: no other host can take its place.
        ([AWAY, Outcome(value=7)], "elm", 7, ["elm", "elm"]),
        ([LOST, Outcome(value=7)], "elm", 7, ["elm", "elm"]),
    ],
)
def test_a_job_is_done_again_once_where_it_was_lost_or_disturbed(
    outcomes: list[Outcome], first: str | None, value: object, hosts: list[str]
) -> None:
    with pool_of(["elm", "oak"], in_turn(*outcomes)) as pool:
        done = pool.submit(CALL, {}, first=first).result()
    assert (done.value, done.failure == "") == (value, value is not None)
    told = [*done.earlier, str(done)]
    assert [attempt.partition(":")[0] for attempt in told] == hosts
    for attempt, outcome in zip(told, outcomes, strict=False):
        assert (outcome.disturbed or outcome.failure) in attempt


def test_a_host_that_lost_two_in_a_row_is_left_out() -> None:
    with pool_of(["elm", "oak"], lambda job: LOST if job.host == "elm" else Outcome()) as pool:
        done = [pool.submit(CALL, {}).result() for _ in range(6)]
        assert pool.table.hosts == ("oak",)
    assert {each.failure for each in done} == {""}


def test_without_any_host_left_it_ends_and_does_not_hang() -> None:
    with pool_of(["elm"], lambda _: LOST) as pool:
        assert pool.submit(CALL, {}).result(60.0).failure == "gone"
        with pytest.raises(WorkloadFailed):
            pool.submit(CALL, {}).result(60.0)


@pytest.mark.parametrize(
    ("kind", "error"), [("busy", HostBusy), ("late", WorkloadFailed), ("refused", WorkloadFailed)]
)
def test_a_host_that_does_no_job_of_this_pool_ends_it(kind: str, error: type[Exception]) -> None:
    with pool_of(["elm"], lambda _: Outcome(kind=kind)) as pool, pytest.raises(error):
        pool.submit(CALL, {}).result()


def test_what_comes_after_its_lease_does_not_count() -> None:
    pools: list[Pool] = []

    def instead(_: Job) -> Outcome:
        pools[0].table._used.clear()  # noqa: SLF001  # the lease ends meanwhile
        return Outcome(value=1)

    with pool_of(["elm"], instead) as pool:
        pools.append(pool)
        with pytest.raises(WorkloadFailed):
            pool.submit(CALL, {}).result()


class Holding(FakeExecutor):
    """Tells what becomes of the locks of the other hosts of a gang."""

    outcome = Outcome()

    def __init__(self, hosts: list[str]) -> None:
        super().__init__(hosts)
        self.idle = hosts
        self.twice = threading.Event()  # idle hosts are held a second time

    def _run(self, host: str, job: Job) -> Outcome:
        if job.call == HOLD:
            self.log.append((host, job, time.monotonic(), 0.0))
            calls = [name for name, other, *_ in self.log if other.call == HOLD]
            if all(calls.count(name) > 1 for name in self.idle):
                self.twice.set()
            return self.outcome
        return super()._run(host, job)


def test_all_hosts_of_a_gang_are_held_and_told() -> None:
    executor = Holding(["elm", "oak", "fir"])
    with Pool(executor, owner="a") as pool:
        done = pool.submit(CALL, {"hosts": []}, n_hosts=2, among=["oak", "fir"]).result()
    assert done.value == {"hosts": ["oak", "fir"]}
    assert [host for host, job, *_ in executor.log if job.call == HOLD] == ["fir"]
    assert len({job.token for _, job, *_ in executor.log}) == 1


@pytest.mark.parametrize("within", [None, 7])
def test_hosts_that_have_no_job_stay_held(monkeypatch: pytest.MonkeyPatch, within: int) -> None:
    """Those that have had one; within a lease also those that will."""
    monkeypatch.setattr("benchrigor.workbench.pool.pool.BEAT_S", 0.02)
    executor = Holding(["elm", "oak"])
    with Pool(executor, owner="a", within=within) as pool:
        if within is None:
            executor.idle = ["oak"]
            pool.submit(CALL, {}, among=["oak"]).result()
        assert executor.twice.wait(60.0)
        assert pool.submit(CALL, {}).result(60.0).failure == ""  # holding keeps no job away
    held = {host for host, job, *_ in executor.log if job.call == HOLD}
    assert held == ({"oak"} if within is None else {"elm", "oak"})


def test_a_host_that_has_a_job_is_held_by_that_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchrigor.workbench.pool.pool.BEAT_S", 0.02)
    executor = Holding(["elm", "oak"])
    with Pool(executor, owner="a") as pool:
        pool.submit(CALL, {}, n_hosts=2).result()
        executor.log.clear()
        executor.idle = ["oak"]
        executor._instead = lambda _: executor.twice.wait(60.0) and None  # noqa: SLF001
        job = pool.submit(CALL, {}, among=["elm"])
        assert executor.twice.wait(60.0)
        job.result(60.0)
        own = [log for log in executor.log if log[0] == "elm" and log[1].call == HOLD]
        (span,) = (log[2:] for log in executor.log if log[1].call == CALL)
    assert not [at_s for *_, at_s, _ in own if span[0] < at_s < span[1]]


def test_tokens_within_a_lease_lie_between_it_and_the_next() -> None:
    """Whatever the clock of the host says on which the job of that lease has a pool of its own."""
    executor = FakeExecutor(["elm", "oak"])
    with Pool(executor, owner="a") as pool:
        gang = pool.submit(CALL, {"hosts": [], "lease": 0}, n_hosts=2).result().value
        number = gang["lease"]
        inner = FakeExecutor(gang["hosts"][1:])
        with Pool(inner, owner="a", within=number) as own:
            for _ in range(3):
                own.submit(CALL, {}).result()
        later = pool.submit(CALL, {"lease": 0}, first="oak").result()
    numbers = [job.token.number for _, job, *_ in inner.log]
    assert numbers == [number + 1, number + 2, number + 3]
    assert later.value["lease"] > max(numbers)
    assert later.host == "oak"


def test_a_gang_does_not_begin_while_one_of_its_hosts_works_for_others() -> None:
    executor = Holding(["elm", "oak"])
    executor.outcome = Outcome(kind="busy", failure="oak works for b")
    with Pool(executor, owner="a") as pool, pytest.raises(HostBusy):
        pool.submit(CALL, {}, n_hosts=2).result()
    assert not [job for _, job, *_ in executor.log if job.call == CALL]


def test_closing_begins_nothing_that_waited() -> None:
    begun, going_on = threading.Event(), threading.Event()

    def instead(_: Job) -> None:
        begun.set()
        going_on.wait(60.0)

    pool = pool_of(["elm", "oak"], instead)
    first = pool.submit(CALL, {"x": 1}, among=["elm"])
    begun.wait(60.0)
    gang = pool.submit(CALL, {"x": 2}, n_hosts=2)
    threading.Timer(0.2, going_on.set).start()
    pool.close()
    assert first.result().value == {"x": 1}
    assert gang.cancelled() or gang.result().value is None


def test_all_hosts_are_kept_busy_and_none_with_two() -> None:
    together = threading.Barrier(4)

    def instead(_: Job) -> None:
        together.wait(60.0)  # breaks unless four hosts work at the same time

    executor = FakeExecutor([f"host {n}" for n in range(4)], instead=instead)
    with Pool(executor, owner="a") as pool:
        jobs = [pool.submit(CALL, {}) for _ in range(40)]
        assert all(job.result().failure == "" for job in jobs)
    for host in executor.hosts:
        own = sorted((begin, end) for name, _, begin, end in executor.log if name == host)
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(own))


# --- leases


@pytest.fixture
def table() -> Iterator[Any]:
    """The leases of a pool of three hosts."""
    with pool_of(["elm", "oak", "fir"], lambda _: None) as pool:
        yield pool.table


def waiting(table: Any, *given: object, **rest: object) -> tuple[threading.Thread, list[Any]]:
    """Have a thread wait for hosts; return it, and where it puts them."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(table.acquire(*given, **rest)))
    thread.start()
    while not table._waiting and thread.is_alive():  # noqa: SLF001  # until it is the first
        pass
    return thread, found


def test_hosts_are_given_all_at_once_or_not_at_all(table: Any) -> None:
    gang = table.acquire(2)
    assert table.acquire(2, timeout_s=0.0) is None
    assert table.free() == ("fir",)
    table.release(gang)
    assert table.free() == ("elm", "oak", "fir")
    again = table.acquire(2)
    assert gang < again
    table.release(gang)  # gives back nothing of others
    assert (table.is_current(gang), table.is_current(again)) == (False, True)
    assert table.free() == ("fir",)


def test_who_waits_for_a_host_that_is_lost_is_told(table: Any) -> None:
    table.acquire(3)
    thread, given = waiting(table, among=["elm"])
    table.drop("elm")
    thread.join(60.0)
    assert given == [None]
    assert table.hosts == ("oak", "fir")


@pytest.mark.parametrize("among", [None, ["elm"]])
def test_a_gang_does_not_starve(table: Any, among: list[str] | None) -> None:
    """Who needs other hosts does not wait for it."""
    held = table.acquire(among=["oak"])
    thread, gangs = waiting(table, 2, among=["elm", "oak"])
    assert table.acquire(among=["fir"], timeout_s=60.0) is not None
    assert table.acquire(among=among, timeout_s=0.05) is None  # although elm is free
    table.release(held)
    thread.join(60.0)
    assert gangs[0].hosts == ("elm", "oak")


def test_gangs_of_two_of_three_hosts_never_lock_each_other_out(table: Any) -> None:
    in_use: set[str] = set()

    def use(_: int) -> set[str]:
        lease = table.acquire(2, timeout_s=60.0)
        others = in_use & {*lease.hosts}
        in_use.update(lease.hosts)
        in_use.difference_update(lease.hosts)
        table.release(lease)
        return others

    with ThreadPoolExecutor(4) as threads:
        assert not any(threads.map(use, range(2000)))
    assert table.free() == ("elm", "oak", "fir")
