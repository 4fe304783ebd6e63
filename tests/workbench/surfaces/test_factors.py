"""Factors: levels on their scales, and points as coordinates and terms."""

import numpy as np
import pytest

from benchrigor.errors import InvalidInput
from benchrigor.workbench.surfaces.factors import Factor, Space

DISKS = Factor("disks", levels=[1, 2, 3, 4])
DAEMONS = Factor("daemons", levels=[1, 10, 100], scale="log10")
SYSTEM = Factor("fs", levels=["ext4", "xfs", "zfs"])
SPACE = Space([DISKS, DAEMONS, SYSTEM])


@pytest.mark.parametrize(
    ("levels", "options", "problem"),
    [
        ([], {}, "levels of a is empty"),
        ([3], {}, "expected at least two"),
        (["x", "x"], {}, "expected different ones"),
        ([1, 1.0], {}, "expected different ones on a linear scale"),
        ([1, 1 + 1e-15], {"scale": "log2"}, "expected different ones on a log2 scale"),
        ([0, 1], {"scale": "log10"}, "expected a finite number above 0"),
        ([1, float("nan")], {}, "expected a finite number"),
        ([1, "x"], {"scale": "linear"}, "a level of a is 'x'"),
        ([1, 2], {"scale": "cubic"}, "scale of a is 'cubic'"),
        ([1, 2], {"change_s": -1}, "change_s of a is -1"),
        ("ab", {}, "levels of a is 'ab'"),
    ],
)
def test_levels_that_no_map_can_use_are_refused(levels, options, problem):
    with pytest.raises(InvalidInput, match=problem):
        Factor("a", levels=levels, **options)


def test_a_space_names_what_is_wrong_with_a_point():
    assert SPACE.wrong_point({"disks": 2.5, "daemons": 50, "fs": "xfs"}) == []
    (unseen,) = SPACE.wrong_point({"disks": 2, "daemons": 50, "fs": "btrfs"})
    assert unseen == "fs is 'btrfs', expected 'ext4' or 'xfs' or 'zfs'"
    (beyond,) = SPACE.wrong_point({"disks": 2, "daemons": 200, "fs": "xfs"})
    assert beyond == "daemons is 200, expected a number from 1 to 100"
    (missing,) = SPACE.wrong_point({"disks": 2})
    assert "expected a level of each of ['daemons', 'disks', 'fs']" in missing


def test_two_factors_have_different_names():
    with pytest.raises(InvalidInput, match="two factors are named 'disks'"):
        Space([DISKS, DISKS])


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


@pytest.mark.parametrize("level", [[1, 2], float("nan"), None])
def test_levels_of_a_category_are_texts_or_numbers(level):
    with pytest.raises(InvalidInput, match="expected a text or a finite number"):
        Factor("size", levels=[level, "small"], scale="category")
