"""Designs: the choice of points, their order, and where their searches begin."""

import math
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrigor.errors import InvalidInput, MissingExtra
from benchrigor.workbench import Factor
from benchrigor.workbench.surfaces import designs
from benchrigor.workbench.surfaces.designs import d_optimal, far_apart, seed_of, snake
from benchrigor.workbench.surfaces.factors import Space

DISKS = Factor("disks", levels=[1, 2, 3, 4])
DAEMONS = Factor("daemons", levels=[1, 2, 4, 8, 16, 32, 64, 100], scale="log2")
SYSTEM = Factor("fs", levels=["ext4", "xfs", "zfs"])
SERVERS = Space([DISKS, DAEMONS])
SPACE = Space([DISKS, SYSTEM])


def model_of(space, points):
    return np.column_stack([np.ones(len(points)), space.terms(points)])


def determinant(space, points):
    model = model_of(space, points)
    return float(np.linalg.det(model.T @ model))


def best_of_exchanges(space, samples, *, starts, seed):
    """Return the greatest determinant that exchanges of single points reach from random designs.

    Exchanging row x for y multiplies det(X'X) by (1 + v(y)) (1 - v(x)) + v(x, y)**2, with
    v(x, y) = x' inv(X'X) y (Fedorov 1972).
    """
    model = model_of(space, space.grid())
    random = np.random.default_rng(seed)
    best = 0.0
    for _ in range(starts):
        chosen = random.choice(len(model), samples, replace=False)
        while np.linalg.cond(model[chosen]) > 1e6:
            chosen = random.choice(len(model), samples, replace=False)
        while True:
            between = model @ np.linalg.inv(model[chosen].T @ model[chosen]) @ model.T
            own = np.diag(between)
            gains = (1 - own[chosen])[:, None] * (1 + own) + between[chosen] ** 2
            gains[:, chosen] = 0.0
            leaving, entering = np.unravel_index(gains.argmax(), gains.shape)
            if gains[leaving, entering] < 1 + 1e-9:
                break
            chosen[leaving] = entering
        best = max(best, float(np.linalg.det(model[chosen].T @ model[chosen])))
    return best


@pytest.mark.slow
def test_twenty_starts_find_the_best_six_of_32_points():
    best = best_of_exchanges(SERVERS, 6, starts=100, seed=1)
    # So much has the best of all 906,192 choices, too.
    assert best == pytest.approx(258.2573, abs=1e-4)
    for seed in range(3):
        assert determinant(SERVERS, d_optimal(SERVERS, 6, seed=seed)) >= 0.999 * best


@pytest.mark.slow
def test_more_candidates_than_a_start_looks_at_cost_little_of_the_determinant(monkeypatch):
    monkeypatch.setattr(designs, "_STARTS", 2)
    space = Space([Factor("a", range(10)), Factor("b", range(8)), Factor("c", range(4))])
    found = determinant(space, d_optimal(space, 12, seed=1))
    best = best_of_exchanges(space, 12, starts=20, seed=1)
    assert (found / best) ** (1 / 10) >= 0.98  # D-efficiency, of ten terms


