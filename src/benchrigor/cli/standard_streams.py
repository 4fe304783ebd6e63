"""Standard output and error that may be closed, full, or without a reader."""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import Any

_FAILED = 6  # `exits.ExitCode.STORE_FAILED`, which loads the model


class CannotWrite(Exception):
    """Standard output cannot be written; ``code`` is the exit code that follows from it."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output cannot be written: {error.strerror}")
        self.is_reader_gone = isinstance(error, BrokenPipeError)
        self.code = 128 + signal.SIGPIPE if self.is_reader_gone else _FAILED


class _Output(io.FileIO):
    """A descriptor that raises at its first failed write, if it matters, and drops later ones."""

    def __init__(self, descriptor: int, *, matters: bool) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._matters, self._has_failed = matters, False

    def write(self, data: Any) -> int:
        """Write all of the data."""
        left = memoryview(data)
        size = len(left)
        try:
            while left and not self._has_failed:
                left = left[super().write(left) :]
        except OSError as error:
            self._has_failed = True
            if self._matters:
                raise CannotWrite(error) from None
        return size


def secure_streams() -> None:
    """Have writes to standard output fail with `CannotWrite`, and those to standard error never.

    If this process started without these streams, no opened file takes their place.
    """
    for descriptor, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:  # it is closed: the next file opened would get its number
            os.open(os.devnull, mode)
    sys.stdin = sys.stdin or io.TextIOWrapper(io.FileIO(0, closefd=False))
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if stream is getattr(sys, f"__{name}__"):
            setattr(sys, name, _text(descriptor, stream))


def _text(descriptor: int, before: Any) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(_Output(descriptor, matters=descriptor == 1)),
        encoding=getattr(before, "encoding", "utf-8"),
        errors=getattr(before, "errors", "backslashreplace"),
        line_buffering=descriptor == 2 or os.isatty(descriptor),
    )
