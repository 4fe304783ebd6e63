"""Work amounts: how much the next round should do, and which rounds count."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Polynomial

from benchrigor.errors import InvalidInput, WorkTooShort
from benchrigor.model import Code, Notice, Options, RoundPlan
from benchrigor.model.checks import attempt
from benchrigor.model.options import check_work
from benchrigor.model.readings import Reason
from benchrigor.model.series import Floats
from benchrigor.settings import FEWEST_ROUNDS
from benchrigor.units import show_amount, show_value

NextWork = Callable[[RoundPlan], float | None]

PILOTS = 5  # long enough rounds that show which largest amount a set should have
MOST_PILOTS = 30  # the most pilots: amounts chosen by the user may never be long enough
FEWEST_COLD = 3  # from that many further rounds on, the first one, which may be cold, is left out
SPAN = 5.0  # largest over smallest amount that must remain when rounds are left out
# Minimum wanted ratio of the longest to the shortest duration. If noise is proportional to
# duration, about this factor gives the narrowest interval in a given time.
SPREAD = 4.0
# Maximum growth of a planned amount over the largest one before: at first the overhead hides the
# work, and a line through noise could lead to the end of the range.
REACH = 8.0
# Further rounds test the line at larger amounts. Their places on a scale of ratios, from the
# largest planned amount to the largest that there is time for.
_FURTHER_PLACES = (0.5, 1.0, 0.75)
_LEAST_FURTHER = 2.0  # times the largest amount planned
_OF_TIME_LEFT, _OF_TIME_SO_FAR = 0.125, 0.25  # maximum shares of one of them
_SMALL_PART = 0.25  # of the range of amounts: if no more was tried, a Notice says so
_LARGEST = (1e300, 10**15)  # amount of a range without end, and of one of whole numbers
_ROUNDING = 1e-9
_FIXED_LEVELS = 3  # of `bisecting`

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """duration = overhead + slope * (work / scale); the slope is 0 while work is not visible."""

    overhead: float
    slope: float
    scale: float

    @property
    def overhead_work(self) -> float:
        """Work that takes as long as the overhead."""
        return self.amount(2.0 * self.overhead) if self.overhead > 0.0 else 0.0

    def duration(self, work: float) -> float:
        """Return the expected duration of a round of this work."""
        return self.overhead + self.slope * (work / self.scale)

    def amount(self, seconds: float) -> float:
        """Return the work with this expected duration."""
        if self.slope > 0.0:
            return self.scale * ((seconds - self.overhead) / self.slope)
        return math.inf

    def within(self, seconds: float) -> float:
        """Return the work for this time; at the pace of the largest amount if not visible."""
        return self.amount(seconds) if self.slope else self.scale * (seconds / self.overhead)


def _fit_line(work: Floats, seconds: Floats) -> _Line:
    """Fit the line; through the origin if all rounds have the same work."""
    largest, mean = float(work.max()), float(seconds.mean())
    scaled = work / largest
    if np.ptp(scaled) == 0.0:
        return _Line(overhead=0.0, slope=mean, scale=largest)
    fit = Polynomial.fit(scaled, seconds, 1)
    slope = float(fit.deriv()(0.0))
    if slope <= 0.0:
        return _Line(overhead=mean, slope=0.0, scale=largest)
    return _Line(overhead=float(fit(0.0)), slope=slope, scale=largest)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Selection:
    """The rounds that are long enough, those that count, and the line through the latter."""

    long_enough: Mask
    counts: Mask
    line: _Line
    small: float  # work below this takes less time than the overhead
    least: float  # smallest amount that was long enough, pilots included


@dataclass(frozen=True, slots=True, kw_only=True)
class _QuickSet:
    """The rounds of a first rough answer, with amounts from ``low`` up to ``most``."""

    rounds: int
    low: float
    most: float
    shortest: float
    longest: float
    seconds: float


class WorkSchedule:
    """Chooses the work amount of the next round, and the rounds that count.

    Amounts start at ``low`` and double until a round is long enough (``shortest_s``); while rounds
    last less than an eighth of that, they grow eightfold. The first long rounds are pilots: the
    line duration = overhead + work / speed through them gives the largest amount with which a set
    of ``quick_rounds`` evenly spaced amounts takes ``quick_s``. The amounts of a set come in
    bisecting order (1/2, 1/4, 3/4, 1/8 of the range ...) or in random ``order``, so they do not
    rise with time. Further sets follow with about as much work. The same rounds and arguments give
    the same amounts, so a resumed session continues in the same way.

    *Short rounds* do not count, up to the largest short amount for which most rounds, from the
    amount known before, were short: a slow first round does not end the growth. Rounds of larger
    amounts count unless they took less than half of ``shortest_s``; those ended early. A selection
    by noise would bias the line.

    *Pilots* do not count once there are `FEWEST_ROUNDS` others, because their noise has influenced
    the amounts of the others.

    *Further rounds*: three rounds of larger amounts show whether the line continues there. A round
    takes up to an eighth of the time left and a quarter of the time so far. They do not count: if
    amounts grew later, a drift would look like work.

    *Overhead*: rounds of less work than overhead times speed are left out, if ten rounds remain
    and a range of 5 to 1; repeatedly, with the line through the remaining rounds. Work decides,
    never duration.

    *Durations*: n rounds take t seconds in all and the shortest takes s. Every round takes
    k = (2t - 2sn) / (n^2 - n) longer than the one before, so the longest takes 2t/n - s, and not
    less than 4 times s. If s n reaches t, n is t/s, but not below `FEWEST_ROUNDS`. Source: Li et
    al. 2016 (Pilot).
    """

    def __init__(
        self,
        low: float,
        high: float | None,
        *,
        shortest_s: float,
        order: str = "bisecting",
        quick_s: float = 60.0,
        quick_rounds: int = 50,
        seed: int = 0,
    ) -> None:
        self._whole = isinstance(low, int) and isinstance(high, int | None)
        endless = high is None
        self._is_bounded = not endless
        if high is None:
            high = max(low, _LARGEST[self._whole])
        self._most = high
        self._high = float(high)
        tiny = 1.0 if self._whole or endless else self._high / 2.0**40
        self._low = float(low) or max(tiny, math.ulp(0.0))
        self._random = order == "random"
        self._shortest_s = shortest_s
        self._quick_s = quick_s
        self._quick_rounds = quick_rounds
        self._seed = seed
        self._work: list[float] = []
        self._seconds: list[float] = []
        self._too_short = 0.0
        self._selection: _Selection | None = None
        self._plan: tuple[_Line, _QuickSet] | None = None
        self._pilots: int | None = None
        self.tries_further = False  # whether it chooses further rounds
        self.further: list[int] = []  # indices of further rounds

    def tell(self, work: float, duration_s: float) -> None:
        """Add the work and the duration of a round."""
        is_far = work >= _LEAST_FURTHER * self._largest_planned
        if is_far and self._is_further_due:
            self.further.append(len(self._work))
        elif is_far and self._selection is not None and work > (1.0 + _ROUNDING) * self.next():
            self.tries_further = False  # none was due: the caller chose the amounts
        self._work.append(float(work))
        self._seconds.append(float(duration_s))
        if self._pilots is None:
            self._too_short = self._too_short_up_to()
        self._selection = self._select()
        if self._selection is not None:
            self._replan(self._selection)

    def _replan(self, selection: _Selection) -> None:
        """Plan a set again after every pilot, and then once per set.

        Amounts that kept following the noise would bias the speed by 1%: fewer amounts would
        follow long rounds that were slow by chance, which so kept their weight.
        """
        if self._pilots is None:
            self._plan = line, quick = selection.line, self._quick_set(selection)
            within_reach = quick.most == self._high or line.amount(quick.longest) <= quick.most
            longest = min(quick.longest, line.duration(quick.most))
            long = np.array(self._seconds)[selection.long_enough] >= longest / SPREAD
            known = within_reach and long.sum() >= PILOTS
            if known or selection.long_enough.sum() >= MOST_PILOTS:
                self._pilots = len(self._work)
        elif self._planned % self._quick_rounds == 0:
            self._plan = selection.line, self._quick_set(selection)

    def next(self, seconds_left: float = math.inf) -> float:
        """Return the work of the next round, the same until a round is added.

        No round is expected to take longer than ``seconds_left``, unless the smallest amount does.
        """
        if not self._work:
            return self._amount(self._low)
        selection, plan = self._selection, self._plan
        if selection is None or plan is None:
            return self._grown()
        if further := self._further_work(seconds_left):
            return self._amount(further)
        line, quick = plan
        affordable = line.within(seconds_left)
        low = min(quick.low, max(selection.least, affordable))
        top = max(min(line.amount(quick.longest), affordable, quick.most), low)
        if self._whole:  # every whole number has its share of the places
            low, top = math.ceil(low), max(math.floor(top), math.ceil(low)) + 1
            return min(int(low + self._place() * (top - low)), top - 1, int(self._most))
        return self._amount(low + self._place() * (top - low))

    @property
    def _largest_planned(self) -> float:
        """The largest amount of the set under way; infinity before there is one."""
        if self._plan is None:
            return math.inf
        line, quick = self._plan
        return min(line.amount(quick.longest), quick.most)

    @property
    def _is_further_due(self) -> bool:
        """Whether the next round may be a further one: rounds that count come between them."""
        tried = len(self.further)
        is_wanted = self.tries_further and self._is_bounded and tried < len(_FURTHER_PLACES)
        return is_wanted and self.sample >= FEWEST_ROUNDS + tried

    def _further_work(self, seconds_left: float) -> float | None:
        """Return an amount beyond those that are planned, if one is due and the time allows it."""
        if not self._is_further_due or self._plan is None:
            return None
        seconds = min(_OF_TIME_LEFT * seconds_left, _OF_TIME_SO_FAR * sum(self._seconds))
        largest, most = self._largest_planned, min(self._high, self._plan[0].within(seconds))
        least = _LEAST_FURTHER * largest
        if most <= least:
            return None
        place = _FURTHER_PLACES[len(self.further)]
        return max(largest * math.pow(most / largest, place), least)

    @property
    def _planned(self) -> int:
        """Rounds since the pilots, or, while there are only pilots, since the first long one."""
        if self._pilots is not None:
            return len(self._work) - self._pilots - len(self.further)
        if self._selection is None:
            return 0
        return len(self._work) - 1 - int(self._long_enough().argmax())

    @property
    def shortest_round_s(self) -> float:
        """How long the shortest round took; 0 before the first."""
        return min(self._seconds, default=0.0)

    @property
    def reasons(self) -> npt.NDArray[np.int8]:
        """Why each round counts, or does not."""
        reasons = np.full(len(self._work), int(Reason.SHORT), dtype=np.int8)
        reasons[self.further] = Reason.FURTHER
        if (selection := self._selection) is not None:
            first = self._long_enough() & ~selection.long_enough
            reasons[first] = Reason.PILOT if first.sum() > 1 else Reason.COLD
            reasons[selection.long_enough] = Reason.SMALL_WORK
            reasons[selection.counts] = Reason.KEPT
        return reasons

    @property
    def counted(self) -> tuple[bool, ...]:
        """Whether a round counts, by round."""
        return tuple((self.reasons == Reason.KEPT).tolist())

    @property
    def beyond(self) -> tuple[int, ...]:
        """Indices of rounds that do not count, and are of larger amounts than all that do."""
        largest = max(compress(self._work, self.counted), default=math.inf)
        return tuple(index for index, work in enumerate(self._work) if work > largest)

    @property
    def sample(self) -> int:
        """How many of the rounds after the pilots count: stopping may depend on those only."""
        return 0 if self._pilots is None else sum(self.counted[self._pilots :])

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Notices of rounds that do not count, and of long ones."""
        selection, notices = self._selection, list[Notice]()
        long_enough, further = self._long_enough(), len(self.further)
        short = int((~long_enough).sum()) - further
        if short:
            limit_s = self._shortest_s
            notices.append(Notice.of(Code.SHORT_ROUNDS, rounds=short, limit_s_=limit_s))
        if selection is not None:
            if pilots := int((long_enough & ~selection.long_enough).sum()):
                notices.append(Notice.of(Code.PILOT_ROUNDS, rounds=pilots))
            if further:
                notices.append(Notice.of(Code.FURTHER_ROUNDS, rounds=further))
            notices += [*_small_work(selection, np.array(self._work)), *self._say_tried_range()]
            quick = self._quick_set(selection)
            if self._planned < quick.rounds and quick.seconds > 1.1 * self._quick_s:
                figures = {"whole_s_": quick.seconds, "each_s_": quick.shortest}
                notices.append(Notice.of(Code.LONG_ROUNDS, **figures, rounds=quick.rounds))
        return tuple(notices)

    def _say_tried_range(self) -> list[Notice]:
        """Say what part of the range of amounts was tried, if it is small."""
        largest = max(self._work)
        if not self._is_bounded or largest >= _SMALL_PART * self._high:
            return []
        figures = {"largest": largest, "asked": self._high}
        return [Notice.of(Code.RANGE_UNTRIED, most_=self._most, **figures)]

    def _too_short_up_to(self) -> float:
        """Return the amount up to which most rounds, from the one known before, were short."""
        largest, balance = self._too_short, 0
        missing = [self._shortest_s - seconds for seconds in self._seconds]
        for work, missing_s in sorted(zip(self._work, missing, strict=True)):
            if work > self._too_short:
                short = missing_s > 0.0
                balance += 1 if short else -1
                largest = work if short and balance > 0 else largest
        return largest

    def _long_enough(self) -> Mask:
        """Return which rounds are long enough: by their amount, and half of the duration wanted.

        Further rounds never are.
        """
        work, seconds = np.array(self._work), np.array(self._seconds)
        long_enough: Mask = (work > self._too_short) & (seconds >= self._shortest_s / 2)
        long_enough[self.further] = False
        return long_enough

    def _select(self) -> _Selection | None:
        """Choose the rounds that count; None while none is long enough."""
        work, seconds = np.array(self._work), np.array(self._seconds)
        long_enough = self._long_enough()
        if not long_enough.any():
            return None
        least = min(float(work[long_enough].min()), self._high)
        long_enough &= self._after_pilots(long_enough)
        line = _fit_line(work[long_enough], seconds[long_enough])
        whole = _Selection(
            long_enough=long_enough,
            counts=long_enough,
            line=line,
            small=line.overhead_work,
            least=least,
        )
        part = replace(whole, small=0.0)
        while (small := part.line.overhead_work) > part.small:
            counts = long_enough & (work >= small)
            if small > self._high / SPAN or counts.sum() < FEWEST_ROUNDS:
                return whole
            line = _fit_line(work[counts], seconds[counts])
            part = replace(whole, counts=counts, line=line, small=small)
        return part

    def _after_pilots(self, long_enough: Mask) -> Mask:
        """Leave out the pilots, or before that a cold first round, once there are enough others."""
        index = np.arange(long_enough.size)
        if self._pilots is not None and long_enough[self._pilots :].sum() >= FEWEST_ROUNDS:
            return index >= self._pilots
        return index >= (1 if long_enough[1:].sum() >= FEWEST_COLD else 0)

    def _grown(self) -> float:
        """Return the next amount while all were too short."""
        if self._too_short < self._high:
            growth = REACH if self._seconds[-1] < self._shortest_s / REACH else 2.0
            return self._amount(max(growth * self._too_short, self._low))
        work, seconds = self._work[-1], self._seconds[-1]
        raise WorkTooShort(
            f"a round of work {show_amount(work, '')} took {show_value(seconds, 's')}, expected "
            f"{show_value(self._shortest_s, 's')} or more of the largest amount: raise the largest "
            "amount, lower short_round_s (--short-round), or check that the workload uses its "
            "amount"
        )

    def _quick_set(self, selection: _Selection) -> _QuickSet:
        """Return the set that gives a first rough answer."""
        (low, most), line = self._range(selection), selection.line
        s, n = max(line.duration(low), self._shortest_s), self._quick_rounds
        if s * n >= self._quick_s:
            n = max(FEWEST_ROUNDS, int(self._quick_s / s * (1.0 + 1e-9)))  # 60 / 2 is 30
        longest = max(2.0 * self._quick_s / n - s, SPREAD * s)
        seconds = n * (s + max(min(longest, line.duration(most)), s)) / 2.0
        return _QuickSet(rounds=n, low=low, most=most, shortest=s, longest=longest, seconds=seconds)

    def _range(self, selection: _Selection) -> tuple[float, float]:
        """Return the smallest and the largest amount to plan, above the overhead if possible.

        If less than half of the range is above the overhead, all of it is used; or the upper half
        of the amounts tried so far, if only those are that small.
        """
        most = min(self._high, REACH * max(np.delete(self._work, self.further)))
        low = selection.least
        if low > self._high / 2.0:  # the last growth may have skipped smaller amounts
            shortest = selection.line.amount(self._shortest_s)
            low = min(low, max(self._low, self._too_short, shortest))
        if most == self._high and selection.small > most / SPAN:
            return low, most
        if max(low, selection.small) <= most / 2.0:
            return max(low, selection.small), most
        return (low if most == self._high else max(low, most / 2.0)), most

    def _place(self) -> float:
        """Return the place of the next round in its set, from 0 to 1."""
        lap, index = divmod(self._planned, self._quick_rounds)
        rng = np.random.default_rng([self._seed, lap])
        return float((shuffle if self._random else bisecting)(self._quick_rounds, rng)[index])

    def _amount(self, work: float) -> float:
        """Return an amount within the range, whole if it must be."""
        if self._whole:
            return min(math.ceil(work), int(self._most))
        return min(work, self._high)


