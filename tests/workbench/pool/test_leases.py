from __future__ import annotations

import threading

import pytest

from benchrigor.workbench.pool.leases import LeaseTable, Token


def test_hosts_are_given_all_at_once_or_not_at_all() -> None:
    table = LeaseTable(["elm", "oak", "fir"], owner="a")
    gang = table.acquire(2)
    assert gang is not None
    assert table.acquire(2, timeout_s=0.0) is None
    assert table.free() == ("fir",)
    table.release(gang)
    assert table.free() == ("elm", "oak", "fir")


def test_a_lease_that_ended_is_not_current_and_gives_back_nothing_of_others() -> None:
    table = LeaseTable(["elm"], owner="a")
    old = table.acquire()
    assert old is not None
    table.release(old)
    new = table.acquire()
    table.release(old)
    assert (table.is_current(old.token), table.is_current(new.token)) == (False, True)
    assert table.free() == ()


def test_who_waits_for_a_host_that_is_lost_is_told() -> None:
    table = LeaseTable(["elm"], owner="a")
    table.acquire()
    given: list[object] = []
    waiting = threading.Thread(target=lambda: given.append(table.acquire()))
    waiting.start()
    table.drop("elm")
    waiting.join(60.0)
    assert given == [None]
    assert table.hosts == ()


@pytest.mark.parametrize("among", [None, ("elm",)])
def test_a_gang_does_not_starve(among: tuple[str, ...] | None) -> None:
    table = LeaseTable(["elm", "oak"], owner="a")
    held = table.acquire(among=["oak"])
    assert held is not None
    gangs: list[object] = []
    waiting = threading.Thread(target=lambda: gangs.append(table.acquire(2)))
    waiting.start()
    while not table._waiting:  # noqa: SLF001  # until it is the first
        pass
    assert table.acquire(among=among, timeout_s=0.05) is None  # although elm is free
    table.release(held)
    waiting.join(60.0)
    assert len(gangs) == 1


def test_who_needs_other_hosts_does_not_wait_for_a_gang() -> None:
    table = LeaseTable(["elm", "oak", "fir"], owner="a")
    held = table.acquire(among=["elm"])
    assert held is not None
    waiting = threading.Thread(target=lambda: table.acquire(2, among=["elm", "oak"]))
    waiting.start()
    while not table._waiting:  # noqa: SLF001
        pass
    assert table.acquire(among=["fir"], timeout_s=60.0) is not None
    table.release(held)
    waiting.join(60.0)


@pytest.mark.slow
def test_gangs_of_two_of_three_hosts_never_lock_each_other_out() -> None:
    for _ in range(200):
        table = LeaseTable(["elm", "oak", "fir"], owner="a")
        overlaps: list[str] = []
        in_use: set[str] = set()

        def use(table: LeaseTable, in_use: set[str], overlaps: list[str]) -> None:
            for _ in range(3):
                lease = table.acquire(2, timeout_s=60.0)
                overlaps.extend(in_use & {*lease.hosts})
                in_use |= {*lease.hosts}
                in_use -= {*lease.hosts}
                table.release(lease)

        threads = [threading.Thread(target=use, args=(table, in_use, overlaps)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60.0)
        assert not any(thread.is_alive() for thread in threads)
        assert (overlaps, table.free()) == ([], ("elm", "oak", "fir"))


def test_tokens_are_ordered_and_those_of_a_later_process_are_later() -> None:
    first = LeaseTable(["elm"], owner="a").acquire()
    later = LeaseTable(["elm"], owner="a").acquire()
    assert first.token < later.token
    assert Token(owner="a", number=1) < Token(owner="a", number=2)
