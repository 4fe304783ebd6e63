"""Stages that are sampled by hand."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from tests.simulations.simulated.owners import FakeOwners
from tests.texts.causes.queues import end_of

from benchrigor.queues import Page, Stage, WatchedStage
from benchrigor.queues.periods import Asked
from benchrigor.queues.sampler import Sampler

MS = 1_000_000


class Row(NamedTuple):
    """One period that counts; None is what is not known."""

    start_ms: float
    items: int
    arrived: tuple[float | None, ...]
    given: float | None
    blocked_ms: float
    servers: int
    cpu_ms: float | None
    delay_ms: float | None
    length_ms: float


def known(value: float, unit: float = 1.0) -> float | None:
    return None if math.isnan(value) else round(value * unit, 6)


def stage_of(
    page: Page, name: str = "hash", *, reads: Any = (), writes: Any = (), servers: int = 1
) -> Stage:
    """Return a stage with ends of these names."""
    ends = [[end_of(page, each) for each in names] for names in (reads, writes)]
    return Stage(name, reads=ends[0], writes=ends[1], servers=servers)


class Bench:
    """Stages whose cells are written by hand, in the name of any process, and sampled by hand."""

    def __init__(self, page: Page, *stages: Stage, **watching: Any) -> None:
        self.page, self.owners = page, FakeOwners()
        self.sampler = Sampler(stages, Asked(**watching), owners=self.owners)
        self.rows: dict[str, list[Row]] = {}
        self.sampler.record = self.record
        self.now_ms = 0
        self.cells: dict[str, list[Any]] = defaultdict(list)

    def record(self, stage: str, block: Any) -> None:
        for each in block.view(np.recarray):
            row = Row(
                start_ms=round(float(each.start_s) * 1e3, 6),
                items=int(each["items"]),
                arrived=tuple(map(known, each.arrived.tolist())),
                given=known(float(each.given)),
                blocked_ms=round(float(each.blocked_s) * 1e3, 6),
                servers=int(each.servers),
                cpu_ms=known(float(each.cpu_s), 1e3),
                delay_ms=known(float(each.delay_s), 1e3),
                length_ms=round(float(each.period_s) * 1e3, 6),
            )
            self.rows.setdefault(stage, []).append(row)

    def cell(self, name: str, *, pid: int = 5, tid: int = 0) -> Any:
        cell = self.page.claim(name)
        cell.words[5] = pid << 32 | tid
        self.cells[name].append(cell)
        return cell

    def leave(self, name: str) -> None:
        """Let the last that used an end do so no more."""
        self.cells[name].pop().close(round(self.now_ms * MS))

    def at(self, *times_ms: float, **items: Any) -> None:
        """Sample at these times; before each, cells count an item."""
        for at_ms in times_ms:
            for cell in items.values():
                cell.count()
            self.sampler.sample(round(at_ms * MS))

    def pass_periods(
        self, n: int, *, items: Any = 10, given: Any = 5, arrived: Any = 8, item_bytes: int = 0
    ) -> None:
        """Sample after each of so many tenths of a second; in each every cell counts its items.

        Whoever reads waits for half of the time.
        """
        if not self.now_ms:
            self.at(0)
        counts = {"in.head": items, "out.tail": given, "in.tail": arrived}
        columns = np.broadcast_arrays(np.zeros(n), *counts.values())
        for _, *passed in zip(*columns, strict=True):
            for name, number in zip(counts, passed, strict=True):
                for cell in self.cells[name]:
                    cell.words[0] += int(number)
                    cell.words[1] += int(number) * item_bytes
            for cell in self.cells["in.head"]:
                cell.begin_wait(round(self.now_ms * MS))
                cell.end_wait(round((self.now_ms + 50) * MS))
            self.now_ms += 100
            self.at(self.now_ms)

    def told(self, stage: str = "hash") -> list[Row]:
        self.sampler.work_off()
        return self.rows.get(stage, [])

    @property
    def starts_ms(self) -> list[float]:
        """When the periods that count began."""
        return [each.start_ms for each in self.told()]

    @property
    def found(self) -> WatchedStage:
        """What is known of the first stage."""
        self.told()
        return self.sampler.report().stages[0]
