"""What runs lost to others: profiles of segments, of one run and of several."""

from __future__ import annotations

import numpy as np

from benchrigor.interference import composite_profile, merge_processes
from benchrigor.model import SegmentProfile
from benchrigor.stats import estimate_interference, light_of, probability_high, profile_interference
from fence.cases import case
from fence.plain import attempted
from fence.readings import profile

CLASSES_S = np.array([0.01, 0.02, 0.05, 0.2])


def disturbed(
    seed: int, *, n: int = 400, percent: float = 10.0, hit: float = 0.05
) -> SegmentProfile:
    """Draw a run of four kinds of segments, some of which were held up."""
    rng = np.random.default_rng(seed)
    kinds = np.random.default_rng(0).integers(0, CLASSES_S.size, n)
    clean_s = CLASSES_S[kinds] * (1.0 + 0.01 * rng.standard_normal(n))
    lost_s = (rng.random(n) < hit) * rng.standard_exponential(n)
    lost_s *= percent / (100.0 - percent) * clean_s.sum() / max(float(lost_s.sum()), 1e-9)
    return SegmentProfile(
        duration_s=clean_s + lost_s,
        computation={"flops": 1e9 * CLASSES_S[kinds] * (1.0 + 0.003 * rng.standard_normal(n))},
        nominal={"label": [f"kind {each}" for each in kinds]},
        delays={"run queue": measured(lost_s)},
        evidence={"minor faults": rng.integers(0, 9, n).astype(float)},
        program="solver",
    )


def measured(lost_s: np.ndarray) -> np.ndarray:
    """Return the part of what was lost that a meter sees: every other loss."""
    return np.where(np.arange(lost_s.size) % 2 == 0, lost_s, 0.0)


def of_process(index: int) -> SegmentProfile:
    """Draw the profile of one of three processes of a run."""
    one = disturbed(215 + index)
    return SegmentProfile(
        duration_s=one.duration_s,
        computation=one.computation,
        nominal=one.nominal,
        delays=one.delays,
        evidence=one.evidence,
        program="solver",
        run="1",
        process=index,
        processes=3,
    )


@case
def interference_of_durations() -> object:
    """Knows durations and computation, and then ever more beside them."""
    run, calm = disturbed(210), disturbed(211, percent=0.5)
    columns = run.duration_s, run.computation
    return {
        "alone": estimate_interference(*columns),
        "without features": estimate_interference(run.duration_s, {}),
        "nominal": estimate_interference(*columns, nominal=run.nominal),
        "delay": estimate_interference(*columns, delay_s=run.delay_s),
        "all": estimate_interference(*columns, nominal=run.nominal, delay_s=run.delay_s),
        "reference": estimate_interference(*columns, nominal=run.nominal, reference=calm),
        "few": attempted(estimate_interference, run.duration_s[:5], {}),
        "one": attempted(estimate_interference, run.duration_s[:1], {}),
    }


@case
def interference_of_real_loops() -> object:
    """Holds a loop beside busy neighbours against one that ran alone."""
    quiet, busy = profile("loop_quiet.csv"), profile("loop_busy.csv")
    return {
        "quiet": profile_interference(quiet),
        "busy": profile_interference(busy),
        "busy, against quiet": profile_interference(busy, reference=quiet),
        "busy, unmeasured": estimate_interference(
            busy.duration_s, busy.computation, nominal=busy.nominal
        ),
    }


@case
def interference_that_cannot_be_trusted() -> object:
    """Has groups of unlike segments, an exponential tail, and a reference of other work."""
    rng = np.random.default_rng(213)
    run, half = disturbed(214), disturbed(211, n=200, percent=0.5)
    other = SegmentProfile(
        duration_s=half.duration_s,
        computation={"flops": 3.0 * half.computation["flops"]},
        nominal=half.nominal,
    )
    mixed_s = np.where(rng.random(400) < 0.35, 2.0, 1.0) * (1.0 + 0.01 * rng.random(400))
    return {
        "mixed": estimate_interference(mixed_s, {}),
        "tail": estimate_interference(1.0 + 0.1 * rng.standard_exponential(400), {}),
        "another reference": profile_interference(run, reference=other),
    }


@case
def composite_of_runs_with_a_natural_tail() -> object:
    rng = np.random.default_rng(217)
    return composite_profile(
        SegmentProfile(duration_s=1.0 + 0.1 * rng.standard_exponential(300)) for _ in range(4)
    )


@case
def interference_of_a_recorded_process() -> object:
    return profile_interference(profile("mpi_rank_1.csv"))


@case
def interference_by_severity() -> object:
    return {
        f"{percent:g}%": profile_interference(disturbed(212, percent=percent, hit=hit))
        for percent, hit in ((0.0, 0.0), (8.0, 0.05), (20.0, 0.1), (50.0, 0.4))
    }


@case
def interference_of_several_processes() -> object:
    whole = merge_processes(of_process(index) for index in range(3))
    return {"merged": whole, "lost": profile_interference(whole)}


@case
def composite_of_several_runs() -> object:
    runs = [disturbed(220 + each, percent=5.0 * each) for each in range(5)]
    return {
        "five": composite_profile(runs),
        "three": composite_profile(runs[:3], confidence=0.9),
        "two": attempted(composite_profile, runs[:2]),
        "real": attempted(composite_profile, [profile("loop_quiet.csv")] * 2),
        "processes": attempted(composite_profile, [of_process(each) for each in range(3)]),
    }


@case
def lights() -> object:
    shares = (0.0, 7.4, 7.5, 11.25, 15.0, 15.1, 80.0)
    return [(light_of(each), probability_high(each)) for each in shares]
