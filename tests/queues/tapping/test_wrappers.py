"""A wrapper hides nothing but what it counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.wrappers import Tapped, Wrapper


class Stage:
    limit = 3

    def name(self) -> str:
        return "reduce"


def test_a_wrapper_lets_through_what_it_does_not_know(head: Writer, tail: Writer) -> None:
    stage = Stage()
    wrapper = Wrapper(stage, head, tail)
    assert wrapper.name() == "reduce"
    assert wrapper.limit == 3
    assert repr(wrapper) == f"<tapped {stage!r}>"
    with pytest.raises(AttributeError, match="absent"):
        _ = wrapper.absent
    assert not hasattr(wrapper, "__len__")


def test_a_wrapper_half_made_does_not_look_for_itself_for_ever() -> None:
    with pytest.raises(AttributeError):
        _ = Wrapper.__new__(Wrapper).anything


def test_a_wrapper_can_be_sent(head: Writer, tail: Writer, sent: Callable[[Any], Any]) -> None:
    assert sent(Wrapper([1, 2], head, tail)).index(2) == 1


def test_what_is_tapped_has_nothing_to_release_unless_it_says_so() -> None:
    tapped = Tapped(queue=None)
    tapped.release()
    assert tapped.resize is None


def test_what_is_set_on_a_wrapper_is_set_on_the_source(head: Writer, tail: Writer) -> None:
    class Renamed(Wrapper):
        def name(self) -> str:
            return "map"

    stage = Stage()
    wrapper = Renamed(stage, head, tail)
    wrapper.limit = 8
    assert (stage.limit, wrapper.limit) == (8, 8)
    wrapper.name = lambda: "filter"  # type: ignore[method-assign]
    assert (wrapper.name(), stage.name()) == ("filter", "reduce")
