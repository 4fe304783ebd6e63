"""What a session can reach within its budget."""

import math

import pytest

from benchrigor.model import Analysis, Estimate, Metric, Options
from benchrigor.model.analysis import Kind
from benchrigor.session.outlook import out_of_reach

TIME = Metric(name="time", unit="s")


def analysis(half_width: float, n: int, kind: Kind = Kind.UNIT_READINGS) -> Analysis:
    known = Estimate(
        value=1.0,
        low=1.0 - half_width,
        high=1.0 + half_width,
        confidence=0.95,
        n=n,
        n_effective=float(n),
        method="long-run-variance",
        degrees_of_freedom=n - 1.0,
    )
    return Analysis(metric=TIME, kind=kind, n=n, estimate=known)


@pytest.mark.parametrize(
    ("half_width", "n", "elapsed_s", "reachable"),
    [
        (0.10, 1000, 1.0, 0.1 / math.sqrt(10.0)),
        (0.06, 1000, 1.0, None),  # 1.9 % in ten seconds
        (0.065, 1000, 1.0, None),  # 2.06 %, which may be less
        (0.10, 1000, 0.5, None),  # too soon to say
        (0.10, 1000, 2.0, 0.1 / math.sqrt(5.0)),
        (0.02, 30, 3.0, 0.02 * math.sqrt(0.3)),  # 1.1 %, of a hundred readings: 0.5 % is enough
    ],
)
def test_half_widths_shrink_with_the_root_of_the_time(half_width, n, elapsed_s, reachable):
    found = out_of_reach(
        analysis(half_width, n), Options(), units=n, looked_at=n, elapsed_s=elapsed_s
    )
    assert found == (None if reachable is None else pytest.approx(reachable))


@pytest.mark.parametrize(
    ("kind", "units", "elapsed_s", "reachable"),
    [
        (Kind.UNIT_READINGS, 1, 3.0, math.inf),
        (Kind.UNIT_READINGS, 10, 3.0, None),
        (Kind.READINGS, 3, 3.0, math.inf),
        (Kind.READINGS, 5, 3.0, None),
        (Kind.READINGS, 1, 1.0, None),  # may have been a cold one
    ],
)
def test_a_budget_may_hold_too_few_readings(kind, units, elapsed_s, reachable):
    unknown = Analysis(metric=TIME, kind=kind, n=units)
    found = out_of_reach(unknown, Options(), units=units, looked_at=0, elapsed_s=elapsed_s)
    assert found == reachable


def test_without_a_target_or_an_end_all_is_within_reach():
    wide = analysis(0.5, 1000)
    for options in (Options(target=None), Options(budget_s=math.inf)):
        assert out_of_reach(wide, options, units=1000, looked_at=1000, elapsed_s=3.0) is None
