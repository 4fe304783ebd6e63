"""Counters of the interpreter: files opened by a thread, garbage collections of the process."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading

from benchrigor.errors import InvalidInput

_opens: dict[int, list[int]] = {}
"""By recorded thread, how many files it has opened."""
_hook_lock = threading.Lock()
_hooked: list[bool] = []


def count_opens() -> list[int]:
    """Begin to count the files that the calling thread opens, in the one item of the list.

    Calls from Python count (`open`, `os.open`, imports), whether they succeed or not; what a C
    library opens does not. Python cannot remove the audit hook that the first call installs; it
    does next to nothing while nobody counts.
    """
    thread = threading.get_ident()
    if thread in _opens:
        raise InvalidInput(
            "this thread is being recorded already, expected one recorder at a time; "
            "label segments of the first instead"
        )
    with _hook_lock:
        if not _hooked:
            sys.addaudithook(_on_event)
            _hooked.append(True)
    return _opens.setdefault(thread, [0])


def forget_opens(count: list[int]) -> None:
    """Stop the count that `count_opens` returned, in whichever thread."""
    for thread, each in tuple(_opens.items()):
        if each is count:
            del _opens[thread]


def _on_event(event: str, _args: tuple[object, ...]) -> None:
    if event == "open" and _opens:
        count = _opens.get(threading.get_ident())
        if count is not None:
            count[0] += 1


class Collections:
    """Counts garbage collections between `start` and `stop`: generations 0 and 1, and 2."""

    __slots__ = ("full", "young")

    def __init__(self) -> None:
        self.young = self.full = 0

    def start(self) -> None:
        """Begin to count."""
        gc.callbacks.append(self._on_collection)

    def stop(self) -> None:
        """Stop counting."""
        with contextlib.suppress(ValueError):  # the program may have cleared the list
            gc.callbacks.remove(self._on_collection)

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            if info["generation"] == 2:
                self.full += 1
            else:
                self.young += 1
