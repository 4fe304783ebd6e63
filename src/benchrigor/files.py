"""Files that are written whole, and files and folders for their owner alone."""

from __future__ import annotations

import contextlib
import errno
import glob
import io
import os
import secrets
import stat
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_ENCODED_SAMPLE = 100  # bytes that show an encoding
_LONGEST_NAME = 200  # bytes of a name from which another name is made


def readable(path: str | Path) -> Path:
    """Return a path; OSError if it is a device, such as /dev/zero, which might never end."""
    mode = Path(path).stat().st_mode
    if stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
        raise OSError(errno.EINVAL, "it is a device, expected a file", str(path))
    return Path(path)


def open_text(path: str | Path) -> IO[str]:
    """Open a file of text as `decoded` reads it, line by line."""
    file = readable(path).open("rb")
    return io.TextIOWrapper(file, encoding=_encoding_of(file.peek(_ENCODED_SAMPLE)))


def decoded(raw: bytes) -> str:
    """Decode text in UTF-8, or in UTF-16 as PowerShell writes it.

    UnicodeDecodeError if it is neither.
    """
    return raw.decode(_encoding_of(raw)).replace("\r\n", "\n")


def _encoding_of(raw: bytes) -> str:
    sample = raw[:_ENCODED_SAMPLE]
    even, odd = sample[::2], sample[1::2]
    if sample[:2] in {BOM_UTF16_LE, BOM_UTF16_BE}:
        return "utf-16"
    if odd and max(even.count(0), odd.count(0)) == len(odd):  # each character fills two bytes
        return "utf-16-be" if even.count(0) else "utf-16-le"
    return "utf-8-sig"


def write_whole(path: str | Path, content: str | bytes, *, private: bool = False) -> None:
    """Write a file, whole or not at all, also while other processes write or read it.

    A new file may be read by others as the umask allows, a private one only by its owner; a file
    that exists keeps its mode. A link stays a link. A device or pipe, or any file that is not
    regular, takes the content as it is.
    """
    with replacing(path, content, private=private):
        pass


@contextlib.contextmanager
def replacing(path: str | Path, content: str | bytes, *, private: bool = False) -> Iterator[None]:
    """Write a file as `write_whole` does, which has its place once the block has ended.

    Of several files that belong together none is replaced unless all could be written.
    """
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    target = Path(os.path.realpath(path))
    mode = 0o600 if private else 0o666
    with contextlib.suppress(FileNotFoundError):
        earlier = target.stat().st_mode
        if not stat.S_ISREG(earlier):
            target.write_bytes(data)
            yield
            return
        mode = stat.S_IMODE(earlier)
    partial = _partial_of(target)
    try:
        with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            if mode != 0o666:
                partial.chmod(mode)  # regardless of the umask
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        if error.filename == str(partial):  # a name that its caller does not know
            error.filename, error.filename2 = str(path), None
        raise
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def remove_whole(path: Path) -> None:
    """Remove a file, and partial files that a killed writer left."""
    for file in (path, *path.parent.glob(f"{glob.escape(_partial_of(path, '').name)}*")):
        file.unlink(missing_ok=True)


def _partial_of(path: Path, token: str | None = None) -> Path:
    """Return the writer's own partial file, which becomes this one once it is whole."""
    name = os.fsdecode(os.fsencode(path.name)[:_LONGEST_NAME])
    return path.with_name(f".{name}.partial-{secrets.token_hex(4) if token is None else token}")


def make_private_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, for the owner alone."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(exist_ok=True)  # says so if it is a file


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes that change the same file out while a block reads and writes it."""
    lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
