from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchrigor.model import Interference, SegmentProfile
from benchrigor.stats import estimate_interference, probability_high, profile_interference

Simulate = Callable[..., SegmentProfile]


def estimated(run: SegmentProfile) -> Interference:
    return estimate_interference(run.duration_s, run.computation)


def codes(found: Interference) -> set[str]:
    return {str(notice.code) for notice in found.notices}


def fired(code: str, make: Callable[[int], Interference], runs: int = 20) -> int:
    return sum(code in codes(make(seed)) for seed in range(runs))


def test_too_few_segments() -> None:
    found = estimate_interference([1.0, 1.0, 1.0, 5.0], {})
    assert (found.percent, found.unclustered_percent, found.light) == (0.0, 100.0, "green")
    assert codes(found) == {"few-segments", "no-reference"}


@pytest.mark.parametrize(("few", "warned"), [(19, True), (20, False)])
def test_much_time_in_groups_of_few_segments(few: int, warned: bool) -> None:
    kinds = [0] * 100 + [1] * few
    found = estimate_interference(np.ones(100 + few), {}, nominal={"kind": kinds})
    assert ("few-segments" in codes(found)) == warned


@pytest.mark.parametrize(("segment_s", "warned"), [(0.0009, True), (0.0011, False)])
def test_high_segment_rate(segment_s: float, warned: bool) -> None:
    found = estimate_interference([segment_s] * 50, {})
    assert ("high-segment-rate" in codes(found)) == warned


def test_many_flagged_segments(simulated: Simulate) -> None:
    def run(hit: float) -> Callable[[int], Interference]:
        return lambda seed: estimated(simulated(seed, hit=hit, percent=25.0))

    # binomial, 40 runs: at most 1 in 20 where valid, at least 9 in 10 where not
    assert fired("many-flagged-segments", run(0.2), 40) <= 5
    assert fired("many-flagged-segments", run(0.3), 40) >= 33


@pytest.mark.parametrize(("flagged", "warned"), [(2400, False), (2600, True)])
def test_a_quarter_is_many(flagged: int, warned: bool) -> None:
    found = estimate_interference([1.0] * (10_000 - flagged) + [2.0] * flagged, {})
    assert found.flagged_percent == flagged / 100
    assert ("many-flagged-segments" in codes(found)) == warned


@pytest.mark.parametrize("noise", ["normal", "lognormal", "exponential tail", "t(2)"])
@pytest.mark.parametrize("hit", [0.0, 0.2])
def test_the_median_has_not_moved(noise: str, hit: float, simulated: Simulate) -> None:
    def run(seed: int) -> Interference:
        return estimated(simulated(seed, hit=hit, percent=20.0, noise=noise))

    assert fired("median-moved", run) <= 2


@pytest.mark.parametrize("hit", [0.45, 0.5, 0.6, 0.7, 0.8, 0.9])
def test_the_median_has_moved(hit: float, simulated: Simulate) -> None:
    assert fired("median-moved", lambda seed: estimated(simulated(seed, hit=hit, percent=30))) >= 18


@pytest.mark.parametrize("n", [120, 1000])
@pytest.mark.parametrize("noise", ["normal", "lognormal", "gamma", "exponential", "standard_t"])
def test_no_noise_passes_for_nearly_all_hit(noise: str, n: int) -> None:
    """All with so much noise that the least gap counted does not hide the shape."""

    def run(seed: int) -> Interference:
        rng = np.random.default_rng(seed)
        drawn = {
            "normal": lambda: rng.normal(1.0, 0.2, n),
            "lognormal": lambda: rng.lognormal(0.0, 0.5, n),
            "gamma": lambda: rng.gamma(4.0, 0.25, n),
            "exponential": lambda: 1.0 + rng.exponential(1.0, n),
            "standard_t": lambda: 1.0 + 0.1 * rng.standard_t(2.0, n),
        }[noise]()
        return estimate_interference(np.maximum(drawn, 0.1), {})

    assert fired("median-moved", run, 60) <= 4  # 1 % each: more have probability 0.0003


def noisy(seed: int, noise: str, level: float) -> tuple[float, Interference]:
    """Return the true share lost, and what is estimated where like segments differ."""
    rng = np.random.default_rng(seed)
    clean = {
        "1 % normal": lambda: rng.normal(1.0, 0.01, 2000),
        "5 % lognormal": lambda: rng.lognormal(0.0, 0.05, 2000),
        "10 % gamma": lambda: rng.gamma(100.0, 0.01, 2000),
    }[noise]()
    lost = np.where(rng.random(2000) < 0.2, rng.gamma(2.0, size=2000), 0.0)
    lost *= level / (1.0 - level) * clean.sum() / lost.sum()
    truth = 100.0 * float(lost.sum() / (clean + lost).sum())
    return truth, estimate_interference(0.01 * (clean + lost), {})


@pytest.mark.parametrize("noise", ["5 % lognormal", "10 % gamma"])
def test_where_the_excess_counts_from_matters(noise: str) -> None:
    off = warned = 0
    for seed in range(20):
        truth, found = noisy(seed, noise, 0.12)
        off += abs(probability_high(truth) - found.probability_high) > 0.1
        warned += "wide-groups" in codes(found)
    assert off >= 18
    assert warned >= 18


