from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.programs import N, disturbed, program

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.interference import composite_profile
from benchrigor.model import Code, Notice, SegmentProfile
from benchrigor.model.series import Floats
from benchrigor.stats import profile_interference


def several(seed: int, runs: int = 4) -> list[SegmentProfile]:
    rng = np.random.default_rng(seed)
    kinds = program(rng)
    return [disturbed(rng, kinds, level) for level in rng.normal(1.0, 0.01, runs)]


def plain(*durations_s: Sequence[float]) -> list[SegmentProfile]:
    return [SegmentProfile(duration_s=each) for each in durations_s]


def test_a_flagged_segment_counts_as_the_others_of_its_group_and_run_do() -> None:
    usual = np.linspace(-0.05, 0.05, 24)
    found = composite_profile(
        plain([*(1.05 + usual), 9.0], [9.0, *(2.05 + usual)], [3.05, *(3.05 + usual)])
    )
    totals = [25 * 1.05, 25 * 2.05, 25 * 3.05]
    mean = np.mean(totals)
    times = np.exp(scipy_stats.t.ppf(0.975, 2) * scipy_stats.sem(totals) / mean)
    assert (found.duration.value, found.duration.low, found.duration.high) == pytest.approx(
        (mean, mean / times, mean * times)
    )
    assert found.duration.n == 3
    assert found.notices == ()
    (group,) = found.groups
    assert group.n == 75
    assert group.duration is not None
    assert group.duration.value == pytest.approx(2.05)
    assert group.duration.n == 3


def test_measured_delay_is_taken_off_first() -> None:
    profiles = several(2)
    late = np.linspace(0.0, 0.1, N)
    delayed = [
        replace(each, duration_s=each.duration_s + late, delays={"run queue": late})
        for each in profiles
    ]
    found, expected = composite_profile(delayed), composite_profile(profiles)
    assert found.duration.value == pytest.approx(expected.duration.value)
    assert found.duration.half_width == pytest.approx(expected.duration.half_width)
    assert [each.n for each in found.groups] == [each.n for each in expected.groups]


def test_runs_have_their_interference_beside_them() -> None:
    profiles = several(3)
    found = composite_profile(profiles)
    assert found.runs == tuple(map(profile_interference, profiles))
    assert max(each.percent for each in found.runs) > 10.0


def test_groups_are_described_and_the_one_with_most_time_comes_first() -> None:
    groups = composite_profile(several(4)).groups
    assert [each.n for each in groups] == [80, 160, 240, 320]
    assert [each.nominal["writes"] for each in groups] == [1, 0, 0, 0]
    low, high = groups[0].computation["flops"]
    assert 0.19e9 < low < 0.2e9 < high < 0.21e9


def test_the_order_of_runs_does_not_matter() -> None:
    profiles = several(5)
    found, turned = composite_profile(profiles), composite_profile(profiles[::-1])
    assert turned.duration.value == pytest.approx(found.duration.value, rel=1e-12)
    assert [each.n for each in turned.groups] == [each.n for each in found.groups]
    assert turned.runs == found.runs[::-1]


def test_times_in_another_unit_give_the_same() -> None:
    profiles = several(6)
    found = composite_profile(profiles).duration
    slower = [replace(each, duration_s=each.duration_s * 60.0) for each in profiles]
    scaled = composite_profile(slower).duration
    expected = (60.0 * found.value, 60.0 * found.low, 60.0 * found.high)
    assert (scaled.value, scaled.low, scaled.high) == pytest.approx(expected)


def test_a_value_at_the_bound_of_a_cluster_keeps_to_one_side_in_all_runs() -> None:
    # In the second run alone, 1.09 is of the same cluster as 1.0.
    work: list[Floats] = [np.repeat([1.0, 1.12], 10), np.repeat([1.0, 1.09], 10)]
    profiles = [
        SegmentProfile(duration_s=each, computation={"work": each}) for each in (*work, work[0])
    ]
    found = composite_profile(profiles)
    assert [each.n for each in found.groups] == [30, 30]
    assert [len(each.groups) for each in found.runs] == [2, 1, 2]


def test_segments_of_no_group_count_as_they_are() -> None:
    labels = ["start", *["step"] * 99]
    profiles = [
        SegmentProfile(duration_s=[start, *np.linspace(1.0, 1.2, 99)], nominal={"label": labels})
        for start in (5.0, 5.0, 8.0)
    ]
    found = composite_profile(profiles)
    assert found.duration.value == pytest.approx(6.0 + 99 * 1.1)
    assert [each.n for each in found.groups] == [297]
    (notice,) = found.notices
    assert (notice.code, notice.severity) == (Code.UNCLUSTERED, "note")
    assert notice.evidence["unclustered_percent"] == pytest.approx(100.0 * 6.0 / 114.9)


