"""Which sources can be tapped, and by which code.

Finding out imports no module: a class whose module has never been loaded has no objects.
"""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from typing import Any, get_origin

from benchrigor.errors import InvalidInput
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.wrappers import Tapped, Wrapper

# Module and class of a source; module and name of its tap: a function, or a stand-in class.
# The first that fits is taken.
_CLASSES = (
    ("queue", "Queue", "hooked_queues", "tap_queue"),
    ("queue", "SimpleQueue", "polled_queues", "tap_polled"),
    ("multiprocessing.queues", "Queue", "polled_queues", "FedQueue"),
    ("multiprocessing.queues", "SimpleQueue", "polled_queues", "PipeQueue"),
    ("asyncio.queues", "Queue", "hooked_queues", "tap_async_queue"),
    ("asyncio.streams", "StreamReader", "async_sources", "_StreamHead"),
    ("asyncio.streams", "StreamWriter", "async_sources", "_StreamTail"),
    ("socket", "socket", "sockets", "_TappedSocket"),
)

_TEXT = (str, bytes, bytearray)
_KNOWN = "a queue, an iterable, a socket, or a stream of asyncio"


def tap_source(source: Any, head: Writer, tail: Writer) -> Tapped:
    """Tap a source, or raise InvalidInput if it cannot be tapped, or is tapped already."""
    home, name = _maker(source)
    if head.item_bytes is not None and (home == "sockets" or name.startswith("_Stream")):
        raise InvalidInput("item_bytes is given, expected none: its bytes are counted as they pass")
    make = getattr(import_module(f"benchrigor.queues.tapping.{home}"), name)
    made: Tapped | Wrapper = make(source, head, tail)
    return Tapped(queue=made) if isinstance(made, Wrapper) else made


def _maker(source: Any) -> tuple[str, str]:
    _check(source)
    for module, kind, home, name in _CLASSES:
        loaded = getattr(sys.modules.get(module), kind, None)
        if loaded is not None and isinstance(source, loaded):
            return home, name
    get, put = (getattr(source, name, None) for name in ("get", "put"))
    if callable(get) and callable(put):
        return _maker_by_methods(source, get, put)
    if hasattr(type(source), "__aiter__"):
        return "iterators", "tap_async_iterable"
    if hasattr(type(source), "__iter__"):
        return "iterators", "tap_iterable"
    raise InvalidInput(f"source is {source!r}, of type {type(source).__name__}, expected {_KNOWN}")


def _check(source: Any) -> None:
    if isinstance(source, type) or get_origin(source) is not None:
        name = getattr(source, "__qualname__", source)
        raise InvalidInput(f"source is the class {name}, expected an object of it, as {name}(...)")
    if isinstance(source, _TEXT):
        raise InvalidInput(
            f"source is {source!r}, of type {type(source).__name__}, expected {_KNOWN}; "
            "to count its elements, tap iter(...) of it"
        )


def _maker_by_methods(source: Any, get: Any, put: Any) -> tuple[str, str]:
    awaited = [inspect.iscoroutinefunction(method) for method in (get, put)]
    if all(awaited):
        return "async_sources", "_AwaitedQueue"
    if any(awaited):
        raise InvalidInput(
            f"of {source!r} one of get and put is a coroutine, expected both or neither"
        )
    return "polled_queues", "tap_polled"
