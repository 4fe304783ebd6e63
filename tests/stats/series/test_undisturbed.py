"""Undisturbed readings are told apart by measured delay, and each length keeps its share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stats.told import told

from benchrigor.model import Analysis, Code, Notice
from benchrigor.stats.series.undisturbed import Groups, choose_undisturbed, stops_in


def groups(delay_s: np.ndarray, own_s: np.ndarray, size: int = 1) -> Groups:
    return Groups(sizes=np.full(own_s.size, size), delay_s=delay_s, duration_s=own_s + delay_s)


def hit(n: int, seed: int, *, cv: float = 0.3, hits: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Draw the time that groups need, and their delay; long ones are hit more often."""
    rng = np.random.default_rng(seed)
    own = rng.gamma(1.0 / cv**2, cv**2, n)
    return np.where(rng.random(n) < -np.expm1(-hits * own), rng.uniform(0.1, 2.0, n), 0.0), own


def test_long_readings_keep_their_share() -> None:
    delay, own = hit(20_000, 1, cv=0.5, hits=1.0)
    chosen, _ = choose_undisturbed(groups(delay, own))
    assert chosen is not None
    counted, alone = own[chosen.indices], own[delay == 0.0]
    assert (delay[chosen.indices] == 0.0).all()
    assert alone.mean() < 0.87 * own.mean()
    assert counted.mean() == pytest.approx(own.mean(), rel=0.005)
    for q in (0.1, 0.5, 0.9):
        assert np.quantile(counted, q) == pytest.approx(np.quantile(own, q), rel=0.01)
    assert counted.size == pytest.approx(alone.size, rel=0.001)


@pytest.mark.parametrize("ticks", [20, 21, 23])
def test_a_coarse_clock_may_make_the_undisturbed_readings_of_a_length_equal(ticks: int) -> None:
    """But for rounding: their mean may be above all of them, so that none is to count more."""
    own = 1e-7 * np.repeat([ticks, 3.0 * ticks, 5.0 * ticks], 50)
    delay = np.where(np.arange(own.size) % 3 > 0, 0.004, 0.0)
    own[delay > 0.0] *= 1.2
    chosen, _ = choose_undisturbed(groups(delay, own))
    assert chosen is not None
    assert (delay[chosen.indices] == 0.0).all()
    assert chosen.indices.size == pytest.approx((delay == 0.0).sum(), abs=1)


cases = st.tuples(
    st.integers(20, 200), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 1.0, 3.0])
)


@given(case=cases, scale=st.sampled_from([1e-9, 1e-3, 8.0, 1e6]), size=st.integers(1, 5))
def test_the_unit_of_time_does_not_matter(
    case: tuple[int, int, float], scale: float, size: int
) -> None:
    n, seed, hits = case
    delay, own = hit(n, seed, hits=hits)
    one, other = (choose_undisturbed(groups(by * delay, by * own, size))[0] for by in (1.0, scale))
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert other.left_out == one.left_out
        # A rounding error may shift where cumulated weights pass a whole number.
        assert abs(other.indices.size - one.indices.size) <= size
        assert np.isin(one.indices, other.indices).mean() > 0.9


@given(case=cases, size=st.integers(1, 5))
def test_only_undisturbed_readings_count_in_order_about_as_often_as_there_are(
    case: tuple[int, int, float], size: int
) -> None:
    n, seed, hits = case
    delay, own = hit(n, seed, hits=hits)
    chosen, notices = choose_undisturbed(groups(delay, own, size))
    if chosen is None:
        assert not (delay > 0.0).any() or notices[0].code is Code.HARDLY_UNDISTURBED
        return
    indices = chosen.indices
    assert (delay[indices // size] == 0.0).all()
    assert (np.diff(indices // size) >= 0).all()
    assert chosen.left_out == size * int((delay > 0.0).sum())
    assert abs(indices.size - (chosen.n - chosen.left_out)) <= size


def rest_of_work(n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw what the kernel does not count of work that never blocks: hardly anything."""
    return np.asarray(rng.exponential(2e-6, n) + np.where(rng.random(n) < 0.01, 1e-4, 0.0))


@given(
    n=st.integers(6, 400),
    place=st.floats(0.01, 0.999),
    seconds=st.floats(0.3, 1e4),
    seed=st.integers(0, 1000),
)
def test_one_long_gap_of_work_that_never_blocks_is_a_stop(
    n: int, place: float, seconds: float, seed: int
) -> None:
    rest, at = rest_of_work(n, np.random.default_rng(seed)), max(1, int(place * n))
    rest[at] += seconds
    stopped = stops_in(rest, 5e-3 + rest)
    assert np.flatnonzero(stopped).tolist() == [at]
    assert stopped[at] == pytest.approx(seconds, abs=1e-3)


@pytest.mark.parametrize("kind", ["sleep", "exponential", "rare", "growing", "cold", "short"])
@pytest.mark.parametrize("n", [6, 20, 300, 5_000])
def test_work_that_blocks_is_never_called_stopped(kind: str, n: int) -> None:
    """Seeded: 50 runs of each kind."""
    for seed in range(50):
        rng = np.random.default_rng(20260300 + seed)
        rest = {
            "sleep": 0.5 * rng.normal(1.0, 0.01, n),
            "exponential": rng.exponential(0.2, n),
            "rare": rest_of_work(n, rng) + np.where(rng.random(n) < 0.05, 0.5, 0.0),
            "growing": np.geomspace(1e-4, 3.0, n),
            "cold": rest_of_work(n, rng) + np.where(np.arange(n) == 0, 5.0, 0.0),
            "short": rest_of_work(n, rng) + np.where(np.arange(n) == n // 2, 0.15, 0.0),
        }[kind]
        if kind == "rare" and (rest[1:] > 0.1).sum() <= 3:
            continue  # nothing tells that from stops
        assert not stops_in(np.maximum(rest, 0.0), 5e-3 + rest).any()


def hardly(found: Analysis) -> list[Notice]:
    return [each for each in found.notices if each.code is Code.HARDLY_UNDISTURBED]


def test_series_together_say_where_their_readings_are() -> None:
    delay = np.zeros(40)
    delay[3] = 1.0
    rounds = [
        {"unit_readings": {"u": 1.0 + each}, "delays": each} for each in (delay, np.zeros(40))
    ]
    found = told(*rounds, rounds="restarted").disturbed
    assert found is not None
    assert found.indices.tolist() == [index for index in range(80) if index != 3]
    assert found.sizes([40, 40]) == [39, 40]
    assert found.lost == pytest.approx(1.0 / 81.0)


def test_several_series_with_hardly_any_undisturbed_readings_are_told_once() -> None:
    hits = np.ones(40), np.where(np.arange(60) == 7, 0.0, 1.0)
    rounds = [{"unit_readings": {"u": 1.0 + each}, "delays": each} for each in hits]
    (notice,) = hardly(told(*rounds, rounds="restarted"))
    lost = (0.5 * 40 + 59.0 / 119.0 * 60) / 100
    assert notice.evidence == {
        "undisturbed": 1,
        "taken": 100,
        "lost": pytest.approx(lost, abs=1e-4),
    }


@pytest.mark.parametrize(("second_s", "stops"), [(0.02, [9]), (0.05, [])])
def test_a_stop_is_ten_times_as_long_as_any_other_gap(second_s: float, stops: list[int]) -> None:
    rest = np.full(40, 1e-6)
    rest[[5, 9]] = second_s, 0.3
    assert np.flatnonzero(stops_in(rest, 5e-3 + rest)).tolist() == stops
