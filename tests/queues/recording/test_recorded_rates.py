"""A recording is estimated by what estimates while a program runs, and outlined."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from benchrigor.queues import Recording, ServiceRateEstimator, rate_recording


def simulated(n: int, *, rate: float, used: float = 0.7, seed: int = 1) -> tuple[Any, Any]:
    """Return items and blocked seconds of periods of 50 ms."""
    rng = np.random.default_rng(seed)
    blocked_s = 0.05 * (1.0 - used) * rng.uniform(0.5, 1.5, n)
    return rng.poisson(rate * (0.05 - blocked_s)).astype(float), blocked_s


def written(head: str = "", **columns: Any) -> Iterator[str]:
    """Yield the lines of a recording; a column is one value for all, or one for each."""
    yield from filter(None, (head, f"{','.join(columns)}\n"))
    for row in zip(*map(np.ndarray.tolist, np.broadcast_arrays(*columns.values())), strict=True):
        yield f"{','.join(map(str, row))}\n"


def ends_of(lines: Any, **options: Any) -> tuple[Any, ...]:
    return tuple(rate_recording(Recording(lines, name="run.csv"), **options))


def only(head: str = "", method: str | None = None, **columns: Any) -> Any:
    (end,) = ends_of(written(head, **columns), method=method)
    return end


def test_the_file_gives_what_the_estimator_was_told() -> None:
    items, blocked_s = simulated(3000, rate=1000.0)
    times = {
        "cpu_s": np.where(np.arange(3000) % 10 == 3, np.nan, items / 2000.0),
        "delay_s": np.where(np.arange(3000) < 100, np.nan, 0.001),
    }
    est = ServiceRateEstimator(target=0.01, confidence=0.9)
    est.tell_many(items, 0.05, blocked_s, **times)
    lines = written(period_s=0.05, items=items, blocked_s=blocked_s, **times)
    (found,) = ends_of(lines, target=0.01, confidence=0.9)
    assert (found.name, [*found.rates]) == ("", est.rates)
    estimate = found.rates[-1].estimate
    assert estimate is not None
    assert estimate.confidence == 0.9
    assert estimate.low < 1000.0 < estimate.high


def test_where_only_flags_are_known_it_is_the_quantile() -> None:
    items, blocked_s = simulated(3000, rate=1000.0, used=0.95)
    flags = blocked_s > np.median(blocked_s)
    est = ServiceRateEstimator("quantile")
    est.tell_many(items, 0.05, 0.0, flags)
    found = only(period_s=0.05, items=items, blocked=flags.astype(int))
    assert [*found.rates] == est.rates


@pytest.mark.parametrize("wanted", ["", "# period_s: 0.05\n"])
def test_as_published_other_periods_do_not_count(wanted: str) -> None:
    items, _ = simulated(400, rate=1000.0, used=1.0)
    widths = np.where(np.arange(400) < 399, 0.05, 5.0)
    found = only(wanted, "published", period_s=widths, items=items, blocked=0)
    assert (found.rates[-1].periods, found.rates[-1].used) == (400, 399)


def drawn(n: int, servers: int = 1) -> dict[str, Any]:
    """Draw periods, and how long a stage waited in them."""
    rng = np.random.default_rng(1)
    period_s, items = rng.uniform(0.05, 0.15, n), rng.poisson(40.0, n)
    shares = rng.uniform(0.0, 0.9, n) * (rng.random(n) < 0.7)
    return {
        "period_s": period_s,
        "items": items,
        "blocked_s": servers * period_s * shares,
        "bytes": 512 * items,
    }


def test_few_periods_stand_for_themselves_in_an_outline() -> None:
    given = drawn(30, servers=3)
    found = only("# servers: 3\n", **given).stretches()
    busy_s = given["period_s"] - given["blocked_s"] / 3
    assert found.rates == pytest.approx(given["items"] / busy_s)
    assert found.waiting == pytest.approx(given["blocked_s"] / given["period_s"] / 3)
    assert found.stop_s == pytest.approx(np.cumsum(given["period_s"]))
    assert found.start_s[1:] == pytest.approx(found.stop_s[:-1])


def test_where_only_flags_are_known_periods_with_waiting_are_not_outlined() -> None:
    given = drawn(400)
    flags = given.pop("blocked_s") > 0.0
    (rate,) = only(**given, blocked=flags.astype(int)).stretches(1).rates
    free = ~flags
    assert rate == pytest.approx(given["items"][free].sum() / given["period_s"][free].sum())


def test_a_stretch_of_nothing_but_waiting_has_no_rate() -> None:
    found = only(period_s=[0.1] * 5, items=0, blocked_s=0.1).stretches()
    assert np.isnan(found.rates).all()
    assert found.waiting.tolist() == [1.0] * 5


def test_many_periods_are_joined_in_an_outline_and_nothing_is_lost() -> None:
    given = drawn(70_000)
    outline, (wall_s, items, waited_s, _) = only(**given), map(np.sum, given.values())
    for most in (1, 7, 400):
        found = outline.stretches(most)
        assert 0.5 * most <= found.rates.size <= most
        assert found.stop_s[-1] == pytest.approx(wall_s)
        widths = found.stop_s - found.start_s
        assert float((found.waiting * widths).sum()) == pytest.approx(waited_s)
        busy_s = (1.0 - found.waiting) * widths
        assert float((found.rates * busy_s).sum()) == pytest.approx(items)
    assert outline.throughput(0.0, wall_s)[:2] == pytest.approx((items / wall_s, 512.0))
