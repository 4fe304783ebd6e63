"""Makes, maps and removes the files of pages, and checks the names that are written in them."""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from array import array
from contextlib import suppress
from pathlib import Path

from benchrigor.errors import InvalidInput

__all__ = ["NAME_BYTES", "check_name", "create_page", "map_page", "remove_page"]

NAME_BYTES = 64
_MAGIC, _VERSION = int.from_bytes(b"BRIGCELL", sys.byteorder), 1
_HEADER_BYTES, _CELL_BYTES = 64, 128
_MEMORY = Path("/dev/shm")  # noqa: S108  # the system's own place for memory that is shared


def check_name(name: str, longest: int = NAME_BYTES) -> bytes:
    """Return the name of an end, or of what it belongs to, as it is written.

    Raises
    ------
    InvalidInput
        When it is empty, too long, or no text.
    """
    try:
        written = name.encode()
    except (AttributeError, UnicodeEncodeError):
        raise InvalidInput(f"name is {name!r}, expected text") from None
    if not 1 <= len(written) <= longest or b"\0" in written:
        raise InvalidInput(
            f"name is {name!r}, {len(written)} bytes, expected 1 to {longest} and no zero byte"
        )
    return written


def map_page(path: Path, *, writable: bool) -> memoryview[int]:
    """Return the bytes of a page, mapped into memory and known to be one.

    Raises
    ------
    InvalidInput
        When there is no such file, it cannot be mapped, or it is no page of this version.
    """
    try:
        view = _mapped(path, writable=writable) if path.is_file() else None
    except (OSError, ValueError) as error:  # the latter when it becomes shorter meanwhile
        raise InvalidInput(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if view is None:
        raise InvalidInput(f"{path} is not there, or is no file, expected a page of cells")
    size = view.nbytes
    if size < _HEADER_BYTES:
        raise InvalidInput(f"{path} has {size} bytes, expected a page of cells")
    magic, version, cells, cell_bytes, *_ = view[:_HEADER_BYTES].cast("Q")
    if magic != _MAGIC:
        raise InvalidInput(f"{path} does not begin with BRIGCELL, expected a page of cells")
    if (version, cell_bytes) != (_VERSION, _CELL_BYTES):
        raise InvalidInput(
            f"{path} is version {version} with cells of {cell_bytes} bytes, "
            f"expected version {_VERSION} with {_CELL_BYTES}"
        )
    needed = _HEADER_BYTES + _CELL_BYTES * cells
    if size < needed:
        raise InvalidInput(f"{path} has {size} bytes, expected {needed} for its {cells} cells")
    return view[:needed]


def _mapped(path: Path, *, writable: bool) -> memoryview[int]:
    access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
    with path.open("r+b" if writable else "rb") as file:
        size = os.fstat(file.fileno()).st_size
        return memoryview(mmap.mmap(file.fileno(), size, access=access) if size else b"")


def create_page(cells: int, path: str | os.PathLike[str] | None = None) -> Path:
    """Return the path of a new page with room for so many cells.

    Raises
    ------
    InvalidInput
        When there is a file already, or no room for one.
    """
    header = (_MAGIC, _VERSION, cells, _CELL_BYTES, 0, 0, 0, 0)
    size = _HEADER_BYTES + _CELL_BYTES * cells
    if path is None:
        name = f"benchrigor-{os.getpid()}-{os.urandom(4).hex()}.cells"
        places = [_MEMORY / name, Path(tempfile.gettempdir()) / name]
    else:
        places = [Path(path).absolute()]
    problems = []
    for place in places:
        try:
            _fill(place, array("Q", header).tobytes(), size)
        except OSError as error:
            problems.append(f"{place} cannot be made: {error.strerror or error}")
        else:
            return place
    raise InvalidInput(problems)


def _fill(path: Path, header: bytes, size: int) -> None:
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        # Room that is only promised would fail as a bus error in the middle of the program.
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
        else:
            os.truncate(descriptor, size)
        os.write(descriptor, header)
    except OSError:
        path.unlink()
        raise
    finally:
        os.close(descriptor)


def remove_page(path: Path, creator: int | None) -> None:
    """Remove a page's file, in the process that created it; one that cannot be removed stays."""
    if os.getpid() == creator:  # a forked process holds the page as well
        with suppress(OSError):
            path.unlink()
