"""What holds of each executor: jobs run on their host, failures are outcomes, nothing hangs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from clusters import cluster_of

from benchrigor.testing import FakeExecutor
from benchrigor.workbench.pool.dask_executor import DaskExecutor
from benchrigor.workbench.pool.executors import Executor, LocalExecutor
from benchrigor.workbench.pool.leases import Token
from benchrigor.workbench.pool.on_host import DONE, FAILED, Job

HOSTS = ["elm", "oak"]
Make = Callable[..., Job]


@pytest.fixture(params=["fake", "local", pytest.param("dask", marks=pytest.mark.slow)])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    with ExitStack() as stack:
        if request.param == "fake":
            made: Executor = FakeExecutor(HOSTS)
        elif request.param == "local":
            made = LocalExecutor(HOSTS, prefix=["env", "REACHED={host}"])
        else:
            made = DaskExecutor(stack.enter_context(cluster_of(HOSTS)).scheduler_address)
        yield made
        made.close()


@pytest.fixture
def job(tmp_path: Path) -> Make:
    def make(call: str, host: str = "elm", number: int = 1, **arguments: object) -> Job:
        token = Token(owner="a run", number=number)
        folder = str(tmp_path)
        return Job(
            call=call, arguments=arguments, host=host, token=token, lock_folder=folder, alone=False
        )

    return make


def test_jobs_run_on_their_hosts_and_failures_are_outcomes(executor: Executor, job: Make) -> None:
    """One test of all laws, since some executors take long to begin."""
    assert executor.hosts == ("elm", "oak")
    submitted = [
        executor.submit("elm", job("builtins:dict", a=[1, 2.5, "ü"])),
        executor.submit("oak", job("builtins:dict", "oak", b=None)),
        executor.submit("elm", job("builtins:dict", number=2)),
    ]
    outcomes = [each.result(60) for each in submitted]
    assert [each.value for each in outcomes] == [{"a": [1, 2.5, "ü"]}, {"b": None}, {}]
    assert {each.kind for each in outcomes} == {DONE}
    failing = {
        "builtins:int": "TypeError",
        "no_such_module:f": "No module named 'no_such_module'",
    }
    arguments: dict[str, dict[str, object]] = {"builtins:int": {"bass": 7}}
    for number, (call, said) in enumerate(failing.items(), 3):
        submitted = [executor.submit("elm", job(call, number=number, **arguments.get(call, {})))]
        outcome = submitted[0].result(60)
        assert outcome.kind == FAILED
        assert said in outcome.failure
