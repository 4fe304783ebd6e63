"""What people read about taps, pages of cells, stages and monitors."""

import asyncio
import os
import pickle
import queue
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tests.simulations.simulated.estimates import within
from tests.texts.rendering import tried

from benchrigor.model import ServiceRate
from benchrigor.queues import Monitor, MonitorReport, Page, Stage, Tap, WatchedStage
from benchrigor.queues.stages import QueueGrowth


def tap_of(source: Any = None, **options: Any) -> Tap:
    return Tap(queue.Queue() if source is None else source, **options)


def end_of(page: Page, name: str, *, servers: int = 1) -> Any:
    """Return an end, which nobody has used, by its whole name."""
    of, _, side = name.rpartition(".")
    return getattr(Tap(queue.Queue(), name=of, page=page, servers=servers), side)


class Mixed:
    """Has one coroutine."""

    async def get(self) -> int:
        return 1

    def put(self, item: int) -> None: ...


class Waiting:
    """Cannot be asked not to wait."""

    def get(self) -> int:
        return 1

    def put(self, item: int, block: bool = True) -> None: ...

    def __repr__(self) -> str:
        return "Waiting()"


class Cache(Waiting):
    """Has methods of the same names that do something else."""

    def get(self, key: str) -> str:  # type: ignore[override]
        return key

    def put(self, item: str) -> None: ...  # type: ignore[override]


def tapped_twice() -> Tap:
    with Tap(source := queue.Queue()):
        return Tap(source)


def unwritable() -> Iterator[object]:
    with Page.create(path="work.cells") as page:
        for writable in (False, True):
            other = Page.open(page.path, writable=writable)
            if writable:
                other.close()
            yield from tried(tap_of, {"name": "work", "page": other})


def sized_socket() -> Tap:
    left, right = socket.socketpair()
    with left, right:
        return Tap(left, item_bytes=5)


def growing() -> Iterator[object]:
    def grown(source: Any, by: Any, close: bool = False) -> None:
        with Tap(source, name="work") as tap:
            if close:
                tap.close()
            with tap.grown(by):
                pass

    yield from tried(
        grown,
        *({"source": queue.Queue(1), "by": by} for by in (0, 1.5, True)),
        {"source": queue.Queue(), "by": 1},
        {"source": asyncio.Queue(), "by": 1},
        {"source": queue.SimpleQueue(), "by": 1},
        {"source": queue.Queue(1), "by": 1, "close": True},
    )


def failures() -> Iterator[object]:
    with (
        Page.create(cells=1, path="one.cells") as page,
        Tap(queue.Queue(), name="work", page=page) as tap,
    ):
        tap.queue.put(1)
        tap.queue.get()
        yield tap.failure
    with Page.create(path="gone.cells") as page, Tap(queue.Queue(), name="work", page=page) as tap:
        page.path.unlink()
        tap.queue.put(1)
        yield tap.failure
    for wrong in (lambda _: 1 / 0, str.upper, lambda item: -1 - len(item)):
        with Tap(queue.Queue(), item_bytes=wrong) as tap:
            tap.queue.put("item")
            yield tap.failure


def claims() -> Iterator[object]:
    with Page.create(cells=1, path="work.cells") as page:
        names = ("", "x" * 65, "ü" * 33, "a\0b", "\ud800", None)
        yield from tried(page.claim, *({"name": name} for name in names))
        yield from tried(Page.open(page.path).claim, {"name": "work.head"})
        page.claim("work.head")
        yield from tried(page.claim, {"name": "work.tail"})
        yield from tried(Page.create, {"path": page.path})
    yield from tried(page.cells, {})
    yield from tried(Page.create, {"path": "nowhere/work.cells"})
    page = Page.create(path="gone.cells")
    page.path.unlink()
    yield from tried(page.claim, {"name": "work.head"})


def header(version: int = 1, cells: int = 1, cell_bytes: int = 128) -> bytes:
    words = (version, cells, cell_bytes, 0, 0, 0, 0)
    return b"BRIGCELL" + b"".join(word.to_bytes(8, "little") for word in words)


