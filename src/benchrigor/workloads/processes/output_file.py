"""The output of a command, in a file of limited size."""

from __future__ import annotations

import os
from tempfile import TemporaryFile, gettempdir
from typing import BinaryIO, Self

from benchrigor.errors import StoreFailed
from benchrigor.model.text import show_value

MOST_PRINTED = 128 * 2**20
STDERR_KEPT = 2048  # bytes, for error messages
FLOODED = (
    f"printed more than {show_value(float(MOST_PRINTED), 'B')} and was killed: have it print less, "
    "or pipe its readings into `benchrigor analyze -`"
)


class OutputFile:
    """A file without a name that a command prints to, and that is read when it has ended.

    Unlike a pipe, a file needs no reader while the command runs. So nothing disturbs the command,
    and it never waits. Instead the size is checked now and then.

    Parameters
    ----------
    keeps_end
        Whether the end of the output is enough, so that the beginning may be dropped. Otherwise
        all of it is needed, and a command that prints too much must be ended.
    """

    def __init__(self, *, keeps_end: bool = False) -> None:
        self._keeps_end = keeps_end
        self._dropped_end = b""
        try:
            self.file: BinaryIO = TemporaryFile()  # noqa: SIM115  # closed with this
        except OSError as error:
            raise StoreFailed(f"no temporary file for what commands print: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def fileno(self) -> int:
        """Return the descriptor, which the command writes to."""
        return self.file.fileno()

    def is_flooded(self) -> bool:
        """Look at the size while the command runs; return whether the command must be ended."""
        size = os.fstat(self.fileno()).st_size
        if size <= MOST_PRINTED:
            return False
        if not self._keeps_end:
            return True
        self._dropped_end = os.pread(self.fileno(), STDERR_KEPT, size - STDERR_KEPT)
        os.ftruncate(self.fileno(), 0)
        os.lseek(self.fileno(), 0, os.SEEK_SET)  # the command's place in it is the same
        return False

    def end(self) -> bytes:
        """Return the last bytes of the output, some more than are shown."""
        most = STDERR_KEPT + 1
        begin = max(os.fstat(self.fileno()).st_size - most, 0)
        return (self._dropped_end + os.pread(self.fileno(), most, begin))[-most:]

    def check_room(self) -> None:
        """Raise StoreFailed if the folder of temporary files is full: something may be missing."""
        room = os.fstatvfs(self.fileno())
        if room.f_bavail == 0 and room.f_blocks:
            raise StoreFailed(
                f"no room in {gettempdir()} for what a command prints: make some, or set TMPDIR to "
                "another folder"
            )
