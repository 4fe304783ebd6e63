from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.reduction import ForkingPickler
from typing import Any

import pytest

from benchrigor.queues import Counts, Page, Tap
from benchrigor.queues.tap import tap_source
from benchrigor.queues.writers import Writer
from benchrigor.testing import FakeClock


@pytest.fixture
def page() -> Iterator[Page]:
    with Page.create(cells=8) as made:
        yield made


class Work:
    """Taps one source, and tells what was counted at its ends."""

    def __init__(self, page: Page) -> None:
        self.page, self.clock = page, FakeClock(1_000_000)
        self.read_clock: Callable[[], int] = time.perf_counter_ns

    def tap(self, source: Any, **options: Any) -> Any:
        """Return what the program uses in place of a source."""
        self.made = Tap(source, name="work", page=self.page, **options)
        return self.made.queue

    def timed(self, source: Any, now_ns: Callable[[], int] | None = None) -> Any:
        """Return the same, by a clock that moves only when it is told to, or by another."""
        self.read_clock = now_ns or self.clock.now_ns
        ends = [Writer(self.page, f"work.{end}", self.read_clock) for end in ("head", "tail")]
        return tap_source(source, *ends).queue

    @property
    def ends(self) -> dict[str, Counts]:
        """What was counted, by the ends at which anything was."""
        found = [each.read(self.read_clock()) for each in self.page.cells()]
        return {each.name.removeprefix("work."): each for each in found}

    def told(self, what: str) -> dict[str, int]:
        """One of the counts, likewise."""
        return {name: getattr(counts, what) for name, counts in self.ends.items()}

    @property
    def waiting(self) -> dict[str, int]:
        """How many wait now."""
        return self.told("waiting")

    @property
    def items(self) -> dict[str, int]:
        """The items that passed."""
        return self.told("items")


@pytest.fixture
def work(page: Page) -> Work:
    return Work(page)


@pytest.fixture
def sent() -> Callable[[Any], Any]:
    """Return what another process would get."""
    return lambda what: ForkingPickler.loads(ForkingPickler.dumps(what))


@pytest.fixture
def when_waiting(page: Page) -> Iterator[Callable[[Callable[[], object]], None]]:
    """Return what calls something in another thread once somebody has waited for 20 ms."""
    threads: list[threading.Thread] = []

    def start(call: Callable[[], object]) -> None:
        def run() -> None:
            last_s = time.monotonic() + 120.0
            while not any(each.read().waiting for each in page.cells()):
                assert time.monotonic() < last_s, "nobody waits"
                time.sleep(0.001)
            time.sleep(0.02)
            call()

        threads.append(threading.Thread(target=run))
        threads[-1].start()

    yield start
    for each in threads:
        each.join()
