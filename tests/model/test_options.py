"""What options there are, and which of them fit together."""

from typing import Any

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model import Options


@pytest.mark.parametrize(
    ("trim", "shares"),
    [
        *(("none", (0.0, 0.0)), ("auto", None), (0.1, (0.1, 0.1)), (0, (0.0, 0.0))),
        ([0.2, 0], (0.2, 0)),
    ],
)
def test_what_is_cut_can_be_said(trim: Any, shares: tuple[float, float] | None) -> None:
    assert Options(trim=trim).cut_shares == shares


def test_two_percent_within_ten_seconds_is_what_is_aimed_at() -> None:
    options = Options(min_seconds=0)
    assert (options.target, options.budget_s, options.min_seconds) == (0.02, 10.0, 0)
    assert Options().min_seconds == 1.0


def test_a_number_of_thousands_of_digits_is_refused_as_others_are() -> None:
    with pytest.raises(InvalidInput):
        Options(max_rounds=10**5000)
