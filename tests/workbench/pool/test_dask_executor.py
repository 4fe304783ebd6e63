"""A pool on workers of Dask: one cluster for all tests, in which each worker is a host."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import cluster_of
from distributed import Client, get_worker

from benchrigor.errors import InvalidInput, MissingExtra
from benchrigor.workbench.pool.dask_executor import DaskExecutor
from benchrigor.workbench.pool.leases import Token
from benchrigor.workbench.pool.on_host import LOST, Job
from benchrigor.workbench.pool.pool import Pool

pytestmark = pytest.mark.slow
HOSTS = ["elm", "fir", "oak"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with cluster_of(HOSTS) as made:
        yield made


@pytest.fixture
def executor(cluster: Any) -> Iterator[DaskExecutor]:
    made = DaskExecutor(cluster.scheduler_address)
    yield made
    made.close()


def span(seconds: float) -> tuple[str, float, float]:
    """Sleep on a worker; return which one, since when and until when."""
    begun_s = time.monotonic()
    time.sleep(seconds)
    return str(get_worker().name), begun_s, time.monotonic()


def overlaps(spans: list[tuple[str, float, float]]) -> int:
    """Count pairs of tasks that ran on a worker at the same time."""
    ordered = sorted(spans)
    return sum(
        one[0] == other[0] and other[1] < one[2]
        for place, one in enumerate(ordered)
        for other in ordered[place + 1 :]
    )


@pytest.mark.parametrize("resources", [{"host": 1}, {}], ids=["annotated", "control"])
def test_the_resource_keeps_trials_apart(cluster: Any, resources: dict[str, int]) -> None:
    """Without it tasks overlap, which shows that this test would see it."""
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        options = {"resources": resources} if resources else {}
        tasks = client.map(span, [0.2] * 12, pure=False, **options)
        found = overlaps(client.gather(tasks))
    assert (found > 0) == (not resources)


def test_jobs_of_a_pool_never_overlap_on_a_host(executor: DaskExecutor, tmp_path: Path) -> None:
    assert executor.hosts == ("elm", "fir", "oak")
    assert not executor.alone  # all of them are this machine
    spans = []
    call = "benchrigor.workbench.fakes:sleep"
    with Pool(executor, owner="a", lock_folder=str(tmp_path)) as pool:
        jobs = [pool.submit(call, {"seconds": 0.1}) for _ in range(6)]
        for job in jobs:
            done = job.result()
            spans.append((done.host, *done.value))
    assert overlaps(spans) == 0
    assert {host for host, *_ in spans} == set(HOSTS)


def test_the_job_of_a_worker_that_is_killed_is_done_again(
    executor: DaskExecutor, cluster: Any, tmp_path: Path
) -> None:
    before = {name: worker.process.process.pid for name, worker in cluster.workers.items()}
    with Pool(executor, owner="a", lock_folder=str(tmp_path)) as pool:
        job = pool.submit("benchrigor.workbench.fakes:sleep", {"seconds": 6.0}, among=["fir"])
        while not (tmp_path / "fir.lock").exists():
            time.sleep(0.05)
        os.kill(before["fir"], signal.SIGKILL)
        done = job.result(120)
    assert done.failure == ""
    assert [each.outcome.kind for each in done.attempts] == [LOST, "done"]


def test_a_host_without_a_worker_is_refused(cluster: Any) -> None:
    with pytest.raises(InvalidInput, match="ash has no worker, expected one of elm, fir, oak"):
        DaskExecutor(cluster.scheduler_address, ["elm", "ash"])


def test_a_worker_without_the_resource_is_refused() -> None:
    with (
        cluster_of(["elm"], resources={}) as bare,
        pytest.raises(InvalidInput, match="--name elm --resources host=1"),
    ):
        DaskExecutor(bare.scheduler_address)


def test_a_scheduler_that_is_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchrigor.workbench.pool.dask_executor._ANSWER_S", 1.0)
    with pytest.raises(InvalidInput, match=r"no scheduler of Dask answers at tcp://127.0.0.1:9"):
        DaskExecutor("tcp://127.0.0.1:9")


def test_a_scheduler_that_goes_away_loses_jobs_and_hangs_none(tmp_path: Path) -> None:
    with cluster_of(["elm"]) as brief:
        executor = DaskExecutor(brief.scheduler_address)
        job = Job(
            call="benchrigor.workbench.fakes:sleep",
            arguments={"seconds": 30.0},
            host="elm",
            token=Token(owner="a", number=1),
            lock_folder=str(tmp_path),
            alone=False,
        )
        under_way = executor.submit("elm", job)
        while not (tmp_path / "elm.lock").exists():
            time.sleep(0.05)
    assert under_way.result(120).kind == LOST
    executor.close()


def test_without_dask_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"pip install 'benchrigor\[cluster\]'"):
        DaskExecutor("tcp://127.0.0.1:9")
