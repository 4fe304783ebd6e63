"""From the cells of stages to the periods that count, and to what they come to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.queues.benches import MS, Bench, Row, stage_of
from tests.texts.causes.queues import end_of

from benchrigor.queues import Page, Stage
from benchrigor.stats import estimate_rate


def count(cell: Any, items: int) -> None:
    for _ in range(items):
        cell.count()


@pytest.fixture
def alone(page: Page) -> Bench:
    """A stage that reads one queue, and counts in no cell yet."""
    return Bench(page, stage_of(page, reads=["in.head"]))


@pytest.fixture
def between(page: Page) -> Bench:
    return Bench(page, stage_of(page, reads=["in.head"], writes=["out.tail"]))


def test_a_period_is_what_lies_between_two_looks(between: Bench) -> None:
    head, tail, entering = map(between.cell, ("in.head", "out.tail", "in.tail"))
    between.at(0)
    between.at(50, head=head)  # the first one with items does not count
    count(head, 7)
    count(tail, 2)
    count(entering, 9)
    head.begin_wait(60 * MS)
    head.end_wait(63 * MS)
    tail.begin_wait(90 * MS)
    between.at(100)
    tail.end_wait(101 * MS)
    between.at(150, 200, head=head)  # nor does the last one
    assert between.told() == [
        Row(50, 7, (9,), 2, 13, 1, None, None, 50),
        Row(100, 1, (0,), 0, 1, 1, None, None, 50),
    ]


@pytest.mark.parametrize(
    ("at_ends", "own", "cells", "servers"),
    [
        (1, 1, {}, 1),
        (2, 1, {"b.head": 7}, 4),  # each process is one, and so are its threads
        (1, 3, {}, 3),
        (1, 1, {"b.head": 5, "out.tail": 5}, 1),  # a process at several ends is one
        (1, 1, {"b.head": 7, "out.tail": 5}, 2),
        (1, 1, {"out.tail": 7}, 1),  # others use the same tail
    ],
)
def test_who_serves(
    page: Page, at_ends: int, own: int, cells: dict[str, int], servers: int
) -> None:
    reads = [end_of(page, name, servers=at_ends) for name in ("a.head", "b.head")]
    bench = Bench(page, Stage("hash", reads=reads, writes=[end_of(page, "out.tail")], servers=own))
    first = bench.cell("a.head")
    for name, pid in cells.items():
        bench.cell(name, pid=pid)
    bench.at(0, 10, 20, 30, first=first)
    assert [each.servers for each in bench.told()] == [servers]


def test_the_period_in_which_a_server_comes_does_not_count(alone: Bench) -> None:
    head = alone.cell("in.head")
    alone.at(0, 10, 20, head=head)
    other = alone.cell("in.head", pid=7)
    alone.at(30, 40, 50, head=head, other=other)
    found = [(each.start_ms, each.servers, each.blocked_ms) for each in alone.told()]
    assert found == [(10, 1, 0), (30, 2, 0)]


def test_who_is_gone_serves_no_more_and_what_it_counted_stays(alone: Bench) -> None:
    head, other = alone.cell("in.head"), alone.cell("in.head", pid=7)
    alone.at(0, 100, head=head)
    count(other, 2)
    other.begin_wait(101 * MS)  # and is killed while it waits
    alone.at(200, head=head)
    assert not alone.sampler.nobody_left
    alone.owners.dead = frozenset({7})
    alone.at(300, 400, 500, head=head)
    found = [(each.start_ms, each.items, each.servers, each.blocked_ms) for each in alone.told()]
    assert found == [(100, 3, 2, 99), (300, 1, 1, 0)]
    alone.owners.dead = frozenset({5, 7})
    alone.at(600)
    alone.sampler.work_off()
    assert alone.sampler.nobody_left


def test_waiting_that_shows_too_early_is_the_next_periods(alone: Bench) -> None:
    head = alone.cell("in.head")
    alone.at(0, 10, head=head)
    head.begin_wait(10 * MS)
    head.end_wait(22 * MS)  # seen in the copy of a sample whose clock was read at 20
    alone.at(20, 30, 40, head=head)
    assert [each.blocked_ms for each in alone.told()] == [10, 2]


def test_a_wait_that_is_stored_late_costs_no_more_than_its_own_time(alone: Bench) -> None:
    head = alone.cell("in.head")
    alone.at(*range(0, 65, 5), head=head)  # meanwhile the writer is switched out
    head.begin_wait(11 * MS)  # read off the clock before that
    alone.at(*range(65, 85, 5))
    head.end_wait(82 * MS)
    alone.at(*range(85, 205, 5), head=head)
    blocked_ms = [each.blocked_ms for each in alone.told()]
    assert max(blocked_ms) <= 5
    assert sum(blocked_ms) == pytest.approx(71)


def test_a_cell_whose_writer_died_between_two_stores_stays_where_it_was(alone: Bench) -> None:
    head = alone.cell("in.head")
    alone.at(0, 10, head=head)
    head.begin_wait(12 * MS)
    head.end_wait(15 * MS)
    alone.at(20, head=head)
    head.words[3] = 900
    alone.at(30, 40, head=head)
    assert [each.blocked_ms for each in alone.told()] == [3, 0]


def test_who_goes_from_one_end_to_the_other_while_they_are_copied_is_one(between: Bench) -> None:
    head, tail = between.cell("in.head"), between.cell("out.tail")
    for number in range(200):
        at_both = (head, tail)[: 1 + (number % 30 == 7)]
        for cell in at_both:
            cell.begin_wait(number * MS)
        between.at(number, head=head)
        for cell in at_both:
            cell.end_wait(number * MS)
    assert {each.servers for each in between.told()} == {1}
    assert between.found.failure is None


@pytest.mark.parametrize(("samples", "fails"), [(7, False), (8, True)])
def test_more_that_wait_at_once_than_serve_are_refused(
    alone: Bench, samples: int, fails: bool
) -> None:
    head = alone.cell("in.head")
    for _ in range(2):
        head.begin_wait(0)
    alone.at(*range(samples))
    assert (alone.found.failure is not None) is fails


@pytest.mark.parametrize(("periods", "fails"), [(21, False), (22, True)])
def test_more_waiting_than_there_was_time_is_refused(
    alone: Bench, periods: int, fails: bool
) -> None:
    head = alone.cell("in.head")
    alone.at(0)
    for from_ms in range(0, 100 * periods, 100):  # in each 80 ms more than there was time
        for _ in range(2):
            head.begin_wait(from_ms * MS)
        for _ in range(2):
            head.end_wait((from_ms + 90) * MS)
        alone.at(from_ms + 100)
    assert (alone.found.failure is not None) is fails


def test_a_stage_that_is_described_wrongly_is_no_other_ones_loss(page: Page) -> None:
    bench = Bench(page, *(stage_of(page, name, reads=[name]) for name in ("a.head", "b.head")))
    wrong, right = bench.cell("a.head"), bench.cell("b.head")
    for _ in range(2):
        wrong.begin_wait(0)
    bench.at(*range(15), right=right)
    bench.told()
    first, other = bench.sampler.report().stages
    assert (first.failure is None, other.failure) == (False, None)
    assert other.rate is not None


@pytest.mark.parametrize(
    ("tids", "told"),
    [((6, 6), (4, 2)), ((6, 0), (None, None)), ((6, 8), (None, None))],  # known for sure, or not
)
def test_processor_time_is_that_of_the_thread_that_serves(
    between: Bench, tids: tuple[int, int], told: tuple[float | None, float | None]
) -> None:
    head, _ = between.cell("in.head", tid=tids[0]), between.cell("out.tail", tid=tids[1])
    for n in range(4):
        for tid in (6, 8):
            between.owners.use(5, tid, n * 4 * MS, n * 2 * MS)
        between.at(10 * n, head=head)
    assert [(each.cpu_ms, each.delay_ms) for each in between.told()] == [told]


def test_processor_time_is_not_told_of_a_thread_that_serves_two(page: Page) -> None:
    bench = Bench(page, *(stage_of(page, name, reads=[name]) for name in ("a.head", "b.head")))
    bench.owners.use(5, 6, 1, 1)
    cells = {name[0]: bench.cell(name, tid=6) for name in ("a.head", "b.head")}
    bench.at(*range(5), **cells)
    assert {each.cpu_ms for each in bench.told("a.head")} == {None}


def test_items_of_each_stage_are_compared_with_the_first_that_reads(page: Page) -> None:
    names = {"a.tail": 2, "a.head": 4, "b.head": 1}
    source = stage_of(page, "a.tail", writes=["a.tail"])
    bench = Bench(page, source, *(stage_of(page, name, reads=[name]) for name in [*names][1:]))
    cells = {name: bench.cell(name) for name in names}
    for number in range(40):
        for name, items in names.items():
            count(cells[name], items * (name != "b.head" or number % 2))
        bench.at(number)
    bench.told()
    found = [stage.visits for stage in bench.sampler.report().stages]
    assert [each and each.value for each in found] == pytest.approx([0.5, 1.0, 20 / 156])


@given(
    st.lists(st.tuples(st.integers(2, 9), st.integers(0, 9)), min_size=1, max_size=9),
    st.sets(st.integers(0, 9)),
)
def test_samples_together_hold_what_they_hold_one_by_one(
    steps: list[tuple[int, int]], cuts: set[int]
) -> None:
    found = []
    for parts in (set[int](), cuts, set(range(10))):
        with Page.create(cells=2) as page:
            bench = Bench(page, stage_of(page, reads=["in.head"]))
            head, now_ns = bench.cell("in.head"), 0
            for number, (width_ns, waited_ns) in enumerate(steps):
                head.begin_wait(now_ns)
                head.end_wait(now_ns + min(waited_ns, width_ns))
                count(head, waited_ns)
                now_ns += width_ns
                bench.sampler.sample(now_ns - waited_ns % 2)
                if number in parts:
                    bench.sampler.work_off()
            found.append(bench.told())
    assert found[0] == found[1] == found[2]


@pytest.fixture
def busy(between: Bench) -> Bench:
    """A stage that takes ten items, and gives five, while eight come."""
    for name in ("in.head", "out.tail", "in.tail"):
        between.cell(name)
    return between


def values(*estimates: Any) -> list[Any]:
    return [each and each.value for each in estimates]


def test_periods_without_servers_do_not_count(busy: Bench) -> None:
    busy.pass_periods(3)
    busy.leave("in.head")
    busy.pass_periods(2)
    busy.cell("in.head", pid=7)
    busy.pass_periods(4)
    assert busy.starts_ms == [100, 200, 600, 700]


def test_a_long_silence_is_remembered_as_one_and_loses_nothing(alone: Bench) -> None:
    for name in ("in.head", "in.tail"):
        alone.cell(name, tid=6)
    for n, items in enumerate([10, 10, 10, *[0] * 3000, 10, 10]):
        if n == 3:
            alone.leave("in.tail")
        alone.owners.use(5, 6, n * MS, n * MS)
        alone.pass_periods(1, items=items)
    rows = alone.told()
    assert len(rows) < 1100
    assert {each.arrived for each in rows} == {(8.0,), (None,)}
    sums = [(each.items, each.blocked_ms, each.delay_ms or 0.0) for each in rows]
    assert np.sum(sums, axis=0).tolist() == [30, 3003 * 50, 3003]


def test_all_figures_are_of_the_periods_that_counted(busy: Bench) -> None:
    arrived = np.random.default_rng(75).poisson(8.0, 102)
    busy.pass_periods(102, arrived=arrived, item_bytes=4)
    found, rate = busy.found, busy.found.rate
    assert rate is not None
    assert values(rate.estimate, rate.byte_rate) == pytest.approx([200.0, 800.0])
    assert rate.item_bytes == 4.0
    assert (rate.periods, found.servers) == (100, 1)
    assert (rate.start_s, rate.stop_s) == pytest.approx((0.1, 10.1))
    assert (found.name, found.reads, found.writes) == ("hash", ("in",), ("out",))
    assert found.inputs["in"] == estimate_rate(arrived[1:-1] / 0.1, weights=np.full(100, 0.1))
    assert found.arrivals is not None
    assert values(found.arrivals, found.utilisation, found.filter_ratio) == pytest.approx(
        [found.inputs["in"].value, found.arrivals.value / 200.0, 2.0]
    )


def test_arrivals_are_of_the_time_since_the_phase_began(busy: Bench) -> None:
    late = np.arange(150) >= 60
    busy.pass_periods(150, items=np.where(late, 30, 10), arrived=np.where(late, 25, 8))
    assert len(busy.found.rates) == 2
    assert values(busy.found.arrivals) == pytest.approx([250.0])
    assert {(each.item_bytes, each.byte_rate) for each in busy.found.rates} == {(None, None)}


@pytest.mark.parametrize("how", ["nothing comes", "nobody counts"])
def test_after_the_source_has_stopped_the_last_phase_with_arrivals_is_known(
    busy: Bench, how: str
) -> None:
    busy.pass_periods(40, arrived=30)
    if how == "nobody counts":
        busy.leave("in.tail")
    busy.pass_periods(60, arrived=0)
    assert values(busy.found.last_arrivals) == pytest.approx([300.0])
    assert busy.found.silent_s == pytest.approx(5.9)


def test_the_end_of_a_stream_does_not_speak_for_the_stage(busy: Bench) -> None:
    busy.cell("in.head", pid=7)
    busy.pass_periods(60, items=20)
    busy.leave("in.head")
    busy.pass_periods(20, items=20)
    assert [each.servers for each in busy.found.rates] == [2, 1]
    assert busy.found.rate is busy.found.rates[0]
    busy.pass_periods(90, items=20)
    assert busy.found.rate is not None
    assert busy.found.rate.servers == 1
