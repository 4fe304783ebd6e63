"""What comparisons, lines of work, and interference say and refuse."""

import math

import numpy as np
from tests.texts.causes.stats import NORMAL, PILOT
from tests.texts.rendering import of_code, tried

from benchrigor.model import Comparison, Estimate, SegmentProfile
from benchrigor.stats import (
    compare,
    estimate_interference,
    estimate_mean,
    fit_wps,
    light_of,
    profile_interference,
    rank,
)
from benchrigor.stats.comparison.two_sample import family_of

SERIES = [1.0, 1.1, 1.2]
WORK = np.random.default_rng(3).permutation(np.linspace(1.0, 10.0, 40))
RNG = np.random.default_rng(8)
NOISE = 0.01 * RNG.normal(size=40)


def invocations(values: np.ndarray) -> list[np.ndarray]:
    return [np.array([value]) for value in values]


def exactly(low: float, high: float) -> Estimate:
    return Estimate(
        value=low, low=low, high=high, confidence=0.95, n=9, n_effective=9.0, method="any"
    )


def said(found: Comparison) -> list[object]:
    return [str(found), *found.notices]


def outlying(by: float, *, slope: float = 1.0) -> object:
    """Return the texts about a line that misses the rounds with most work."""
    duration = 0.6 + slope * WORK + NOISE
    duration[np.argsort(WORK)[-2:]] += by
    return fit_wps(WORK, duration).notices


def texts_of_line(low: float, high: float, noise: float, *, n: int = 40) -> object:
    """Return the texts about a line through amounts between two, with noise."""
    work = np.random.default_rng(3).permutation(np.linspace(low, high, n))
    return fit_wps(
        work, 1.0 + work * (1.0 + noise * np.random.default_rng(7).normal(size=n))
    ).notices


def two_sides() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(8)
    one, two = (rng.lognormal(0.0, 0.05, 15) for _ in range(2))
    one[4] *= 100.0
    return one, two


def part_levels() -> tuple[np.ndarray, np.ndarray]:
    one, two = np.random.default_rng(6).normal(1.0, 0.02, (2, 1_000))
    one[:480] += 1.0
    two[520:] += 1.0
    return one, two


def stall_one_side() -> tuple[np.ndarray, np.ndarray]:
    one, two = 1.0 + 0.01 * np.random.default_rng(20271123).standard_normal((2, 1_000))
    two[300:400] *= 1.5
    return one, two


def leaking() -> tuple[np.ndarray, np.ndarray]:
    old, new = np.random.default_rng(20271123).normal(1.0, 0.01, (2, 1_000))
    return old, new * np.linspace(1.0, 2.0, 1_000)


