"""Counts where the queues of the standard library let subclasses keep and take items."""

# ruff: noqa: SLF001  # what subclasses may override has no public name

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.wrapping import Patches, is_own

__all__ = ["OverridePoints"]

_Take = Callable[[Any], Any]
_Keep = Callable[[Any, Any], None]


class OverridePoints:
    """``_get`` and ``_put`` of one queue, counted; nothing else of it is changed.

    They run where nobody else can: under the mutex of a `queue.Queue`, or in the one thread of an
    `asyncio.Queue`.

    Parameters
    ----------
    source
        The queue.
    head, tail
        Count what leaves and what enters.
    take, keep
        What the two do to ``source.queue``; they are asked themselves where that is not known.

    Notes
    -----
    What ``shutdown(immediate=True)`` throws away is not counted: nobody took it.
    """

    def __init__(
        self,
        source: Any,
        head: Writer,
        tail: Writer,
        *,
        take: _Take | None = None,
        keep: _Keep | None = None,
    ) -> None:
        self._source, self._head, self._tail = source, head, tail
        self._get, self._put = source._get, source._put
        plain = not is_own(source, "_get") and not is_own(source, "_put")
        self._take, self._keep = (take, keep) if plain else (None, None)
        self._methods = Patches(source)
        if _throws_away(source):
            self._methods.set("shutdown", self._uncounted_shutdown(source.shutdown))
        self._arm_get()
        self._arm_put()
        head.on_forget, tail.on_forget = self._arm_get, self._arm_put

    def release(self) -> None:
        """Give the queue its methods back."""
        self._methods.undo()

    def _arm_get(self) -> None:
        """Let the first item, or the first in a forked process, claim the cell."""

        def first() -> Any:
            counting = self._counting_get(self._head.claim().words)
            self._methods.set("_get", counting)
            return counting()

        self._methods.set("_get", first)

    def _arm_put(self) -> None:
        def first(item: Any) -> None:
            counting = self._counting_put(self._tail.claim().words)
            self._methods.set("_put", counting)
            counting(item)

        self._methods.set("_put", first)

    def _counting_get(self, words: memoryview[int]) -> Callable[[], Any]:
        source, get, take = self._source, self._get, self._take
        items = 0

        def counting() -> Any:
            nonlocal items
            item = get()
            items += 1
            words[0] = items
            return item

        if take is None:
            return counting

        def counting_stock() -> Any:
            nonlocal items
            item = take(source.queue)
            items += 1
            words[0] = items
            return item

        return counting_stock

    def _counting_put(self, words: memoryview[int]) -> Callable[[Any], None]:
        source, put, keep = self._source, self._put, self._keep
        items = 0

        def counting(item: Any) -> None:
            nonlocal items
            put(item)
            items += 1
            words[0] = items

        if keep is None:
            return counting

        def counting_stock(item: Any) -> None:
            nonlocal items
            keep(source.queue, item)
            items += 1
            words[0] = items

        return counting_stock

    def _uncounted_shutdown(self, shutdown: Callable[..., Any]) -> Callable[..., Any]:
        def uncounted(*args: Any, **options: Any) -> Any:
            if options.get("immediate", bool(args) and args[0]):
                self._methods.set("_get", self._get)
            return shutdown(*args, **options)

        return uncounted


def _throws_away(source: Any) -> bool:
    """Whether it has the ``shutdown(immediate)`` of Python 3.13, not another of that name."""
    shutdown = getattr(source, "shutdown", None)
    return callable(shutdown) and next(iter(signature(shutdown).parameters), "") == "immediate"
