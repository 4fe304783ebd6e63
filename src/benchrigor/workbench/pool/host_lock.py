"""The lock of a host: a file there that names who it works for."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import platformdirs

from benchrigor.control_characters import escaped
from benchrigor.errors import WorkloadFailed
from benchrigor.model.text import show_duration
from benchrigor.workbench.pool.leases import Token

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

BEAT_S = 10.0  # from one sign of life to the next
STALE_S = 60.0  # without one: who held the lock has died
_MOST = 10_000  # characters of a lock
_FIELDS = {"owner": str, "number": int, "at_s": float, "boot": str}
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class HostBusy(WorkloadFailed):
    """A host works for somebody else."""


class LateToken(WorkloadFailed):
    """A job comes after a later one of the same owner: nobody waits for it any more."""


class HostLock:
    """Holds a host for a token.

    The file keeps the token after a job, too, so that nobody else comes between two jobs of a pool,
    until `free`, or for a minute by the host's own monotonic clock. Locks of an earlier start of
    the host are void.

    Parameters
    ----------
    host
        Its name.
    token
        Whose job it is.
    folder
        Where the file is; None for the data folder of the user.
    now_s
        The clock.
    boot
        The start of the host; None for what the system says.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock = HostLock("elm", Token(owner="a1b2", number=1), folder=folder)
    ...     lock.take()
    ...     try:
    ...         HostLock("elm", Token(owner="c3d4", number=1), folder=folder).take()
    ...     except HostBusy as error:
    ...         print(str(error).split(":")[0])
    elm works for a1b2
    """

    def __init__(
        self,
        host: str,
        token: Token,
        *,
        folder: str | Path | None = None,
        now_s: Callable[[], float] = time.monotonic,
        boot: str | None = None,
    ) -> None:
        folder = folder or platformdirs.user_data_path("benchrigor", appauthor=False) / "hosts"
        self._path = Path(folder) / f"{quote(host, safe='')}.lock"
        self._host, self._token, self._now_s = host, token, now_s
        self._boot = boot or (_BOOT.read_text().strip() if _BOOT.exists() else "")
        self.taken_over_from = ""  # whose lock was stale

    def take(self) -> None:
        """Hold the host.

        Raises
        ------
        HostBusy
            While it works for another owner.
        LateToken
            When it has worked for a later job of the same owner.
        WorkloadFailed
            When the file cannot be written.
        """
        with self._file() as file:
            held = _read(file)
            if held and held["owner"] == self._token.owner:
                if held["number"] > self._token.number:
                    raise LateToken(f"{self._host} has worked for a later job of {held['owner']}")
            elif held:
                self._refuse_or_take_over(held)
            self._write(file)

    def _refuse_or_take_over(self, held: dict[str, Any]) -> None:
        silent_s = self._now_s() - held["at_s"]
        if held["boot"] == self._boot and 0.0 <= silent_s < STALE_S:
            raise HostBusy(
                f"{self._host} works for {escaped(held['owner'])}: a sign of life "
                f"{show_duration(silent_s)} ago, expected none for "
                f"{show_duration(STALE_S)}: wait for it, or take another host"
            )
        self.taken_over_from = str(held["owner"])

    def beat(self) -> bool:
        """Give a sign of life; return whether the host is still held."""
        with self._file() as file:
            held = _read(file)
            is_ours = bool(held) and (held["owner"], held["number"]) == (
                self._token.owner,
                self._token.number,
            )
            if is_ours:
                self._write(file)
            return is_ours

    def free(self) -> None:
        """Let go of the host, if it is held for this owner."""
        with self._file() as file:
            if _read(file).get("owner") == self._token.owner:
                file.truncate(0)

    def _write(self, file: IO[str]) -> None:
        held = {
            "owner": self._token.owner,
            "number": self._token.number,
            "at_s": self._now_s(),
            "boot": self._boot,
            "pid": os.getpid(),
        }
        file.seek(0)
        file.truncate()
        file.write(json.dumps(held))

    @contextmanager
    def _file(self) -> Iterator[IO[str]]:
        """Open the file, which no other process changes meanwhile."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a+", encoding="utf-8") as file:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX)
                yield file
        except OSError as error:
            raise WorkloadFailed(
                f"the lock of {self._host} cannot be written: {error}; expected a writable folder "
                f"with space left: {self._path.parent}"
            ) from error


def _read(file: IO[str]) -> dict[str, Any]:
    """Return who holds the lock; empty if nobody does, or the file was cut off."""
    file.seek(0)
    try:
        held: dict[str, Any] = json.loads(file.read(_MOST) or "{}")
    except ValueError:
        return {}
    is_whole = isinstance(held, dict) and all(
        isinstance(held.get(name), kind) for name, kind in _FIELDS.items()
    )
    return held if is_whole else {}