@pytest.mark.parametrize("level", [0.0, 0.06, 0.12, 0.18, 0.4])
def test_where_like_segments_are_alike_it_does_not(level: float) -> None:
    assert fired("wide-groups", lambda seed: noisy(seed, "1 % normal", level)[1]) == 0


def contended(seed: int, feature: str, *, labelled: bool = False, hit: float = 0.1) -> Interference:
    """Slow a tenth of the segments of two kinds by what costs processor time as well."""
    rng = np.random.default_rng(seed)
    kinds = np.arange(600) % 2
    lasted = (1.0 + 2.0 * kinds) * rng.normal(1.0, 0.01, 600)
    lasted *= np.where(rng.random(600) < hit, 1.5, 1.0)
    nominal = {"kind": kinds} if labelled else {}
    return estimate_interference(lasted, {feature: lasted}, nominal=nominal)


def test_contention_that_costs_processor_time_is_noted() -> None:
    found = contended(1, "processor_s", labelled=True)
    assert found.percent < 0.5  # of the 4.8 that were lost
    (notice,) = (each for each in found.notices if each.code == "processor-time")
    assert notice.severity == "note"


def test_processor_time_that_alone_tells_work_apart_is_noted() -> None:
    assert "processor-time" in codes(contended(1, "processor_s", hit=0.0))


@pytest.mark.parametrize(
    ("feature", "labelled", "hit"), [("processor_s", True, 0.0), ("work", False, 0.1)]
)
def test_processor_time_that_separates_no_groups_is_not_noted(
    feature: str, labelled: bool, hit: float
) -> None:
    assert "processor-time" not in codes(contended(1, feature, labelled=labelled, hit=hit))


def mixed(seed: int, *, apart: float, n: int = 1000) -> Interference:
    """Let a fifth of one group compute more, and take 43 % longer."""
    rng = np.random.default_rng(seed)
    slow = rng.random(n) < 0.2
    work = np.where(slow, apart, 1.0) * rng.normal(1.0, 0.003, n)
    return estimate_interference(
        np.where(slow, 1.43, 1.0) * rng.normal(1.0, 0.01, n), {"work": work}
    )


def test_mixed_segments() -> None:
    assert fired("mixed-segments", lambda seed: mixed(seed, apart=1.05)) == 20
    assert fired("mixed-segments", lambda seed: mixed(seed, apart=1.0)) == 0


def test_mixed_segments_are_seen_in_a_large_group() -> None:
    assert "mixed-segments" in codes(mixed(1, apart=1.05, n=30_000))


@pytest.mark.parametrize(("share", "warned"), [(1.0, True), (0.4, False)])
def test_seconds_must_explain_the_time_lost(share: float, warned: bool) -> None:
    # some take 7 % longer, computing all of that time or less than half of it
    def run(seed: int) -> Interference:
        rng = np.random.default_rng(seed)
        computing = rng.normal(1.0, 0.003, 1000)
        longer = np.where(rng.random(1000) < 0.3, 0.07, 0.0)
        return estimate_interference(computing + longer, {"cpu_s": computing + share * longer})

    assert fired("mixed-segments", run) == (20 if warned else 0)


def test_chance_does_not_pass_for_mixture_in_many_groups(simulated: Simulate) -> None:
    def run(seed: int) -> Interference:
        made = simulated(seed, hit=0.1, percent=40.0, feature_noise=0.02)
        groups = np.arange(made.n) % 12
        return estimate_interference(made.duration_s, made.computation, nominal={"group": groups})

    assert fired("mixed-segments", run) <= 1


@pytest.mark.parametrize("noise", [0.003, 0.01, 0.03, 0.06])
def test_noisy_features_are_no_chain(noise: float, simulated: Simulate) -> None:
    def run(seed: int) -> Interference:
        return estimated(simulated(seed, feature_noise=noise))

    assert fired("chained-features", run) <= 1


@pytest.mark.parametrize(
    ("cost_s", "warned"), [(0.39, False), (0.41, True), (None, False), ("0.5", False)]
)
def test_what_recording_costs(cost_s: Any, warned: bool) -> None:
    profile = SegmentProfile(duration_s=[1.0] * 10, facts={"recording_cost_s": cost_s})
    assert ("recording-cost" in codes(profile_interference(profile))) == warned


@pytest.mark.parametrize(
    ("own_s", "other_s", "severity"),
    [
        pytest.param(4.0, 3.9, None, id="less"),
        pytest.param(4.0, 4.1, "warning", id="more"),
        pytest.param(0.1, 0.9, None, id="hardly-anything"),
        pytest.param("?", 4.1, "warning", id="own-unknown"),
        pytest.param(4.0, None, None, id="unknown"),
    ],
)
def test_work_of_others_is_not_measured(own_s: Any, other_s: Any, severity: Any) -> None:
    profile = SegmentProfile(
        duration_s=[1.0] * 10,
        delays={"run queue": [0.0] * 10},
        facts={"thread_cpu_s": own_s, "other_cpu_s": other_s},
    )
    found = {str(each.code): each.severity for each in profile_interference(profile).notices}
    assert found.get("delay-not-measured") == severity
