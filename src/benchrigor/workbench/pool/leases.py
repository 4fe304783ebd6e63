"""The leases of hosts of a pool to jobs.

The lock of a host: a file on it that names its present owner.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from threading import Condition
from typing import IO, Any
from urllib.parse import quote

import platformdirs

from benchrigor.control_characters import escaped
from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model import codec
from benchrigor.model.one_line import OneLine
from benchrigor.model.text import show_duration


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Token(OneLine):
    """The lease of hosts to one job: later jobs have greater numbers.

    Parameters
    ----------
    owner
        The run that asks for the hosts.
    number
        Greater than the numbers of all earlier leases of this owner, also of earlier processes.
    hosts
        Their names in the order of the table, after the requested first one.
    """

    owner: str
    number: int
    hosts: tuple[str, ...] = ()


class LeaseTable:
    """Leases all hosts that a job needs at once, so that two jobs never wait for each other.

    The longest waiting job is served first: later ones do not take hosts that it may need.

    Parameters
    ----------
    hosts
        Their names.
    owner
        The owner of the leases.
    within
        The number of an outer lease of the owner that gave the hosts; None without one. The numbers
        of inner leases follow it, and are smaller than those of later outer ones.

    Examples
    --------
    >>> table = LeaseTable(["elm", "oak", "fir"], owner="a1b2")
    >>> gang = table.acquire(2)
    >>> gang.hosts, table.free()
    (('elm', 'oak'), ('fir',))
    >>> table.acquire(2, timeout_s=0.0) is None
    True
    >>> table.release(gang)
    >>> table.is_current(gang)
    False
    """

    def __init__(self, hosts: Sequence[str], *, owner: str, within: int | None = None) -> None:
        self._hosts = list(hosts)
        self._owner, self._is_within, self._number = owner, within is not None, within or 0
        self._used: dict[str, Token] = {}
        self._waiting: dict[object, Collection[str] | None] = {}  # among which, in order
        self._changed = Condition()

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that are not lost."""
        return tuple(self._hosts)

    def free(self) -> tuple[str, ...]:
        """Return the unused hosts."""
        return tuple(name for name in self._hosts if name not in self._used)

    def acquire(
        self,
        n: int = 1,
        *,
        among: Collection[str] | None = None,
        first: str | None = None,
        rather_not: Collection[str] = (),
        timeout_s: float | None = None,
    ) -> Token | None:
        """Wait for hosts; return None after the time limit, or if too few hosts are left.

        Parameters
        ----------
        n, among
            Their number, and the allowed hosts; None for any.
        first
            The required first host; None for any.
        rather_not
            Hosts to avoid if there are enough others, apart from ``first``.
        timeout_s
            Seconds to wait; None without a limit.
        """
        me = object()

        def lease() -> tuple[Token | None, ...]:
            wanted = [name for name in self._hosts if among is None or name in among]
            others = [name for name in wanted if name == first or name not in rather_not]
            wanted = others if len(others) >= n else wanted
            wanted.sort(key=lambda name: name != first)
            if len(wanted) < n or first not in {None, *wanted}:
                return (None,)
            free = [name for name in wanted if self._is_free_for(name, me)]
            is_enough = len(free) >= n and first in {None, free[0]}
            return (self._lease_hosts(tuple(free[:n])),) if is_enough else ()

        with self._changed:
            self._waiting[me] = among
            try:
                return next(iter(self._changed.wait_for(lease, timeout_s)), None)
            finally:
                del self._waiting[me]
                self._changed.notify_all()

    def _is_free_for(self, name: str, me: object) -> bool:
        """Whether a host is unused, and no longer waiting job may need it."""
        before_me = takewhile(lambda waiting: waiting[0] is not me, self._waiting.items())
        return name not in self._used and not any(
            among is None or name in among for _, among in before_me
        )

    def _lease_hosts(self, names: tuple[str, ...]) -> Token:
        now = 0 if self._is_within else time.time_ns() // 1_000  # greater than all earlier numbers
        self._number = max(self._number + 1, now)
        token = Token(owner=self._owner, number=self._number, hosts=names)
        self._used |= dict.fromkeys(names, token)
        return token

    def release(self, token: Token) -> None:
        """Give hosts back."""
        with self._changed:
            self._used = {name: used for name, used in self._used.items() if used != token}
            self._changed.notify_all()

    def is_current(self, token: Token) -> bool:
        """Whether a job with this token still has its hosts: later results do not count."""
        return token in self._used.values()

    def drop(self, host: str) -> None:
        """Leave out a host that was lost."""
        with self._changed:
            self._hosts = [name for name in self._hosts if name != host]
            self._changed.notify_all()


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

