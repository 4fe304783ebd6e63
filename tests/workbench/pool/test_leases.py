"""Leases: all hosts of a job at once, none twice, nobody waits forever."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from benchrigor.errors import InvalidInput
from benchrigor.workbench.pool.leases import LeaseTable


def test_hosts_are_leased_all_at_once_in_their_order() -> None:
    table = LeaseTable(["elm", "oak", "fir"], owner="a")
    gang = table.acquire(2)
    assert gang is not None
    assert gang.hosts == ("elm", "oak")
    assert table.acquire(2, timeout_s=0.0) is None
    single = table.acquire(1)
    assert single is not None
    assert single.hosts == ("fir",)
    assert single.token > gang.token
    table.release(gang)
    assert table.free() == ("elm", "oak")


def test_a_token_is_current_until_its_lease_ends() -> None:
    table = LeaseTable(["elm"], owner="a")
    lease = table.acquire()
    assert lease is not None
    assert table.is_current(lease.token)
    table.release(lease)
    assert not table.is_current(lease.token)
    assert LeaseTable(["elm"], owner="a").acquire().token > lease.token  # type: ignore[union-attr]


def test_a_host_that_is_given_twice_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'elm' twice"):
        LeaseTable(["elm", "oak", "elm"], owner="a")


def test_a_lost_host_is_given_to_nobody() -> None:
    table = LeaseTable(["elm", "oak"], owner="a")
    table.drop("elm")
    assert table.acquire(2) is None  # there will never be two
    lease = table.acquire()
    assert lease is not None
    assert lease.hosts == ("oak",)


def test_who_waits_for_several_is_not_passed_over() -> None:
    """Else jobs that need one host would take each that becomes free."""
    table = LeaseTable(["elm", "oak"], owner="a")
    first = table.acquire()
    assert first is not None
    got: list[tuple[str, ...]] = []

    def ask(n: int) -> None:
        lease = table.acquire(n)
        assert lease is not None
        got.append(lease.hosts)
        table.release(lease)

    gang, single = (threading.Thread(target=ask, args=(n,)) for n in (2, 1))
    gang.start()
    time.sleep(0.2)  # until it waits
    single.start()
    time.sleep(0.2)
    assert got == []  # although oak is free
    table.release(first)
    gang.join()
    single.join()
    assert got == [("elm", "oak"), ("elm",)]


def test_gangs_of_two_of_three_hosts_never_block_each_other() -> None:
    """Two hundred runs of four threads."""
    held: set[str] = set()
    twice: list[str] = []
    guard = threading.Lock()

    def use(table: LeaseTable, rng: np.random.Generator) -> None:
        lease = table.acquire(2)
        assert lease is not None
        with guard:
            twice.extend(held.intersection(lease.hosts))
            held.update(lease.hosts)
        time.sleep(rng.random() * 1e-4)
        with guard:
            held.difference_update(lease.hosts)
        table.release(lease)

    for run in range(200):
        table = LeaseTable(["elm", "oak", "fir"], owner=str(run))
        rng = np.random.default_rng(run)
        threads = [threading.Thread(target=use, args=(table, rng), daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60.0)
        assert not any(thread.is_alive() for thread in threads)
    assert twice == []
