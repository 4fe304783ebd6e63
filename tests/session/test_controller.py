"""How many unit readings the next round takes."""

from dataclasses import replace

import pytest

import benchrigor as br
from benchrigor.model.analysis import VarianceSplit
from benchrigor.session.schedule.pacing import Pace, next_readings

BEGUN = Pace(readings=100, elapsed_s=1.0, last_readings=100, last_s=0.1, to_next_check=400)


@pytest.mark.parametrize(
    ("pace", "options", "wanted"),
    [
        (replace(BEGUN, readings=0), {}, 1),
        (BEGUN, {}, 400),
        (replace(BEGUN, last_s=1.0), {}, 100),  # a second of them
        (replace(BEGUN, last_readings=10, last_s=0.001), {}, 100),
        (replace(BEGUN, last_s=10.0, elapsed_s=9.5), {}, 5),  # what is left of ten seconds
        (replace(BEGUN, elapsed_s=99.0), {}, 1),
        # None ends more than a tenth too late: of 0.5 s each two would begin in the 0.6 s left.
        (replace(BEGUN, last_s=3.0, last_readings=6, elapsed_s=0.4), {"budget_s": 1.0}, 1),
        (replace(BEGUN, last_s=3.0, last_readings=1, elapsed_s=57.5), {}, 1),  # in time, with some
        (replace(BEGUN, last_s=0.0, last_readings=10**6, to_next_check=10**7), {}, 10**6),
        (BEGUN, {"budget_readings": 150}, 50),
        (BEGUN, {"budget_readings": 50}, 1),
        (BEGUN, {"rounds": "restarted"}, 500),
    ],
)
def test_a_round_goes_to_the_next_look_within_a_second_and_the_budgets(
    pace: Pace, options: dict[str, object], wanted: int
) -> None:
    assert next_readings(pace, br.Options(**options)) == wanted  # type: ignore[arg-type]


SPLIT = VarianceSplit(level=2e-4, between=1e-4, within=25e-4, invocations=5, readings=400.0)
# Starts of a tenth of a second, readings of a fifth of a millisecond.
STARTED = replace(BEGUN, readings=2_500, elapsed_s=1.0, invocations=5, busy_s=0.5)
SLOW = replace(BEGUN, readings=50, elapsed_s=3.0, invocations=5, busy_s=2.5)


@pytest.mark.parametrize(
    ("pace", "options", "wanted"),
    [
        (STARTED, {}, 500),
        # sqrt((0.1 s + 100 that are cut) / 0.2 ms * 25), and those that are cut
        (replace(STARTED, split=SPLIT), {}, 222),
        (replace(STARTED, split=replace(SPLIT, within=0.0)), {}, 102),
        (replace(STARTED, split=replace(SPLIT, readings=500.0, within=0.0)), {}, 100),
        (replace(STARTED, split=replace(SPLIT, between=0.0)), {}, 4_500),  # a tenth of ten seconds
        (replace(STARTED, split=replace(SPLIT, between=0.0)), {"budget_s": float("inf")}, 10_000),
        (SLOW, {}, 18),
        (replace(SLOW, split=SPLIT), {}, 18),
        (SLOW, {"budget_s": 1.0}, 2),
        (replace(SLOW, least_invocations=40), {"budget_s": 11.0}, 3),
        # Starts take 0.62 s, more than a fortieth of the time: readings take as long.
        (replace(SLOW, least_invocations=40, elapsed_s=5.6), {}, 12),
        (replace(STARTED, split=SPLIT), {"budget_readings": 2_510}, 10),
    ],
)
def test_an_invocation_is_as_long_as_its_start_and_the_spread_between_are_worth(
    pace: Pace, options: dict[str, object], wanted: int
) -> None:
    given = br.Options(rounds="restarted", **options)  # type: ignore[arg-type]
    assert next_readings(pace, given) == wanted


SHORT = replace(SLOW, may_be_short=True)


@pytest.mark.parametrize(
    ("pace", "wanted"),
    [
        (SHORT, 5),  # a fortieth of ten seconds, by readings of 50 ms
        (replace(SHORT, elapsed_s=5.0), 10),  # as long as a start
        (replace(SHORT, readings=5, busy_s=0.5), 1),  # each had one of 100 ms
        (replace(SHORT, readings=2_500), 500),  # fast ones stay as they are
    ],
)
def test_invocations_of_slow_readings_are_short(pace: Pace, wanted: int) -> None:
    assert next_readings(pace, br.Options(rounds="restarted")) == wanted