def test_a_group_that_too_few_runs_tell_of_has_no_duration() -> None:
    labels = [["rare"] * rare + ["step"] * (200 - rare) for rare in (5, 5, 4, 4)]
    profiles = [
        SegmentProfile(duration_s=[1.0, 1.01] * 100, nominal={"label": each}) for each in labels
    ]
    groups = {each.nominal["label"]: each for each in composite_profile(profiles).groups}
    assert groups["rare"].n == 18
    assert groups["rare"].duration is None
    assert groups["step"].duration is not None


def test_runs_that_cannot_be_cleaned_are_named() -> None:
    rng = np.random.default_rng(7)
    profiles = several(7, 3)
    flags = rng.random(N) < 0.6
    bad = replace(profiles[0], duration_s=profiles[1].duration_s * np.where(flags, 3.0, 1.0))
    notice, _ = composite_profile([*profiles, bad]).notices
    assert (notice.code, notice.severity) == (Code.DOUBTFUL_RUNS, "warning")
    assert notice.evidence["runs"] == "3"


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "noted"), [("normal", False), ("exponential", True)])
def test_what_the_program_itself_is_slow_by_is_noted(noise: str, noted: bool) -> None:
    def run(rng: np.random.Generator) -> SegmentProfile:
        drawn = rng.normal(size=N) if noise == "normal" else rng.exponential(size=N)
        return SegmentProfile(duration_s=1.0 + 0.05 * drawn)

    rng = np.random.default_rng(11)
    found = [composite_profile([run(rng) for _ in range(5)]) for _ in range(20)]
    tails = [[each for each in one.notices if each.code is Code.NATURAL_TAIL] for one in found]
    assert sum(map(len, tails)) == (20 if noted else 0)
    assert all(each.severity == "note" for notices in tails for each in notices)


def test_less_than_three_runs_give_no_interval() -> None:
    for runs in (0, 1, 2):
        with pytest.raises(NotEstimable) as error:
            composite_profile(several(8)[:runs])
        assert isinstance(error.value.notice, Notice)
        assert error.value.notice.severity == "refusal"


def test_a_run_of_other_work_is_refused_and_named() -> None:
    profiles = several(9)
    longer = profiles[2]
    twice = SegmentProfile(
        duration_s=np.tile(longer.duration_s, 2),
        computation={"flops": np.tile(longer.computation["flops"], 2)},
        nominal={"writes": np.tile(longer.nominal["writes"], 2)},
    )
    with pytest.raises(InvalidInput) as error:
        composite_profile([*profiles[:2], twice, profiles[3]])
    (problem,) = error.value.problems
    assert problem.startswith(
        "profiles[2] did other work than the other runs: 40 segments with flops 1.9"
    )
    assert "writes 1, expected about 20" in problem


def test_without_features_a_longer_run_is_other_work() -> None:
    with pytest.raises(InvalidInput, match=r"profiles\[1\] .*: 8 segments with any features"):
        composite_profile(plain([1.0] * 6, [1.0] * 8, [1.0] * 6))


def test_a_segment_now_and_then_in_another_group_is_borne() -> None:
    profiles = several(10)
    writes = np.array(profiles[0].nominal["writes"])
    writes[np.flatnonzero(writes == 0)[:4]] = 1
    others = [replace(profiles[0], nominal={"writes": writes}), *profiles[1:]]
    assert composite_profile(others).duration.n == 4


def test_what_cannot_be_compared_is_refused_all_at_once() -> None:
    runs = [
        SegmentProfile(duration_s=[1.0], run="a"),
        SegmentProfile(duration_s=[0.0], computation={"flops": [1.0]}),
        SegmentProfile(duration_s=[1.0], run="a", process=1, processes=2),
    ]
    with pytest.raises(InvalidInput) as error:
        composite_profile(runs)
    assert error.value.problems == (
        "profiles[1]: duration_s sums to 0, expected some time",
        "profiles[1] has computation ['flops'], profiles[0] []: record the same in all, or leave "
        "out what some lack",
        "profiles[2] is of run 'a' as profiles[0] is: give each run once, its processes merged",
    )


def test_runs_of_other_programs_are_refused_where_they_have_names() -> None:
    first, second, third, fourth = several(12)
    named = [replace(second, program="a"), replace(third, program="b")]
    with pytest.raises(
        InvalidInput, match=r"profiles\[2\] is of program 'b', profiles\[1\] of 'a'"
    ):
        composite_profile([first, *named, fourth])
    assert composite_profile([first, named[0], third]).duration.n == 3


@pytest.mark.parametrize(
    ("profiles", "problem"),
    [(3, "profiles is 3, expected a sequence"), (["x"], r"profiles\[0\] is 'x', expected a Segm")],
    ids=["a number", "a string"],
)
def test_what_are_no_profiles_is_refused(profiles: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        composite_profile(profiles)


def test_confidence_is_checked() -> None:
    with pytest.raises(InvalidInput, match="confidence is 95"):
        composite_profile(several(11), confidence=95)
