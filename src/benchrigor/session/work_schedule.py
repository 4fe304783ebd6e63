"""How much work the next round should do, and which rounds count."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Polynomial

from benchrigor.errors import InvalidInput, WorkTooShort
from benchrigor.model import Code, Floats, Notice, RoundPlan, Severity, check_work
from benchrigor.model.text import many, show_amount, show_value

NextWork = Callable[[RoundPlan], float | None]

QUICK_S = 60.0
"""A first rough answer from rounds of various work takes about so long."""
QUICK_ROUNDS = 50
"""Rounds of such an answer; fewer where they are long."""
FEWEST_ROUNDS = 10
"""A line through fewer says too little to leave others out."""
PILOTS = 5
"""Rounds that are long enough to say where a set should end."""
MOST_PILOTS = 30
"""Where amounts are chosen from outside, none may ever be."""
FEWEST_COLD = 3
"""So many rounds do without the first one, which may be cold."""
SPAN = 5.0
"""Work of the longest over that of the shortest round that must remain when others are left out."""
SPREAD = 4.0
"""The longest round lasts at least so many times the shortest: rounds alike give no line. With
noise in proportion to duration, about this factor tells most in a given time."""
REACH = 8.0
"""A planned amount is at most so many times the largest one before: at first an overhead hides
the work, and a line through noise must not lead to the end of the range."""
_ENDLESS = (1e300, 10**15)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """duration = overhead + slope * (work / scale); the slope is 0 while work is not visible."""

    overhead: float
    slope: float
    scale: float

    @property
    def cut(self) -> float:
        """Work that takes as long as the overhead."""
        return self.amount(2.0 * self.overhead) if self.overhead > 0.0 else 0.0

    def duration(self, work: float) -> float:
        """Return how long a round of this work is expected to last."""
        return self.overhead + self.slope * (work / self.scale)

    def amount(self, seconds: float) -> float:
        """Return the work expected to last so long."""
        if self.slope > 0.0:
            return self.scale * ((seconds - self.overhead) / self.slope)
        return math.inf

    def within(self, seconds: float) -> float:
        """Return the work that takes no longer; while none is visible, at the largest's pace."""
        return self.amount(seconds) if self.slope else self.scale * (seconds / self.overhead)


def _line(work: Floats, seconds: Floats) -> _Line:
    """Fit the line; through the origin where all rounds are of the same work."""
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
class _Standing:
    """Which rounds are long enough, which of them count, and the line through those.

    Work below ``small`` takes less time than the overhead; ``least`` is the smallest that was
    long enough, pilots included.
    """

    enough: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.bool_]
    line: _Line
    small: float
    least: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _QuickSet:
    """The rounds of a first rough answer; no amount above ``most`` may be planned yet."""

    rounds: int
    low: float
    most: float
    shortest: float
    longest: float
    seconds: float


