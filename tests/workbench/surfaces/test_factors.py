"""Factors: levels on their scales, and points as coordinates and terms."""

import numpy as np

from benchrigor.workbench import Factor
from benchrigor.workbench.surfaces.factors import Space

DISKS = Factor("disks", levels=[1, 2, 3, 4])
DAEMONS = Factor("daemons", levels=[1, 10, 100], scale="log10")
SYSTEM = Factor("fs", levels=["ext4", "xfs", "zfs"])
SPACE = Space([DISKS, DAEMONS, SYSTEM])


def test_a_space_names_what_is_wrong_with_a_point():
    assert SPACE.wrong_point({"disks": 2.5, "daemons": 50, "fs": "xfs"}) == []
    for wrong in ({"daemons": 50, "fs": "btrfs"}, {"daemons": 200, "fs": "xfs"}, {}):
        assert len(SPACE.wrong_point({"disks": 2, **wrong})) == 1


def test_the_grid_has_every_combination_once():
    grid = SPACE.grid()
    assert len({SPACE.key(point) for point in grid}) == len(grid) == 36
    assert grid[0] == {"disks": 1, "daemons": 1, "fs": "ext4"}
    assert grid[1]["fs"] == "xfs"


def test_terms_have_full_rank_and_balanced_categories():
    terms = SPACE.terms(SPACE.grid())
    # 1 + 1 + 2 effects, 1 + 2 + 2 products, 2 squares
    assert terms.shape == (36, 11)
    whole = np.column_stack([np.ones(36), terms])
    assert np.linalg.matrix_rank(whole) == 12
    assert np.abs(terms[:, :4].sum(axis=0)).max() < 1e-12


def test_a_number_of_two_levels_has_no_square():
    assert Space([Factor("a", levels=[1, 2])]).terms([{"a": 1}, {"a": 2}]).tolist() == [[-1], [1]]


def test_another_category_is_as_far_as_the_ends_of_a_number():
    origin = {"disks": 1, "daemons": 1, "fs": "ext4"}
    others = [origin | {"disks": 4}, origin | {"fs": "zfs"}, origin | {"daemons": 10}]
    assert SPACE.distances(others, origin).tolist() == [2.0, 2.0, 1.0]