CAUSES = {
    "sides that are not valid": lambda: tried(
        compare,
        ([SERIES, [1.0, math.inf]], SERIES),
        ([SERIES, 3.0], SERIES),
        ("fast", SERIES),
        (SERIES, np.ones((2, 2, 2))),
        (exactly(math.nan, 1.0), SERIES),
        (exactly(2.0, 1.0), SERIES),
    ),
    "options of a comparison": lambda: tried(
        lambda **options: compare(SERIES, SERIES, **options),
        {"margin": True},
        {"margin": math.inf},
        {"margin": "few"},
        {"statistic": "p100", "confidence": 1.0, "margin": -0.1, "direction": "up"},
    ),
    "sides that are not pairs": lambda: tried(
        lambda one, two: compare(one, two, paired=True),
        (SERIES, [*SERIES, 1.0]),
        ([SERIES] * 2, [SERIES] * 3),
        ([SERIES] * 3, SERIES),
        (PILOT, SERIES),
    ),
    "one reading a side": lambda: compare([1.0], [2.0]),
    "one pair": lambda: compare([1.0], [2.0], paired=True),
    "readings that are all 0": lambda: tried(
        lambda one, two, paired: compare(one, two, paired=paired),
        (NORMAL, 0.0 * NORMAL, False),
        (0.0 * NORMAL, NORMAL, True),
    ),
    "a median of 0": lambda: said(compare(SERIES * 20, [0.0, 0.0, 1.0] * 20, statistic="median")),
    "single processes": lambda: said(compare(NORMAL, 1.1 * NORMAL[::-1])),
    "a single process and several": lambda: said(compare(NORMAL, invocations(NORMAL[:12]))),
    "few invocations of one side": lambda: said(
        compare(invocations(NORMAL[:12]), invocations(NORMAL[:4]))
    ),
    "a baseline around 0": lambda: said(compare(NORMAL - 10.0, NORMAL)),
    "a ratio without a limit": lambda: said(compare(*two_sides(), paired=True)),
    "a ratio without a limit the other way": lambda: said(compare(*two_sides()[::-1], paired=True)),
    "invocations without a steady state": lambda: compare(
        *[[np.repeat([1.0, 2.0, 3.0], 100) * (1.0 + 0.001 * seed) for seed in range(3)]] * 2,
        trim=True,
    ),
    **{
        f"pairs in which {how}": lambda sides=sides: said(compare(*sides(), paired=True, trim=True))
        for how, sides in {
            "no part is stable": part_levels,
            "one side stalls": stall_one_side,
            "one side leaks": leaking,
        }.items()
    },
    "a family with members that have no ratio": lambda: str(
        family_of(
            {
                "good": compare(invocations(NORMAL[:12]), invocations(NORMAL[20:32])),
                "zero": compare(NORMAL - 10.0, NORMAL - 10.0),
            }
        )
    ),
    "not a ranking": lambda: tried(
        rank,
        ({},),
        ([compare(SERIES, SERIES)] * 9,),
        {"results": {"a": []}, "statistic": "mode", "confidence": 0.0, "direction": "up"},
        ({"a": NORMAL, "b": 0.0 * NORMAL},),
    ),
    "rounds that are not valid": lambda: tried(
        fit_wps,
        ([1.0, 2.0, 0.0], [1.0] * 3),
        ([1.0, math.nan, 2.0], [1.0] * 3),
        ([1.0, 2.0, 1e301], [1.0] * 3),
        ([1.0, "2", 3.0], [1.0] * 3),
        ([1.0, (2.0, 3.0), 3.0], [1.0] * 3),
        ("123", [1.0] * 3),
        (5.0, [1.0] * 3),
        (SERIES, [1.0, -0.5, 1.0]),
        (SERIES, [1.0, math.inf, 1.0]),
        (SERIES, [1.0, 2.0]),
        ([], [1.0, 2.0]),
    ),
    "options of a line": lambda: tried(
        lambda **options: fit_wps(WORK, WORK, **options),
        {"confidence": 7},
        {"estimator": 7},
        {"method": np.array([1, 2])},
    ),
    "rounds that determine no line": lambda: tried(
        fit_wps,
        ([1.0, 2.0], [1.0, 2.0]),
        ([3.0] * 4, [1.0, 2.0, 1.0, 1.0]),
        ([3.0, 3.0, 9.0, 3.0], [1.0, 2.0, 1.0, 1.0]),
        (SERIES, [0.0, 0.0, 0.0]),
    ),
    "a line that rests on one subsession": lambda: fit_wps(
        [1.0, 2.0, 3.0, 4.0, *[1.0] * 96],
        9.0 + np.sin(np.arange(100) / 9.0) + np.r_[0.0:4.0, np.ones(96)],
        method="subsessions",
    ),
    "residuals that no merging makes independent": lambda: fit_wps(
        np.linspace(0.1, 4.0, 12), 9.0 + np.sin(np.linspace(0.1, 4.0, 12)), method="subsessions"
    ),
    "pairs that no merging makes independent": lambda: fit_wps(
        np.linspace(1.0, 4.0, 12),
        np.linspace(1.0, 4.0, 12) * np.linspace(1.0, 3.0, 12),
        method="merged-subsessions",
    ),
    "work that makes no difference": lambda: (
        fit_wps(WORK, 1.0 + np.random.default_rng(1).random(40)).notices
    ),
    "most rounds on a robust line": lambda: (
        fit_wps(range(1, 13), np.r_[1.0:5.0, 5.1, 6.0:13.0], estimator="robust").notices
    ),
    "a duration that grows faster": lambda: fit_wps(WORK, (1.0 + NOISE) * WORK**2).notices,
    "rounds far from the line": lambda: outlying(0.2),
    "rounds that make the speed higher": lambda: outlying(-5.0),
    "rounds that make the speed lower": lambda: outlying(5.0),
    "rounds that alone make a speed": lambda: outlying(0.3, slope=-0.001),
    "a line that predicts badly": lambda: texts_of_line(1.0, 10.0, 0.3),
    "amounts that are too similar": lambda: texts_of_line(9.0, 10.0, 0.0001),
    "a speed that is hardly known": lambda: texts_of_line(5.0, 10.5, 0.15, n=10),
    "few rounds": lambda: texts_of_line(1.0, 10.0, 0.01, n=9),
    "a line without a doubt": lambda: texts_of_line(1.0, 10.0, 0.01, n=10),
    "amounts that rise": lambda: (
        fit_wps(np.sort(WORK), (1.0 + NOISE) * (1.0 + np.sort(WORK))).notices
    ),
    "a run of segments that is not valid": lambda: tried(
        lambda **wrong: estimate_interference(
            **{"duration_s": [1.0, 2.0], "features": {}, **wrong}
        ),
        {"duration_s": [1.0, -1.0]},
        {"duration_s": [0.0, 0.0]},
        {"duration_s": [1.0, math.nan]},
        {"duration_s": []},
        {"features": {"w": [1.0]}},
        {"features": {"w": [1.0, math.inf]}},
        {"features": [1.0, 2.0]},
        {"nominal": "kind"},
        {"nominal": {"k": [1, 2, 3]}},
        {"delay_s": [0.0, -0.5]},
        {"delay_s": [0.0]},
        {"reference": [1.0]},
        {"reference": SegmentProfile(duration_s=[1.0], computation={"w": [1.0]})},
        {"reference": SegmentProfile(duration_s=[1.0], nominal={"k": [1.0]})},
        {"duration_s": [1.0, -1.0], "features": {"w": [1.0]}, "delay_s": [-1.0, 0.0]},
    ),
    "not a profile": lambda: profile_interference(3),
    "no light without a number": lambda: light_of(math.nan),
    "few segments": lambda: estimate_interference([1.0, 1.0, 1.0, 5.0], {}).notices,
    "segments like few others": lambda: of_code(
        "unclustered-segments",
        estimate_interference([1.0] * 50 + [9.0] * 4, {"work": [1.0] * 50 + [9.0] * 4}).notices,
    ),
    "as many segments a second as there may be, and more": lambda: [
        of_code("high-segment-rate", estimate_interference([each_s] * 50, {}).notices)
        for each_s in (0.0011, 0.0009)
    ],
    "what recording may cost, and more": lambda: [
        of_code("recording-cost", profile_interference(profile).notices)
        for cost_s in (None, "0.5", 0.39, 0.41)
        for profile in [SegmentProfile(duration_s=[1.0] * 10, facts={"recording_cost_s": cost_s})]
    ],
    "segments of two kinds": lambda: (
        estimate_interference(
            np.where(np.arange(1_000) % 5 == 0, 1.43, 1.0) * np.tile([0.99, 1.0, 1.01, 1.0], 250),
            {"work": np.where(np.arange(1_000) % 5 == 0, 1.05, 1.0) * np.tile([1.0, 1.001], 500)},
        ).notices
    ),
    "a baseline as an estimate": lambda: said(compare(estimate_mean(NORMAL), 1.2 * NORMAL)),
}
