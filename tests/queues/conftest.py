from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.reduction import ForkingPickler
from typing import Any

import pytest

from benchrigor.queues import Page
from benchrigor.queues.counting.writers import Writer


@pytest.fixture
def page() -> Iterator[Page]:
    with Page.create(cells=8) as made:
        yield made


@pytest.fixture
def head(page: Page) -> Writer:
    return Writer(page, "work.head")


@pytest.fixture
def tail(page: Page) -> Writer:
    return Writer(page, "work.tail")


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
