"""Parts of what probes counted: none lost, none counted twice, readers apart."""

from __future__ import annotations

from benchrigor.instrument import ProbeRegistry
from benchrigor.instrument.nodes import probe_cursors
from benchrigor.instrument.nodes.probe_cursors import ProbeCursors


def counting() -> tuple[ProbeRegistry, ProbeCursors]:
    registry = ProbeRegistry()
    return registry, ProbeCursors(registry)


def count(registry: ProbeRegistry, events: int) -> None:
    parse = registry.probe("parse")
    for _ in range(events):
        parse.stop(parse.start())


def test_parts_add_up_to_all_also_where_answers_are_lost():
    registry, cursors = counting()
    cursor, received = "", 0
    for turn, is_lost in enumerate([False, True, True, False, True, False, False]):
        count(registry, turn + 1)
        sent, part, _ = cursors.next_part(cursor)
        if not is_lost:
            cursor, received = sent, received + part["parse"].count
    _, part, is_first = cursors.next_part(cursor)
    assert not is_first
    assert received + part["parse"].count == registry.probe("parse").read().count == 28


def test_a_first_part_has_what_was_counted_before():
    registry, cursors = counting()
    count(registry, 3)
    assert cursors.next_part("")[1]["parse"].count == 3


def test_readers_do_not_take_from_each_other():
    registry, cursors = counting()
    one, *_ = cursors.next_part("")
    other, *_ = cursors.next_part("")
    count(registry, 5)
    assert cursors.next_part(one)[1]["parse"].count == 5
    assert cursors.next_part(other)[1]["parse"].count == 5


def test_a_cursor_that_nobody_was_given_begins_anew():
    registry, cursors = counting()
    cursor, *_ = cursors.next_part("")
    count(registry, 2)
    for wrong in ("x.1", "..", f"{cursor.partition('.')[0]}.7", "1.2.3", "é"):
        began, part, is_first = cursors.next_part(wrong)
        assert began.partition(".")[0] != cursor.partition(".")[0]
        assert part["parse"].count == 2
        assert is_first


def test_only_so_many_readers_are_kept(monkeypatch):
    monkeypatch.setattr(probe_cursors, "MOST_READERS", 3)
    registry, cursors = counting()
    first, *others = [cursors.next_part("")[0] for _ in range(4)]
    count(registry, 1)
    again, *_ = cursors.next_part(others[-1])
    assert again.partition(".")[0] == others[-1].partition(".")[0]
    assert cursors.next_part(first)[0].partition(".")[0] != first.partition(".")[0]
