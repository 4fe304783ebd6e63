"""Excludes other processes from a file for a moment."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["locked"]

_TRIES, _PAUSE_S = 1_000, 0.001
"""Whoever holds a lock file for a second has died with it: the work under it takes microseconds."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other threads and processes that use `locked` on the same file out.

    Parameters
    ----------
    path
        Of a file that is there and can be written.

    Raises
    ------
    OSError
        When it is not.

    Notes
    -----
    By ``flock`` where there is one, else by a file beside it, which only one process can create.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file, locked(Path(file.name)):
    ...     pass
    """
    # Opened anew: a lock belongs to the open file, which forked processes share.
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    try:
        if fcntl is None:
            with _locked_beside(path.with_suffix(".lock")):
                yield
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            try:
                yield
            finally:
                # Closing is not enough where another thread has forked meanwhile.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


@contextmanager
def _locked_beside(path: Path) -> Iterator[None]:
    for _ in range(_TRIES):
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            time.sleep(_PAUSE_S)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
