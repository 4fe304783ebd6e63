"""Laws of protocols.Planner and of executors of pools, over every implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchrigor.errors import PlanMismatch
from benchrigor.protocols import Planner
from benchrigor.testing import FakeExecutor, SimulatedServer
from benchrigor.workbench import PeakSearch
from benchrigor.workbench.executors import DaskExecutor, LocalExecutor
from benchrigor.workbench.on_host import Job, Token

Make = Callable[[], PeakSearch]


@pytest.fixture(params=["adaptive", "strawman", "linear", "binsearch", "model", "quadratic"])
def make(request: pytest.FixtureRequest) -> Make:
    return lambda: PeakSearch(threshold_s=0.04, accuracy=0.1, policy=request.param)


def asked(planner: PeakSearch, server: SimulatedServer) -> list[object]:
    plans: list[object] = []
    while (plan := planner.ask()) is not None:
        plans.append(plan)
        planner.tell(plan, server.offer(plan))
    return plans


def test_it_is_a_planner(make: Make) -> None:
    assert isinstance(make(), Planner)


def test_it_ends_and_stays_at_its_end(make: Make) -> None:
    planner = make()
    assert asked(planner, SimulatedServer(200.0, noise=0.05))
    assert planner.ask() is None
    assert planner.result().status is not None


def test_the_same_told_the_same_is_asked(make: Make) -> None:
    one, two = (asked(make(), SimulatedServer(300.0, noise=0.1)) for _ in range(2))
    assert one == two


def test_pending_plans_are_told_apart(make: Make) -> None:
    planner = make()
    plans = [planner.ask() for _ in range(4)]
    ids = [each.id for each in plans if each is not None]
    assert len(ids) == len(set(ids)) == 4


def test_a_plan_told_twice_changes_nothing(make: Make) -> None:
    planner, server = make(), SimulatedServer(200.0)
    plan = planner.ask()
    assert plan is not None
    planner.tell(plan, server.offer(plan))
    before = planner.result().trials
    with pytest.raises(PlanMismatch):
        planner.tell(plan, server.offer(plan))
    assert planner.result().trials == before


def test_the_order_in_which_pending_plans_are_told_may_be_any(make: Make) -> None:
    planner, server = make(), SimulatedServer(200.0, noise=0.05)
    while plans := [each for each in (planner.ask(), planner.ask()) if each is not None]:
        for plan in reversed(plans):
            planner.tell(plan, server.offer(plan))
    assert planner.result().status is not None


# --- Laws of executors of pools, over every implementation.


HOSTS = ("elm", "oak")
Ask = Callable[..., Job]
Executor = FakeExecutor | LocalExecutor | DaskExecutor


@pytest.fixture(
    scope="module",
    params=["fake", "local", "dask"],
)
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    with ExitStack() as stack:
        made: Executor
        if request.param == "dask":
            distributed = pytest.importorskip("distributed")
            workers = {
                name: {
                    "cls": distributed.Nanny,
                    "options": {"nthreads": 2, "resources": {"host": 1}, "dashboard": False},
                }
                for name in HOSTS
            }
            scheduler = {"cls": distributed.Scheduler, "options": {"dashboard": False}}
            cluster = distributed.SpecCluster(workers=workers, scheduler=scheduler)
            stack.enter_context(cluster)
            made = DaskExecutor(cluster.scheduler_address)
        else:
            made = FakeExecutor(HOSTS) if request.param == "fake" else LocalExecutor(HOSTS)
        stack.callback(made.close)
        yield made


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    def make(call: str, *, host: str = "elm", **arguments: object) -> Job:
        token, folder = Token(owner="a", number=1), str(tmp_path)
        own = {"host": host, "token": token, "lock_folder": folder, "alone": False}
        return Job(call=call, arguments=arguments, watched=False, **own)  # type: ignore[arg-type]

    return make


def test_it_names_its_hosts(executor: Executor) -> None:
    assert executor.hosts == HOSTS
    assert isinstance(executor.alone, bool)


def test_each_host_returns_what_a_function_does(executor: Executor, ask: Ask) -> None:
    value = {"text": "µ\n\x00", "numbers": [1, 2.5, None, True], "deep": {"a": []}}
    for host in HOSTS:
        outcome = executor.run(host, ask("builtins:dict", host=host, **value))
        assert (outcome.kind, outcome.value, outcome.failure) == ("done", value, "")


def test_what_a_function_raises_is_an_outcome(executor: Executor, ask: Ask) -> None:
    outcome = executor.run("elm", ask("math:sqrt"))
    assert (outcome.kind, outcome.value) == ("failed", None)
    assert "TypeError" in outcome.failure


@pytest.mark.parametrize("call", ["no_such_module:f", "math:no_such_name", ""])
def test_a_function_that_is_not_there_is_an_outcome(
    executor: Executor, ask: Ask, call: str
) -> None:
    outcome = executor.run("elm", ask(call))
    assert outcome.kind in {"failed", "lost"}
    assert outcome.failure


def test_a_stop_without_anything_under_way_harms_nothing(executor: Executor, ask: Ask) -> None:
    executor.stop()
    assert executor.run("oak", ask("builtins:dict", host="oak")).kind == "done"
