"""The system call, tried with a software event, since not every machine has a counter."""

from __future__ import annotations

import pytest

from benchrigor.machine import perf_events
from benchrigor.machine.kernel_files import Unavailable

SOFTWARE, TASK_CLOCK = 1, 1


def opened() -> object:
    try:
        return perf_events.open_counter(SOFTWARE, TASK_CLOCK)
    except Unavailable as error:
        pytest.skip(str(error))


def test_an_event_of_this_thread_is_counted() -> None:
    counter = opened()
    first = perf_events.read_counter(counter)
    sum(range(100_000))
    assert 0 < first < perf_events.read_counter(counter)


def test_an_event_that_does_not_count_multiplications_is_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two events the second counts two operations for each multiplication."""
    counts = iter([0, 17, 0, 2_000, 0, 0, 0, 2_001])
    opened = []

    def note(*event: int) -> None:
        opened.append(event)

    def count(_counter: object) -> int:
        return next(counts)

    monkeypatch.setattr(perf_events, "open_counter", note)
    monkeypatch.setattr(perf_events, "read_counter", count)
    perf_events.open_floating_point()
    assert opened == [(4, 0xFFC7), (4, 0xFF03)]
    with pytest.raises(Unavailable, match=r"0xffc7.*0xff03"):
        perf_events.open_floating_point()


def test_without_counters_the_reason_is_that_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_event: int) -> object:
        raise Unavailable("refused")

    monkeypatch.setattr(perf_events, "open_counter", refuse)
    with pytest.raises(Unavailable) as caught:
        perf_events.open_floating_point()
    assert str(caught.value) == "refused"