class WorkSchedule:
    """Which work amount the next round should have, and which rounds count.

    Amounts begin at ``low`` and double until a round is long enough. The first long ones are
    pilots: the line duration = overhead + work / speed through them says which largest amount
    makes a set of `QUICK_ROUNDS`, evenly spaced, take ``quick_s``. It comes in bisecting order
    (1/2, 1/4, 3/4, 1/8 of the way ...), lest amounts rise with time; so do further sets of as much
    work, since amounts that grow late would be a ramp. All follows from the rounds told and the
    arguments: a resumed session goes on alike.

    Parameters
    ----------
    low, high
        The range, checked by `benchrigor.model.Options`; high is None where there is no largest
        amount. Amounts are whole where both ends are.
    order, seed
        "bisecting", or "random": the same amounts in an order drawn from the seed.
    shortest_s, quick_s
        Shorter rounds do not count; the first set of rounds takes about ``quick_s``.

    Notes
    -----
    *Short rounds.* Rounds up to some amount do not count: up to the largest short one for which,
    from the amount known before, most were short. So each doubling raises it, and a slow first
    round does not end that. Of larger amounts only what took less than half of the bound is left
    out, for it ended early: whatever else is short is noise, which must not select.

    *Pilots* do not count once `FEWEST_ROUNDS` others are there: these were chosen by what the
    pilots had shown, and would answer to their noise.

    *Overhead.* Rounds of less work than overhead times speed are left out if ten remain, and
    `SPAN` to one of the range; so again with the line through these, until none is left out. Each
    round told lets this begin anew with all. Work decides, never duration.

    *Durations.* Of n rounds in t seconds, the shortest of which lasts s, each lasts
    k = (2t - 2sn) / (n^2 - n) longer than the one before, hence the longest 2t/n - s, but at least
    `SPREAD` times s; where s n reaches t, n is t/s, but at least `FEWEST_ROUNDS`. Source: Li et
    al. 2016 (Pilot).

    Examples
    --------
    >>> schedule = WorkSchedule(0, 10**12, shortest_s=0.1)
    >>> for _ in range(28):
    ...     schedule.tell(schedule.next(), schedule.next() / 1e8)
    >>> sum(schedule.counted)
    4
    """

    def __init__(
        self,
        low: float,
        high: float | None,
        *,
        shortest_s: float,
        order: str = "bisecting",
        quick_s: float = QUICK_S,
        seed: int = 0,
    ) -> None:
        self._whole = isinstance(low, int) and isinstance(high, int | None)
        endless = high is None
        if high is None:
            high = max(low, _ENDLESS[self._whole])
        self._most = high
        self._high = float(high)
        tiny = 1.0 if self._whole or endless else self._high / 2.0**40
        self._low = float(low) or max(tiny, math.ulp(0.0))
        self._random = order == "random"
        self._shortest_s = shortest_s
        self._quick_s = quick_s
        self._seed = seed
        self._work: list[float] = []
        self._seconds: list[float] = []
        self._too_short = 0.0
        self._standing: _Standing | None = None
        self._plan: tuple[_Line, _QuickSet] | None = None
        self._pilots: int | None = None

    def tell(self, work: float, duration_s: float) -> None:
        """Take in a round: the work that was really done, and how long it took."""
        self._work.append(float(work))
        self._seconds.append(float(duration_s))
        if self._pilots is None:
            self._too_short = self._too_short_up_to()
        self._standing = self._judged()
        if self._standing is not None:
            self._replan(self._standing)

    def _replan(self, standing: _Standing) -> None:
        """Choose the ends of the set anew, until pilots tell enough to stay with them.

        Amounts that went on following the noise would answer to it: of long rounds that were slow
        by chance fewer would follow, so that they kept their weight (speed 1% too low).
        """
        if self._pilots is None:
            self._plan = line, quick = standing.line, self._quick_set(standing)
            within_reach = quick.most == self._high or line.amount(quick.longest) <= quick.most
            aimed = min(quick.longest, line.duration(quick.most))
            telling = np.array(self._seconds)[standing.enough] >= aimed / SPREAD
            told = within_reach and telling.sum() >= PILOTS
            if told or standing.enough.sum() >= MOST_PILOTS:
                self._pilots = len(self._work)
        elif self._planned % QUICK_ROUNDS == 0:
            self._plan = standing.line, self._quick_set(standing)

    def next(self, seconds_left: float = math.inf) -> float:
        """Return the work of the next round: the same until a round is told.

        No round is expected to last longer than ``seconds_left``, unless the smallest amount does.
        """
        if not self._work:
            return self._amount(self._low)
        standing, plan = self._standing, self._plan
        if standing is None or plan is None:
            return self._doubled()
        line, quick = plan
        fits = line.within(seconds_left)
        low = min(quick.low, max(standing.least, fits))
        top = max(min(line.amount(quick.longest), fits, quick.most), low)
        if self._whole:  # each whole number has its share of the places
            low, top = math.ceil(low), max(math.floor(top), math.ceil(low)) + 1
            return min(int(low + self._place() * (top - low)), top - 1, int(self._most))
        return self._amount(low + self._place() * (top - low))

    @property
    def _planned(self) -> int:
        """Rounds since the pilots; while there are only those, since one was long enough."""
        if self._pilots is not None:
            return len(self._work) - self._pilots
        standing = self._standing
        return 0 if standing is None else len(self._work) - 1 - int(self._long_enough().argmax())

    @property
    def counted(self) -> tuple[bool, ...]:
        """Whether each round told is analysed."""
        standing = self._standing
        return (False,) * len(self._work) if standing is None else tuple(standing.counts.tolist())

    @property
    def sample(self) -> int:
        """How many rounds count of those that stopping may be based on: the ones after pilots."""
        return 0 if self._pilots is None else sum(self.counted[self._pilots :])

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What the reader must know of the rounds that do not count, and of long ones."""
        standing, said = self._standing, list[Notice]()
        work = np.array(self._work)
        short = int((~self._long_enough()).sum())
        if short:
            limit = show_value(self._shortest_s, "s")
            sentence = f"Left out: {many(short, 'round')} below {limit}, or of too little work."
            said.append(_note(Code.SHORT_ROUNDS, sentence, rounds=short))
        if standing is not None:
            if pilots := len(self._work) - short - int(standing.enough.sum()):
                sentence = f"Left out: {many(pilots, 'round')} that found the amounts to run."
                said.append(_note(Code.PILOT_ROUNDS, sentence, rounds=pilots))
            said += _small(standing, work)
            quick = self._quick_set(standing)
            if self._planned < quick.rounds and quick.seconds > 1.1 * self._quick_s:
                whole, each = show_value(quick.seconds, "s"), show_value(quick.shortest, "s")
                sentence = f"A first rough answer takes {whole}, as rounds take {each} or more."
                said.append(_note(Code.LONG_ROUNDS, sentence, rounds=quick.rounds))
        return tuple(said)

    def _too_short_up_to(self) -> float:
        """Return the amount up to which most rounds, from the one known before, were short."""
        found, balance = self._too_short, 0
        lacking = [self._shortest_s - seconds for seconds in self._seconds]
        for work, lacks in sorted(zip(self._work, lacking, strict=True)):
            if work > self._too_short:
                balance += 1 if lacks > 0.0 else -1
                found = work if lacks > 0.0 and balance > 0 else found
        return found

    def _long_enough(self) -> npt.NDArray[np.bool_]:
        """Return which rounds were long enough, by their amount: noise must not choose.

        Of amounts that are enough, what took less than half of the bound ended early.
        """
        work, seconds = np.array(self._work), np.array(self._seconds)
        found: npt.NDArray[np.bool_] = (work > self._too_short) & (seconds >= self._shortest_s / 2)
        return found

    def _judged(self) -> _Standing | None:
        """Return what the rounds tell; None while none is long enough."""
        work, seconds = np.array(self._work), np.array(self._seconds)
        enough = self._long_enough()
        if not enough.any():
            return None
        least = min(float(work[enough].min()), self._high)
        enough &= self._sampled(enough)
        line = _line(work[enough], seconds[enough])
        whole = _Standing(enough=enough, counts=enough, line=line, small=line.cut, least=least)
        part = replace(whole, small=0.0)
        while (small := part.line.cut) > part.small:
            counts = enough & (work >= small)
            if small > self._high / SPAN or counts.sum() < FEWEST_ROUNDS:
                return whole
            line = _line(work[counts], seconds[counts])
            part = replace(whole, counts=counts, line=line, small=small)
        return part

    def _sampled(self, enough: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Leave out the pilots once there are enough others, and before that a cold first round."""
        after = np.arange(enough.size)
        if self._pilots is not None and enough[self._pilots :].sum() >= FEWEST_ROUNDS:
            return after >= self._pilots
        return after >= (1 if enough[1:].sum() >= FEWEST_COLD else 0)

    def _doubled(self) -> float:
        """Return the next amount while all were too short."""
        if self._too_short < self._high:
            return self._amount(max(2.0 * self._too_short, self._low))
        work, seconds = self._work[-1], self._seconds[-1]
        raise WorkTooShort(
            f"a round of work {show_amount(work, '')} took {show_value(seconds, 's')}, expected "
            f"{show_value(self._shortest_s, 's')} or more of the largest amount: raise the largest "
            "amount, lower short_round_s (--short-round), or see whether the workload heeds its "
            "amount"
        )

    def _quick_set(self, standing: _Standing) -> _QuickSet:
        """Return the set that gives a first rough answer."""
        (low, most), line = self._ends(standing), standing.line
        s, n = max(line.duration(low), self._shortest_s), QUICK_ROUNDS
        if s * n >= self._quick_s:
            n = max(FEWEST_ROUNDS, int(self._quick_s / s * (1.0 + 1e-9)))  # 60 / 2 is 30
        longest = max(2.0 * self._quick_s / n - s, SPREAD * s)
        seconds = n * (s + max(min(longest, line.duration(most)), s)) / 2.0
        return _QuickSet(rounds=n, low=low, most=most, shortest=s, longest=longest, seconds=seconds)

    def _ends(self, standing: _Standing) -> tuple[float, float]:
        """Return from where to where amounts may be planned: if possible, above the overhead.

        Where that leaves less than half of the range, all of it; where only what was tried so far
        is that small, its upper half, for work is hardly visible yet.
        """
        most = min(self._high, REACH * max(self._work))
        low = standing.least
        if low > self._high / 2.0:  # the last doubling may have passed shorter ones by
            barely = standing.line.amount(self._shortest_s)
            low = min(low, max(self._low, self._too_short, barely))
        if most == self._high and standing.small > most / SPAN:
            return low, most
        if max(low, standing.small) <= most / 2.0:
            return max(low, standing.small), most
        return (low if most == self._high else max(low, most / 2.0)), most

    def _place(self) -> float:
        """Return where in its set the next round stands, from 0 to 1."""
        lap, index = divmod(self._planned, QUICK_ROUNDS)
        rng = np.random.default_rng([self._seed, lap])
        return float((shuffled if self._random else bisecting)(QUICK_ROUNDS, rng)[index])

    def _amount(self, work: float) -> float:
        """Return an amount within the range, whole where it must be."""
        if self._whole:
            return min(math.ceil(work), int(self._most))
        return min(work, self._high)


