"""The best configuration on several hosts: a choice asks for turns, and takes their results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.checks import attempt, listed, refuse, wrong_number, wrong_settings
from benchrigor.model.one_line import OneLine, Reported
from benchrigor.model.series import Floats, short
from benchrigor.stats.series.interval import StandardError, exponential, student_t, t_interval
from benchrigor.workbench.designs import (
    Answer,
    Point,
    read_answer,
    relative_error,
    show_point,
)
from benchrigor.workbench.planning.steps import AskedPlans
from benchrigor.workbench.settings import CHOICE, wrong_hosts

BEST, EQUIVALENT, UNDECIDED = "best", "equivalent", "undecided"
ANY_HOST, THESE_HOSTS = "hosts like these", "these hosts only"
_FEWEST = 4  # hosts that represent others
_LATEST = 16  # turns before the first look
_MOST_TURNS = 4  # of a host without a budget
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTurn(OneLine):
    """Configurations that one host measures, one after the other.

    Parameters
    ----------
    id
        Counted from 0.
    host
        Its name.
    points
        The configurations, in the order of measurement.
    """

    id: int
    host: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Reported):
    """The recommended configuration.

    Parameters
    ----------
    point
        The configuration; the leading one if undecided. None if none was measured.
    verdict
        "best"; "equivalent", if no other one is better by more than the margin; or "undecided".
    scope
        "hosts like these", or "these hosts only" if fewer than four were measured.
    prediction
        The ratio of its answer to the best other one on a new host. None if no two hosts can be
        compared.
    notices
        Warnings and notes for the reader.
    rivals
        The others that may still be better.
    """

    _facts = "benchrigor.workbench.maps.map_report:facts_of_choice"
    _sheet = "benchrigor.workbench.sheets:sheet_of_choice"

    point: Point | None
    verdict: str
    scope: str
    prediction: Estimate | None
    notices: tuple[Notice, ...] = ()
    rivals: tuple[Point, ...] = ()


class BestChoice:
    """Find the best of some configurations on the mean over hosts.

    It measures nothing itself: the caller asks for turns, measures them and passes the results
    back. In a turn one host measures all configurations that are still in the race. All turns
    before the next look at the results may be under way at the same time.

    Parameters
    ----------
    points
        The configurations, two or more, such as the leading ones of a map.
    hosts
        Their names.
    margin
        Relative difference that does not matter.
    confidence
        Probability that the best configuration neither leaves the race nor loses to the choice.
    budget_s
        The limit of the total cost of turns; None for up to four turns per host, which also holds
        while turns have no cost.
    direction
        "higher" or "lower": which answers are better.
    seed
        Of the orders within turns.

    Raises
    ------
    InvalidInput
        When an argument is out of range, points or hosts are equal; all problems at once.

    Notes
    -----
    The statistic is d = ln(one / other) of two configurations in the same turn, in which the pace
    of the host cancels. Its lower bound is `mean_over_hosts` less t standard errors. A bound above
    0 ends the race of the other (Maron & Moore 1994). A configuration that beats all others is
    "best"; if all its bounds are above -margin it is "equivalent". The first look is after one turn
    per host (from 4 to 16 turns; two per host with fewer than four hosts), then whenever the turns
    have doubled, and at the end. Look k spends (1 - confidence) / 2^k, in total less than 1 -
    confidence (Lan & DeMets 1983, with the share 1 - 2^-k spent up to look k), divided by the
    number of configurations (Bonferroni): any of the others might seem to beat the best one.

    If hosts differ, more turns on them add little certainty; more hosts do. The race ends when
    further turns on these hosts would not decide it, even if the means were better by two standard
    errors of their noise, and the hosts differed by two standard errors less.

    Examples
    --------
    >>> paces = {"ash": 1.0, "elm": 1.3, "fir": 0.8, "oak": 1.1}
    >>> choice = BestChoice([{"threads": 4}, {"threads": 8}, {"threads": 16}], [*paces])
    >>> while (turn := choice.ask()) is not None:
    ...     rates = [paces[turn.host] * (90.0 + point["threads"]) for point in turn.points]
    ...     choice.tell(turn, [(rate, 0.99 * rate, 1.01 * rate) for rate in rates])
    >>> found = choice.result()
    >>> found.point, found.verdict, found.scope
    ({'threads': 16}, 'best', 'hosts like these')
    """

    def __init__(
        self,
        points: Sequence[Point],
        hosts: Sequence[str],
        *,
        margin: float = 0.02,
        confidence: float = 0.95,
        budget_s: float | None = None,
        direction: str = "higher",
        seed: int = 1,
    ) -> None:
        given, problems = locals(), list[str]()
        configurations = attempt(problems, listed, points, "points", "configuration")
        names = attempt(problems, listed, hosts, "hosts", "name")
        refuse(
            problems,
            _wrong_points(configurations or []),
            wrong_hosts("hosts", names or []),
            wrong_settings(CHOICE, given),
        )
        self._points = [dict(point) for point in configurations or []]
        self._hosts: list[str] = names or []
        self._margin, self._confidence, self._budget_s = margin, confidence, budget_s
        self._sign, self._seed = 1.0 if direction == "higher" else -1.0, seed
        self._race = list(range(len(self._points)))
        self._failed: set[int] = set()
        self._bounded: set[int] = set()  # only known to be better than a bound, in some turn
        self._asked = AskedPlans[HostTurn]("turn")
        self._where: list[str] = []  # the hosts of finished turns
        self._logs: list[Floats] = []  # by configuration, the greater the better; NaN without one
        self._errors: list[Floats] = []
        self._spent_s = 0.0
        self._looks, self._seen = 0, 0  # their number, and the turns finished by the last one
        several = len(self._hosts) * (2 if len(self._hosts) < _FEWEST else 1)
        self._next = min(max(several, _FEWEST), _LATEST)  # turns at the next look
        self._verdict, self._chosen = UNDECIDED, -1
        self._is_futile = False

    def ask(self) -> HostTurn | None:
        """Return the next turn; None if the results so far call for no further one."""
        is_waiting = bool(self._asked.under_way)
        if self._verdict != UNDECIDED or (is_waiting and len(self._asked.numbers) >= self._next):
            return None
        if not self._may_go_on():
            if not is_waiting and self._seen < len(self._where):
                self._look()
            return None
        number = self._asked.first_free
        order = np.random.default_rng([self._seed, number]).permutation(self._race)
        turn = HostTurn(
            id=number,
            host=self._hosts[number % len(self._hosts)],
            points=tuple(self._points[index] for index in order),
        )
        return self._asked.add(turn)

    def tell(
        self,
        turn: HostTurn,
        estimates: Sequence[Answer | None],
        *,
        better_than: Sequence[float | None] = (),
        cost_s: float = 0.0,
    ) -> None:
        """Add the result of a turn.

        Parameters
        ----------
        turn
            As `ask` returned it.
        estimates
            In the order of its points: an Estimate, or value, low and high. None for a point that
            does not work on this host; it leaves the race.
        better_than
            In the same order: bounds of points without an estimate that are only known to be
            better. A bound is not a value: such a point stays in the race, but cannot lose it.
        cost_s
            Its cost in seconds.

        Raises
        ------
        PlanMismatch
            When the turn was not asked for, or already has a result.
        InvalidInput
            For a wrong number of estimates, or those that are not above 0 or not in their interval;
            for a bound of a point with an estimate.
        """
        self._asked.check(turn)
        problems = wrong_number("cost_s", cost_s, zero=True)
        answers = attempt(problems, listed, estimates, "estimates", "Estimate") or []
        if answers and len(answers) != len(turn.points):
            expected = f"as many as the turn has points, {len(turn.points)}"
            problems.append(f"estimates are {len(answers)}, expected {expected}")
        logs, errors = np.full((2, len(self._points)), math.nan)
        bounds = dict(enumerate(better_than))
        failed, bounded = set[int](), set[int]()
        for number, (point, answer) in enumerate(zip(turn.points, answers, strict=False)):
            index, bound = self._points.index(dict(point)), bounds.get(number)
            if bound is not None:
                said = f"better_than[{number}]"
                problems += wrong_number(said, bound)
                problems += [f"{said} is next to an estimate, expected None"] * (answer is not None)
            if answer is None:
                (failed if bound is None else bounded).add(index)
                continue
            name = f"estimates[{number}]"
            read = attempt(problems, read_answer, name, answer, self._confidence)
            if read is not None:
                logs[index], errors[index] = math.log(read.value), relative_error(read)
        refuse(problems)
        self._asked.end(turn)
        self._where.append(turn.host)
        self._logs.append(self._sign * logs)
        self._errors.append(errors)
        self._spent_s += cost_s
        self._failed |= failed
        self._bounded |= bounded
        self._race = [index for index in self._race if index not in self._failed]
        if len(self._where) >= self._next:
            self._next *= 2
            self._look()

    def recall(self, turn: HostTurn, estimates: Sequence[Answer | None], **rest: Any) -> None:
        """Add a finished turn of an earlier process; call it in the original order.

        Unfinished turns with smaller numbers are asked again.
        """
        self.tell(self._asked.add(turn), estimates, **rest)

    def withdraw(self, turn: HostTurn) -> None:
        """Forget a turn with a lost host, and ask for no further turn on that host."""
        self._asked.recall(turn)
        self._hosts = [host for host in self._hosts if host != turn.host]

    def result(self) -> Choice:
        """Return the choice, also before the last turn."""
        hosts = sorted(set(self._where))
        chosen = self._chosen if self._verdict != UNDECIDED else self._leader()
        few = len(hosts) < _FEWEST
        notices = []
        if hosts and few:
            names = ", ".join(hosts)
            notices.append(Notice.of(Code.FEW_HOSTS, names_=names, hosts=len(hosts)))
        for case, without in (("failed", self._failed), ("bounded", self._bounded)):
            if without:
                names = "; ".join(show_point(self._points[index]) for index in sorted(without))
                n = len(without)
                notices.append(Notice.of(Code.SAMPLES_WITHOUT_NUMBER, case, names_=names, n=n))
        if self._is_futile:
            notices.append(Notice.of(Code.FEW_HOSTS, "futile", hosts=len(hosts)))
        prediction = None
        if chosen is None:
            notices.append(Notice.of(Code.NO_DATA, "choice", turns=len(self._where)))
        else:
            notices += self._disagreements(chosen)
            prediction = self._predict(chosen)
        return Choice(
            point=None if chosen is None else dict(self._points[chosen]),
            verdict=self._verdict,
            scope=THESE_HOSTS if few else ANY_HOST,
            prediction=prediction,
            notices=tuple(notices),
            rivals=tuple(dict(self._points[index]) for index in self._race if index != chosen),
        )

    def _may_go_on(self) -> bool:
        if len(self._race) < 2 or not self._hosts or self._is_stuck() or self._is_futile:
            return False
        if self._budget_s is None or self._spent_s == 0.0:
            return len(self._asked.numbers) < _MOST_TURNS * len(self._hosts)
        each_s = self._spent_s / sum(np.isfinite(logs).sum() for logs in self._logs)
        more = len(self._race) + sum(len(turn.points) for turn in self._asked.under_way)
        return bool(self._spent_s + more * each_s <= self._budget_s)

    def _is_stuck(self) -> bool:
        """Whether bounds prevent a decision: a point without values, or several with bounds."""
        bounded = self._bounded & {*self._race}
        without = [index for index in bounded if np.isnan(np.array(self._logs)[:, index]).all()]
        return len(bounded) > 1 or (self._looks > 0 and bool(without))

    def _look(self) -> None:
        """Decide on the choice, and on the configurations that leave the race."""
        self._looks += 1
        self._seen = len(self._where)
        self._is_futile = False
        tail = (1.0 - self._confidence) / 2.0**self._looks / len(self._points)
        bounds = {
            one: {other: self._bound(one, other, tail) for other in self._race if other != one}
            for one in self._race
        }
        beaten = {other for own in bounds.values() for other in own if own[other] > _ROUNDING}
        least = {one: min(own.values(), default=math.inf) for one, own in bounds.items()}
        self._race = [index for index in self._race if index not in beaten]
        if not self._race:
            return
        self._chosen = max(self._race, key=lambda one: least[one])
        if len(self._race) == 1:
            self._verdict = BEST
        elif least[self._chosen] > -self._margin:
            self._verdict = EQUIVALENT
        else:
            self._is_futile = not self._may_decide(tail / 2.0)

    def _may_decide(self, tail: float) -> bool:
        """Whether further turns might bring a decision, at chance ``tail`` in the next look."""
        reach = {
            one: [self._reach(one, other, tail) for other in self._race if other != one]
            for one in self._race
        }
        may_beat = any(bound > 0.0 for own in reach.values() for bound in own)
        return may_beat or any(min(own) > -self._margin for own in reach.values())

    def _reach(self, one: int, other: int, tail: float) -> float:
        """Return the greatest bound that further turns may bring on the same hosts.

        It assumes turns without noise, and a mean and a spread that are better by two standard
        errors of the noise so far. A single turn on a host does not show its noise: intervals of
        answers may be too narrow.
        """
        if other in self._bounded:
            return -math.inf
        differences = self._differences(one, other)
        again = [len(logs) for host, logs in differences.items() if host in self._hosts]
        if len(differences) < _FEWEST or min(again, default=0) < 2:
            return math.inf
        noise = np.array([self._error(host, one, other) for host in differences])
        means = np.array([np.mean(logs) for logs in differences.values()])
        hosts = math.sqrt(means.size)
        luck = 2.0 * float(np.linalg.norm(noise)) / hosts  # of the spread, and of the sum below
        apart = max(float(np.std(means, ddof=1)) - luck, 0.0)
        best = float(np.mean(means)) + luck / hosts
        return best - student_t(means.size - 1.0, 1.0 - 2.0 * tail) * apart / hosts

    def _bound(self, one: int, other: int, tail: float) -> float:
        """Return the lower bound of the mean over hosts of ln(one / other), at chance ``tail``."""
        differences = self._differences(one, other)
        if other in self._bounded or not differences:
            return -math.inf
        mean, error = mean_over_hosts(differences.values())
        if error is None:
            return -math.inf
        return mean - student_t(error.degrees_of_freedom, 1.0 - 2.0 * tail) * error.value

    def _differences(self, one: int, other: int) -> dict[str, Floats]:
        """Return ln(one / other) in the turns that have both, by host."""
        logs = np.array(self._logs)
        found: Floats = logs[:, one] - logs[:, other]
        where, known = np.array(self._where), np.isfinite(found)
        return {host: found[known & (where == host)] for host in sorted({*where[known].tolist()})}

    def _leader(self) -> int | None:
        """Return the leader of the race on the mean over hosts."""
        if not self._race or not self._logs:
            return None
        first = max(self._race, key=lambda one: np.isfinite(self._logs)[:, one].sum())
        means = {
            one: mean_over_hosts(differences.values())[0]
            for one in self._race
            if (differences := self._differences(one, first))
        }
        return max(means, key=means.__getitem__, default=None)

    def _predict(self, chosen: int) -> Estimate | None:
        """Predict the ratio of the choice to the best other one on a new host; None from one."""
        others = {*range(len(self._points))} - {chosen} - self._failed
        differences = [self._differences(chosen, other) for other in sorted(others)]
        known = [[float(np.mean(logs)) for logs in own.values()] for own in differences if own]
        logs = np.array(min(known, key=np.mean, default=[]))
        hosts = logs.size
        if hosts < 2:
            return None
        # That of a future value of a normal distribution (Whitmore 1986).
        error = float(np.std(logs, ddof=1)) * math.sqrt(1.0 + 1.0 / hosts)
        log = t_interval(
            self._sign * float(np.mean(logs)),
            StandardError(error, hosts - 1.0),
            self._confidence,
            n=hosts,
            n_effective=float(hosts),
            method="prediction for a new host",
        )
        return exponential(log)

    def _disagreements(self, chosen: int) -> Iterable[Notice]:
        """Name the configurations that are better than the choice on some hosts, worse on others.

        The probability of a wrong name is limited to 1 - confidence (Bonferroni).
        """
        level = (1.0 - self._confidence) / (len(self._points) - 1)
        swapped = []
        for other in range(len(self._points)):
            differences = {} if other == chosen else self._differences(other, chosen)
            means = {host: float(np.mean(logs)) for host, logs in differences.items()}
            errors = [self._error(host, other, chosen) for host in means]
            if len(means) > 1 and swap_chance([*means.values()], errors) <= level:
                better = ", ".join(host for host, mean in means.items() if mean > 0.0)
                swapped.append(f"{show_point(self._points[other])} is better on {better}")
        if swapped:
            names, point = "; ".join(swapped), show_point(self._points[chosen])
            figures = {"which_": names, "chosen_": point, "configurations": len(swapped)}
            yield Notice.of(Code.HOSTS_DISAGREE, **figures)

    def _error(self, host: str, one: int, other: int) -> float:
        """Return the error of a host's mean difference: by its estimates, or between its turns."""
        own = np.array(self._where) == host
        errors = np.hypot(*np.array(self._errors)[own][:, [one, other]].T)
        errors = errors[np.isfinite(errors)]
        seen = self._differences(one, other)[host]
        apart = float(np.std(seen, ddof=1)) if len(seen) > 1 else 0.0
        return max(math.hypot(*errors) / len(errors), apart / math.sqrt(len(seen)))


