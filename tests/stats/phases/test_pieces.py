"""Which readings of a piece count."""

import numpy as np
import pytest

from benchrigor.model import Code
from benchrigor.model.analysis import Kind, PhaseReason
from benchrigor.stats import trimmed
from benchrigor.stats.estimators.estimation import Policy, estimate

POLICY = Policy(kind=Kind.PIECES, trim=True)


@pytest.mark.parametrize(("n", "start"), [(1, 0), (2, 0), (3, 1), (99, 1), (100, 1), (2_500, 25)])
def test_the_start_of_a_piece_is_left_out_by_its_place(n, start):
    series = np.arange(float(n)) + 1.0
    phase = estimate((series,) * 2, POLICY).phases[1]
    assert (phase.start, phase.stop, phase.reason) == (start, n, PhaseReason.WHOLE)
    assert trimmed(series, phase).tolist() == series[start:].tolist()  # and no margin beside it
    assert [each.label for each in phase.phases][-1] == "stable"
    assert phase.phases[0].start == 0
    assert phase.phases[-1].stop == n


def test_a_slow_reading_counts_wherever_it_is_but_at_the_start():
    steady = np.full(50, 1.0)
    slow = steady.copy()
    slow[[0, 30]] = 100.0
    found = estimate((steady, slow, steady), POLICY)
    assert found.values[1] == pytest.approx((48.0 + 100.0) / 49.0)


def test_a_first_piece_that_moves_to_its_end_counts_by_its_second_half():
    rng = np.random.default_rng(1)
    falling = np.linspace(2.0, 1.0, 600) * rng.normal(1.0, 0.01, 600)
    others = [rng.normal(1.0, 0.01, 600) for _ in range(3)]
    found = estimate((falling, *others), POLICY)
    assert found.values[0] == pytest.approx(falling[300:].mean())
    assert Code.START_CUT in {each.code for each in found.notices}
    # The others count whole, whatever they do: they cannot be warming up.
    swapped = estimate((others[0], falling, *others[1:]), POLICY)
    assert swapped.values[1] == pytest.approx(falling[6:].mean())


def test_what_is_said_of_one_window_is_not_said_of_pieces():
    rng = np.random.default_rng(2)
    paces = np.repeat([1.0, 1.3, 1.0, 1.3, 1.0, 1.3], 100) * rng.normal(1.0, 0.01, 600)
    found = estimate((paces, *(rng.normal(1.1, 0.01, 600) for _ in range(3))), POLICY)
    assert found.phases[0].reason is PhaseReason.CHANGING_PACE
    assert Code.CHANGING_PACE not in {each.code for each in found.notices}
    assert found.estimate.method == "piece means"


def test_shares_at_both_ends_are_cut_from_each_piece():
    series = tuple(np.arange(100.0) + each for each in range(4))
    found = estimate(series, Policy(kind=Kind.PIECES, trim=(0.1, 0.2)))
    assert [(each.start, each.stop) for each in found.phases] == [(10, 80)] * 4


def test_few_pieces_are_told():
    pieces = [np.full(50, level) for level in (1.0, 1.1, 1.2, 1.1)]
    three, four = (estimate(pieces[:count], POLICY) for count in (3, 4))
    assert [each.code for each in three.notices] == [Code.FEW_PIECES]
    assert four.notices == ()
