"""Plans fit a terminal, and come back from where they are stored."""

from dataclasses import replace

import pytest
from tests.model.known import PILOT

from benchrigor.model import Code, Notice
from benchrigor.model.codec import decode, encode


@pytest.mark.parametrize("name", ["n" * 200, "a long command line " * 20])
def test_a_plan_fits_a_terminal_of_80_columns(name: str) -> None:
    prices = tuple(
        replace(each, n=10**9, n_low=10**8, n_high=10**10, seconds=1e8) for each in PILOT.prices
    )
    long = replace(PILOT, name=name, n=10**9, n_high=10**11, seconds=1e9, prices=prices)
    lines = str(long).splitlines()
    assert max(map(len, lines)) <= 79
    assert not any(line != line.rstrip() for line in lines)


def test_a_plan_shows_its_notices_with_their_codes_whole() -> None:
    notices = tuple(
        Notice.of(code, case, n=1, wanted=2, why_="").about("x" * length)
        for length in range(20, 60)
        for code, case in ((Code.FEW_INVOCATIONS, "plan"), (Code.THIS_PROCESS_ONLY, ""))
    )
    text = str(replace(PILOT, notices=notices))
    lines = text.removeprefix(f"{replace(PILOT, notices=())}\n").splitlines()
    assert max(map(len, lines)) <= 79
    for part in ("  · x", "  ! x", "[few-invocations]", "[this-process-only]"):
        assert sum(part in line for line in lines) == 40


def test_a_plan_survives_the_codec() -> None:
    assert decode(type(PILOT), encode(PILOT)) == PILOT
