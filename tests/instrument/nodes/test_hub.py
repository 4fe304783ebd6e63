"""A hub among nodes that hang, die, return, lie and flood; and the board that it keeps."""

from __future__ import annotations

import json
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.instrument.nodes.made_nodes import agent_of, http, report_on, server

from benchrigor.errors import InvalidInput
from benchrigor.instrument import Hub, ProbeRegistry
from benchrigor.instrument.hub import Answer, NodeBoard
from benchrigor.machine import read_thresholds

TOKEN = "a-token-of-the-tests"  # noqa: S105  # for these tests alone
PATIENT_S = 15.0  # for what answers at once, on a machine that is busy
HERE = Path(__file__).parent


def by_address(hub: Hub) -> dict[str, Any]:
    return {each.address.partition("://")[2]: each for each in hub.pull()}


def unused() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


def test_nodes_are_asked_and_nobody_is_taken_for_another():
    registries = [ProbeRegistry() for _ in range(5)]
    with ExitStack() as stack:
        agents = [stack.enter_context(agent_of(registry=each)) for each in registries]
        hub = stack.enter_context(Hub([each.url for each in agents], timeout_s=PATIENT_S))
        for cycle in range(1, 4):
            for index, each in enumerate(registries):
                for _ in range(cycle * (index + 1)):
                    with each.probe("parse"):
                        pass
            for index, (agent, view) in enumerate(zip(agents, hub.pull(), strict=True)):
                assert view.condition == "well"
                assert view.address == agent.url
                assert view.report.node == agent.service.node
                assert view.report.sequence == cycle
                assert view.report.probes["parse"].count == cycle * (index + 1)
                assert abs(view.offset_s) <= view.offset_error_s + 0.01


def test_what_hangs_or_is_gone_or_talks_nonsense_holds_up_nobody():
    answers = {
        "hangs": None,
        "closes": b"",
        "nonsense": b"hello\r\n\r\n",
        "not json": http(b"hello"),
        "error": http(b'{"error": "Unauthorized"}', b"401 Unauthorized"),
        "elsewhere": http(b"", b"302 Found", b"Location: http://127.0.0.1:1/\r\n"),
        "long header": http(b"{}", more=b"X: " + b"x" * 20_000 + b"\r\n"),
        "bad gzip": http(b"hello", more=b"Content-Encoding: gzip\r\n"),
        "bad chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
        "cut off": http(b"{}")[:-1],
    }
    with ExitStack() as stack:
        agent = stack.enter_context(agent_of())
        places = {name: stack.enter_context(server(each)) for name, each in answers.items()}
        places |= {"gone": unused(), "no name": "x" * 80 + ":1"}
        hub = stack.enter_context(Hub([agent.url, *places.values()], timeout_s=3.0))
        began_s = time.monotonic()
        views = by_address(hub)
        assert time.monotonic() - began_s < 60.0  # the test of the figure is in the evidence
        assert views[agent.url.partition("://")[2]].condition == "well"
        found = {name: views[place] for name, place in places.items()}
        assert found["hangs"].condition == "silent"
        assert found["not json"].condition == "wrong"
        assert found["error"].condition == "refused"
        assert found["elsewhere"].condition == "wrong"
        for condition, names in (
            ("silent", ("closes", "gone", "no name")),
            ("wrong", ("nonsense", "long header", "bad gzip", "bad chunk", "cut off")),
        ):
            for name in names:
                assert found[name].condition == condition, name
                assert found[name].reason, name


def test_an_answer_that_is_too_large_is_cut_off():
    with server(http(b"x" * (2**20 + 1))) as place, Hub([place], timeout_s=PATIENT_S) as hub:
        (view,) = hub.pull()
        assert view.condition == "wrong"


def test_the_largest_report_of_an_agent_is_taken():
    registry = ProbeRegistry()
    registry.probe("unused")
    for index in range(1200):
        probe = registry.probe(f"{index:05d}" + ".a_long_name" * 10)
        for power in range(40):
            probe.stop(time.perf_counter_ns() - int(10 ** (power / 4.0)))
    with agent_of(registry=registry) as agent, Hub([agent.url], timeout_s=PATIENT_S) as hub:
        (view,) = hub.pull()
        assert view.condition == "well"
        assert (len(view.report.probes), view.report.left_out) == (1000, 200)
        assert "unused" not in view.report.probes
        (view,) = hub.pull()
        assert (len(view.report.probes), view.report.left_out) == (0, 0)


def test_a_token_that_is_wrong_is_told():
    with agent_of(token=TOKEN) as agent:
        for given, condition in (
            (TOKEN, "well"),
            ("x" * 20, "refused"),
            (None, "refused"),
        ):
            with Hub([agent.url], token=given, timeout_s=PATIENT_S) as hub:
                assert hub.pull()[0].condition == condition


def test_only_certificates_that_are_trusted_are_believed():
    with agent_of(tls=(HERE / "certificate.pem", HERE / "key.pem")) as agent:
        with Hub([agent.url], timeout_s=PATIENT_S) as hub:
            (view,) = hub.pull()
            assert view.condition == "silent"
            assert "certificate" in view.reason.lower()
        authority = HERE / "certificate.pem"
        with Hub([agent.url], authority=authority, timeout_s=PATIENT_S) as hub:
            assert hub.pull()[0].condition == "well"


def test_thresholds_are_put_on_every_node_that_can_be_reached():
    gone = unused()
    with agent_of() as one, agent_of() as other:
        with Hub([one.url, other.url, gone], timeout_s=PATIENT_S) as hub:
            told = hub.configure(read_thresholds("[hot]\nhold_s = 60.0"))
        assert told[one.url] == told[other.url] == ""
        assert "refused" in told[f"http://{gone}"] or "failed" in told[f"http://{gone}"]
        for each in (one, other):
            (hot,) = (t for t in each.service.alarms.thresholds if t.code == "hot")
            assert hot.hold_s == 60.0


@pytest.mark.parametrize(
    "given",
    [
        *({"nodes": each} for each in ([], ["a:1", "a:1"], ["http://a", "a:80"], ["a:b"], ["a:0"])),
        *({"nodes": [each]} for each in ("a:70000", "ftp://a:1", "http://u:p@a:1", "", None)),
        *({"nodes": [each]} for each in ("http://a:1/path", "[::1")),
        *({"timeout_s": each} for each in (0.0, float("nan"))),
        {"token": "a-token\nof-two-lines"},
        *({"authority": HERE / each} for each in ("none.pem", "conftest.py")),
    ],
    ids=str,
)
def test_wrong_input_is_refused(given):
    with pytest.raises(InvalidInput):
        Hub(**{"nodes": ["a:1"], **given})


def test_an_address_may_be_of_the_sixth_version():
    with Hub(["http://[::1]:9"]) as hub:
        assert hub.pull()[0].address == "http://[::1]:9"


def test_what_is_no_threshold_is_sent_to_no_node():
    with Hub([unused()]) as hub, pytest.raises(InvalidInput):
        hub.configure("[hot]\nhold_s = 60.0")


def test_a_hub_that_is_closed_says_so():
    with agent_of() as agent:
        hub = Hub([agent.url])
        hub.close()
        hub.close()
        with pytest.raises(InvalidInput, match="closed"):
            hub.pull()


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
