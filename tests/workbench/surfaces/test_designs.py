"""Designs of maps: the choice of points, their order, and where their searches begin."""

import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrigor.errors import MissingExtra
from benchrigor.workbench import Factor, SurfaceMap, designs

DISKS = Factor("disks", levels=[1, 2, 3, 4])
DAEMONS = Factor("daemons", levels=[1, 2, 4, 8, 16, 32, 64, 100], scale="log2")
SYSTEM = Factor("fs", levels=["ext4", "xfs", "zfs"])
SERVERS, SPACE = [DISKS, DAEMONS], [DISKS, SYSTEM]


def points_of(factors: Any, **options: Any) -> list[dict[str, Any]]:
    """Return the points of a first design, in their order."""
    return [dict(sample.point) for sample in SurfaceMap(factors, **options).planned()]


def optimal(factors: Any, samples: int, seed: int = 1) -> list[dict[str, Any]]:
    return points_of(factors, design="d-optimal", samples=samples, seed=seed)


def model_of(factors: Any, points: list[dict[str, Any]]) -> np.ndarray:
    return np.column_stack([np.ones(len(points)), SurfaceMap(factors).space.terms(points)])


def determinant(factors: Any, points: list[dict[str, Any]]) -> float:
    model = model_of(factors, points)
    return float(np.linalg.det(model.T @ model))


def test_the_terms_of_a_model_are_independent_and_balanced() -> None:
    factors = [DISKS, Factor("daemons", levels=[1, 10, 100], scale="log10"), SYSTEM]
    points = points_of(factors, design="full")
    model = model_of(factors, points)
    # 1, 1 + 1 + 2 effects, 1 + 2 + 2 products, 2 squares
    assert (model.shape, np.linalg.matrix_rank(model)) == ((36, 12), 12)
    assert np.abs(model[:, 1:5].sum(axis=0)).max() < 1e-12
    assert sorted(model_of([Factor("a", [1, 2])], [{"a": 1}, {"a": 2}])[:, 1:]) == [[-1], [1]]
    origin = {"disks": 1, "daemons": 1, "fs": "ext4"}
    others = [origin | {"disks": 4}, origin | {"fs": "zfs"}, origin | {"daemons": 10}]
    assert SurfaceMap(factors).space.distances(others, origin).tolist() == [2.0, 2.0, 1.0]


def test_twenty_starts_find_the_best_six_of_32_points() -> None:
    """So much has the best of all 906,192 choices."""
    for seed in range(3):
        assert determinant(SERVERS, optimal(SERVERS, 6, seed)) >= 0.999 * 258.2573


def test_more_candidates_than_a_start_looks_at_cost_little_of_the_determinant(monkeypatch):
    """The best that exchanges of single points reach from 20 random designs (Fedorov 1972)."""
    monkeypatch.setattr(designs, "_STARTS", 2)
    factors = [Factor("a", range(10)), Factor("b", range(8)), Factor("c", range(4))]
    found = determinant(factors, optimal(factors, 12))
    assert (found / 18_787_435.0) ** (1 / 10) >= 0.98  # D-efficiency, of ten terms


@pytest.mark.parametrize(
    ("factors", "samples"),
    [
        (SPACE, 7),  # as many as terms
        (SPACE, 12),  # as many as points
        ([SYSTEM], 3),
        ([Factor("a", [1, 1.001, 1e6], scale="log10"), SYSTEM], 9),
        (  # 48 of 180
            [Factor("a", list("abcdef")), Factor("b", list("uvwxyz")), Factor("c", range(5))],
            48,
        ),
    ],
)
def test_a_design_has_different_points_that_tell_each_term(factors, samples, monkeypatch):
    monkeypatch.setattr(designs, "_MOST_DETERMINANTS", 10_000)  # that takes one start 1 s
    design = optimal(factors, samples, seed=3)
    assert len({tuple(point.values()) for point in design}) == samples
    assert all(point in points_of(factors, design="full") for point in design)
    model = model_of(factors, design)
    assert np.linalg.matrix_rank(model) == model.shape[1]


