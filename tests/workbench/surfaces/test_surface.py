"""Surfaces of maps: predictions, the best point, what matters, and where points change places."""

import math
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from known_maps import known

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.workbench import Factor, SurfaceMap

THREADS = Factor("threads", levels=[1, 2, 4, 8, 16, 32], scale="log2")
FACTORS = [THREADS, Factor("fs", levels=["ext4", "xfs"])]
GRID = [{"threads": threads, "fs": fs} for threads in THREADS.levels for fs in ("ext4", "xfs")]
BEST = {"threads": 32, "fs": "xfs"}
ERROR = 0.02


def rate_of(point: Any) -> float:
    """Return the true answer: xfs gains more of threads."""
    threads = float(point["threads"])
    speed, contention = (120.0, 0.12) if point["fs"] == "ext4" else (95.0, 0.05)
    return speed * threads / (1.0 + contention * threads)


def mapped(
    answer: Callable[[Any], Any] = rate_of,
    *,
    of: Collection[Any] | None = None,
    factors: Collection[Factor] = FACTORS,
    seed: int | None = None,
    error: float = ERROR,
    earlier: Any = (),
    host: Callable[[int], str | None] = lambda _: None,
    **options: Any,
) -> Any:
    """Map answers, or only those ``of`` some points; what is no number is told as it is."""
    search, rng = SurfaceMap([*factors], design="full", **options), np.random.default_rng(seed)
    for sample in search.planned():
        if of is not None and sample.point not in of:
            continue
        found = answer(sample.point)
        if isinstance(found, float):
            off = 0.0 if seed is None else rng.normal(0.0, error)
            search.tell(sample, known(found * math.exp(off), error), host=host(sample.id))
        elif isinstance(found, Estimate) or "rate" in found:
            search.tell(sample, found)
        else:
            search.tell(sample, None, **found)
    search.recall(earlier)
    return search.result()


@pytest.fixture(scope="module")
def surface() -> Any:
    return mapped(of=GRID[::2] + GRID[1::4], seed=1)


@pytest.mark.parametrize("wrong", [{"threads": 64}, {"fs": "zfs"}, {"threads": "2"}, {"fs": 1}])
def test_a_point_of_no_map_is_refused(surface: Any, wrong: Any) -> None:
    for point in ({**BEST, **wrong}, wrong, {**BEST, "disks": 2}):
        with pytest.raises(InvalidInput):
            surface.predict(point)
    with pytest.raises(InvalidInput):
        SurfaceMap([THREADS]).recall(surface.samples)


def test_too_few_samples_give_a_notice_and_no_number() -> None:
    surface = mapped(of=GRID[:4])
    assert (surface.model, surface.loo_error) == (None, None)
    assert [each.code for each in surface.notices] == [Code.TOO_FEW_SAMPLES]
    assert len(surface.ranking()) == 4
    for ask in (surface.best, surface.sensitivities, mapped(of=()).best):
        with pytest.raises(NotEstimable):
            ask()


def test_samples_without_a_number_are_kept_and_not_counted() -> None:
    samples = mapped(seed=2).samples
    lost = {"at_least": 1e6}, {"reason": "it crashed"}
    without = [mapped(lambda _, why=why: why, of=GRID[:1]).samples[0] for why in lost]
    surface = mapped(of=(), earlier=[*samples, *without])
    assert surface.predict(GRID[0]).n == len(samples)
    assert len(surface.samples) == len(samples) + 2
    (notice,) = (each for each in surface.notices if each.code is Code.SAMPLES_WITHOUT_NUMBER)
    assert notice.evidence == {"samples": 14, "beyond": 1}


def test_of_several_responses_each_is_named() -> None:
    def both(point: Any) -> dict[str, Estimate]:
        return {"rate": known(rate_of(point)), "latency": known(1.0 / rate_of(point))}

    surface, point = mapped(both), {"threads": 4, "fs": "xfs"}
    product = surface.predict(point, "rate").value * surface.predict(point, "latency").value
    assert product == pytest.approx(1.0, rel=1e-3)
    for unnamed in ("speed", None):
        with pytest.raises(InvalidInput):
            surface.predict(point, unnamed)
    few = mapped(both, of=GRID[:4])
    assert [each.evidence["response"] for each in few.notices] == ["rate", "latency"]
    assert [each.sentence.partition(": ")[0] for each in few.notices] == ["rate", "latency"]


def test_the_best_point_follows_the_direction() -> None:
    highest = mapped(seed=4).best()
    assert highest.point == BEST
    assert highest.regret.low == 0.0 <= highest.regret.value <= highest.regret.high < 0.05
    assert mapped(seed=4, direction="lower").best().point == {"threads": 1, "fs": "xfs"}


