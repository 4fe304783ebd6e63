from collections import Counter
from typing import Any

import numpy as np
import pytest

from benchrigor.model import SegmentProfile
from benchrigor.stats import estimate_interference, profile_interference


@pytest.mark.parametrize(
    "values",
    [
        [-128, 127],
        [True, False],
        [0, 2**63 - 1],
        [2**64 - 1, 2**64 - 2],
        [0.1, 0.2],
        ["a", "b"],
        [0, 70000],
        [-5, 65530],
        [-0.5, 0.5, 1.5],
        [0.0, 1.0, 5.0],
        [-5.0, 0.0, 1e-20],
        [-1e308, 1e308],
        [7.0, 7.0],
        ["a", "ab", "b", "ba", ""],
        ["x" * 40, "x" * 39 + "y"],
    ],
)
def test_nominal_values_of_any_type_tell_segments_apart(values: list[Any]) -> None:
    column = np.array(values, dtype=np.int8) if values[0] == -128 else np.array(values)
    found = estimate_interference(
        [1.0] * (5 * column.size),
        {},
        nominal={"x": np.repeat(column, 5), "y": [3] * 5 * column.size},
    )
    assert {group.nominal["x"] for group in found.groups} == set(column.tolist())
    assert len(found.groups) == len(set(column.tolist()))


@pytest.mark.parametrize("seed", range(5))
def test_combinations_of_many_columns_tell_segments_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 3000
    nominal = {
        f"x{index}": values[rng.integers(0, 3, n)]
        for index, values in enumerate(
            [
                np.array([-0.5, 0.5, 1.5]),
                np.array([0, 30000, 60000]),
                np.array(["solve", "write", "write on"]),
                np.array([0.1, 0.2, 0.3]),
                np.array([-1, 0, 2**40]),
                np.array([1.0, 2.0, 4000.0], dtype=np.float32),
            ]
        )
    }
    found = estimate_interference(np.ones(n), {}, nominal=nominal)
    alike = Counter(zip(*(values.tolist() for values in nominal.values()), strict=True))
    assert {tuple(each.nominal.values()): each.n for each in found.groups} == {
        did: number for did, number in alike.items() if number >= 5
    }


@pytest.mark.parametrize("n", [5, 6, 7, 8, 100, 101])
def test_median_and_mad_are_exact(n: int) -> None:
    rng = np.random.default_rng(n)
    kinds = rng.permutation(np.repeat(np.arange(40), n))
    durations = rng.lognormal(0.0, 1.0, kinds.size)
    found = estimate_interference(durations, {}, nominal={"kind": kinds})
    assert len(found.groups) == 40
    for group in found.groups:
        members = durations[kinds == group.nominal["kind"]]
        assert group.median_s == np.median(members)
        assert group.mad_s == np.median(np.abs(members - np.median(members)))


def test_more_groups_than_fit_16_bits() -> None:
    rng = np.random.default_rng(1)
    kinds = np.repeat(np.arange(400), 5)
    nominal = {"x": kinds, "y": 1000 * kinds, "z": -kinds, "w": kinds.astype(str)}
    durations = rng.lognormal(0.0, 1.0, kinds.size)
    found = estimate_interference(durations, {"work": 1.3 ** kinds[::-1]}, nominal=nominal)
    one = estimate_interference(durations, {}, nominal={"x": kinds})
    assert len(found.groups) == 400
    assert found.percent == one.percent > 0.0


@pytest.mark.parametrize("name", ["bytes", "read_bytes"])
def test_bytes_that_never_repeat_are_clustered(name: str) -> None:
    rng = np.random.default_rng(6)
    sizes = np.repeat([1000, 5000], 100) + rng.permutation(200) // 10
    profile = SegmentProfile(duration_s=np.ones(200), nominal={name: sizes, "kind": [1] * 200})
    reference = SegmentProfile(
        duration_s=np.full(10, 0.5), nominal={name: [1003] * 10, "kind": [1] * 10}
    )
    found = profile_interference(profile, reference=reference)
    assert found.unclustered_percent == 0.0
    assert [set(group.computation) for group in found.groups] == [{name}] * 2
    assert [set(group.nominal) for group in found.groups] == [{"kind"}] * 2
    assert found.continuous_percent == 25.0
    few = SegmentProfile(duration_s=np.ones(200), nominal={name: sizes // 500})
    assert [set(group.nominal) for group in profile_interference(few).groups] == [{name}] * 2
