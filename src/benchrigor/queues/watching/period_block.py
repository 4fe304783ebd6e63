"""What a stage did in successive sampling periods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.model import Floats

__all__ = ["PeriodBlock"]

_START = "start_s"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PeriodBlock:
    """Successive sampling periods of a stage, in which as many served; NaN is what is not known.

    Parameters
    ----------
    servers
        Threads or processes that served side by side.
    start_s
        When each began, in seconds since watching did, shape (n,).
    period_s
        Realised widths, in seconds, shape (n,).
    items
        Served, shape (n,).
    given
        Items that the stage wrote, where it reads and writes, shape (n,).
    arrived
        Items that entered each queue that the stage reads, shape (n, queues).
    blocked_s
        How long the stage waited, in seconds, the sum over its servers, shape (n,).
    cpu_s, delay_s
        Processor time used, and time waited for a processor, in seconds, shape (n,).
    whole
        Whether the same served all the time; else nobody knows for how long each did; shape (n,).

    Examples
    --------
    >>> block = PeriodBlock.of(period_s=[0.1, 0.1], items=[4, 7])
    >>> block.n, block.part(block.items > 5).items.tolist(), block.joined().items.tolist()
    (2, [7.0], [11.0])
    """

    servers: int
    start_s: Floats
    period_s: Floats
    items: Floats
    given: Floats
    arrived: Floats
    blocked_s: Floats
    cpu_s: Floats
    delay_s: Floats
    whole: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        *,
        period_s: npt.ArrayLike,
        items: npt.ArrayLike,
        start_s: npt.ArrayLike = 0.0,
        given: npt.ArrayLike = np.nan,
        arrived: Iterable[npt.ArrayLike] = (),
        blocked_s: npt.ArrayLike = 0.0,
        cpu_s: npt.ArrayLike = np.nan,
        delay_s: npt.ArrayLike = np.nan,
        whole: npt.ArrayLike = True,
        servers: int = 1,
    ) -> PeriodBlock:
        """Make a block; one number stands for as many as there are of ``items``.

        Parameters
        ----------
        period_s, items, start_s, given, blocked_s, cpu_s, delay_s, whole, servers
            As of the class.
        arrived
            Queue by queue.
        """
        counts = np.atleast_1d(np.asarray(items, dtype=np.float64))

        def column(values: npt.ArrayLike) -> Floats:
            return np.broadcast_to(np.asarray(values, dtype=np.float64), counts.shape)

        queues = [column(each) for each in arrived]
        return cls(
            servers=servers,
            start_s=column(start_s),
            period_s=column(period_s),
            items=counts,
            given=column(given),
            arrived=np.column_stack(queues) if queues else np.zeros((counts.size, 0)),
            blocked_s=column(blocked_s),
            cpu_s=column(cpu_s),
            delay_s=column(delay_s),
            whole=np.broadcast_to(np.asarray(whole, dtype=np.bool_), counts.shape),
        )

    @property
    def n(self) -> int:
        """How many periods there are."""
        return self.items.size

    def part(self, which: slice | npt.NDArray[np.bool_]) -> PeriodBlock:
        """Return some of the periods."""
        return replace(self, **{name: getattr(self, name)[which] for name in _COLUMNS})

    @classmethod
    def end_to_end(cls, blocks: Sequence[PeriodBlock]) -> PeriodBlock:
        """Put blocks with as many servers one after the other."""
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(each, name) for each in blocks]) for name in _COLUMNS
        }
        return replace(blocks[0], **columns)

    def joined(self) -> PeriodBlock:
        """Return all of them as one period, from the first one's beginning on."""
        sums = {name: getattr(self, name).sum(axis=0, keepdims=True) for name in _COLUMNS}
        sums[_START] = self.start_s[:1]
        sums["whole"] = self.whole.all(keepdims=True)
        return replace(self, **sums)

    def without_times(self) -> PeriodBlock:
        """Return the same, with processor times that are not known."""
        unknown = np.full(self.n, np.nan)
        return replace(self, cpu_s=unknown, delay_s=unknown)


_COLUMNS = tuple(each.name for each in fields(PeriodBlock) if each.name != "servers")