def test_sensitivities_hold_true_ratios() -> None:
    found = mapped(lambda point: 50.0 * float(point["threads"]) ** 0.5, seed=6).sensitivities()
    assert found["threads"].low < math.sqrt(32.0) < found["threads"].high
    assert found["fs"].low < 1.0 < found["fs"].high


def test_configurations_change_places_where_they_do(surface: Any) -> None:
    ext4, xfs = ({"threads": 2, "fs": each} for each in ("ext4", "xfs"))
    (found,) = surface.crossovers(ext4, xfs)
    true = 25.0 / (0.12 * 95.0 - 0.05 * 120.0)  # 120 / (1 + .12 n) = 95 / (1 + .05 n)
    assert found.factor == "threads"
    assert found.at.low < true < found.at.high
    assert (found.below["fs"], found.above["fs"]) == ("ext4", "xfs")
    assert found.probability > 0.9
    (mirrored,) = surface.crossovers(xfs, ext4)
    assert mirrored.below == found.below
    assert surface.crossovers(xfs, {**xfs, "threads": 1}) == ()
    with pytest.raises(InvalidInput):
        surface.crossovers(xfs, xfs)


def test_a_point_that_is_asked_again_is_known_better_and_counts_once() -> None:
    once = mapped()
    again = mapped(earlier=[each for each in once.samples if each.sample.point == GRID[0]] * 3)
    assert again.predict(GRID[0]).n == len(GRID)
    assert again.predict(GRID[0]).half_width < once.predict(GRID[0]).half_width
    assert len(again.ranking()) == len(GRID)


def test_exact_answers_are_predicted_where_they_were_measured() -> None:
    surface = mapped(error=0.0)
    for point in GRID:
        assert surface.predict(point).value == pytest.approx(rate_of(point), rel=1e-3)


def test_a_sample_that_others_disturbed_counts_less_and_is_said() -> None:
    warning = Notice.of(
        Code.DISTURBED, who_="Other work", advice_="run it again", measured_percent=37.0
    )
    errors = []
    for notices in ((), (warning,)):

        def answer(point: Any, notices: Any = notices) -> Any:
            off = 0.7 if point == GRID[5] else 1.0
            return replace(known(off * rate_of(point), 0.01), notices=notices if off < 1.0 else ())

        surface = mapped(answer)
        errors.append(abs(surface.predict(GRID[5]).value / rate_of(GRID[5]) - 1.0))
    assert errors[1] < 0.1 < errors[0]
    assert Code.DISTURBED in {notice.code for notice in surface.notices}


def test_draws_have_the_moments_of_predictions(surface: Any) -> None:
    """Those from a quadratic have the tails of its few samples."""
    quadratic = mapped(of=(), earlier=surface.samples, model="quadratic")
    freedom = quadratic.predict(GRID[0]).n - 1
    for fitted, tails, rel in ((surface, 1.0, 0.03), (quadratic, freedom / (freedom - 2), 0.1)):
        mean, sd = fitted.predictions(GRID)
        drawn = fitted.draws(GRID, n=20_000)
        assert drawn.mean(axis=0) == pytest.approx(mean, abs=0.01)
        assert drawn.std(axis=0) == pytest.approx(sd * math.sqrt(tails), rel=rel)


def test_intervals_of_points_that_were_not_measured_hold_the_truth() -> None:
    held = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        kept = [GRID[index] for index in sorted(rng.choice(len(GRID), 8, replace=False))]
        surface = mapped(of=kept, seed=seed)
        for point in GRID:
            if point not in kept:
                found = surface.predict(point)
                held.append(found.low <= rate_of(point) <= found.high)
    assert np.mean(held) > 0.9


def test_left_out_points_have_what_the_others_predict(surface: Any) -> None:
    """The kernel is kept, so that a map without the point differs a little."""
    pairs = surface.left_out()
    misses = [abs(each.predicted.value / each.measured.value - 1.0) for each in pairs]
    assert np.mean(misses) == pytest.approx(surface.loo_error)
    assert pairs[0].predicted.method == surface.model
    assert surface.missed("response") == surface.loo_error
    kept = [each for each in surface.samples if each.sample.point != pairs[4].point]
    again = mapped(of=(), earlier=kept).predict(pairs[4].point)
    assert pairs[4].predicted.value == pytest.approx(again.value, rel=0.1)
    inside = [each.predicted.low <= each.measured.value <= each.predicted.high for each in pairs]
    assert sum(inside) >= len(pairs) - 1


