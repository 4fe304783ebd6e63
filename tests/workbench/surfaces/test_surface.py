"""Surfaces: predictions, the best point, what matters, and where configurations change places."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from known_maps import known

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Notice
from benchrigor.workbench import Factor
from benchrigor.workbench.surfaces.factors import Point, Space
from benchrigor.workbench.surfaces.samples import Measured, Sample
from benchrigor.workbench.surfaces.surface import Surface, fit_surface

SPACE = Space(
    [
        Factor("threads", levels=[1, 2, 4, 8, 16, 32], scale="log2"),
        Factor("fs", levels=["ext4", "xfs"]),
    ]
)
ERROR = 0.02


def rate_of(point: Point) -> float:
    """Return the true answer: xfs gains more of threads."""
    threads = float(point["threads"])
    speed, contention = (120.0, 0.12) if point["fs"] == "ext4" else (95.0, 0.05)
    return speed * threads / (1.0 + contention * threads)


def measured(
    points: Sequence[Point],
    answer: Callable[[Point], float] = rate_of,
    *,
    seed: int | None = None,
    error: float = ERROR,
) -> list[Measured]:
    rng = np.random.default_rng(seed)
    noise = rng.normal(0.0, error, len(points)) if seed is not None else np.zeros(len(points))
    return [
        Measured(
            sample=Sample(id=index, point=point),
            estimates={"rate": known(answer(point) * math.exp(off), error)},
        )
        for index, (point, off) in enumerate(zip(points, noise.tolist(), strict=True))
    ]


@pytest.fixture(scope="module")
def surface() -> Surface:
    return fit_surface(SPACE, measured(SPACE.grid()[::2] + SPACE.grid()[1::4], seed=1))


def test_a_prediction_holds_the_truth_between_levels(surface: Surface) -> None:
    for point in ({"threads": 3, "fs": "ext4"}, {"threads": 32, "fs": "xfs"}):
        found = surface.predict(point)
        assert found.low < rate_of(point) < found.high
        assert found.relative_half_width < 0.35
        assert found.degrees_of_freedom == math.inf


@pytest.mark.parametrize(
    "point", [{"threads": 64, "fs": "xfs"}, {"threads": 2, "fs": "zfs"}, {"threads": 2}]
)
def test_a_point_of_no_map_is_refused(surface: Surface, point: Point) -> None:
    with pytest.raises(InvalidInput):
        surface.predict(point)


def test_too_few_samples_give_a_notice_and_no_number() -> None:
    surface = fit_surface(SPACE, measured(SPACE.grid()[:4]))
    assert (surface.model, surface.loo_error) == (None, None)
    assert [each.code for each in surface.notices] == [Code.TOO_FEW_SAMPLES]
    for ask in (surface.best, surface.sensitivities):
        with pytest.raises(NotEstimable):
            ask()
    assert len(surface.ranking()) == 4
    with pytest.raises(NotEstimable):
        fit_surface(SPACE, []).best()


def test_samples_without_a_number_are_kept_and_not_counted() -> None:
    samples = measured(SPACE.grid(), seed=2)
    lost = [
        Measured(sample=Sample(id=20, point=SPACE.grid()[0]), at_least=1e6),
        Measured(sample=Sample(id=21, point=SPACE.grid()[1]), reason="it crashed"),
    ]
    surface, without = fit_surface(SPACE, [*samples, *lost]), fit_surface(SPACE, samples)
    point = SPACE.grid()[0]
    assert surface.predict(point) == without.predict(point)
    assert len(surface.samples) == len(samples) + 2
    notice = next(each for each in surface.notices if each.code is Code.SAMPLES_WITHOUT_NUMBER)
    assert notice.evidence == {"samples": 14, "beyond": 1}


def test_wrong_samples_are_all_named() -> None:
    samples = measured(SPACE.grid())
    bad = [
        Measured(sample=Sample(id=30, point={"threads": 1, "fs": "zfs"})),
        Measured(sample=Sample(id=31, point=SPACE.grid()[0]), estimates={"rate": known(-3.0)}),
    ]
    with pytest.raises(InvalidInput) as caught:
        fit_surface(SPACE, [*samples, *bad], confidence=1.0, direction="up")
    assert len(caught.value.problems) == 4


def test_one_of_several_responses_is_named() -> None:
    samples = [
        Measured(
            sample=each.sample,
            estimates={**each.estimates, "latency": known(1.0 / each.estimates["rate"].value)},
        )
        for each in measured(SPACE.grid(), seed=3)
    ]
    surface = fit_surface(SPACE, samples)
    point = {"threads": 4, "fs": "xfs"}
    product = surface.predict(point, "rate").value * surface.predict(point, "latency").value
    assert product == pytest.approx(1.0, rel=1e-3)
    with pytest.raises(InvalidInput):
        surface.predict(point)
    assert fit_surface(SPACE, samples, responses=["latency"]).predict(point).value < 1.0


def test_notices_name_their_response_where_there_are_several() -> None:
    samples = measured(SPACE.grid()[:4])
    both = [
        Measured(sample=each.sample, estimates={**each.estimates, "latency": known(2.0)})
        for each in samples
    ]
    (alone,) = fit_surface(SPACE, samples).notices
    notices = fit_surface(SPACE, both).notices
    assert [each.sentence for each in notices] == [
        f"{name}: {alone.sentence}" for name in ("rate", "latency")
    ]
    assert [each.evidence["response"] for each in notices] == ["rate", "latency"]


def test_the_best_point_follows_the_direction() -> None:
    samples = measured(SPACE.grid(), seed=4)
    highest = fit_surface(SPACE, samples).best()
    assert highest.point == {"threads": 32, "fs": "xfs"}
    assert highest.regret.low == 0.0 <= highest.regret.value <= highest.regret.high < 0.05
    lowest = fit_surface(SPACE, samples, direction="lower").best()
    assert lowest.point == {"threads": 1, "fs": "xfs"}


def test_the_unit_of_the_answer_changes_nothing_else() -> None:
    one, thousand = (
        fit_surface(SPACE, measured(SPACE.grid(), lambda p, k=k: k * rate_of(p), seed=5))
        for k in (1.0, 1000.0)
    )
    point = {"threads": 6, "fs": "ext4"}
    assert thousand.predict(point).value == pytest.approx(1000.0 * one.predict(point).value)
    assert thousand.loo_error == pytest.approx(one.loo_error)


def test_sensitivities_hold_true_ratios() -> None:
    def separable(point: Point) -> float:
        return 50.0 * float(point["threads"]) ** 0.5

    found = fit_surface(SPACE, measured(SPACE.grid(), separable, seed=6)).sensitivities()
    assert found["threads"].low < math.sqrt(32.0) < found["threads"].high
    assert found["fs"].low < 1.0 < found["fs"].high


def test_configurations_change_places_where_they_do(surface: Surface) -> None:
    ext4, xfs = ({"threads": 2, "fs": each} for each in ("ext4", "xfs"))
    (found,) = surface.crossovers(ext4, xfs)
    true = 25.0 / (0.12 * 95.0 - 0.05 * 120.0)  # 120 / (1 + .12 n) = 95 / (1 + .05 n)
    assert found.factor == "threads"
    assert found.at.low < true < found.at.high
    assert (found.below["fs"], found.above["fs"]) == ("ext4", "xfs")
    assert found.probability > 0.9
    (mirrored,) = surface.crossovers(xfs, ext4)
    assert mirrored.below == found.below
    with pytest.raises(InvalidInput, match="different"):
        surface.crossovers(xfs, xfs)


def test_configurations_that_keep_their_places_have_no_crossover(surface: Surface) -> None:
    one, two = ({"threads": each, "fs": "xfs"} for each in (1, 2))
    assert surface.crossovers(one, two) == ()


def test_a_point_that_is_asked_again_is_known_better_and_counts_once() -> None:
    grid = SPACE.grid()
    once = fit_surface(SPACE, measured(grid))
    again = fit_surface(SPACE, measured([*grid, grid[0], grid[0], grid[0]]))
    assert again.predict(grid[0]).n == len(grid)
    assert again.predict(grid[0]).half_width < once.predict(grid[0]).half_width
    assert len(again.ranking()) == len(grid)


def test_exact_answers_are_predicted_where_they_were_measured() -> None:
    surface = fit_surface(SPACE, measured(SPACE.grid(), error=0.0))
    for point in SPACE.grid():
        assert surface.predict(point).value == pytest.approx(rate_of(point), rel=1e-3)


def test_a_sample_that_others_disturbed_counts_less_and_is_said() -> None:
    samples = measured(SPACE.grid(), error=0.01)
    off = samples[5].estimates["rate"]
    warning = Notice.warning(Code.DISTURBED, "Other work.", measured_percent=37.0)
    wrong, told = (
        replace(off, value=off.value * 0.7, low=off.low * 0.7, high=off.high * 0.7, notices=notices)
        for notices in ((), (warning,))
    )
    point, errors = samples[5].sample.point, []
    for estimate in (wrong, told):
        samples[5] = replace(samples[5], estimates={"rate": estimate})
        surface = fit_surface(SPACE, samples)
        errors.append(abs(surface.predict(point).value / rate_of(point) - 1.0))
    assert errors[1] < 0.1 < errors[0]
    assert Code.DISTURBED in {notice.code for notice in surface.notices}


@pytest.mark.slow
def test_equal_answers_have_no_effect_of_any_factor() -> None:
    surfaces = (
        fit_surface(SPACE, measured(SPACE.grid(), lambda _: 7.0, seed=seed)) for seed in range(12)
    )
    ratios = [ratio for each in surfaces for ratio in each.sensitivities().values()]
    assert sum(ratio.low > 1.0 for ratio in ratios) <= 3  # of 24, at 95 %
    assert all(ratio.low < 1.03 for ratio in ratios)


def test_draws_have_the_moments_of_predictions(surface: Surface) -> None:
    points = SPACE.grid()
    mean, sd = surface.predictions(points)
    drawn = surface.draws(points, 20_000, np.random.default_rng(1))
    assert drawn.mean(axis=0) == pytest.approx(mean, abs=0.01)
    assert drawn.std(axis=0) == pytest.approx(sd, rel=0.03)


def test_draws_from_a_quadratic_have_the_tails_of_its_few_samples(surface: Surface) -> None:
    points = SPACE.grid()
    quadratic = fit_surface(SPACE, surface.samples, model="quadratic")
    _, sd = quadratic.predictions(points)
    drawn = quadratic.draws(points, 20_000, np.random.default_rng(1))
    freedom = quadratic.predict(points[0]).n - 1
    assert drawn.std(axis=0) == pytest.approx(sd * math.sqrt(freedom / (freedom - 2)), rel=0.1)


@pytest.mark.slow
def test_intervals_of_points_that_were_not_measured_hold_the_truth() -> None:
    grid, held = SPACE.grid(), []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        kept = [grid[index] for index in sorted(rng.choice(len(grid), 8, replace=False))]
        surface = fit_surface(SPACE, measured(kept, seed=seed))
        for point in grid:
            if point not in kept:
                found = surface.predict(point)
                held.append(found.low <= rate_of(point) <= found.high)
    assert np.mean(held) > 0.9


def test_left_out_points_have_what_the_others_predict(surface: Surface) -> None:
    """The kernel is kept, so that a map without the point differs a little."""
    pairs = surface.left_out()
    misses = [abs(each.predicted.value / each.measured.value - 1.0) for each in pairs]
    assert np.mean(misses) == pytest.approx(surface.loo_error)
    assert pairs[0].predicted.method == surface.model
    assert surface.missed("rate") == surface.loo_error
    kept = [each for each in surface.samples if each.sample.point != pairs[4].point]
    again = fit_surface(SPACE, kept).predict(pairs[4].point)
    assert pairs[4].predicted.value == pytest.approx(again.value, rel=0.1)
    inside = [each.predicted.low <= each.measured.value <= each.predicted.high for each in pairs]
    assert sum(inside) >= len(pairs) - 1


def lost_at(point: Point, **why: Any) -> Measured:
    return Measured(sample=Sample(id=99, point=point), **why)


def test_points_that_keep_no_limit_or_failed_are_not_the_best_ones() -> None:
    points = SPACE.grid()
    best = {"threads": 32, "fs": "xfs"}
    rest = measured([point for point in points if point != best])
    assert fit_surface(SPACE, rest).best().point == best
    for why in ({"at_most": 5.0}, {"reason": "out of memory"}):
        surface = fit_surface(SPACE, [*rest, lost_at(best, **why)])
        assert surface.best().point != best
        assert [each.sample.point for each in surface.outside()] == [best] * ("at_most" in why)
    beyond = fit_surface(SPACE, [*rest, lost_at(best, at_least=500.0)])
    assert (beyond.best().point, beyond.outside()) == (best, ())


def test_a_point_that_was_measured_another_time_is_not_outside() -> None:
    best = {"threads": 32, "fs": "xfs"}
    surface = fit_surface(SPACE, [*measured(SPACE.grid()), lost_at(best, at_most=5.0)])
    assert surface.outside() == ()
    assert surface.best().point == best
    assert (surface.factors, surface.responses) == (tuple(SPACE.factors), ("rate",))


@pytest.mark.slow
def test_a_category_without_an_effect_seldom_matters():
    """Its best and its worst level are chosen from the same samples, of ten levels."""
    rng = np.random.default_rng(20391130)
    space = Space(
        [Factor("size", levels=[1, 2, 4], scale="log2"), Factor("kind", levels=list("abcdefghij"))]
    )
    wrong = 0
    for _ in range(40):
        measured = []
        for index, point in enumerate(space.grid()):
            answer = known(100.0 * float(point["size"]) * math.exp(rng.normal(0.0, 0.03)), 0.03)
            sample = Sample(id=index, point=point)
            measured.append(Measured(sample=sample, estimates={"rate": answer}))
        effect = fit_surface(space, measured).sensitivities()["kind"]
        wrong += effect.low > 1.0
    # More have a chance of 1.4 % at a share of 0.05.
    assert wrong <= 5


def test_intervals_of_many_points_are_those_of_each(surface: Surface) -> None:
    points = SPACE.grid()
    value, low, high = surface.intervals(points)
    each = [surface.predict(point) for point in points]
    assert value == pytest.approx([found.value for found in each])
    assert low == pytest.approx([found.low for found in each])
    assert high == pytest.approx([found.high for found in each])
