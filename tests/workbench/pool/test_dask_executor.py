"""Jobs on real workers of Dask; the cluster is shared, so each test leaves three workers."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from signalled import until

from benchrigor.errors import InvalidInput, MissingExtra
from benchrigor.workbench import executors
from benchrigor.workbench.executors import DaskExecutor
from benchrigor.workbench.on_host import Job, Token
from benchrigor.workbench.pool import Pool

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
SHELL = "subprocess:getoutput"
STAMPS = "date +%s.%N; sleep 0.5; date +%s.%N"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=3,
        threads_per_worker=2,
        processes=True,
        resources={"host": 1},
        dashboard_address=":0",
    ) as cluster:
        yield cluster


@pytest.fixture
def executor(cluster: Any) -> Iterator[DaskExecutor]:
    executor = DaskExecutor(cluster.scheduler_address)
    yield executor
    executor.close()


def test_jobs_of_a_worker_never_overlap(executor: DaskExecutor, tmp_path: Path) -> None:
    assert executor.hosts == ("0", "1", "2")
    assert not executor.alone  # one machine cannot tell what others use it for
    own = {"host": "0", "token": Token(owner="a", number=1), "lock_folder": str(tmp_path)}
    job = Job(call=SHELL, arguments={"cmd": STAMPS}, alone=False, watched=False, **own)
    with ThreadPoolExecutor(3) as threads:
        outcomes = [*threads.map(lambda _: executor.run("0", job), range(3))]
    assert [outcome.failure for outcome in outcomes] == [""] * 3
    spans = sorted([float(stamp) for stamp in outcome.value.split()] for outcome in outcomes)
    assert all(later[0] >= span[1] for span, later in itertools.pairwise(spans))


def test_workers_are_known_whatever_the_client_keeps_of_them(
    executor: DaskExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every 2 s the client keeps what the scheduler says without its workers."""

    async def update(**_: object) -> None:
        executor._client._scheduler_identity = {"workers": {}}  # noqa: SLF001

    monkeypatch.setattr(executor._client, "_update_scheduler_info", update)  # noqa: SLF001
    assert {*executor._workers()} == {"0", "1", "2"}  # noqa: SLF001


def test_a_job_whose_worker_is_killed_is_repeated_once_and_its_process_dies(
    executor: DaskExecutor, tmp_path: Path
) -> None:
    first = tmp_path / "first"
    cmd = f"[ -e {first} ] || (echo $PPID > {first}.part; mv {first}.part {first}; exec sleep 600)"
    with Pool(executor, owner="a", lock_folder=str(tmp_path)) as pool:
        job = pool.submit(SHELL, {"cmd": cmd})
        until(first.exists)
        parents = executor._client.run(os.getpid)  # noqa: SLF001
        (lost,) = pool._used  # noqa: SLF001
        os.kill(parents[executor._workers()[lost]["address"]], signal.SIGKILL)  # noqa: SLF001
        done = job.result(120.0)
    assert done.failure == ""
    assert (["lost" in each for each in done.earlier], done.kind) == ([True], "done")
    assert done.host != lost


def test_closing_ends_what_is_under_way(cluster: Any, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    pool = Pool(DaskExecutor(cluster.scheduler_address), owner="a", lock_folder=str(tmp_path))
    job = pool.submit(SHELL, {"cmd": f"touch {begun}; exec sleep 600"}, first="2")
    until(begun.exists)
    pool.close()
    assert job.result(120.0).failure


def test_hosts_without_a_worker_are_refused_all_at_once(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput) as error:
        DaskExecutor(cluster.scheduler_address, hosts=["elm", "0", "oak"])
    assert len(error.value.problems) == 2
    monkeypatch.setattr("benchrigor.workbench.executors._ANSWER_S", 0.5)
    with pytest.raises(InvalidInput):
        DaskExecutor("tcp://127.0.0.1:9")  # no scheduler


def test_without_the_extra_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(MissingExtra, match="cluster"):
        DaskExecutor("tcp://127.0.0.1:9")


def test_a_start_is_the_same_moment_by_the_clock_of_a_worker(
    executor: DaskExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the asker is an hour ahead."""
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + 3600.0, sleep=time.sleep)
    monkeypatch.setattr(executors, "time", clock)
    own = {"host": "0", "token": Token(owner="a", number=1), "lock_folder": str(tmp_path)}
    start_s = time.monotonic() + 9.0
    given = {"start_s": start_s + 3600.0}
    job = Job(call="builtins:dict", arguments=given, alone=False, watched=False, **own)
    outcome = executor.run("0", job)
    assert outcome.failure == ""
    assert 0.0 <= outcome.value["start_s"] - start_s < 2.0  # the way through the scheduler
