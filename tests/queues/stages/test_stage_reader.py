"""From the cells of a stage to its periods."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchrigor.errors import InvalidInput
from benchrigor.queues import Page, Stage
from benchrigor.queues.counting.cells import Cell
from benchrigor.queues.counting.counter_samples import Cells, Sample, spans_of
from benchrigor.queues.counting.ends import End
from benchrigor.queues.counting.owners import Owner, Used
from benchrigor.queues.periods import Periods
from benchrigor.queues.stages.stage_reader import StageReader

MS = 1_000_000


class Bench:
    """A stage whose cells are written by hand, in the name of any process."""

    def __init__(self, page: Page, stage: Stage) -> None:
        self.page = page
        self.reader = StageReader(stage)
        self.cells = Cells(self.reader.ends)
        self.gone: tuple[int, ...] = ()
        self.used: Mapping[Owner, Used | None] = {}

    def cell(self, name: str, *, pid: int = 5, tid: int = 0) -> Cell:
        cell = self.page.claim(name)
        cell.words[5] = pid << 32 | tid
        return cell

    def at(self, at_ms: float) -> list[Period]:
        """Sample, and return the period that ends with it."""
        copies = self.cells.copy()
        sample = Sample(at_ns=round(at_ms * MS), copies=copies, used=self.used)
        words = self.cells.words([copies])
        before = np.zeros(words.shape[1], dtype=np.int64)
        places = self.cells.places
        (span,) = spans_of([sample], words, places, gone=self.gone, before=before)
        block = self.reader.read(span)
        return [
            Period(
                start_s=float(block.start_s[number]),
                period_s=float(block.period_s[number]),
                items=int(block.items[number]),
                arrived=tuple(block.arrived[:, number].tolist()),
                given=float(block.given[number]),
                blocked_s=float(block.blocked_s[number]),
                cpu_s=float(block.cpu_s[number]),
                delay_s=float(block.delay_s[number]),
                servers=block.servers,
                whole=bool(block.whole[number]),
            )
            for number in range(block.n)
        ]


class Period(NamedTuple):
    """One period of a block; NaN is what is not known."""

    start_s: float
    period_s: float
    items: int
    arrived: tuple[float, ...]
    given: float
    blocked_s: float
    servers: int
    cpu_s: float
    delay_s: float
    whole: bool


Make = Callable[..., Bench]


@pytest.fixture
def bench(page: Page) -> Make:
    def make(*, reads: tuple[str, ...] = (), writes: tuple[str, ...] = (), **more: int) -> Bench:
        ends = {"reads": reads, "writes": writes}
        made = {what: [End(page, each) for each in names] for what, names in ends.items()}
        return Bench(page, Stage("hash", **made, **more))  # type: ignore[arg-type]

    return make


def count(cell: Cell, items: int) -> None:
    for _ in range(items):
        cell.count()


def test_a_period_is_what_lies_between_two_looks(bench: Make) -> None:
    stage = bench(reads=("in.head",), writes=("out.tail",))
    head, tail, before = stage.cell("in.head"), stage.cell("out.tail"), stage.cell("in.tail")
    count(head, 3)
    assert stage.at(100) == []
    count(head, 7)
    count(tail, 2)
    count(before, 9)
    head.begin_wait(110 * MS)
    head.end_wait(113 * MS)
    tail.begin_wait(140 * MS)
    (period,) = stage.at(150)
    assert (period.start_s, period.period_s) == pytest.approx((0.0, 0.05))
    assert (period.items, period.arrived, period.given) == (7, (9,), 2)
    assert (period.blocked_s, period.servers) == pytest.approx((0.013, 1))
    assert period.whole
    assert np.isnan([period.cpu_s, period.delay_s]).all()
    tail.end_wait(151 * MS)
    (period,) = stage.at(200)
    assert (period.start_s, period.items, period.given) == pytest.approx((0.05, 0, 0))
    assert period.blocked_s == pytest.approx(0.001)


def test_a_source_serves_what_it_writes(bench: Make) -> None:
    stage = bench(writes=("out.tail",))
    tail = stage.cell("out.tail")
    stage.at(0)
    count(tail, 4)
    (period,) = stage.at(10)
    assert (period.items, period.arrived, period.servers) == (4, (), 1)
    assert math.isnan(period.given)


def test_several_queues_add_up_and_arrivals_stay_apart(bench: Make) -> None:
    stage = bench(reads=("a.head", "b.head"))
    first, other = stage.cell("a.head"), stage.cell("b.head")
    entering = stage.cell("b.tail")
    stage.at(0)
    count(first, 2)
    count(other, 3)
    count(entering, 5)
    (period,) = stage.at(10)
    assert (period.items, period.servers) == (5, 1)
    assert period.arrived == pytest.approx((math.nan, 5), nan_ok=True)


def test_each_process_is_a_server_and_so_are_its_threads(page: Page) -> None:
    stage = Bench(page, Stage("hash", reads=[End(page, "in.head", servers=2)]))
    stage.cell("in.head", pid=5)
    stage.cell("in.head", pid=7)
    stage.at(0)
    assert stage.at(10)[0].servers == 4


def test_a_stage_may_know_better_than_its_ends_how_many_serve(bench: Make) -> None:
    stage = bench(reads=("in.head",), servers=3)
    stage.cell("in.head")
    stage.at(0)
    assert stage.at(10)[0].servers == 3


def test_a_process_at_two_ends_is_one_server(bench: Make) -> None:
    stage = bench(reads=("a.head", "b.head"), writes=("out.tail",))
    for name in ("a.head", "b.head", "out.tail"):
        stage.cell(name)
    stage.cell("b.head", pid=7)
    stage.at(0)
    assert stage.at(10)[0].servers == 2


def test_of_a_tail_that_others_use_only_its_own_processes_count(bench: Make) -> None:
    stage = bench(reads=("in.head",), writes=("out.tail",))
    stage.cell("in.head")
    own, foreign = stage.cell("out.tail"), stage.cell("out.tail", pid=7)
    stage.at(0)
    count(own, 1)
    count(foreign, 10)
    foreign.begin_wait(2 * MS)
    (period,) = stage.at(10)
    assert (period.given, period.blocked_s, period.servers) == (1, 0.0, 1)


def test_the_period_in_which_a_server_comes_is_not_whole(bench: Make) -> None:
    stage = bench(reads=("in.head",))
    stage.cell("in.head")
    stage.at(0)
    count(stage.cell("in.head", pid=7), 2)
    (joined,), (after,) = stage.at(10), stage.at(20)
    assert (joined.items, joined.whole, joined.servers) == (2, False, 2)
    assert (after.whole, after.servers) == (True, 2)


def test_who_is_gone_serves_no_more_and_what_it_counted_stays(bench: Make) -> None:
    stage = bench(reads=("in.head",))
    first, other = stage.cell("in.head"), stage.cell("in.head", pid=7)
    stage.at(0)
    count(other, 2)
    other.begin_wait(1 * MS)  # and is killed while it waits
    stage.gone = (7,)
    (left,) = stage.at(10)
    assert (left.items, left.whole, left.servers) == (2, False, 1)
    count(first, 1)
    (after,) = stage.at(20)
    assert (after.items, after.blocked_s, after.whole, after.servers) == (1, 0.0, True, 1)


def test_who_has_closed_its_end_serves_no_more(bench: Make) -> None:
    stage = bench(reads=("in.head",), writes=("out.tail",))
    head, _ = stage.cell("in.head"), stage.cell("out.tail")
    stage.at(0)
    head.close(5 * MS)
    assert stage.at(10)[0].whole is False
    (period,) = stage.at(20)
    assert period.servers == 0


def test_waiting_that_shows_too_early_is_the_next_periods(bench: Make) -> None:
    stage = bench(reads=("in.head",))
    head = stage.cell("in.head")
    head.begin_wait(0)
    stage.at(0)
    head.end_wait(12 * MS)  # seen in the copy of a sample whose clock was read at 10
    (early,), (late,) = stage.at(10), stage.at(20)
    assert (early.blocked_s, late.blocked_s) == pytest.approx((0.010, 0.002))


def test_a_wait_that_is_stored_late_costs_no_more_than_its_own_time(bench: Make) -> None:
    stage = bench(reads=("in.head",))
    head = stage.cell("in.head")
    stage.at(0)
    for at_ms in range(5, 65, 5):  # meanwhile the writer is switched out
        stage.at(at_ms)
    head.begin_wait(11 * MS)  # read off the clock before that
    blocked_s = [stage.at(at_ms)[0].blocked_s for at_ms in range(65, 85, 5)]
    head.end_wait(82 * MS)
    blocked_s += [stage.at(at_ms)[0].blocked_s for at_ms in range(85, 205, 5)]
    assert max(blocked_s) <= 0.005
    assert sum(blocked_s) == pytest.approx(0.071)


def test_who_goes_from_one_end_to_the_other_while_they_are_copied_is_one(bench: Make) -> None:
    stage = bench(reads=("in.head",), writes=("out.tail",))
    head, tail = stage.cell("in.head"), stage.cell("out.tail")
    for number in range(200):
        seen_at_both = number % 30 == 7
        head.begin_wait(number * MS)
        if seen_at_both:
            tail.begin_wait(number * MS)
        stage.at(number)
        head.end_wait(number * MS)
        if seen_at_both:
            tail.end_wait(number * MS)
    assert stage.at(200)[0].servers == 1


def test_more_that_wait_at_once_than_serve_are_refused(bench: Make) -> None:
    stage = bench(reads=("in.head",))
    head = stage.cell("in.head")
    head.begin_wait(0)
    head.begin_wait(0)
    for number in range(7):
        stage.at(number)
    with pytest.raises(InvalidInput, match=r"stage 'hash': 2 wait at once, expected 1 at most"):
        stage.at(7)


def test_more_waiting_than_there_was_time_is_refused(bench: Make) -> None:
    stage = bench(reads=("in.head",))
    head = stage.cell("in.head")
    stage.at(0)

    def wait_twice(from_ms: int) -> None:
        for _ in range(2):
            head.begin_wait(from_ms * MS)
        for _ in range(2):
            head.end_wait((from_ms + 90) * MS)
        stage.at(from_ms + 100)

    for number in range(21):  # in each 80 ms more than there was time
        wait_twice(100 * number)
    with pytest.raises(InvalidInput, match="more than there was time, expected 1 at most"):
        wait_twice(2100)


def test_what_arrives_is_not_known_once_nobody_counts_it(bench: Make) -> None:
    stage = bench(reads=("in.head",))
    stage.cell("in.head")
    tail = stage.cell("in.tail", pid=6)
    stage.at(0)
    count(tail, 3)
    assert stage.at(10)[0].arrived == (3,)
    tail.close(10 * MS)
    assert math.isnan(stage.at(20)[0].arrived[0])
    again = stage.cell("in.tail", pid=7)
    stage.at(30)
    count(again, 2)
    assert stage.at(40)[0].arrived == (2,)


def test_processor_time_is_that_of_the_thread_that_serves(bench: Make) -> None:
    stage = bench(reads=("in.head",), writes=("out.tail",))
    stage.cell("in.head", tid=6)
    stage.cell("out.tail", tid=6)
    owner = Owner(5, 6)
    stage.used = {owner: Used(cpu_ns=1 * MS, delay_ns=0)}
    stage.at(0)
    stage.used = {owner: Used(cpu_ns=5 * MS, delay_ns=2 * MS)}
    (period,) = stage.at(10)
    assert (period.cpu_s, period.delay_s) == pytest.approx((0.004, 0.002))
    assert stage.reader.threads == {owner}


@pytest.mark.parametrize("tids", [(6, 0), (6, 8)])
def test_nothing_is_said_of_threads_that_are_not_known_for_sure(
    bench: Make, tids: tuple[int, int]
) -> None:
    stage = bench(reads=("in.head",), writes=("out.tail",))
    for name, tid in zip(("in.head", "out.tail"), tids, strict=True):
        stage.cell(name, tid=tid)
    stage.used = {Owner(5, 6): Used(1, 1), Owner(5, 8): Used(1, 1)}
    stage.at(0)
    assert math.isnan(stage.at(10)[0].cpu_s)


def test_nothing_is_said_while_one_of_several_is_not_known(bench: Make) -> None:
    stage = bench(reads=("in.head",))
    stage.cell("in.head", tid=6)
    stage.cell("in.head", pid=7, tid=8)
    stage.used = {Owner(5, 6): Used(1, 1), Owner(7, 8): None}
    stage.at(0)
    assert math.isnan(stage.at(10)[0].cpu_s)
    stage.used = {Owner(5, 6): Used(1, 1), Owner(7, 8): Used(5, 5)}
    assert math.isnan(stage.at(20)[0].cpu_s)
    stage.used = {Owner(5, 6): Used(1 + MS, 1), Owner(7, 8): Used(5 + MS, 5)}
    assert stage.at(30)[0].cpu_s == pytest.approx(0.002)


def test_a_stage_that_nobody_has_entered_has_no_servers(bench: Make) -> None:
    stage = bench(reads=("in.head",))
    stage.at(0)
    (period,) = stage.at(10)
    assert (period.items, period.servers) == (0, 0)
    assert math.isnan(period.arrived[0])


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=9), st.data())
def test_samples_together_hold_what_they_hold_one_by_one(
    steps: list[tuple[int, int]], data: st.DataObject
) -> None:
    with Page.create(cells=2) as page:
        stage = Stage("hash", reads=[End(page, "in.head")])
        cells, head = Cells(StageReader(stage).ends), page.claim("in.head")
        now_ns, samples = 0, []
        for width_ns, waited_ns in steps:
            head.begin_wait(now_ns)
            head.end_wait(now_ns + min(waited_ns, width_ns))
            count(head, waited_ns)
            now_ns += width_ns
            samples.append(Sample(at_ns=now_ns - waited_ns % 2, copies=cells.copy(), used={}))
        ascending = [a.at_ns < b.at_ns for a, b in pairwise(samples)]
        assume(all(ascending))
        cut = data.draw(st.integers(0, len(samples)))
        found = []
        for parts in ([samples], [samples[:cut], samples[cut:]], [[each] for each in samples]):
            reader, before, blocks = StageReader(stage), np.zeros(1, dtype=np.int64), []
            for part in filter(None, parts):
                words = cells.words([each.copies for each in part])
                for span in spans_of(part, words, cells.places, before=before):
                    blocks.append(reader.read(span))
                    before = span.blocked_ns[-1]
            found.append(Periods.end_to_end(blocks))
        for each in found[1:]:
            assert each.items.tolist() == found[0].items.tolist()
            assert each.blocked_s.tolist() == pytest.approx(found[0].blocked_s.tolist())
            assert (each.blocked_s <= each.period_s * (1.0 + 1e-9)).all()
