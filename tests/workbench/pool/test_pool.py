from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable

import pytest

from benchrigor.errors import WorkloadFailed
from benchrigor.testing import FakeExecutor
from benchrigor.workbench.pool.host_lock import HostBusy
from benchrigor.workbench.pool.on_host import HOLD, Job, Outcome
from benchrigor.workbench.pool.pool import Pool

CALL = "builtins:dict"


def pool_of(hosts: list[str], instead: Callable[[Job], Outcome | None], **given: object) -> Pool:
    return Pool(FakeExecutor(hosts, instead=instead), owner="a", **given)


def in_turn(*outcomes: Outcome) -> Callable[[Job], Outcome]:
    left = iter(outcomes)
    return lambda _: next(left)


def test_a_disturbed_job_is_done_again_once_and_both_are_kept() -> None:
    outcomes = [Outcome(value=n, disturbed="others used 1.0 processors") for n in (1, 2, 3)]
    with pool_of(["elm"], in_turn(*outcomes)) as pool:
        done = pool.submit(CALL, {}).result()
    assert (done.value, done.failure) == (2, "")
    assert [attempt.outcome.value for attempt in done.attempts] == [1, 2]
    assert "disturbed" in str(done.attempts[0])


def test_a_job_whose_host_was_lost_goes_to_another_once() -> None:
    outcomes = [Outcome(kind="lost", failure="gone"), Outcome(value=7)]
    with pool_of(["elm", "oak"], in_turn(*outcomes)) as pool:
        done = pool.submit(CALL, {}).result()
    assert (done.value, done.host) == (7, "oak")
    assert [attempt.host for attempt in done.attempts] == ["elm", "oak"]


@pytest.mark.parametrize("again", [{"disturbed": "others"}, {"kind": "lost", "failure": "gone"}])
def test_a_job_that_needs_a_host_is_done_again_there(again: dict[str, str]) -> None:
    """As turns of a choice do: another host cannot take their place."""
    with pool_of(["elm", "oak"], in_turn(Outcome(**again), Outcome(value=7))) as pool:
        done = pool.submit(CALL, {}, first="elm").result()
    assert (done.value, done.failure) == (7, "")
    assert [attempt.host for attempt in done.attempts] == ["elm", "elm"]


def test_a_host_that_lost_two_in_a_row_is_left_out() -> None:
    def instead(job: Job) -> Outcome:
        return Outcome(kind="lost", failure="gone") if job.host == "elm" else Outcome(value=1)

    with pool_of(["elm", "oak"], instead) as pool:
        done = [pool.submit(CALL, {}).result() for _ in range(6)]
        assert pool.table.hosts == ("oak",)
    assert [each.value for each in done] == [1] * 6


def test_without_any_host_left_it_ends_and_does_not_hang() -> None:
    with pool_of(["elm"], lambda _: Outcome(kind="lost", failure="gone")) as pool:
        assert pool.submit(CALL, {}).result(60.0).failure == "gone"
        with pytest.raises(WorkloadFailed):
            pool.submit(CALL, {}).result(60.0)


def test_a_job_that_fails_by_itself_is_not_done_again() -> None:
    with Pool(FakeExecutor(["elm", "oak"]), owner="a") as pool:
        done = pool.submit("math:sqrt", {}).result()
    assert "TypeError" in done.failure
    assert len(done.attempts) == 1


def test_a_host_that_works_for_others_ends_it_with_a_clear_error() -> None:
    with (
        pool_of(["elm"], lambda _: Outcome(kind="busy", failure="elm works for b")) as pool,
        pytest.raises(HostBusy),
    ):
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
    hosts: list[str] = []

    def instead(job: Job) -> Outcome:
        hosts.append(job.host)
        begun.set()
        going_on.wait(60.0)
        return Outcome(value=1)

    pool = pool_of(["elm", "oak"], instead)
    first = pool.submit(CALL, {}, among=["elm"])
    begun.wait(60.0)
    gang = pool.submit(CALL, {}, n_hosts=2)
    threading.Timer(0.2, going_on.set).start()
    pool.close()
    assert first.result().value == 1
    assert hosts == ["elm"]
    assert gang.cancelled() or "closed" in gang.result().failure


def test_all_hosts_are_kept_busy_and_none_with_two() -> None:
    together = threading.Barrier(4)

    def instead(_: Job) -> Outcome:
        together.wait(60.0)  # breaks unless four hosts work at the same time
        return Outcome()

    executor = FakeExecutor([f"host {n}" for n in range(4)], instead=instead)
    with Pool(executor, owner="a") as pool:
        jobs = [pool.submit(CALL, {}) for _ in range(40)]
        assert all(job.result().failure == "" for job in jobs)
    for host in executor.hosts:
        own = sorted((begin, end) for name, _, begin, end in executor.log if name == host)
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(own))
