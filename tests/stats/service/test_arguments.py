import math

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Estimate, Notice
from benchrigor.stats.service.arguments import (
    ends,
    joined_notices,
    mixed_confidences,
    no_number,
    no_whole,
    refuse,
    shared_confidence,
    side_at,
    size_of,
)


def estimate(value: float = 10.0, **given: object) -> Estimate:
    known: dict[str, object] = {
        "low": value - 1.0,
        "high": value + 2.0,
        "confidence": 0.9,
        "n": 30,
        "n_effective": 20.0,
        "method": "any",
    }
    return Estimate(value=value, **{**known, **given})  # type: ignore[arg-type]


NOTICE = Notice.warning(Code.SHORT_RUN, "Short.")
OTHER = Notice.warning(Code.FEW_READINGS, "Few.")


def test_all_findings_are_raised_together() -> None:
    refuse((), ())
    with pytest.raises(InvalidInput) as caught:
        refuse(no_number(0, "one"), (), no_whole("a", "other"))
    assert len(caught.value.problems) == 2


def test_confidences_must_agree_among_estimates() -> None:
    assert mixed_confidences([estimate(), 3.0, estimate(2.0)], "rates") == ()
    assert mixed_confidences([estimate(), estimate(confidence=0.99)], "rates") == (
        "rates have confidences 0.9 and 0.99, expected one: estimate all with the same",
    )
    assert shared_confidence([1.0, estimate()]) == 0.9
    assert shared_confidence([1.0]) == 0.95


def test_a_number_is_its_own_interval() -> None:
    assert ends(3) == (3.0, 3.0, 3.0)
    assert ends(estimate()) == (10.0, 9.0, 12.0)
    side = side_at(3)
    assert (side.value, side.below, side.above, side.degrees_of_freedom) == (
        3.0,
        0.0,
        0.0,
        math.inf,
    )


def test_the_errors_of_an_estimate_are_those_of_its_interval() -> None:
    side = side_at(estimate())
    assert side.above == pytest.approx(2.0 * side.below)


def test_sizes_add_up_and_notices_come_once() -> None:
    parts = [estimate(notices=(NOTICE,)), 4.0, estimate(notices=(NOTICE, OTHER))]
    assert size_of(parts) == (60, 40.0)
    assert size_of([1.0]) == (0, 0)
    assert joined_notices(parts) == (NOTICE, OTHER)
