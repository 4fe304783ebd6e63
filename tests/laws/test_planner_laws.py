"""Laws of protocols.Planner, over every implementation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchrigor.errors import PlanMismatch
from benchrigor.protocols import Planner
from benchrigor.testing import SimulatedServer
from benchrigor.workbench import PeakSearch

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