@pytest.mark.parametrize(
    ("space", "samples"),
    [
        (SPACE, 7),  # as many as terms
        (SPACE, 12),  # as many as points
        (Space([SYSTEM]), 3),
        (Space([Factor("a", [1, 1.001, 1e6], scale="log10"), SYSTEM]), 9),
        pytest.param(
            Space([Factor("a", list("pqrs")), Factor("b", list("uvw")), Factor("c", list("xyz"))]),
            24,
            marks=pytest.mark.slow,
        ),
        pytest.param(  # 48 of 180
            Space(
                [Factor("a", list("abcdef")), Factor("b", list("uvwxyz")), Factor("c", range(5))]
            ),
            48,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_design_has_different_points_that_tell_each_term(space, samples, monkeypatch):
    monkeypatch.setattr(designs, "_MOST_DETERMINANTS", 10_000)  # that takes one start 1 s
    design = d_optimal(space, samples, seed=3)
    assert len({space.key(point) for point in design}) == samples
    assert all(point in space.grid() for point in design)
    model = model_of(space, design)
    assert np.linalg.matrix_rank(model) == model.shape[1]


def test_a_seed_decides_and_the_global_one_stays_as_it_was(monkeypatch):
    monkeypatch.setattr(designs, "_STARTS", 2)
    np.random.seed(1)  # noqa: NPY002  # the global state is what must not change
    first = d_optimal(SPACE, 9, seed=5)
    drawn = np.random.random()  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    assert np.random.random() == drawn  # noqa: NPY002
    assert d_optimal(SPACE, 9, seed=5) == first


def test_samples_are_neither_fewer_than_terms_nor_more_than_points():
    expected = "a whole number from 7, the terms of the model, to 12, the points of the grid"
    for samples in (6, 13, 8.0, None, True):
        with pytest.raises(InvalidInput, match=f"samples is {samples}, expected {expected}"):
            d_optimal(SPACE, samples, seed=1)
    with pytest.raises(InvalidInput) as refused:
        d_optimal(SPACE, 6, seed=-1)
    assert len(refused.value.problems) == 2


def test_without_pydoe_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydoe", None)
    with pytest.raises(MissingExtra, match=r"benchrigor\[workbench\]"):
        d_optimal(SPACE, 7, seed=1)


@st.composite
def spaces(draw):
    factors = []
    for name in "abc"[: draw(st.integers(1, 3))]:
        levels = draw(st.permutations(range(1, draw(st.integers(2, 5)) + 1)))
        scale = draw(st.sampled_from(["linear", "log2", "category"]))
        change_s, workload = draw(st.sampled_from([0.0, 1.0, 60.0])), draw(st.booleans())
        factors.append(Factor(name, levels, scale=scale, change_s=change_s, workload=workload))
    return Space(factors)


def dearest(space):
    return min(space.factors, key=lambda factor: (-factor.change_s, factor.workload))


def changes(points, name):
    levels = [point[name] for point in points]
    return sum(one != other for one, other in pairwise(levels))


@given(spaces())
@settings(deadline=None, max_examples=25)
def test_on_a_full_grid_successive_points_differ_by_one_level_of_one_factor(space):
    order = snake(space, space.grid())
    ranks = {factor.name: sorted(factor.levels, key=factor.coded) for factor in space.factors}
    for one, other in pairwise(order):
        steps = [abs(ranks[name].index(one[name]) - ranks[name].index(other[name])) for name in one]
        assert sum(steps) == 1
    assert changes(order, dearest(space).name) == len(dearest(space).levels) - 1


@given(spaces(), st.data())
@settings(deadline=None, max_examples=25)
def test_any_points_of_a_grid_are_permuted_and_the_dearest_level_never_comes_back(space, data):
    points = data.draw(st.lists(st.sampled_from(space.grid()), max_size=20))
    order = snake(space, points)
    assert sorted(map(space.key, order)) == sorted(map(space.key, points))
    name = dearest(space).name
    assert changes(order, name) == max(0, len({point[name] for point in points}) - 1)


def test_what_is_dear_changes_least_often_then_what_is_of_the_configuration():
    space = Space(
        [
            Factor("size", [1, 2], workload=True),
            Factor("threads", [1, 2]),
            Factor("disks", [1, 2, 3], change_s=60),
        ]
    )
    order = snake(space, space.grid())
    assert [changes(order, name) for name in ("disks", "threads", "size")] == [2, 3, 6]


def test_a_few_points_are_walked_from_the_nearer_end():
    points = [{"disks": disks, "fs": fs} for disks, fs in [(1, "ext4"), (4, "ext4"), (4, "xfs")]]
    points.insert(0, {"disks": 2.5, "fs": "xfs"})
    order = snake(SPACE, points)
    assert [SPACE.key(point) for point in order] == [
        (1, "ext4"),
        (2.5, "xfs"),
        (4, "xfs"),
        (4, "ext4"),
    ]


def test_a_point_of_another_space_has_no_place_in_the_order():
    with pytest.raises(InvalidInput) as refused:
        snake(SPACE, [{"disks": 5, "fs": "xfs"}, {"disks": 1, "fs": "ntfs"}, {"disks": 1}])
    assert len(refused.value.problems) == 3


XFS = [({"disks": 1, "fs": "xfs"}, 100.0), ({"disks": 4, "fs": "xfs"}, 400.0)]


@pytest.mark.parametrize(
    ("finished", "point", "seed"),
    [
        ([], {"disks": 1, "fs": "xfs"}, None),
        (XFS, {"disks": 2, "fs": "xfs"}, 100.0),
        (XFS, {"disks": 3, "fs": "xfs"}, 400.0),
        (XFS, {"disks": 2.5, "fs": "xfs"}, 100.0),  # as near, and told before
        ([*XFS, ({"disks": 2, "fs": "zfs"}, 220.0)], {"disks": 2, "fs": "ext4"}, 220.0),
        ([*XFS, ({"disks": 2, "fs": "zfs"}, 220.0)], {"disks": 2, "fs": "xfs"}, 100.0),
    ],
)
def test_a_search_begins_at_the_nearest_peak_of_its_categories_or_at_the_median(
    finished, point, seed
):
    assert seed_of(SPACE, finished, point) == seed


def test_nearness_counts_on_the_scale_of_a_factor():
    finished = [({"disks": 1, "daemons": 4}, 10.0), ({"disks": 1, "daemons": 32}, 20.0)]
    assert seed_of(SERVERS, finished, {"disks": 1, "daemons": 16}) == 20.0


@pytest.mark.parametrize("peak", [-1.0, 0.0, math.nan, math.inf, None, "fast"])
def test_points_and_peaks_that_cannot_be_are_refused_at_once(peak):
    with pytest.raises(InvalidInput) as refused:
        seed_of(SPACE, [({"disks": 9, "fs": "xfs"}, peak)], {"disks": 1, "fs": "ntfs"})
    assert len(refused.value.problems) == 3


@pytest.mark.parametrize("samples", [1, 2, 4, 6, 9])
def test_far_apart_points_are_as_far_as_the_best_of_many_random_ones(samples):
    def least(points):
        distances = [SERVERS.distances(points, each) for each in points]
        return float(np.min(np.array(distances) + 9.0 * np.eye(len(points))))

    grid, random = SERVERS.grid(), np.random.default_rng(1)
    best = max(
        least([grid[index] for index in random.choice(len(grid), samples, replace=False)])
        for _ in range(300)
    )
    chosen = far_apart(SERVERS, samples, seed=1)
    assert len({SERVERS.key(point) for point in chosen}) == samples
    assert least(chosen) >= best - 1e-9


def test_far_apart_points_share_the_levels_of_a_category():
    systems = [point["fs"] for point in far_apart(SPACE, 6, seed=1)]
    assert sorted(systems) == ["ext4", "ext4", "xfs", "xfs", "zfs", "zfs"]


def test_all_of_a_grid_are_far_apart_where_it_has_no_more():
    assert far_apart(SPACE, 12, seed=1) == far_apart(SPACE, 99, seed=1) == SPACE.grid()
