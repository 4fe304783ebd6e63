"""The system call, tried with a software event, since not every machine has a counter."""

from __future__ import annotations

import pytest

from benchrigor.instrument import perf_events
from benchrigor.instrument.kernel_files import KernelFile, Unavailable

SOFTWARE, TASK_CLOCK = 1, 1


def opened() -> KernelFile:
    try:
        return perf_events.open_counter(SOFTWARE, TASK_CLOCK)
    except Unavailable as error:
        pytest.skip(str(error))


def test_an_event_of_this_thread_is_counted() -> None:
    counter = opened()
    first = perf_events.read_counter(counter)
    sum(range(100_000))
    assert 0 < first < perf_events.read_counter(counter)


def test_a_refusal_of_the_kernel_has_its_reason() -> None:
    with pytest.raises(Unavailable, match=r"perf_event_open|no perf_event_open known"):
        perf_events.open_counter(2**31, 0)


def test_an_unknown_system_has_no_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf_events.platform, "machine", lambda: "abacus")
    with pytest.raises(Unavailable, match="on abacus"):
        perf_events.open_counter(SOFTWARE, TASK_CLOCK)
