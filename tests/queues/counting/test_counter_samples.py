"""Copies of cells, and what they hold."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.queues import Page
from benchrigor.queues.counting.cells import Cell
from benchrigor.queues.counting.counter_samples import Cells, Sample, Span, spans_of
from benchrigor.queues.counting.ends import End, EndKey
from benchrigor.queues.counting.owners import Owner

HEAD = EndKey("page", "work.head")


def words_of(
    items: int = 0,
    blocked_ns: int = 0,
    waiting: int = 0,
    owner: int = 5 << 32 | 6,
    closed: int = 0,
) -> list[int]:
    blocked_ns %= 1 << 64
    return [items, 0, 0, blocked_ns, waiting, owner, closed, blocked_ns ^ waiting]


def spans(*samples: list[list[int]], gone: tuple[int, ...] = ()) -> list[Span]:
    made = [Sample(at_ns=10 * at, copies=(), used={}) for at in range(len(samples))]
    places = {HEAD: list(range(len(samples[0])))}
    words = np.array(samples, dtype=np.uint64)
    before = np.zeros(words.shape[1], dtype=np.int64)
    return list(spans_of(made, words, places, gone=gone, before=before))


def items_of(cells: Cells) -> list[int]:
    return cells.words([cells.copy()])[0, :, 0].tolist()


def test_cells_are_found_as_they_are_claimed_and_keep_their_places(page: Page) -> None:
    head, tail = End(page, "work.head"), End(page, "work.tail")
    cells = Cells([head, tail])
    assert items_of(cells) == []
    page.claim("work.tail").count()
    page.claim("other.head").count()
    assert items_of(cells) == [1]
    page.claim("work.head")
    page.claim("work.tail")
    assert items_of(cells) == [1, 0, 0]
    assert cells.places == {head.key: [1], tail.key: [0, 2]}


def test_what_a_closed_page_held_can_still_be_read() -> None:
    with Page.create() as page:
        cells = Cells([End(page, "work.head")])
        cell = page.claim("work.head")
        cell.count()
        cells.copy()
    cell.count()
    assert items_of(cells) == [2]


def test_samples_of_before_a_cell_was_found_hold_those_that_were_there(page: Page) -> None:
    with Page.create() as other:
        cells = Cells([End(page, "work.head"), End(other, "done.head")])
        other.claim("done.head").count()
        before = cells.copy()
        page.claim("spare")
        page.claim("work.head")
        other.claim("done.head")
        after = cells.copy()
        assert cells.words([before])[0, :, 0].tolist() == [1]
        assert cells.words([after, after])[:, :, 0].tolist() == [[1, 0, 0]] * 2
        assert cells.places == {EndKey(str(page.path), "work.head"): [1]} | {
            EndKey(str(other.path), "done.head"): [0, 2]
        }


def test_an_end_that_is_asked_for_twice_is_copied_once(page: Page) -> None:
    page.claim("work.head")
    cells = Cells([End(page, "work.head"), End(page, "work.head")])
    assert len(items_of(cells)) == 1


def test_waits_under_way_count_up_to_each_sample() -> None:
    # One wait begun at 5, another one at 15.
    (span,) = spans(
        [words_of(blocked_ns=0)],
        [words_of(blocked_ns=-5, waiting=1)],
        [words_of(blocked_ns=-20, waiting=2)],
        [words_of(blocked_ns=-20, waiting=2)],
    )
    assert span.blocked_ns[:, 0].tolist() == [0, 5, 20, 40]
    assert span.waiting[:, 0].tolist() == [0, 1, 2, 2]


def test_a_wait_that_began_behind_the_look_at_the_clock_does_not_go_back() -> None:
    (span,) = spans([words_of(blocked_ns=7)], [words_of(blocked_ns=7 - 12, waiting=1)])
    assert span.blocked_ns[:, 0].tolist() == [7, 7]


def test_a_cell_whose_writer_died_between_two_stores_stays_where_it_was() -> None:
    torn = words_of(blocked_ns=900)
    torn[7] ^= 1
    (span,) = spans([words_of(blocked_ns=7)], [torn])
    assert span.blocked_ns[:, 0].tolist() == [7, 7]


def test_a_span_ends_where_somebody_leaves_or_is_not_known_any_more() -> None:
    alone, shared = words_of(owner=5 << 32 | 6), words_of(owner=5 << 32)
    found = spans([alone], [alone], [shared], [words_of(owner=5 << 32, closed=1)])
    assert [each.at_ns.tolist() for each in found] == [[0, 10], [20], [30]]
    assert [each.owners for each in found] == [[Owner(5, 6)], [Owner(5, 0)], [Owner(5, 0)]]
    assert [each.live for each in found] == [[True], [True], [False]]


def test_who_is_gone_is_not_live() -> None:
    (span,) = spans([words_of(), words_of(owner=9 << 32)], gone=(9,))
    assert span.live == [True, False]


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("bec"), st.integers(0, 5)), max_size=4),
        min_size=1,
        max_size=12,
    )
)
def test_it_is_what_the_cell_itself_would_have_said(events: list[list[tuple[str, int]]]) -> None:
    cell, now_ns = Cell.spare("work.head"), 1_000
    samples, words, expected = [], [], []
    for each in events:
        looked_ns = now_ns  # some events come behind the look at the clock
        for kind, step in each:
            now_ns += step
            if kind == "b":
                cell.begin_wait(now_ns)
            elif kind == "e":
                cell.end_wait(now_ns)
            else:
                cell.count()
        samples.append(Sample(at_ns=looked_ns, copies=(), used={}))
        words.append([cell.words.tolist()])
        counts = cell.read(looked_ns)
        expected.append((counts.items, counts.blocked_ns, counts.waiting))
        now_ns += 3
    held = np.array(words, dtype=np.uint64)
    found = list(spans_of(samples, held, {HEAD: [0]}, before=np.zeros(1, dtype=np.int64)))
    rows = [
        (int(s.items[at, 0]), int(s.blocked_ns[at, 0]), int(s.waiting[at, 0]))
        for s in found
        for at in range(s.at_ns.size)
    ]
    assert rows == expected
