"""The leases of hosts of a pool to jobs."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile
from threading import Condition

from benchrigor.model.one_line import OneLine


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Token(OneLine):
    """Identifies a job on its host: later jobs have greater numbers.

    Parameters
    ----------
    owner
        The run that asks for the host.
    number
        Greater than the numbers of all earlier leases of this owner, also of earlier processes.
    """

    owner: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease(OneLine):
    """Hosts for one job, until it is over.

    Parameters
    ----------
    token
        The token of this lease alone.
    hosts
        Their names in the order of the table, after the requested first one.
    """

    token: Token
    hosts: tuple[str, ...]


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
    >>> table.is_current(gang.token)
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
    ) -> Lease | None:
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

        def lease() -> tuple[Lease | None, ...]:
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

    def _lease_hosts(self, names: tuple[str, ...]) -> Lease:
        now = 0 if self._is_within else time.time_ns() // 1_000  # greater than all earlier numbers
        self._number = max(self._number + 1, now)
        token = Token(owner=self._owner, number=self._number)
        self._used |= dict.fromkeys(names, token)
        return Lease(token=token, hosts=names)

    def release(self, lease: Lease) -> None:
        """Give hosts back."""
        with self._changed:
            for name in lease.hosts:
                if self._used.get(name) == lease.token:
                    del self._used[name]
            self._changed.notify_all()

    def is_current(self, token: Token) -> bool:
        """Whether a job with this token still has its hosts: later results do not count."""
        return token in self._used.values()

    def drop(self, host: str) -> None:
        """Leave out a host that was lost."""
        with self._changed:
            self._hosts = [name for name in self._hosts if name != host]
            self._changed.notify_all()
