from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.programs import CLASSES_S, SHARES, N, disturbed, program

from benchrigor.interference import composite_profile
from benchrigor.model import Code, SegmentProfile


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


def test_a_value_at_the_bound_of_a_cluster_keeps_to_one_side_in_all_runs() -> None:
    # In the second run alone, 1.09 is of the same cluster as 1.0.
    work: list[np.ndarray] = [np.repeat([1.0, 1.12], 10), np.repeat([1.0, 1.09], 10)]
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


def test_a_segment_now_and_then_in_another_group_is_borne() -> None:
    profiles = several(10)
    writes = np.array(profiles[0].nominal["writes"])
    writes[np.flatnonzero(writes == 0)[:4]] = 1
    others = [replace(profiles[0], nominal={"writes": writes}, program="named"), *profiles[1:]]
    assert composite_profile(others).duration.n == 4  # programs without a name fit any


def test_the_interval_covers_the_undisturbed_program() -> None:
    rng = np.random.default_rng(1)
    truth = N * float(CLASSES_S @ SHARES)
    values, held, held_of_group = [], 0, 0
    for _ in range(150):
        kinds = program(rng)
        found = composite_profile(
            [disturbed(rng, kinds, level) for level in rng.normal(1.0, 0.01, 8)]
        )
        values.append(found.duration.value)
        held += found.duration.low <= truth <= found.duration.high
        group = found.groups[0].duration
        assert group is not None
        held_of_group += group.low <= 0.2 <= group.high
    # 133 of 150: fewer have probability 0.0005 at a true 0.95, and 0.88 at 0.85.
    assert min(held, held_of_group) >= scipy_stats.binom.ppf(1e-3, 150, 0.95)
    assert held < 150
    assert np.mean(values) == pytest.approx(truth, rel=0.005)
