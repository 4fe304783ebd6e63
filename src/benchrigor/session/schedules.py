"""Whose turn is next, and how much of it: one alone, two in blocks, several in rotation, or a race.

A race chooses among the benchmarks of two sides. A schedule sees durations, counts and widths. A
ratio that it saw could steer the measurement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from benchrigor.model import Headway, Options, RoundPlan, Turn
from benchrigor.model.checks import checked
from benchrigor.model.options import LATEST
from benchrigor.settings import SETTINGS
from benchrigor.stats.readings.inference_units import unit_of_rounds
from benchrigor.stats.statistic import readings_per_invocation
from benchrigor.stats.work_schedule import NextWork, with_work

State = Mapping[str, Headway]  # of those under way, by name

# Longest duration of a round: progress is shown and a stop request is obeyed that often.
ROUND_S = 1.0
# The round before may have been fast by chance: a round has up to this many times its readings.
_GROWTH = 10
# Maximum readings of a round, on any clock: a round is kept as a whole.
_MOST_OF_A_ROUND = 1_000_000
# Unit readings of the first restarted rounds: enough to see where their warm-up ends.
INVOCATION = 500
_LEAST_OF_AN_INVOCATION, _MOST_OF_AN_INVOCATION = 100, 10_000
# If 500 readings take more than a twentieth of the time, an invocation takes a fortieth: 15 of them
# show an interval in half of the time.
_USUAL_SHARE, _SHORT_SHARE = 1 / 20, 1 / 40
_LEAST = 0.01  # the least share of its time that a piece has if earlier ones took too long
_ROUNDING = 1e-6  # of a piece: rounds that add up to it may fall short by that much
_BLOCKS = ((0, 1, 1, 0), (1, 0, 0, 1))
_LEAST_INVOCATIONS = 40  # so that the time holds two looks, which may agree


def check_seed(seed: object) -> int:
    """Return a seed, drawn for None; raise InvalidInput unless it is a whole number from 0 on."""
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return int(checked("seed", SETTINGS["seed"], seed))


def seed_of(seed: int, index: int) -> int:
    """Return the seed of one of several subjects, or rounds."""
    return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])


class HookRaised(Exception):
    """A user's function for work amounts raised an error, the cause."""


class Alone:
    """One subject, round after round.

    ``amount`` gives its work in the time that is left, and ``next_work`` may replace it.
    """

    def __init__(
        self,
        options: Options,
        seed: int,
        amount: Callable[[float], float | None],
        next_work: NextWork | None,
    ) -> None:
        self.options = options
        self._seed, self._amount, self._next_work = seed, amount, next_work

    def next(self, state: State) -> Turn:
        """Return the next round: its readings, work amount, seed and time limit.

        WorkTooShort when rounds of the largest work amount are too short.
        """
        ((name, headway),) = state.items()
        options, piece = self.options, headway.piece
        left_s = (piece + 1) * options.piece_s - headway.elapsed_s
        if options.pieces > 1:
            left_s = max(left_s, _LEAST * options.piece_s)
        plan = RoundPlan(
            index=headway.turns,
            work=self._amount(options.budget_s - headway.elapsed_s),
            readings=next_readings(headway, options),
            seed=seed_of(self._seed, headway.turns),
            seconds=_limit(left_s),
            piece=piece,
        )
        if self._next_work is None:
            return Turn(order=(name,), plan=plan)
        try:
            return Turn(order=(name,), plan=with_work(plan, self._next_work(plan)))
        except Exception as error:
            raise HookRaised from error


def piece_after(piece: int, elapsed_s: float, reading_s: float, options: Options) -> int:
    """Return the piece after a round of one, the number of pieces when all are over.

    A piece is over when its time is, or when the next reading, of ``reading_s``, would end too
    late. No piece is skipped: if its time is gone, it still has one reading.
    """
    if options.pieces == 1:
        return 0
    by_time = elapsed_s / options.piece_s >= piece + 1.0 - _ROUNDING
    by_reading = (elapsed_s + reading_s) / options.piece_s > piece + LATEST
    return piece + int(by_time or by_reading)


