from __future__ import annotations

from benchrigor.testing import FakeClock


def test_it_moves_only_when_told() -> None:
    clock = FakeClock(start_ns=7)
    assert [clock.now_ns(), clock.now_ns()] == [7, 7]
    clock.advance(5)
    clock.sleep_ns(3)
    assert clock.now_ns() == 15


def test_each_read_moves_it_by_its_cost() -> None:
    clock = FakeClock(cost_ns=40)
    assert [clock.now_ns() for _ in range(3)] == [0, 40, 80]


def test_it_shows_multiples_of_its_resolution_and_loses_nothing_in_between() -> None:
    clock = FakeClock(resolution_ns=100)
    shown = []
    for _ in range(5):
        clock.advance(60)
        shown.append(clock.now_ns())
    assert shown == [0, 100, 100, 200, 300]


def test_it_goes_back_when_told() -> None:
    clock = FakeClock(start_ns=100)
    clock.advance(-30)
    assert clock.now_ns() == 70


def test_a_script_is_shown_as_it_stands_and_then_left_behind() -> None:
    clock = FakeClock(cost_ns=1, script=[5, 3, 3])
    assert [clock.now_ns() for _ in range(5)] == [5, 3, 3, 3, 4]
