"""Profiles of several runs, and of several processes, are made one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from simulated.programs import CLASSES_S, SHARES, N, disturbed, program
from tests.interference.made_profiles import written

from benchrigor.interference import composite_profile, merge_processes
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


def process(index: int, of: int = 3, **columns: Any) -> SegmentProfile:
    columns.setdefault("duration_s", [1.0, 2.0, 3.0])
    return SegmentProfile(**{"run": "a", "process": index, "processes": of, **columns})


def merged(kind: str, *columns: Any) -> Any:
    """Return what one column of so many processes becomes."""
    size = {"duration_s": np.ones(len(columns[0]))}
    parts = [
        process(index, len(columns), **size, **{kind: {"x": column}})
        for index, column in enumerate(columns)
    ]
    return getattr(merge_processes(parts), kind)["x"]


def test_each_kind_of_column_is_merged_in_its_way() -> None:
    found = merge_processes(
        process(
            index,
            duration_s=[1.0, 2.0, 3.0 + index],
            computation={"flops": [10.0, 20.0, 10.0 * index]},
            nominal={"sends": [4, 5, 6]},
            delays={"run queue": [0.0, 0.1 * index, 0.2]},
            evidence={"minor faults": [1.0, index, 0.0]},
            program="solver",
        )
        for index in (2, 0, 1)
    )
    assert found.duration_s.tolist() == [1.0, 2.0, 4.0]
    assert found.computation["flops"].tolist() == [10.0, 20.0, 10.0]
    assert found.nominal["sends"].tolist() == [4, 5, 6]
    assert found.delays["run queue"].tolist() == [0.0, 0.2, 0.2]
    assert found.evidence["minor faults"].tolist() == [3.0, 3.0, 0.0]
    assert (found.program, found.run, found.process, found.processes) == ("solver", "a", 0, 3)


def test_delays_of_several_processes_are_not_added_up() -> None:
    waited, stolen = [0.3, 0.0, 0.2], [0.0, 0.3, 0.2]
    parts = [
        process(index, 2, duration_s=[1.0] * 3, delays={"run queue": first, "steal": second})
        for index, (first, second) in enumerate([(waited, [0.0] * 3), ([0.0, 0.0, 0.1], stolen)])
    ]
    found = merge_processes(parts)
    assert found.delays["run queue"].tolist() == [0.3, 0.0, 0.1]
    assert found.delays["steal"].tolist() == [0.0, 0.3, 0.2]
    assert found.delay_s.tolist() == pytest.approx([0.3] * 3)


def test_columns_that_differ_between_processes_become_combinations() -> None:
    assert merged("nominal", [4096, 9, 8, 8], [9, 9, 9, 8]).tolist() == [
        "4,096 | 9",
        "9",
        "8 | 9",
        "8",
    ]
    found = merged("nominal", ["solve", "write", "write", "a"], ["solve", "wait", "wait", "b"])
    assert found.tolist() == ["solve", "write | wait", "write | wait", "a | b"]


def test_combinations_of_many_processes_are_short_and_the_same_in_every_run() -> None:
    alike = merged("nominal", *[[8, 1]] * 3, *[[9, 1]] * 61)
    assert alike.tolist() == ["8 ×3 | 9 ×61", "1"]
    of_ranks = [[4096 * (rank % 3 + 1), rank, 5] for rank in range(64)]
    first, second, _ = merged("nominal", *of_ranks).tolist()
    assert first.startswith("4,096 | 8,192 | 12,28")
    assert second.startswith("0 | 1 | 2 | 3 | ")
    assert max(len(first), len(second)) == 32
    assert merged("nominal", *([rank[1], 0] for rank in of_ranks)).tolist() == [second, "0"]


def test_numbers_that_look_alike_stay_apart() -> None:
    found = merged("nominal", [1.0, 1.0 + 1e-12, 1.0], [2.0, 2.0, 2.0]).tolist()
    assert found == ["1 | 2 #0", "1 | 2 #1", "1 | 2 #0"]


def test_bytes_with_many_combinations_are_summed_to_be_clustered() -> None:
    sent = np.arange(60) % 7
    parts = [
        process(
            index,
            2,
            duration_s=np.ones(60),
            nominal={"sent_bytes": sent + index, "sends": sent + index},
        )
        for index in range(2)
    ]
    found = merge_processes(parts).nominal
    assert found["sent_bytes"].tolist() == (2 * sent + 1).tolist()
    assert found["sends"][0] == "0 | 1"


def test_too_many_combinations_are_summed() -> None:
    root, other = np.arange(600) % 30, np.arange(600) // 30
    assert merged("nominal", root, other).tolist() == (root + other).tolist()
    assert np.unique(merged("nominal", root[:500], other[:500])).size == 500


def test_columns_of_all_processes_share_512_bins() -> None:
    work = np.random.default_rng(1).uniform(1.0, 2.0, (2, 1_000))
    found = merged("computation", *work)
    assert found == pytest.approx(work.mean(axis=0), rel=0.003)
    assert not np.array_equal(found, work.mean(axis=0))
    # A median of two lies between bins; one that all agree on is a bin.
    assert np.unique(merged("computation", work[0], work[0])).size == 512


def test_facts_are_joined() -> None:
    facts = [
        {"host": "n1", "cost_s": 0.1, "python": "3.11", "rare": True},
        {"host": "n2", "cost_s": 0.3, "python": "3.11", "unknown": None},
    ]
    parts = [process(index, 5, facts=each) for index, each in enumerate(facts)]
    assert merge_processes(parts).facts == {
        "host": "n1, n2",
        "cost_s": 0.3,
        "python": "3.11",
        "rare": True,
        "unknown": None,
        "merged_processes": 2,
    }


values = st.lists(st.integers(0, 3), min_size=6, max_size=6)


@given(rows=st.lists(values, min_size=2, max_size=4), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_the_order_of_profiles_does_not_matter(rows: list[list[int]], seed: int) -> None:
    parts = [
        process(
            index,
            len(rows),
            duration_s=np.array(row) + 1.0,
            computation={"work": row},
            nominal={"sends": row, "label": [f"label {each}" for each in row]},
            delays={"steal": row},
            evidence={"faults": row},
            facts={"host": f"n{index}"},
        )
        for index, row in enumerate(rows)
    ]
    order = np.random.default_rng(seed).permutation(len(parts))
    turned, merged = merge_processes([parts[k] for k in order]), merge_processes(parts)
    assert written(turned) == written(merged)


@given(rows=st.lists(values, min_size=2, max_size=4))
@settings(max_examples=30)
def test_segments_are_alike_only_where_each_process_did_the_same(rows: list[list[int]]) -> None:
    code = dict.fromkeys(zip(merged("nominal", *rows).tolist(), *rows, strict=True))
    assert len(code) == len({each[0] for each in code}) == len({each[1:] for each in code})
