"""Why a series has no stable phase, its cuts, and refusals of detectors."""

import math
from collections.abc import Iterator

import numpy as np
import ruptures as rpt
from tests.texts.rendering import of_code, tried

from benchrigor.model import ChangePoints, Estimate, Notice
from benchrigor.stats import (
    ChangeDetector,
    detect_changes,
    estimate_invocations,
    estimate_mean,
    find_stable_phase,
)
from benchrigor.stats.changepoints.ruptures_adapter import RupturesDetector

FIFTY = [1.0] * 50


def levels(*pairs: tuple[float, int]) -> list[float]:
    return [level for level, count in pairs for _ in range(count)]


def noisy(*pairs: tuple[float, int]) -> np.ndarray:
    around = np.array(levels(*pairs))
    return around * np.random.default_rng(1).gamma(400.0, 1.0 / 400.0, around.size)


def between(pairs: tuple[tuple[float, int], ...], *indices: int, inflation: float = 1.0) -> object:
    """Return the texts about levels that somebody else cut."""
    series = levels(*pairs)
    points = ChangePoints(indices=indices, n=len(series), level=0.01, inflation=inflation)
    return find_stable_phase(series, change_points=points).notices


def points(**wrong: object) -> dict[str, object]:
    known = {"indices": (10,), "n": 50, "level": None, "inflation": 1.0}
    return {"change_points": ChangePoints(**(known | wrong))}


def of_mean(series: object) -> Iterator[Notice]:
    yield from estimate_mean(series, trim=True).notices


def of_invocations(pattern: np.ndarray) -> Estimate:
    rng = np.random.default_rng(13)
    return estimate_invocations(
        [pattern + 0.05 * rng.normal(size=200) for _ in range(10)], trim=True
    )


def cooling() -> list[np.ndarray]:
    """Return rounds; every other one is slower at an end of its own length."""
    rng, at = np.random.default_rng(36), np.arange(300)
    ends = 0.3 * (at >= 300 - rng.integers(10, 60, (16, 1))) * (np.arange(16) % 2)[:, None]
    return [*((1.0 + 0.5 * (at < 40) + ends) * rng.normal(1.0, 0.03, (16, 300)))]


class Unable:
    """It can cut nothing."""

    def fit(self, signal: object) -> None: ...

    def predict(self, pen: float) -> list[int]:
        raise ValueError("no such cut")


class Nearest(Unable):
    """Of another kind: it predicts from its input."""

    def predict(self, signal: object) -> list[int]:
        return []


BEND = np.r_[np.ones(100), 0.04 * np.cos(np.linspace(-np.pi / 2, np.pi / 2, 900))]
CAUSES = {
    "no segment holds half": lambda: find_stable_phase(levels((9, 30), (5, 40), (7, 30))).notices,
    "half is too few": lambda: estimate_mean(levels((5, 100), (2, 100)), trim=True, detector="edm"),
    "levels that rise": lambda: (
        find_stable_phase(levels((5, 100), (6, 100), (7, 100), (8, 100))).notices
    ),
    "levels that fall": lambda: (
        find_stable_phase(levels((8, 100), (7, 100), (6, 100), (5, 100))).notices
    ),
    "levels that move at the end": lambda: (
        find_stable_phase(levels((5, 300), (6, 60), (7, 60), (8, 60))).notices
    ),
    "a change inside": lambda: between(((5, 50), (9, 50)), 10),
    "many changes inside": lambda: between(tuple((5 + at % 2, 20) for at in range(9))),
    "a phase that bends": lambda: (
        find_stable_phase(
            BEND + 0.1 * np.random.default_rng(1).normal(size=1_000),
            change_points=ChangePoints(indices=(100,), n=1_000, level=0.01, inflation=1.0),
        ).notices
    ),
    "few effective readings": lambda: between(((5, 100),), inflation=40.0),
    "a random walk": lambda: (
        find_stable_phase(
            100.0 + np.random.default_rng([1_000, 2]).normal(size=1_000).cumsum()
        ).notices
    ),
    "a mean of what climbs": lambda: estimate_mean(
        np.r_[np.ones(550), np.linspace(1.0, 2.0, 450)] * noisy((1.0, 1_000)), trim=True
    ),
    "a slow start and end": lambda: of_mean(noisy((1.3, 200), (1.0, 650), (5.0, 150))),
    "a last few at another level": lambda: of_mean(noisy((1.0, 600), (1.5, 6))),
    "a first few at another level": lambda: of_mean(noisy((1.0, 600), (1.5, 6))[::-1]),
    "a pace that changes": lambda: of_mean(noisy((1.0, 300), (1.4, 300), (1.0, 300), (1.3, 300))),
    "a pace that moves without steps": lambda: of_mean(
        (1.0 + 0.008 * np.sin(np.linspace(0.0, 3.0 * np.pi, 1_000)))
        * np.random.default_rng(13).normal(1.0, 0.01, 1_000)
    ),
    "invocations that are cut one by one": lambda: (
        of_invocations(1.0 + 0.3 * (np.arange(200) < 130)).notices
    ),
    "invocations, half of them with a cool-down": lambda: of_code(
        "cut-one-by-one", estimate_invocations(cooling(), trim=True).notices
    ),
    "invocations that rise": lambda: of_invocations(1.0 + 0.2 * np.arange(200) / 200),
    "few invocations that are restless": lambda: estimate_invocations(
        np.random.default_rng(16).normal(1.0, 0.02, (3, 300)) * np.repeat([1.0, 2.0, 3.0], 100),
        trim=True,
    ),
    "an invocation that is nothing but warm-up": lambda: (
        estimate_invocations(
            [
                *(1.0 + 0.5 * (np.arange(200) < 30) + noisy((1.0, 200)) for _ in range(9)),
                FIFTY[:20],
            ],
            trim=True,
        ).notices
    ),
    "options of phases": lambda: tried(
        lambda **wrong: find_stable_phase(FIFTY, **wrong),
        {"materiality": -0.1},
        {"materiality": math.nan},
        {"materiality": "1 %"},
        {"level": 0.0},
        points(n=7),
        points(inflation=0.0),
        points(indices=(10.5,)),
        points(indices=(20, 10)),
    ),
    "options of change points": lambda: tried(
        lambda **wrong: detect_changes(FIFTY, **wrong),
        {"level": 0},
        {"level": math.nan},
        {"level": True},
        {"level": "low"},
        {"min_segment": 1},
        {"min_segment": 10.0},
        {"min_segment": True},
        {"method": "other"},
        {"level": 2.0, "min_segment": 0},
    ),
    "options of a growing series": lambda: ChangeDetector(level=1, min_segment=1),
    "an estimator that cannot cut": lambda: RupturesDetector(Unable(), pen=7.0)(np.arange(100.0)),
    "not an estimator": lambda: tried(
        lambda estimator, pen: RupturesDetector(estimator, pen=pen),
        (rpt.Pelt, None),
        (len, None),
        (rpt.Pelt().fit(np.zeros((9, 1))), None),
        (Nearest(), None),
        (rpt.Dynp(), None),
        (rpt.Binseg(), 0.0),
        (rpt.Binseg(), math.nan),
        (rpt.Binseg(), "high"),
        (rpt.Binseg(), True),
        (rpt.Pelt, -1.0),
    ),
}
