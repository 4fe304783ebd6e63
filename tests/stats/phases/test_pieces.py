"""Which readings of a piece count."""

import numpy as np
import pytest
from tests.stats.told import told

from benchrigor.model import Analysis, Code
from benchrigor.stats import trimmed


def in_pieces(*pieces: np.ndarray, **options: object) -> Analysis:
    return told(*pieces, **{"pieces": len(pieces), "budget_s": 2.0 * len(pieces), **options})


def codes(found: Analysis) -> set[Code]:
    return {each.code for each in found.notices} - {Code.NOT_CONVERGED}


def test_the_start_of_a_piece_is_left_out_by_its_place() -> None:
    sizes, starts = [7, 1, 2, 3, 99, 100, 2_500], [0, 0, 1, 1, 1, 25]
    pieces = [np.arange(float(n)) + 1.0 for n in sizes]
    phases = in_pieces(*pieces).phases[1:]  # of the first more may be cut
    assert [(each.start, each.stop) for each in phases] == [*zip(starts, sizes[1:], strict=True)]
    assert {each.reason.name for each in phases} == {"WHOLE"}
    for series, phase in zip(pieces[1:], phases, strict=True):
        assert phase.start is not None
        assert trimmed(series, phase).tolist() == series[phase.start :].tolist()  # no margin
        assert phase.phases[-1].label == "stable"
        assert (phase.phases[0].start, phase.phases[-1].stop) == (0, series.size)


def test_a_first_piece_that_moves_to_its_end_counts_by_its_second_half() -> None:
    rng = np.random.default_rng(1)
    falling = np.linspace(2.0, 1.0, 600) * rng.normal(1.0, 0.01, 600)
    others = [rng.normal(1.0, 0.01, 600) for _ in range(3)]
    found = in_pieces(falling, *others)
    assert found.levels[0] == pytest.approx(falling[300:].mean())
    assert codes(found) == {Code.START_CUT}
    # The others count whole, whatever they do: they cannot be warming up.
    swapped = in_pieces(others[0], falling, *others[1:])
    assert swapped.levels[1] == pytest.approx(falling[6:].mean())


def test_shares_at_both_ends_are_cut_from_each_piece() -> None:
    found = in_pieces(*(np.arange(100.0) + each for each in range(4)), trim=(0.1, 0.2))
    assert [(each.start, each.stop) for each in found.phases] == [(10, 80)] * 4


@pytest.mark.parametrize("unit", ["s", "1/s"])
def test_the_mean_of_equal_readings_is_their_value(unit: str) -> None:
    """The sum of seven times 0.1 is not 0.7, nor 1 / (1 / 49) = 49."""
    for level in (0.1, 49.0):
        found = in_pieces(*(np.full(size, level) for size in (3, 7, 5, 9)), unit=unit).estimate
        assert found is not None
        assert (found.low, found.value, found.high) == (level, level, level)
