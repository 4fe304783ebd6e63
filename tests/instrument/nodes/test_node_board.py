"""Whose answer is whose, whatever comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.instrument.nodes.made_nodes import report_on

from benchrigor.instrument.nodes.node_board import Answer, NodeBoard


def report(asked: Any, **changes: Any) -> dict[str, Any]:
    return report_on(**{"echo": asked.echo, **changes})


def answer(asked: Any, body: object = None, **times: float) -> Answer:
    if not isinstance(body, bytes):
        body = json.dumps(report(asked) if body is None else body).encode()
    return Answer(asked=asked, body=body, **times)


def only(board: NodeBoard, now_s: float = 0.0) -> Any:
    (view,) = board.views(now_s)
    return view


def well(**changes: Any) -> tuple[NodeBoard, Any]:
    """A board with one node that answered well once, and the next question to it."""
    board = NodeBoard(["a:1"], salt="s")
    (first,) = board.ask()
    board.tell(answer(first, report(first, **changes)))
    assert only(board).condition == "well"
    return board, board.ask()[0]


def test_a_good_answer_is_kept_and_ages():
    board = NodeBoard(["a:1"], salt="s")
    (asked,) = board.ask()
    assert only(board).condition == "unasked"
    board.tell(answer(asked, received_s=10.0))
    view = only(board, 12.0)
    assert view.condition == "well"
    assert view.age_s == 2.5  # 0.5 s old when it was told
    assert board.ask()[0].cursor == "c.1"


def test_a_node_that_fails_keeps_what_it_told():
    board, asked = well()
    board.tell(Answer(asked=asked, failed="no answer"))
    view = only(board, 60.0)
    assert (view.condition, view.reason) == ("silent", "no answer")
    assert view.report is not None
    assert view.age_s == 60.5
    (asked,) = board.ask()
    board.tell(Answer(asked=asked, failed="Unauthorized", condition="refused"))
    assert only(board).condition == "refused"
    (asked,) = board.ask()
    board.tell(answer(asked, report(asked, sequence=2)))
    view = only(board)
    assert (view.condition, view.reason, view.restarts) == ("well", "", 0)


def test_an_answer_that_comes_late_or_twice_changes_nothing():
    board, late = well()
    (asked,) = board.ask()
    before = board.views(0.0)
    board.tell(answer(late, report(late, sequence=7)))
    assert board.views(0.0) == before
    board.tell(answer(asked, report(asked, sequence=3)))
    before = board.views(0.0)
    board.tell(answer(asked, report(asked, sequence=9)))
    assert board.views(0.0) == before


@pytest.mark.parametrize(
    "changes", [{"echo": "s.1.0"}, {"name": "other", "sequence": 2}, {"sequence": 1}], ids=str
)
def test_an_answer_that_cannot_be_its_own_is_wrong(changes):
    board, asked = well()
    before = only(board).report
    board.tell(answer(asked, report(asked, **changes)))
    assert (only(board).condition, only(board).report) == ("wrong", before)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize(
    ("addresses", "place", "right"),
    [
        (["10.0.0.1:1", "10.0.0.2:1"], "10.0.0.2:1", 1),  # the first one passes questions on
        (["10.0.0.1:1", "10.0.0.2:1"], "10.0.0.1:1", 0),
        (["10.0.0.1:1", "name:2"], "10.9.9.9:2", 1),
        (["10.0.0.1:1", "name:2"], "10.0.0.1:1", 0),
        (["[::1]:1", "[::2]:1"], "[::2]:1", 1),
        (["name:1", "other:1"], "10.0.0.1:1", 0),  # nobody can tell: the first
        (["10.0.0.1:1", "10.0.0.2:1"], "192.168.0.1:7", 0),
    ],
)
def test_a_node_that_is_there_twice_is_where_it_says_it_was_reached(addresses, place, right, order):
    board = NodeBoard(addresses, salt="s")
    for cycle in (1, 2):
        asked = board.ask()
        for count, index in enumerate(order):
            sequence = 2 * cycle + count
            body = report(asked[index], place=place, sequence=sequence)
            board.tell(answer(asked[index], body))
        views = board.views(0.0)
        assert views[right].condition == "well"
        assert views[1 - right].condition == "twice"
        assert views[1 - right].report is None
        assert views[right].address in views[1 - right].reason


def test_a_node_comes_back_but_not_as_what_has_ended():
    board, asked = well()
    board.tell(answer(asked, report(asked, node="n2")))
    assert (only(board).condition, only(board).restarts) == ("well", 1)
    (asked,) = board.ask()
    board.tell(answer(asked, report(asked, node="n1", sequence=99)))
    assert (only(board).condition, only(board).report.node) == ("wrong", "n2")


def wrong(**changes: Any) -> bytes:
    board = NodeBoard(["a:1"], salt="s")
    return json.dumps({**report(board.ask()[0]), **changes}).encode()


def sampled(state: str, value: object) -> bytes:
    return wrong(**{state: {"samples": [{"name": "load", "value": value}], "at": ""}})


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"node": "n1"}', b'{"at_s": NaN}'),
        *(wrong(at_s=value) for value in (None, "1e999", 10**400)),
        *(wrong(age_s=value) for value in (-1.0, 1e999)),
        *(wrong(sequence="x"), wrong(node=""), wrong(status=[1]), wrong(alarms=5)),
        *(sampled("status", value) for value in ({}, 10**400)),
        *(sampled("health", value) for value in (1e999, -1e308)),
        wrong(probes={"readings": {"p": 1}}),
    ],
)
def test_an_answer_without_sense_is_told_as_such(body):
    board = NodeBoard(["a:1"], salt="s")
    (asked,) = board.ask()
    board.tell(answer(asked, body))
    view = only(board)
    assert view.condition == "wrong"
    assert len(view.reason) <= 200
    assert view.report is None


seconds = st.floats(min_value=0.0, max_value=10.0)


@settings(deadline=None)  # the first one resolves types
@given(st.floats(min_value=-1e6, max_value=1e6), seconds, seconds)
def test_the_offset_of_a_clock_is_within_its_error_whatever_way_takes_longer(ahead, there, back):
    board = NodeBoard(["a:1"], salt="s")
    (asked,) = board.ask()
    wall_s, trip_s = 1.0e9, there + back  # at the hub, when the question was sent
    body = report(asked, at_s=wall_s + there + ahead)
    board.tell(answer(asked, body, sent_s=5.0, received_s=5.0 + trip_s, wall_s=wall_s + trip_s))
    view = only(board)
    assert view.offset_s is not None
    assert view.offset_error_s == pytest.approx(trip_s / 2.0, abs=1e-9)
    assert abs(view.offset_s - ahead) <= trip_s / 2.0 + 1e-6
