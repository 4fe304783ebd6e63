"""What can be watched, and what cannot."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.queues import Page, Stage, Tap
from benchrigor.queues.counting.ends import End
from benchrigor.queues.stages.stage import stages_of


@pytest.fixture
def tap() -> Iterator[Tap]:
    with Tap(queue.Queue(), name="work") as made:
        yield made


def test_a_tap_is_two_stages_who_fills_and_who_takes(tap: Tap) -> None:
    source, sink = stages_of([tap])
    assert (source.name, source.reads, source.writes) == ("work.tail", (), (tap.tail,))
    assert (sink.name, sink.reads, sink.writes) == ("work.head", (tap.head,), ())


def test_stages_are_taken_as_they_are_in_order(tap: Tap, page: Page) -> None:
    stage = Stage("hash", reads=[End(page, "in.head")], writes=[tap.tail], servers=3)
    found = stages_of([stage, tap])
    assert [each.name for each in found] == ["hash", "work.tail", "work.head"]
    assert found[0] is stage


def test_a_stage_takes_taps_for_the_ends_that_it_uses(tap: Tap, page: Page) -> None:
    with Tap(queue.Queue(), name="done") as done:
        stage = Stage("hash", reads=[tap, End(page, "more.head")], writes=[done])
        assert [end.name for end in stage.reads] == ["work.head", "more.head"]
        assert stage.writes == (done.tail,)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": ""}, "name is ''"),
        ({"name": None}, "name is None"),
        ({"servers": 0}, "servers is 0"),
        ({"servers": True}, "servers is True"),
        ({"reads": "work"}, "reads is 'work'"),
        ({"reads": 3}, "reads is 3"),
        ({"writes": ["work"]}, r"writes\[0\] is 'work', expected the tail of a tap"),
        ({"reads": ()}, "has no ends"),
    ],
)
def test_a_stage_that_makes_no_sense_is_refused(
    page: Page, options: dict[str, Any], words: str
) -> None:
    usual = {"name": "hash", "reads": [End(page, "work.head")]}
    with pytest.raises(InvalidInput, match=words):
        Stage(**{**usual, **options})


def test_a_tap_in_place_of_a_list_is_refused(tap: Tap) -> None:
    with pytest.raises(InvalidInput, match="expected a list of taps"):
        Stage("hash", reads=tap)  # type: ignore[arg-type]


def test_the_wrong_end_of_a_queue_is_refused(tap: Tap) -> None:
    with pytest.raises(InvalidInput, match=r"reads\[0\] is 'work.tail', expected a head"):
        Stage("hash", reads=[tap.tail])
    with pytest.raises(InvalidInput, match=r"writes\[0\] is 'work.head', expected a tail"):
        Stage("hash", writes=[tap.head])


def test_queues_of_a_stage_have_names_of_their_own(page: Page) -> None:
    with Page.create() as other, pytest.raises(InvalidInput, match="names of their own"):
        Stage("hash", reads=[End(page, "work.head"), End(other, "work.head")])


@pytest.mark.parametrize("what", [(), ("work",), (None,)])
def test_nothing_to_watch_is_refused(what: tuple[object, ...]) -> None:
    with pytest.raises(InvalidInput, match="expected a Stage or a Tap"):
        stages_of(what)


def test_a_name_for_two_is_refused(tap: Tap) -> None:
    with pytest.raises(InvalidInput, match=r"several stages are called 'work.head'"):
        stages_of([tap, Stage("work.head", reads=[tap.head])])