def _small(standing: _Standing, work: Floats) -> list[Notice]:
    """Say which rounds are left out for the overhead, or would be if enough others were left."""
    enough, line = standing.enough, standing.line
    rounds, told = int((enough & (work < standing.small)).sum()), int(enough.sum())
    if rounds == 0 or line.slope == 0.0 or told < FEWEST_ROUNDS:
        return []
    overhead = show_value(line.overhead, "s")
    if standing.counts.sum() < told:
        sentence = f"Left out: {many(rounds, 'round')} with more overhead ({overhead}) than work."
        return [_note(Code.SMALL_WORK, sentence, rounds=rounds, overhead_s=line.overhead)]
    sentence = (
        f"{rounds} of {many(told, 'round')} are more overhead ({overhead}) than work; they count, "
        "for the others are too few or too much alike: larger amounts would tell more."
    )
    return [_note(Code.OVERHEAD_DOMINATES, sentence, rounds=rounds, overhead_s=line.overhead)]


def _note(code: Code, sentence: str, **evidence: float) -> Notice:
    severity = Severity.WARNING if code is Code.OVERHEAD_DOMINATES else Severity.NOTE
    return Notice(code=code, severity=severity, sentence=sentence, evidence=evidence)


_FIXED_LEVELS = 3


def bisecting(n: int, rng: np.random.Generator) -> Floats:
    """Return n places from 0 to 1, evenly spaced, in the order 1/2, 1/4, 3/4, 1/8, 7/8, 3/8 ...

    They are van der Corput's midpoints (1935), each followed by its mirror image, so that no part
    of them rises. From the sixteenths on chance says which of the midpoints of one level comes
    next: what disturbs every fourth round would otherwise meet the same half of the amounts each
    time (coverage 0.58).

    Examples
    --------
    >>> bisecting(5, np.random.default_rng(1)).tolist()
    [0.5, 0.25, 0.75, 0.0, 1.0]
    """
    shares: list[float] = [0.5]
    for level in range(1, n.bit_length()):
        pairs = [(2 * pair + 1) / 2.0 ** (level + 1) for pair in range(2 ** (level - 1))]
        if level < _FIXED_LEVELS:
            shares += [share for each in pairs for share in (each, 1.0 - each)]
            continue
        for pair in rng.permutation(len(pairs)):
            both = (pairs[pair], 1.0 - pairs[pair])
            shares += both if rng.random() < 0.5 else both[::-1]
    return _places(np.array(shares[:n]))


def shuffled(n: int, rng: np.random.Generator) -> Floats:
    """Return n places from 0 to 1, evenly spaced, in random order."""
    return _places(rng.random(n))


def _places(shares: Floats) -> Floats:
    places: Floats = np.argsort(np.argsort(shares)) / max(shares.size - 1, 1)
    return places


def as_next_work(hook: object) -> NextWork | None:
    """Return the hook that chooses amounts, or None where there is none."""
    if hook is None or callable(hook):
        return hook
    raise InvalidInput(f"next_work is {hook!r}, expected a function of a plan, or None")


def with_work(plan: RoundPlan, work: object) -> RoundPlan:
    """Return the plan with another work amount; as it is where that is None."""
    if work is None:
        return plan
    checked = check_work(work)
    if checked.problems or isinstance(checked.work, tuple):
        raise InvalidInput(f"next_work returned {work!r}, expected a number above 0, or None")
    return replace(plan, work=checked.work)