def schedule_for(options: Options, seed: int) -> WorkSchedule | None:
    """Return the schedule of a session; None if the work of its rounds does not vary."""
    if options.work_range is None:
        return None
    return WorkSchedule(
        *options.work_range,
        order=options.work_order,
        shortest_s=options.short_round_s,
        quick_s=min(options.quick_s, options.budget_s),
        quick_rounds=options.quick_rounds,
        seed=seed,
    )


def _small_work(selection: _Selection, work: Floats) -> list[Notice]:
    """Say which rounds are left out for their overhead, or would be if enough others remained."""
    line = selection.line
    small = int((selection.long_enough & (work < selection.small)).sum())
    rounds = int(selection.long_enough.sum())
    if small == 0 or line.slope == 0.0 or rounds < FEWEST_ROUNDS:
        return []
    figures = {"rounds": small, "overhead_s": line.overhead}
    if selection.counts.sum() < rounds:
        return [Notice.of(Code.SMALL_WORK, **figures)]
    return [Notice.of(Code.OVERHEAD_DOMINATES, all_=rounds, **figures)]


def bisecting(n: int, rng: np.random.Generator) -> Floats:
    """Return n places from 0 to 1, evenly spaced, in the order 1/2, 1/4, 3/4, 1/8, 7/8, 3/8 ...

    They are van der Corput's midpoints (1935), followed by their mirror images, so that no part
    of them rises. From the sixteenths on the midpoints of one level come in random order:
    otherwise a disturbance of every fourth round meets the same half of the amounts each time
    (coverage 0.58).
    """
    shares: list[float] = [0.5]
    for level in range(1, n.bit_length()):
        pairs = [(2 * pair + 1) / 2.0 ** (level + 1) for pair in range(2 ** (level - 1))]
        if level < _FIXED_LEVELS:
            shares += [share for first in pairs for share in (first, 1.0 - first)]
            continue
        for pair in rng.permutation(len(pairs)):
            both = (pairs[pair], 1.0 - pairs[pair])
            shares += both if rng.random() < 0.5 else both[::-1]
    return _places(np.array(shares[:n]))


def shuffle(n: int, rng: np.random.Generator) -> Floats:
    """Return n places from 0 to 1, evenly spaced, in random order."""
    return _places(rng.random(n))


def _places(shares: Floats) -> Floats:
    places: Floats = np.argsort(np.argsort(shares)) / max(shares.size - 1, 1)
    return places


def with_work(plan: RoundPlan, work: object) -> RoundPlan:
    """Return the plan with another work amount, or unchanged for None."""
    if work is None:
        return plan
    amount = attempt([], check_work, work)
    if amount is None or isinstance(amount, tuple):
        raise InvalidInput(f"next_work returned {work!r}, expected a number above 0, or None")
    return replace(plan, work=amount)
