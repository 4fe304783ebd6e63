"""Which periods count, and what they come to."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.queues import Page, Stage
from benchrigor.queues.counting.ends import End
from benchrigor.queues.periods import Periods
from benchrigor.queues.stages.stage_figures import StageFigures, Watching
from benchrigor.stats import estimate_rate


def block(numbers: npt.ArrayLike, items: npt.ArrayLike = 10, **more: Any) -> Periods:
    """Return periods that begin at so many tenths of a second."""
    usual = {"given": 5.0, "arrived": [8.0], "blocked_s": 0.05 * more.get("servers", 1)}
    starts = 0.1 * np.atleast_1d(np.asarray(numbers, dtype=np.float64))
    counts = np.broadcast_to(np.asarray(items, dtype=np.float64), starts.shape)
    return Periods(start_s=starts, period_s=0.1, items=counts, **{**usual, **more})


class Kept:
    """Figures, and the periods that they counted."""

    def __init__(self, page: Page) -> None:
        stage = Stage("hash", reads=[End(page, "in.head")], writes=[End(page, "out.tail")])
        self.blocks: list[Periods] = []
        self.figures = StageFigures(stage, Watching())

    def tell(self, *blocks: Periods) -> Kept:
        for each in blocks:
            self.blocks += self.figures.tell(each)
        return self

    @property
    def counted(self) -> Periods:
        return Periods.end_to_end(self.blocks)

    @property
    def numbers(self) -> list[int]:
        return np.round(self.counted.start_s * 10).astype(int).tolist()


@pytest.fixture
def kept(page: Page) -> Kept:
    return Kept(page)


@pytest.mark.slow
@given(st.lists(st.integers(0, 6), max_size=5))
def test_neither_the_first_period_with_items_nor_the_last_one_counts(cuts: list[int]) -> None:
    counts = [0, 0, 3, 10, 0, 12, 4, 0, 0]
    with Page.create(cells=1) as page:
        kept = Kept(page)
        whole = block(range(9), counts)
        starts = sorted({0, *cuts})
        for start, stop in zip(starts, [*starts[1:], 9], strict=True):
            kept.tell(whole.part(slice(start, stop)))
        assert kept.numbers == [3, 4, 5]
        kept.tell(block(9, 1))
        assert kept.numbers == [3, 4, 5, 6, 7, 8]


def test_periods_in_which_a_server_came_or_went_do_not_count(kept: Kept) -> None:
    kept.tell(block(range(7), whole=np.arange(7) != 3))
    assert kept.numbers == [1, 2, 4, 5]


def test_periods_without_servers_do_not_count(kept: Kept) -> None:
    kept.tell(block(range(2)), block(2, servers=0), block(range(3, 5)))
    assert kept.numbers == [1, 3]


def test_a_long_silence_is_remembered_as_one_and_loses_nothing(kept: Kept) -> None:
    kept.tell(block(range(2)))
    for number in range(2, 3002, 10):
        kept.tell(block(range(number, number + 10), 0))
    kept.tell(block(range(3002, 3004)))
    counted = kept.counted
    assert counted.n < 1100
    assert counted.period_s.sum() == pytest.approx(0.1 * 3002)
    assert counted.items.sum() == 20
    assert counted.blocked_s.sum() == pytest.approx(0.05 * 3002)
    assert counted.arrived.sum() == 8 * 3002
    assert counted.given.sum() == 5 * 3002


def test_a_long_silence_of_which_not_all_is_known(kept: Kept) -> None:
    kept.tell(block(0), block(1, cpu_s=0.01, delay_s=0.0))
    kept.tell(block(range(2, 1502), 0, cpu_s=0.01, delay_s=0.0, arrived=[np.nan]), block(1502))
    assert kept.counted.cpu_s.tolist() == pytest.approx([0.01 * 1501])
    assert np.isnan(kept.counted.arrived).all()


def test_times_that_are_known_now_and_then_are_told_now_and_then(kept: Kept) -> None:
    known = np.arange(102) % 3 > 0
    times = {"cpu_s": np.where(known, 0.02, np.nan), "delay_s": np.where(known, 0.0, np.nan)}
    kept.tell(block(range(102), **times))
    rate = kept.figures.known().rate
    assert rate is not None
    assert rate.periods == 100
    assert rate.cpu_rate is not None
    assert rate.cpu_rate.value == pytest.approx(500.0)


def test_all_rates_are_of_the_periods_that_counted(kept: Kept) -> None:
    kept.tell(block(range(102)))
    known = kept.figures.known()
    assert known.rate is not None
    assert known.rate.estimate is not None
    assert known.rate.estimate.value == pytest.approx(200.0)
    assert (known.rate.periods, known.servers) == (100, 1)
    assert (known.rate.start_s, known.rate.stop_s) == pytest.approx((0.1, 10.1))
    assert (known.name, known.reads, known.writes) == ("hash", ("in",), ("out",))
    values = [known.arrivals, known.inputs["in"], known.utilisation, known.filter_ratio]
    assert [each and each.value for each in values] == pytest.approx([80.0, 80.0, 0.4, 2.0])


def test_arrivals_are_of_the_time_since_the_phase_began(kept: Kept) -> None:
    late = np.arange(150) >= 60
    kept.tell(block(range(150), np.where(late, 30, 10), arrived=[np.where(late, 25.0, 8.0)]))
    known = kept.figures.known()
    assert len(known.rates) == 2
    assert known.arrivals is not None
    assert known.arrivals.value == pytest.approx(250.0)


@pytest.mark.parametrize("silence", [0.0, np.nan])
def test_after_the_source_has_stopped_the_last_phase_with_arrivals_is_known(
    kept: Kept, silence: float
) -> None:
    came = np.where(np.arange(100) < 40, 30.0, silence)
    known = kept.tell(block(range(100), 10, arrived=[came])).figures.known()
    assert known.last_arrivals is not None
    assert known.last_arrivals.value == pytest.approx(300.0)
    assert known.silent_s == pytest.approx(5.9)


def test_a_pause_that_is_usual_belongs_to_the_arrivals(kept: Kept) -> None:
    came = np.where(np.arange(100) % 30 < 10, 30.0, 0.0)
    known = kept.tell(block(range(118), 10, arrived=[np.append(came, 18 * [0.0])])).figures.known()
    assert known.last_arrivals == known.arrivals
    assert known.silent_s == 0.0


def test_arrivals_are_estimated_as_any_rate(kept: Kept) -> None:
    counts = np.random.default_rng(75).poisson(20.0, 102)
    kept.tell(block(range(102), arrived=[counts]))
    arrivals = kept.figures.known().inputs["in"]
    assert arrivals == estimate_rate(counts[1:-1] / 0.1, weights=np.full(100, 0.1))


@pytest.mark.parametrize(
    "periods", [block(range(2)), block(range(40), arrived=[np.nan], given=np.nan)]
)
def test_what_nobody_counted_or_hardly_ever_is_not_known(kept: Kept, periods: Periods) -> None:
    known = kept.tell(periods).figures.known()
    assert (known.arrivals, known.inputs, known.filter_ratio) == (None, {}, None)


def test_with_other_servers_a_new_phase_begins(kept: Kept) -> None:
    others = np.arange(40, 82)
    kept.tell(block(range(40)), block(others, 20, servers=2, whole=others > 40))
    known = kept.figures.known()
    found = [each.estimate and each.estimate.value for each in known.rates]
    assert found == pytest.approx([200.0, 400.0])
    assert known.servers == 2
    assert known.rates[1].start_s == pytest.approx(4.1)


def test_the_end_of_a_stream_does_not_speak_for_the_stage(kept: Kept) -> None:
    ending = block(range(60, 80), 20, servers=1)
    kept.tell(block(range(60), 40, servers=2), ending, block(range(80, 90), 1, servers=0))
    known = kept.figures.known()
    assert [each.servers for each in known.rates] == [2, 1]
    assert known.rate is known.rates[0]
    later = block(range(90, 160), 20, servers=1)
    now = kept.tell(later).figures.known().rate
    assert now is not None
    assert now.servers == 1


def test_a_time_with_so_many_servers_that_was_short_tells_no_rate(kept: Kept) -> None:
    kept.tell(block(range(8)), block(range(8, 60), 20, servers=2))
    assert [each.periods for each in kept.figures.known().rates] == [51]


def test_of_a_stage_nothing_is_known_at_first(kept: Kept) -> None:
    known = kept.figures.known()
    assert (known.rate, known.arrivals, known.utilisation, known.servers) == (None,) * 3 + (0,)
