"""What a watching process is told, as data that travel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from benchrigor.errors import InvalidInput
from benchrigor.model.codec import decode, encode
from benchrigor.queues.counting.ends import End
from benchrigor.queues.counting.pages import Page
from benchrigor.queues.watching.sampling import Watching
from benchrigor.queues.watching.stage import Stage

__all__ = ["Order"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _EndOrder:
    page: str
    name: str
    servers: int
    item_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _StageOrder:
    name: str
    servers: int
    reads: tuple[_EndOrder, ...]
    writes: tuple[_EndOrder, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be watched, how, and where to tell of it.

    Parameters
    ----------
    stages
        Of the program.
    watching
        How they are watched.
    state
        Path of the file in which what is known is told.
    record
        Path of the recording; None for none.
    launcher
        Process that gives the order.

    Examples
    --------
    >>> with Page.create() as page:
    ...     stage = Stage("hash", reads=[End(page, "work.head", servers=2)])
    ...     order = Order.of([stage], Watching(), state="/dev/null", record=None, launcher=1)
    ...     (found,) = Order.from_json(order.to_json()).open_stages()
    >>> found.name, found.reads[0].name, found.reads[0].servers
    ('hash', 'work.head', 2)
    """

    stages: tuple[_StageOrder, ...]
    watching: Watching
    state: str
    record: str | None
    launcher: int

    @classmethod
    def of(
        cls,
        stages: Sequence[Stage],
        watching: Watching,
        *,
        state: str,
        record: str | None,
        launcher: int,
    ) -> Order:
        """Make an order of stages whose pages are open here."""
        return cls(
            stages=tuple(
                _StageOrder(
                    name=each.name,
                    servers=each.servers,
                    reads=_ordered(each.reads),
                    writes=_ordered(each.writes),
                )
                for each in stages
            ),
            watching=watching,
            state=state,
            record=record,
            launcher=launcher,
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Order:
        """Return the order that `to_json` wrote.

        Raises
        ------
        InvalidInput
            When it is none.
        """
        try:
            data = json.loads(text)
        except ValueError as error:
            raise InvalidInput(f"the order is no JSON: {error}") from error
        return decode(cls, data, where="order")

    def to_json(self) -> str:
        """Return the order in one line."""
        return json.dumps(encode(self))

    def open_stages(self) -> list[Stage]:
        """Return the stages, their pages open for reading.

        Raises
        ------
        InvalidInput
            When a page is not there any more.
        """
        ends = [end for stage in self.stages for end in (*stage.reads, *stage.writes)]
        pages = {path: Page.open(path) for path in {end.page for end in ends}}

        def opened(orders: Sequence[_EndOrder]) -> list[End]:
            return [
                End(pages[each.page], each.name, servers=each.servers, item_bytes=each.item_bytes)
                for each in orders
            ]

        return [
            Stage(
                each.name,
                reads=opened(each.reads),
                writes=opened(each.writes),
                servers=each.servers,
            )
            for each in self.stages
        ]


def _ordered(ends: Sequence[End]) -> tuple[_EndOrder, ...]:
    return tuple(
        _EndOrder(
            page=str(end.page.path),
            name=end.name,
            servers=end.servers,
            item_bytes=end.item_bytes,
        )
        for end in ends
    )