def mean_over_hosts(differences: Iterable[Floats]) -> tuple[float, StandardError | None]:
    """Return the mean over hosts of differences, and its standard error if turns show one.

    Parameters
    ----------
    differences
        The differences in turns, by host.

    Returns
    -------
    tuple
        Four or more hosts are a sample of all hosts: the error comes from the means of H hosts,
        s / sqrt(H) with H - 1 degrees of freedom (Student 1908). It includes the noise of turns,
        which falls with their number; unequal numbers make it conservative (Benjamini 1983).
        Fewer hosts are the whole population, and strata of the mean: the error is sqrt(sum of s^2 /
        T_h) / H (Cochran 1977, section 5.4), with s^2 pooled over the T_h turns of hosts, and
        sum of T_h - H degrees of freedom.

    Examples
    --------
    >>> import numpy as np
    >>> mean, error = mean_over_hosts(np.array([[0.01], [0.02], [0.04], [0.05]]))
    >>> round(mean, 3), round(error.value, 4), error.degrees_of_freedom
    (0.03, 0.0091, 3.0)
    """
    turns = list(differences)
    means = np.array([np.mean(logs) for logs in turns])
    mean, hosts = float(np.mean(means)), len(turns)
    if hosts >= _FEWEST:
        return mean, StandardError(float(np.std(means, ddof=1)) / math.sqrt(hosts), hosts - 1.0)
    freedom = float(sum(len(logs) - 1 for logs in turns))
    if freedom == 0.0:
        return mean, None
    variance = sum(float(np.var(logs)) * len(logs) for logs in turns) / freedom
    error = math.sqrt(variance * sum(1.0 / len(logs) for logs in turns)) / hosts
    return mean, StandardError(error, freedom)