@pytest.mark.parametrize(
    ("why", "best", "outside"),
    [
        (None, True, False),
        ({"at_most": 5.0}, False, True),
        ({"reason": "out of memory"}, False, False),
        ({"at_least": 500.0}, True, False),
    ],
)
def test_points_that_keep_no_limit_or_failed_are_not_the_best_ones(
    why: Any, *, best: bool, outside: bool
) -> None:
    rest = [point for point in GRID if point != BEST]
    lost = [] if why is None else mapped(lambda _: why, of=[BEST]).samples
    surface = mapped(of=rest, earlier=lost)
    assert (surface.best().point == BEST) == best
    assert [each.sample.point for each in surface.outside()] == [BEST] * outside


def test_a_point_that_was_measured_another_time_is_not_outside() -> None:
    lost = mapped(lambda _: {"at_most": 5.0}, of=[BEST]).samples
    measured = mapped(earlier=lost)
    assert (measured.best().point, measured.outside()) == (BEST, ())


@pytest.mark.parametrize("levels", ["ab", "abcdefghij"])
def test_a_category_without_an_effect_seldom_matters(levels: str):
    """Its best and its worst level are chosen from the same samples."""
    sizes = Factor("size", levels=[1, 2, 4], scale="log2")
    kinds, wrong = Factor("kind", levels=list(levels)), 0
    for seed in range(40):
        surface = mapped(
            lambda point: 100.0 * float(point["size"]),
            factors=[sizes, kinds],
            seed=[20391130, seed],
            error=0.03,
        )
        wrong += surface.sensitivities()["kind"].low > 1.0
    # More have a chance of 1.4 % at a share of 0.05.
    assert wrong <= 5


# --- hosts as effects: what is predicted is their mean, whichever of them measured a point

MANY = [Factor("threads", levels=[1, 2, 4, 8, 16, 32, 64, 128], scale="log2")]
POINTS = [{"threads": threads} for threads in MANY[0].levels]
PACES = {"elm": 1.2, "oak": 1.0, "fir": 0.8}
MEAN = math.prod(PACES.values()) ** (1 / 3)


def on_hosts(n: int = 16, *, paces: Any = PACES, untold: bool = False, **options: Any) -> Any:
    """Map, with hosts in turn, a rate that goes with the root of the threads."""
    names, found = [*paces], []
    for number in range(n):
        host = names[number % len(names)]
        (sample,) = mapped(
            lambda point, pace=paces[host]: 100.0 * float(point["threads"]) ** 0.5 * pace,
            of=[POINTS[(3 * number) % len(POINTS)]],
            factors=MANY,
            error=0.005,
            host=lambda _, host=host: None if untold else host,
        ).samples
        found.append(sample)
    if options.pop("reverse", False):
        found.reverse()
    return mapped(of=(), factors=MANY, earlier=found, **options)


RATES = np.array([100.0 * float(point["threads"]) ** 0.5 * MEAN for point in POINTS])


def test_the_mean_over_hosts_is_predicted() -> None:
    surface, alike = on_hosts(), on_hosts(interchangeable=True)
    value, low, high = surface.intervals(POINTS)
    assert np.abs(value / RATES - 1.0).max() < 0.03
    assert np.all((low <= RATES) & (high >= RATES))
    for name, pace in PACES.items():
        found = surface.hosts()[name]
        assert found.low <= pace / MEAN <= found.high
        assert found.value == pytest.approx(pace / MEAN, rel=0.03)
    assert np.abs(alike.intervals(POINTS)[0] / RATES - 1.0).max() > 0.05
    assert alike.hosts() == {}
    names = [each.name for each in on_hosts(24).ranking()]
    assert sorted(names) == sorted({*names})  # also of points that several hosts measured


def test_neither_one_host_nor_the_order_of_samples_changes_anything() -> None:
    alone, untold = (on_hosts(paces={"elm": 1.0}, untold=each) for each in (False, True))
    assert alone.hosts() == {}
    np.testing.assert_array_equal(alone.intervals(POINTS), untold.intervals(POINTS))
    one, other = (on_hosts(reverse=each).intervals(POINTS) for each in (False, True))
    np.testing.assert_allclose(one, other, rtol=1e-3)


def test_too_few_points_do_not_tell_hosts_from_configurations() -> None:
    surface = on_hosts(5)
    assert surface.hosts() == {}
    assert surface.model is not None


def test_a_map_whose_samples_all_failed_is_shown() -> None:
    search = SurfaceMap(FACTORS, seed=1, design="full")
    while (sample := search.ask()) is not None:
        search.tell(sample, None, reason="no answer")
    found = search.result()
    assert "failed, no answer" in str(found)
    assert "failed, no answer" in found._repr_html_()