class Blocks:
    """Two subjects in blocks, one-other-other-one or the reverse.

    Both kinds are equally frequent and shuffled, so drift that both sides share cancels within a
    block. A turn of readings has many blocks, and a turn of restarted rounds one.
    """

    def __init__(self, names: Sequence[str], options: Options, seed: int) -> None:
        self._names, self._options, self._seed = names, options, seed
        self._by_round = unit_of_rounds(options).restarted

    def next(self, state: State) -> Turn:
        """Return the next blocks: how many pairs, or how many readings per process."""
        (headway,) = state.values()
        readings = next_readings(headway, self._options, least_invocations=_LEAST_INVOCATIONS)
        blocks = 1 if self._by_round else math.ceil(readings / 2)
        plan = RoundPlan(
            index=headway.turns,
            readings=readings if self._by_round else 2 * blocks,
            seconds=_limit(self._options.budget_s - headway.elapsed_s),
        )
        return Turn(order=self._order(blocks, plan.index), plan=plan)

    def _order(self, blocks: int, index: int) -> tuple[str, ...]:
        """Shuffle equally many blocks of either kind; an odd one is of a random kind."""
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, index]))
        kinds = (np.arange(blocks) + rng.integers(2)) % 2
        return tuple(self._names[one] for kind in rng.permutation(kinds) for one in _BLOCKS[kind])


class Rotation:
    """Several subjects in turn, a piece or a round of each, in an order that is drawn anew.

    Half a rotation or more lies between two turns of a subject: two in a row would be one longer
    one. A place is open to those that were up to half a rotation after it in the one before.
    """

    def __init__(self, names: Sequence[str], seed: int) -> None:
        self._before, self._left, self._turns = list(names), list[str](), 0
        self._rng = np.random.default_rng(seed)

    def next(self, state: State) -> Turn | None:
        """Return the turn of the next subject, which sizes its own rounds; None if all ended."""
        if not state:
            return None
        if not self._left:
            self._before = self._order([name for name in self._before if name in state])
            self._left = [*self._before]
        self._turns += 1
        return Turn(order=(self._left.pop(0),), plan=RoundPlan(index=self._turns - 1))

    def _order(self, before: Sequence[str]) -> list[str]:
        left, order = {name: place for place, name in enumerate(before)}, list[str]()
        for place in range(len(left)):
            latest = (len(before) - 1) // 2 + place
            free = [name for name, earlier in left.items() if earlier <= latest]
            order.append(free[int(self._rng.integers(len(free)))])
            del left[order[-1]]
        return order


def _limit(left_s: float) -> float | None:
    """Return the time limit of a turn; None without a budget, or when rules know of none."""
    return left_s if 0.0 < left_s < math.inf else None


def next_readings(headway: Headway, options: Options, *, least_invocations: int = 10) -> int:
    """Return how many unit readings the next round should take.

    The first round of a continuous session takes one reading, to learn its cost. Later ones last
    until the next analysis is due, but up to one second, and within the rest of the budgets. If
    possible, no reading ends more than a tenth of a piece, or of the whole time, too late.
    Restarted rounds are also short enough that the time holds the least number of them.
    """
    most = _MOST_OF_A_ROUND
    if options.budget_readings is not None:
        most = max(1, min(most, options.budget_readings - headway.readings))
    if unit_of_rounds(options).restarted:
        return int(min(_of_an_invocation(headway, options, least_invocations), most))
    if headway.readings == 0:
        return 1
    wanted = int(min(max(1, headway.to_next_check), most, _GROWTH * headway.last_readings))
    if headway.reading_s > 0.0:
        left_s = (headway.piece + 1) * options.piece_s - headway.elapsed_s
        wanted = min(wanted, math.ceil(min(ROUND_S, left_s) / headway.reading_s))
        if left_s < ROUND_S:
            late_s = (LATEST - 1.0) * options.piece_s
            wanted = min(wanted, math.floor((left_s + late_s) / headway.reading_s))
    return max(1, wanted)


