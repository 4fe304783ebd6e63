"""A bound that a tap and the program both move: what the program has set stands."""

from __future__ import annotations

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.queues.tap import Bound
from benchrigor.queues.tapping.wrappers import Move


class Room:
    """A queue's bound."""

    def __init__(self, size: int) -> None:
        self.size = size

    def resize(self, move: Move) -> None:
        self.size = move(self.size)


@pytest.fixture
def room() -> Room:
    return Room(8)


@pytest.fixture
def bound(room: Room) -> Bound:
    return Bound(room.resize)


def test_what_is_lent_is_given_back_in_any_order(room: Room, bound: Bound) -> None:
    first, second = bound.lend(1), bound.lend(2)
    assert room.size == 11
    bound.give_back(first)
    assert room.size == 10
    bound.give_back(first)
    bound.give_back(second)
    assert room.size == 8


def test_all_is_given_back_at_once(room: Room, bound: Bound) -> None:
    for each in (1, 2, 3):
        bound.lend(each)
    bound.give_all_back()
    bound.give_all_back()
    assert room.size == 8


@pytest.mark.parametrize("size", [0, 1, 3, 11, 100])
def test_what_the_program_sets_stands(room: Room, bound: Bound, size: int) -> None:
    loan = bound.lend(2)
    room.size = size
    bound.give_back(loan)
    assert room.size == size


def test_what_is_lent_after_the_program_has_set_it_is_given_back(room: Room, bound: Bound) -> None:
    before = bound.lend(2)
    room.size = 20
    after = bound.lend(5)
    assert room.size == 25
    bound.give_back(after)
    assert room.size == 20
    bound.give_back(before)
    assert room.size == 20


@pytest.mark.parametrize("size", [0, -1])
def test_where_there_is_none_nothing_is_lent(bound: Bound, room: Room, size: int) -> None:
    room.size = size
    with pytest.raises(InvalidInput, match="takes any number of items, expected one with maxsize"):
        bound.lend(1)
    bound.give_all_back()
    assert room.size == size