def test_without_pydoe_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydoe", None)
    with pytest.raises(MissingExtra, match=r"benchrigor\[workbench\]"):
        optimal(SPACE, 7)


@st.composite
def spaces(draw):
    factors = []
    for name in "abc"[: draw(st.integers(1, 3))]:
        levels = draw(st.permutations(range(1, draw(st.integers(2, 5)) + 1)))
        scale = draw(st.sampled_from(["linear", "log2", "category"]))
        change_s, workload = draw(st.sampled_from([0.0, 1.0, 60.0])), draw(st.booleans())
        factors.append(Factor(name, levels, scale=scale, change_s=change_s, workload=workload))
    return factors


def changes(points: list[dict[str, Any]], name: str) -> int:
    levels = [point[name] for point in points]
    return sum(one != other for one, other in pairwise(levels))


@given(spaces())
@settings(deadline=None, max_examples=15)
def test_the_dearest_level_never_comes_back_and_all_points_differ_by_one_step(factors):
    """On a full grid, by one level of one factor; of fewer points the dearest has its order."""
    dearest = min(factors, key=lambda factor: (-factor.change_s, factor.workload))
    order, fewer = points_of(factors, design="full"), points_of(factors)
    ranks = {factor.name: sorted(factor.levels, key=factor.coded) for factor in factors}
    for one, other in pairwise(order):
        steps = [abs(ranks[name].index(one[name]) - ranks[name].index(other[name])) for name in one]
        assert sum(steps) == 1
    for points in (order, fewer):
        levels = {point[dearest.name] for point in points}
        assert changes(points, dearest.name) == len(levels) - 1
        assert len({tuple(point.values()) for point in points}) == len(points)


MORE = [Factor("disks", levels=[1, 2, 3, 4, 5]), SYSTEM]
XFS = [({"disks": 1, "fs": "xfs"}, 100.0), ({"disks": 5, "fs": "xfs"}, 400.0)]
ZFS = ({"disks": 2, "fs": "zfs"}, 220.0)


@pytest.mark.parametrize(
    ("factors", "finished", "point", "seed_load"),
    [
        (MORE, [], {"disks": 1, "fs": "xfs"}, None),
        (MORE, XFS, {"disks": 2, "fs": "xfs"}, 100.0),
        (MORE, XFS, {"disks": 4, "fs": "xfs"}, 400.0),
        (MORE, XFS, {"disks": 3, "fs": "xfs"}, 100.0),  # as near, and told before
        (MORE, [*XFS, ZFS], {"disks": 2, "fs": "ext4"}, 220.0),
        (MORE, [*XFS, ZFS], {"disks": 2, "fs": "xfs"}, 100.0),
        (  # by the scale of a factor
            SERVERS,
            [({"disks": 1, "daemons": 4}, 10.0), ({"disks": 1, "daemons": 32}, 20.0)],
            {"disks": 1, "daemons": 16},
            20.0,
        ),
    ],
)
def test_a_search_begins_at_the_nearest_peak_of_its_categories_or_at_the_median(
    factors, finished, point, seed_load
):
    earlier, search = (SurfaceMap(factors, design="full") for _ in range(2))
    asked = earlier.planned()
    for known, peak in finished:
        (sample,) = (each for each in asked if each.point == known)
        earlier.tell(sample, (peak, 0.9 * peak, 1.1 * peak))
    search.recall(earlier.result().samples)
    (found,) = (sample for sample in search.planned() if sample.point == point)
    assert found.seed_load == seed_load


@pytest.mark.parametrize("samples", [4, 8])
def test_far_apart_points_are_as_far_as_the_best_of_many_random_ones(samples):
    space = SurfaceMap(SERVERS).space

    def least(points: list[dict[str, Any]]) -> float:
        distances = [space.distances(points, each) for each in points]
        return float(np.min(np.array(distances) + 9.0 * np.eye(len(points))))

    grid, random = points_of(SERVERS, design="full"), np.random.default_rng(1)
    chosen = points_of(SERVERS, samples=samples)
    picked = (random.choice(len(grid), len(chosen), replace=False) for _ in range(300))
    best = max(least([grid[index] for index in each]) for each in picked)
    assert least(chosen) >= best - 1e-9
