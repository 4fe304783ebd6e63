"""How many unit readings the next round takes."""

from dataclasses import replace

import pytest

import benchrigor as br
from benchrigor.session.controller import Pace, next_readings

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
        (BEGUN, {"readings_per_round": 7}, 7),
        (BEGUN, {"readings_per_round": 70, "budget_readings": 150}, 50),
        (BEGUN, {"rounds": "restarted"}, 500),
    ],
)
def test_a_round_goes_to_the_next_look_within_a_second_and_the_budgets(
    pace: Pace, options: dict[str, object], wanted: int
) -> None:
    assert next_readings(pace, br.Options(**options)) == wanted  # type: ignore[arg-type]
