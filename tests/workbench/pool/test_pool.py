from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from signalled import until

from benchrigor.errors import WorkloadFailed
from benchrigor.testing import FakeExecutor
from benchrigor.workbench.on_host import FREE, HOLD, HostBusy, Job, Outcome
from benchrigor.workbench.pool import Pool

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
        assert pool.hosts == ("oak",)
    assert {each.failure for each in done} == {""}


def test_a_gang_does_not_starve_and_what_it_waits_for_stays_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Later jobs do not take hosts that it may need."""
    monkeypatch.setattr("benchrigor.workbench.on_host.BEAT_S", 0.02)
    executor, begun, going_on = Holding(["elm", "oak"]), [], threading.Event()

    def instead(job: Job) -> None:
        begun.append(job.arguments["x"])
        if job.arguments["x"] == 1:
            going_on.wait(60.0)

    executor._instead = instead  # noqa: SLF001
    with Pool(executor, owner="a") as pool:
        pool.submit(CALL, {"x": 0}, first="elm").result()
        pool.submit(CALL, {"x": 1}, first="oak")
        until(lambda: begun == [0, 1])
        gang = pool.submit(CALL, {"x": 2}, n_hosts=2)
        until(lambda: 2 in map(len, pool._waiting.values()))  # noqa: SLF001
        later = pool.submit(CALL, {"x": 3})
        executor.log.clear()
        executor.idle = ["elm"]
        executor.twice.clear()
        assert executor.twice.wait(60.0)
        assert begun == [0, 1]
        going_on.set()
        assert later.result(60.0).failure == gang.result(60.0).failure == ""
    assert begun == [0, 1, 2, 3]


def test_a_host_that_is_being_held_at_the_end_is_freed_after_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchrigor.workbench.on_host.BEAT_S", 0.02)
    monkeypatch.setattr("benchrigor.workbench.pool._LOOK_S", 0.02)
    holding, ended = threading.Event(), []

    class Slow(FakeExecutor):
        def run(self, host: str, job: Job) -> Outcome:
            if job.call == HOLD:
                holding.set()
                time.sleep(0.1)
            ended.append(job.call)
            return Outcome()

    with Pool(Slow(["elm"]), owner="a") as pool:
        pool.submit(CALL, {}).result()
        assert holding.wait(60.0)
    assert ended == [CALL, HOLD, FREE]


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


class Holding(FakeExecutor):
    """Tells what becomes of the locks of the other hosts of a gang."""

    outcome = Outcome()

    def __init__(self, hosts: list[str]) -> None:
        super().__init__(hosts)
        self.idle = hosts
        self.twice = threading.Event()  # idle hosts are held a second time

    def run(self, host: str, job: Job) -> Outcome:
        if job.call == HOLD:
            self.log.append((host, job, time.monotonic(), 0.0))
            calls = [name for name, other, *_ in self.log if other.call == HOLD]
            if all(calls.count(name) > 1 for name in self.idle):
                self.twice.set()
            return self.outcome
        return super().run(host, job)


def test_all_hosts_of_a_gang_are_held_and_told() -> None:
    executor = Holding(["elm", "oak", "fir"])
    with Pool(executor, owner="a") as pool:
        done = pool.submit(CALL, {"hosts": []}, n_hosts=2, first="oak").result()
    assert done.value == {"hosts": ["oak", "elm"]}
    assert [host for host, job, *_ in executor.log if job.call == HOLD] == ["elm"]
    assert len({job.token for _, job, *_ in executor.log}) == 1


def test_a_host_that_is_lost_while_it_is_held_is_the_one_that_the_job_avoids() -> None:
    class Losing(FakeExecutor):
        def run(self, host: str, job: Job) -> Outcome:
            return LOST if host == "oak" else super().run(host, job)

    with Pool(Losing(["elm", "oak", "fir"]), owner="a") as pool:
        done = pool.submit(CALL, {"hosts": []}, n_hosts=2).result()
    assert done.value == {"hosts": ["elm", "fir"]}
    assert [attempt.partition(":")[0] for attempt in done.earlier] == ["oak"]


@pytest.mark.parametrize("within", [None, 7])
def test_hosts_that_have_no_job_stay_held(monkeypatch: pytest.MonkeyPatch, within: int) -> None:
    """Those that have had one; within a lease also those that will."""
    monkeypatch.setattr("benchrigor.workbench.on_host.BEAT_S", 0.02)
    executor = Holding(["elm", "oak"])
    with Pool(executor, owner="a", within=within) as pool:
        if within is None:
            executor.idle = ["oak"]
            pool.submit(CALL, {}, first="oak").result()
        assert executor.twice.wait(60.0)
        assert pool.submit(CALL, {}).result(60.0).failure == ""  # holding keeps no job away
    held = {host for host, job, *_ in executor.log if job.call == HOLD}
    assert held == ({"oak"} if within is None else {"elm", "oak"})


def test_a_host_that_has_a_job_is_held_by_that_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchrigor.workbench.on_host.BEAT_S", 0.02)
    executor = Holding(["elm", "oak"])
    with Pool(executor, owner="a") as pool:
        pool.submit(CALL, {}, n_hosts=2).result()
        executor.log.clear()
        executor.idle = ["oak"]
        executor._instead = lambda _: executor.twice.wait(60.0) and None  # noqa: SLF001
        job = pool.submit(CALL, {}, first="elm")
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
    first = pool.submit(CALL, {"x": 1}, first="elm")
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


def test_gangs_of_two_of_three_hosts_never_lock_each_other_out() -> None:
    """Nor has a host two jobs at the same time."""
    executor = FakeExecutor(["elm", "oak", "fir"])
    with Pool(executor, owner="a") as pool:
        jobs = [pool.submit(CALL, {"hosts": []}, n_hosts=2) for _ in range(300)]
        gangs = [job.result(60.0).value["hosts"] for job in jobs]
    assert {len({*gang}) for gang in gangs} == {2}


def test_who_waits_for_a_host_that_is_lost_is_told() -> None:
    with pool_of(["elm", "oak"], lambda job: LOST if job.host == "elm" else None) as pool:
        jobs = [pool.submit(CALL, {}, first="elm") for _ in range(2)]
        found = [job.result(60.0).failure for job in jobs]
        assert any("no host is left" in failure for failure in found)
        assert pool.hosts == ("oak",)