BEAT_S = 10.0  # from one sign of life to the next
STALE_S = 60.0  # without a sign of life the owner has died
_MOST = 10_000  # characters of a lock
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class HostBusy(WorkloadFailed):
    """A host works for somebody else."""


class LateToken(WorkloadFailed):
    """A job comes after a later one of the same owner, which no longer waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """The contents of a lock: last numbers by the owner's names of the machine, a sign of life."""

    owner: str
    numbers: Mapping[str, int]
    at_s: float
    boot: str


class HostLock:
    """Holds a machine for the owner of a token, under one of its names.

    The file keeps the token after a job, so that other owners cannot come between two jobs of a
    pool: until `free`, or for a minute by the machine's own monotonic clock. Locks from before a
    restart of the machine are void. The file belongs to the machine, not to one of its names: hosts
    may share the folder.

    Parameters
    ----------
    host
        The owner's name of the machine.
    token
        The token of the job.
    alone
        Whether the owner uses only this name for the machine.
    folder
        The folder of the file; None for the data folder of the user.
    machine
        The machine's own name; None to ask the system.
    now_s
        The clock.
    boot
        An id of the last start of the host; None to ask the system.

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
        alone: bool = True,
        folder: str | Path | None = None,
        machine: str | None = None,
        now_s: Callable[[], float] = time.monotonic,
        boot: str | None = None,
    ) -> None:
        folder = folder or platformdirs.user_data_path("benchrigor", appauthor=False) / "hosts"
        self._path = Path(folder) / f"{quote(machine or platform.node(), safe='')}.lock"
        self._host, self._token, self._alone, self._now_s = host, token, alone, now_s
        self._boot = boot or (_BOOT.read_text().strip() if _BOOT.exists() else "")
        self.taken_over_from = ""  # the owner of a stale lock

    def take(self) -> None:
        """Hold the host.

        Raises
        ------
        HostBusy
            While it works for another owner.
        LateToken
            When it has worked for a later job of the same owner.
        WorkloadFailed
            When the file cannot be written, or the machine has another name for the same owner.
        """
        with self._file() as file:
            held = _read(file)
            if held is not None and held.owner != self._token.owner:
                self._refuse_or_take_over(held)
            numbers = self._numbers(file)
            if numbers.get(self._host, 0) > self._token.number:
                owner = self._token.owner
                raise LateToken(f"{self._host} has worked for a later job of {owner}")
            if self._alone and (others := sorted({*numbers} - {self._host})):
                raise WorkloadFailed(
                    f"{self._host} and {escaped(others[0])} are one machine, expected each once"
                )
            self._write(file, numbers | {self._host: self._token.number})

    def _refuse_or_take_over(self, held: _Held) -> None:
        silent_s = self._now_s() - held.at_s
        if held.boot == self._boot and 0.0 <= silent_s < STALE_S:
            raise HostBusy(
                f"{self._host} works for {escaped(held.owner)}: a sign of life "
                f"{show_duration(silent_s)} ago, expected none for "
                f"{show_duration(STALE_S)}: wait for it, or take another host"
            )
        self.taken_over_from = held.owner

    def beat(self) -> bool:
        """Give a sign of life; return whether the host is still held."""
        with self._file() as file:
            numbers = self._numbers(file)
            is_ours = numbers.get(self._host) == self._token.number
            if is_ours:
                self._write(file, numbers)
            return is_ours

    def free(self) -> None:
        """Free the host if it is held for this owner, and not for a later job of it."""
        with self._file() as file:
            numbers = self._numbers(file)
            if self._host in numbers and numbers[self._host] <= self._token.number:
                del numbers[self._host]
                self._write(file, numbers)

    def _numbers(self, file: IO[str]) -> dict[str, int]:
        """Return the last token by the owner's names of the machine."""
        held = _read(file)
        return dict(held.numbers) if held and held.owner == self._token.owner else {}

    def _write(self, file: IO[str], numbers: Mapping[str, int]) -> None:
        file.truncate(0)
        if numbers:
            own: dict[str, Any] = {"owner": self._token.owner, "boot": self._boot}
            held = _Held(**own, numbers=numbers, at_s=self._now_s())
            file.write(json.dumps(codec.encode(held)))

    @contextmanager
    def _file(self) -> Iterator[IO[str]]:
        """Open the file, and keep other processes from changing it."""
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


def _read(file: IO[str]) -> _Held | None:
    """Return the contents of a lock; None if it is free, or the file is incomplete."""
    file.seek(0)
    try:
        return codec.decode(_Held, json.loads(file.read(_MOST)))
    except (ValueError, InvalidInput):
        return None