def _of_an_invocation(headway: Headway, options: Options, least_invocations: int) -> int:
    """Return the unit readings of a restarted round that give the narrowest interval in the time.

    The cost of a start is the time of a round without its readings, plus its cut readings.
    """
    first = headway.first_invocation or INVOCATION
    if not (headway.invocations and headway.busy_s):
        return first
    # Rounds may come from another program, with durations of another clock than its readings.
    reading_s = min(headway.busy_s, headway.elapsed_s) / headway.readings
    if reading_s == 0.0:
        return first
    start_s = max(headway.elapsed_s - headway.busy_s, 0.0) / headway.invocations
    longest = _MOST_OF_AN_INVOCATION
    if math.isfinite(options.budget_s):
        in_time_s = options.budget_s / least_invocations - start_s
        if headway.may_be_short and INVOCATION * reading_s > _USUAL_SHARE * options.budget_s:
            short_s = _SHORT_SHARE * options.budget_s
            if headway.readings == headway.invocations and 4.0 * reading_s > short_s:
                return 1  # those with one reading are compared with their like only
            in_time_s = min(in_time_s, short_s)
        # Readings take no less time than starts: fewer would be worthless.
        longest = max(2, min(longest, int(max(in_time_s, start_s) / reading_s)))
    if headway.split is None:
        least = math.ceil(start_s / reading_s) if headway.as_long_as_start else 0
        return min(max(first, least), longest)
    split = headway.split
    cut = max(headway.readings / headway.invocations - split.readings, 0.0)
    best = readings_per_invocation(
        split,
        start_cost=start_s + cut * reading_s,
        reading_cost=reading_s,
        longest=longest,
    )
    return min(max(math.ceil(cut + best), _LEAST_OF_AN_INVOCATION), longest)


LEAST_BLOCKS = 6  # of everything, before any benchmark gets more time than others
LOOKS = 2  # in a row that are narrow enough: one may be by luck
_NULL_BLOCKS = 6
_NULL_SHARE = 2 / 9  # of the blocks: a third process in them takes a tenth of all time


class Race:
    """Benchmarks of two sides, each block one process of either side, and often of a copy.

    The first six blocks hold all benchmarks. Then a block has the benchmark with the least time to
    go, and further ones until they take as long as its processes need to start. It sees widths and
    durations; a ratio that it saw could steer the measurement.

    Parameters
    ----------
    sides
        Roles: old, new, and the copy of the old code.
    seed
        Draws the order of the sides in each block.
    can_choose
        Whether a process can measure some of the benchmarks; else each measures all of them.
    """

    def __init__(self, sides: Sequence[str], seed: int, *, can_choose: bool = True) -> None:
        self._sides, self._seed, self._can_choose = tuple(sides), seed, can_choose
        self._blocks = self._null_blocks = 0

    def next(self, state: Mapping[str, Headway]) -> Turn | None:
        """Return the next block; None if all are as narrow as wanted, two looks in a row.

        Also if the first block shows no benchmark that both sides have.
        """
        still = {name: each for name, each in state.items() if each.narrow < LOOKS}
        nothing_left = not still if self._blocks >= LEAST_BLOCKS else not state
        if self._blocks and nothing_left:
            return None
        is_whole = self._blocks < LEAST_BLOCKS or not self._can_choose
        names = () if is_whole else self._chosen(still, self._start_s(state))
        turn = Turn(order=self._order(), plan=RoundPlan(index=self._blocks), names=names)
        self._null_blocks += len(turn.order) == len(self._sides)
        self._blocks += 1
        return turn

    def _start_s(self, state: Mapping[str, Headway]) -> float:
        """Return the time of a block that is spent on no benchmark."""
        elapsed_s = max(each.elapsed_s for each in state.values())
        return max(elapsed_s - sum(each.busy_s for each in state.values()), 0.0) / self._blocks

    @staticmethod
    def _chosen(still: Mapping[str, Headway], start_s: float) -> tuple[str, ...]:
        nearest = sorted(still, key=lambda name: time_to_go(still[name]))
        taken_s, names = 0.0, list[str]()
        for name in nearest:
            names.append(name)
            taken_s += _block_s(still[name])
            if taken_s >= start_s:
                break
        return tuple(names)

    def _order(self) -> tuple[str, ...]:
        """Draw the order; of two blocks without a copy, one begins with either side."""
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, self._blocks // 2]))
        old, new, copy = self._sides
        pair = (old, new) if (rng.integers(2) + self._blocks) % 2 else (new, old)
        needed = max(_NULL_BLOCKS, _NULL_SHARE * self._blocks)
        if self._null_blocks >= needed:
            return pair
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, self._blocks, 1]))
        place = int(rng.integers(3))
        return (*pair[:place], copy, *pair[place:])


def _block_s(headway: Headway) -> float:
    return headway.busy_s / max(headway.turns, 1)


def time_to_go(headway: Headway) -> float:
    """Return the expected time until an interval is narrow, which shrinks with the root of n."""
    if headway.width is None:
        return math.inf
    blocks = headway.turns * (headway.width**2 - 1.0)
    return max(blocks, 1.0) * _block_s(headway)