def no_pages() -> Iterator[object]:
    for content in (
        b"",
        header()[:63],
        bytes(range(256)),
        header(version=2) + bytes(128),
        header(cell_bytes=64) + bytes(128),
        header() + bytes(127),
        header(cells=2**60) + bytes(128),
    ):
        Path("work.cells").write_bytes(content)
        yield from tried(Page.open, {"path": "work.cells"})
    os.mkfifo("pipe")
    yield from tried(Page.open, *({"path": place} for place in (".", "absent", "pipe")))


def stages() -> Iterator[object]:
    with Page.create(path="work.cells") as page, Page.create(path="other.cells") as other:
        head, tail = end_of(page, "work.head"), end_of(page, "work.tail")
        usual = {"name": "hash", "reads": [head]}
        yield from tried(
            Stage,
            *(
                {**usual, **wrong}
                for wrong in (
                    {"name": "", "servers": 0},
                    {"reads": "work"},
                    {"reads": Tap(queue.Queue(), name="work", page=page)},
                    {"writes": ["work"]},
                    {"reads": ()},
                    {"reads": [tail]},
                    {"writes": [head]},
                    {"reads": [head, end_of(other, "work.head")]},
                )
            ),
        )


def watching(*what: Any, **options: Any) -> Monitor:
    with Page.create(path="watched.cells") as page:
        return Monitor(*(what or [Stage("hash", reads=[end_of(page, "work.head")])]), **options)


def begun_twice() -> Monitor:
    with Tap(queue.Queue(), name="work") as tap, Monitor(tap) as monitor:
        return monitor.start()


def same_names() -> Monitor:
    with Tap(queue.Queue(), name="work") as tap:
        return Monitor(tap, Stage("work.head", reads=[tap.head]))


def crowd_page() -> Iterator[object]:
    with Page.create(path="work.cells") as page:
        cell = page.claim("work.head")
        for _ in range(2):
            cell.begin_wait(0)
        hash_ = Stage("hash", reads=[end_of(page, "work.head")])
        with Monitor(hash_, period_s=0.001, where="thread") as monitor:
            while not (failure := monitor.report().stages[0].failure):
                time.sleep(0.001)
        yield failure


def rate(value: float, *, servers: int = 1, **more: Any) -> ServiceRate:
    known: dict[str, Any] = {
        "estimate": within(value, 0.05),
        "converged": True,
        "reason": None,
        "method": "busy-time",
        "start_s": 0.0,
        "stop_s": 2.0,
        "periods": 40,
        "unblocked": 8,
        "used": 40,
        "period_s": 0.05,
        "items": 160,
        "servers": servers,
    }
    return ServiceRate(**(known | more))


def stage(
    name: str,
    value: float,
    *,
    servers: int = 1,
    arrives: float | None = None,
    visits: float | None = None,
    reads: tuple[str, ...] = (),
    writes: tuple[str, ...] = (),
) -> WatchedStage:
    arrivals = None if arrives is None else within(arrives, 0.05)
    return WatchedStage(
        name=name,
        reads=reads,
        writes=writes,
        servers=servers,
        rates=(rate(value, servers=servers),),
        inputs={reads[0]: arrivals} if arrivals else {},
        arrivals=arrivals,
        last_arrivals=arrivals,
        visits=None if visits is None else within(visits, 0.05),
    )


SOURCE = stage("source", 300.0, writes=("a",))
HASH = stage("hash", 400.0, arrives=200.0, servers=4, reads=("a",), writes=("b",))
SINK = stage("sink", 30.0, visits=0.05, reads=("b",))
REPORT = MonitorReport(stages=(SOURCE, HASH, SINK), watched_s=10.0, cost_s=0.02, period_s=0.05)
ODD = stage("odd", 3.0, reads=("a", "b"))
STOPPED = replace(HASH, arrivals=within(0.0, 0.0), silent_s=3.0)


def doubtful() -> MonitorReport:
    late = rate(
        2.0,
        start_s=2.0,
        stop_s=8.0,
        converged=False,
        reason="never-busy",
        delay_share=0.2,
        item_bytes=1e3,
        byte_rate=within(2e3),
    )
    idle = stage("a stage of a very long name", 1234.5, reads=("a",))
    idle = replace(idle, rates=(*idle.rates, late), failure="2 wait at once")
    return MonitorReport(stages=(idle, WatchedStage(name="new", inputs={})))