def swap_chance(differences: Sequence[float], errors: Sequence[float]) -> float:
    """Return the p-value of the hypothesis that true differences on all hosts have the same sign.

    The likelihood ratio test for qualitative interactions of Gail & Simon (1985): the smaller sum
    of squares (d / error)^2 of one sign, against a mixture of chi-squared distributions with 1 to
    H - 1 degrees of freedom, weighted as the binomial (H - 1, 1/2).

    Examples
    --------
    >>> round(swap_chance([0.10, -0.10], [0.02, 0.02]), 8), swap_chance([0.1, 0.2], [0.02, 0.02])
    (2.9e-07, 1.0)
    """
    squares = np.square(np.divide(differences, errors))
    up = np.greater(differences, 0.0)
    least = float(min(squares[up].sum(), squares[~up].sum()))
    if least == 0.0:
        return 1.0
    freedoms = np.arange(1, len(squares))
    weights = scipy.special.binom(len(squares) - 1, freedoms) * 0.5 ** (len(squares) - 1)
    return float(weights @ scipy.special.chdtrc(freedoms, least))


def _wrong_points(points: Sequence[object]) -> Iterable[str]:
    if len(points) == 1:
        yield "points are a single one, expected at least two"
    for index, point in enumerate(points):
        if not isinstance(point, Mapping) or not point:
            yield f"points[{index}] is {short(point)}, expected a level of each factor"
        elif point in points[:index]:
            yield f"points[{index}] is {short(point)} again, expected different ones"
