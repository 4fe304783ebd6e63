"""Which periods count, and what they come to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchrigor.queues import End, Page, ServiceRateEstimator, Stage, WatchedStage
from benchrigor.queues.stage_figures import StageFigures
from benchrigor.queues.stage_reader import Period

RNG = np.random.default_rng(76)


def make(servers: int = 1) -> ServiceRateEstimator:
    return ServiceRateEstimator(servers=servers)


def period(number: int = 0, items: int = 10, *, servers: int = 1, whole: bool = True) -> Period:
    return Period(
        start_s=number * 0.1,
        period_s=0.1,
        items=items,
        arrived=(8,),
        given=5,
        blocked_s=0.05 * servers,
        servers=servers,
        whole=whole,
    )


class Kept:
    """Figures, and the periods that they counted."""

    def __init__(self, page: Page) -> None:
        stage = Stage("hash", reads=[End(page, "in.head")], writes=[End(page, "out.tail")])
        self.counted: list[Period] = []
        self.figures = StageFigures(stage, make, record=lambda _, each: self.counted.append(each))

    def tell(self, *periods: Period) -> Kept:
        for each in periods:
            self.figures.tell(each)
        return self

    @property
    def numbers(self) -> list[int]:
        return [round(each.start_s * 10) for each in self.counted]


@pytest.fixture
def kept(page: Page) -> Kept:
    return Kept(page)


def test_neither_the_first_period_with_items_nor_the_last_one_counts(kept: Kept) -> None:
    counts = [0, 0, 3, 10, 0, 12, 4, 0, 0]
    kept.tell(*(period(number, items) for number, items in enumerate(counts)))
    assert kept.numbers == [3, 4, 5]
    kept.tell(period(9, 1))
    assert kept.numbers == [3, 4, 5, 6, 7, 8]


def test_periods_in_which_a_server_came_or_went_do_not_count(kept: Kept) -> None:
    kept.tell(*(period(number, whole=number != 3) for number in range(7)))
    assert kept.numbers == [1, 2, 4, 5]


def test_periods_without_servers_do_not_count(kept: Kept) -> None:
    kept.tell(*(period(number, servers=int(number != 2)) for number in range(5)))
    assert kept.numbers == [1, 3]


def test_a_long_silence_is_remembered_as_one_and_loses_nothing(kept: Kept) -> None:
    kept.tell(period(0), period(1))
    kept.tell(*(period(2 + number, 0) for number in range(3000)), period(3002), period(3003))
    assert len(kept.counted) < 1100
    assert sum(each.period_s for each in kept.counted) == pytest.approx(0.1 * 3002)
    assert sum(each.items for each in kept.counted) == 20
    assert sum(each.blocked_s for each in kept.counted) == pytest.approx(0.05 * 3002)
    assert sum(each.arrived[0] or 0 for each in kept.counted) == 8 * 3002
    assert sum(each.given or 0 for each in kept.counted) == 5 * 3002


def test_a_long_silence_of_which_not_all_is_known(kept: Kept) -> None:
    some = replace(period(), cpu_s=0.01, delay_s=0.0)
    kept.tell(period(0), some)
    kept.tell(*[replace(some, items=0, arrived=(None,), given=None)] * 1500, some)
    assert kept.counted[0].cpu_s == pytest.approx(0.01 * 1025)
    assert kept.counted[0].arrived == (None,)
    assert kept.counted[0].given is None


def test_all_rates_are_of_the_periods_that_counted(kept: Kept) -> None:
    kept.tell(*(period(number) for number in range(102)))
    known = kept.figures.known()
    assert known.rate is not None
    assert known.rate.estimate is not None
    assert known.rate.estimate.value == pytest.approx(200.0)
    assert (known.rate.periods, known.servers) == (100, 1)
    assert (known.rate.start_s, known.rate.stop_s) == pytest.approx((0.1, 10.1))
    assert (known.name, known.reads, known.writes) == ("hash", ("in",), ("out",))
    values = [known.arrivals, known.inputs["in"], known.utilisation, known.filter_ratio]
    assert [each and each.value for each in values] == pytest.approx([80.0, 80.0, 0.4, 2.0])


def test_with_other_servers_a_new_phase_begins(kept: Kept) -> None:
    kept.tell(*(period(number) for number in range(40)))
    kept.tell(period(40, servers=2, whole=False))
    kept.tell(*(period(number, 20, servers=2) for number in range(41, 82)))
    known = kept.figures.known()
    found = [each.estimate and each.estimate.value for each in known.rates]
    assert found == pytest.approx([200.0, 400.0])
    assert known.servers == 2
    assert known.rates[1].start_s == pytest.approx(4.1)


def test_a_time_with_so_many_servers_that_was_short_tells_no_rate(kept: Kept) -> None:
    kept.tell(*(period(number) for number in range(8)))
    kept.tell(*(period(number, 20, servers=2) for number in range(8, 60)))
    assert [each.periods for each in kept.figures.known().rates] == [51]


def test_a_stage_of_which_nothing_is_known_says_so(kept: Kept) -> None:
    known = kept.figures.known()
    assert (known.rate, known.arrivals, known.utilisation, known.servers) == (None,) * 3 + (0,)
    assert str(known) == "hash: no rate yet"


def test_one_line_tells_the_rate_what_arrives_and_what_is_used(kept: Kept) -> None:
    kept.tell(*(period(number) for number in range(102)))
    shown = str(kept.figures.known())
    assert shown.startswith("hash: 200")
    assert "80 items/s arrive · 40% used" in shown


def test_a_stage_that_was_described_wrongly_says_so() -> None:
    shown = str(WatchedStage(name="hash", inputs={}, failure="2 wait at once"))
    assert shown == "hash: no rate yet · watched no more: 2 wait at once"
