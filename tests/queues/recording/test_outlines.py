"""An outline remembers what happened, however long that took."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.queues.periods import Periods
from benchrigor.queues.recording.outlines import Outline


def periods(n: int, *, seed: int = 1, timed: bool = True, servers: int = 1) -> Periods:
    rng = np.random.default_rng(seed)
    period_s = rng.uniform(0.05, 0.15, n)
    blocked_s = servers * period_s * rng.uniform(0.0, 0.9, n) * (rng.random(n) < 0.7)
    items = rng.poisson(40.0, n).astype(float)
    return Periods(
        period_s=period_s,
        items=items,
        blocked=blocked_s > 0.0,
        blocked_s=blocked_s if timed else 0.0,
        bytes=512.0 * items,
        servers=servers,
    )


def test_few_periods_stand_for_themselves() -> None:
    outline = Outline()
    given_ = periods(30, servers=3)
    outline.add(given_)
    found = outline.stretches()
    busy_s = given_.period_s - given_.blocked_s / 3
    assert found.rates == pytest.approx(given_.items / busy_s)
    assert found.waiting == pytest.approx(given_.blocked_s / given_.period_s / 3)
    assert found.stop_s == pytest.approx(np.cumsum(given_.period_s))
    assert found.start_s[1:] == pytest.approx(found.stop_s[:-1])


def test_where_only_flags_are_known_periods_with_waiting_do_not_count() -> None:
    outline = Outline()
    given_ = periods(4000, timed=False)
    outline.add(given_)
    (rate,) = outline.stretches(1).rates
    free = ~given_.blocked
    assert rate == pytest.approx(given_.items[free].sum() / given_.period_s[free].sum())


def test_a_stretch_of_nothing_but_waiting_has_no_rate() -> None:
    outline = Outline()
    whole = np.full(5, 0.1)
    outline.add(Periods(period_s=whole, items=np.zeros(5), blocked=whole > 0, blocked_s=whole))
    assert np.isnan(outline.stretches().rates).all()
    assert outline.stretches().waiting.tolist() == [1.0] * 5


@pytest.mark.parametrize("most", [1, 7, 400])
def test_long_ones_are_joined_and_nothing_is_lost(most: int) -> None:
    outline = Outline()
    parts = [periods(n, seed=n) for n in (1, 70_000, 999, 3)]
    for each in parts:
        outline.add(each)
    found = outline.stretches(most)
    assert 0.5 * most <= found.rates.size <= most
    wall_s = sum(float(each.period_s.sum()) for each in parts)
    assert found.stop_s[-1] == pytest.approx(wall_s)
    waited_s = sum(float(np.sum(each.blocked_s)) for each in parts)
    widths = found.stop_s - found.start_s
    assert float((found.waiting * widths).sum()) == pytest.approx(waited_s)
    items = sum(float(each.items.sum()) for each in parts)
    assert float((found.rates * (1.0 - found.waiting) * widths).sum()) == pytest.approx(items)
    window = outline.throughput(0.0, wall_s)
    assert window[0] == pytest.approx(items / wall_s)
    assert window[1] == pytest.approx(512.0)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=12))
def test_it_does_not_matter_how_periods_are_told(sizes: list[int]) -> None:
    whole = periods(sum(sizes))
    one, many = Outline(), Outline()
    one.add(whole)
    start = 0
    for size in sizes:
        part = slice(start, start + size)
        start += size
        many.add(whole.part(part))
    np.testing.assert_allclose(one.stretches(50).rates, many.stretches(50).rates)


def test_a_window_holds_what_happened_in_it() -> None:
    outline = Outline()
    items = np.repeat([10.0, 40.0], 100)
    outline.add(
        Periods(
            period_s=np.full(200, 0.1),
            items=items,
            blocked=np.zeros(200, dtype=np.bool_),
            blocked_s=np.zeros(200),
            bytes=items * np.repeat([100.0, 300.0], 100),
        )
    )
    early, late = outline.throughput(0.0, 10.0), outline.throughput(10.0, 20.0)
    assert (early[0], late[0]) == pytest.approx((100.0, 400.0))
    assert (early[1], late[1]) == pytest.approx((100.0, 300.0))


def test_nothing_is_said_of_bytes_that_nobody_counted() -> None:
    outline = Outline()
    one = np.array([0.1])
    outline.add(Periods(period_s=one, items=one * 0, blocked=one < 0, blocked_s=one * 0, bytes=one))
    assert outline.throughput(0.0, 1.0)[1] is None
    outline = Outline()
    outline.add(Periods(period_s=one, items=one * 30, blocked=one < 0))
    window = outline.throughput(0.0, 1.0)
    assert (window[0], window[1]) == (pytest.approx(30.0), None)


def test_of_nothing_there_are_no_stretches() -> None:
    assert Outline().stretches().rates.size == 0