GROWTHS = tuple(
    QueueGrowth(name="work", before=2**n, after=2 ** (n + 1), at_s=0.5 * n) for n in (1, 2, 3)
)


def monitored_into_nowhere() -> Iterator[object]:
    Path("folder").mkdir()
    with Tap(queue.Queue(), name="work") as tap:
        monitor = Monitor(tap, record="folder/run.csv")
        Path("folder").rmdir()
        with monitor:
            pass
        yield monitor.failure


CAUSES = {
    "options of a tap": lambda: tried(
        tap_of,
        *({"name": wrong} for wrong in ("", "x" * 60, 3)),
        *({"servers": wrong} for wrong in (0, True, None)),
        *({"item_bytes": wrong} for wrong in (-1, "4", True, float("nan"), float("inf"), 10**400)),
        {"page": "work.cells", "servers": 0},
        {"page": 3, "name": "work"},
    ),
    "what cannot be tapped": lambda: tried(
        tap_of,
        *(
            {"source": wrong}
            for wrong in (12, object, len, "work", b"", bytearray(b"work"), list[int], queue.Queue)
        ),
        *({"source": kind()} for kind in (Mixed, Waiting, Cache)),
    ),
    "a queue that is tapped already": tapped_twice,
    "a page that cannot be written": unwritable,
    "a size for what passes a socket": sized_socket,
    "growing by what makes no sense": growing,
    "a tap that cannot be sent": lambda: pickle.dumps(Tap(queue.Queue())),
    "why a tap does not count": failures,
    "claims from a page": claims,
    "numbers of cells": lambda: tried(
        Page.create, *({"cells": wrong} for wrong in (0, -1, 2.5, True, 2**21, "8"))
    ),
    "files that are not pagess": no_pages,
    "stages that make no sense": stages,
    "nothing to watch": lambda: [
        *tried(Monitor, {}),
        *(text for wrong in ("work", None) for text in tried(partial(Monitor, wrong), {})),
    ],
    "a name for two stages": same_names,
    "options of a monitor": lambda: tried(
        watching,
        *({"period_s": wrong} for wrong in (0.0, float("nan"), "a", True, 1e-9)),
        {"method": "quantile", "guards": False, "period_s": -1},
        *({"record": place} for place in (5, ".", Path("nowhere/run.csv"))),
        {"method": "mean", "where": "elsewhere", "confidence": 1.0, "target": 0.0},
    ),
    "a monitor that is started twice": begun_twice,
    "advice too early": lambda: watching().advice(),
    "a recording that cannot be written": monitored_into_nowhere,
    "the report of a monitor": lambda: REPORT,
    "the report of a monitor, in a line": lambda: repr(REPORT),
    "what must be known of a stage": doubtful,
    "a table that would be too wide": lambda: MonitorReport(
        stages=(
            stage("a stage of a very long name indeed", 123_456_789.0, arrives=1e6, reads=("a",)),
            SINK,
        )
    ),
    "a monitor that seeks a period": lambda: MonitorReport(period_s=0.004, seeking=True),
    "a monitor that failed": lambda: MonitorReport(failure="no space left"),
    "queues that grew": lambda: MonitorReport(growths=GROWTHS, fixed=("simple", "piped")),
    "stages in a line": lambda: (
        str(watched)
        for watched in (
            HASH,
            WatchedStage(name="new", inputs={}),
            replace(
                HASH, utilisation=within(0.4), rates=(replace(HASH.rates[0], converged=False),)
            ),
            WatchedStage(name="hash", inputs={}, failure="2 wait at once"),
        )
    ),
    "more waits than servers": crowd_page,
    "too little is known for advice": lambda: tried(
        lambda stages: MonitorReport(stages=stages).advice(),
        *(
            {"stages": stages}
            for stages in (
                (),
                (SOURCE,),
                (WatchedStage(name="idle", reads=("b",), inputs={}),),
                (HASH, stage("odd", 3.0, reads=("a",))),
                (replace(ODD, reads=("a",), inputs={"a": within(0.0, 0.0)}),),
                (replace(ODD, inputs={"a": within(9.0, 0.1)}),),
            )
        ),
    ),
    "a source that has stopped": lambda: (
        replace(REPORT, stages=(SOURCE, STOPPED, SINK)).advice(processors=8).notices[0]
    ),
}
