"""Factors of a map, points as coordinates of a model, samples there, and designs that choose them.

Commands, URLs and limits have places for the levels of factors: ``{threads}``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import combinations, product
from numbers import Integral
from typing import Any

import numpy as np
import scipy

from benchrigor.errors import InvalidInput, MissingExtra
from benchrigor.model import Estimate
from benchrigor.model.checks import (
    attempt,
    is_number,
    listed,
    refuse,
    wrong_choice,
    wrong_number,
    wrong_quantity,
    wrong_values,
)
from benchrigor.model.notice import Code, Notice
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import Floats, short
from benchrigor.stats.series.interval import student_t
from benchrigor.workbench.data import estimate_of

Level = float | str
Point = Mapping[str, Level]
CATEGORY = "category"
_SCALES: dict[str, Callable[[Floats], Floats]] = {
    "linear": np.asarray,
    "log2": np.log2,
    "log10": np.log10,
}
SCALES = (*_SCALES, CATEGORY)


def show_point(point: Point) -> str:
    """Show the levels by factor.

    Examples
    --------
    >>> show_point({"disks": 4, "fs": "xfs"})
    'disks 4, fs xfs'
    """
    return ", ".join(f"{name} {level}" for name, level in point.items())


@dataclass(frozen=True, slots=True)
class Factor(OneLine):
    """A property of a configuration or a workload that a map varies.

    Parameters
    ----------
    name
        Its name in points and in the places of commands ("{name}").
    levels
        The levels to try, two or more: numbers, or texts.
    scale
        The expected scale of its effect: "linear", "log2", "log10", or "category", which has no
        order. None for "category" if a level is a text, else "linear".
    change_s
        Seconds that a change between two samples costs.
    workload
        Whether it belongs to the workload: then the configuration stays when it changes.

    Raises
    ------
    InvalidInput
        With fewer than two levels, equal levels, or levels that do not fit the scale.

    Examples
    --------
    >>> threads = Factor("threads", levels=[1, 2, 4, 8], scale="log2")
    >>> [round(threads.coded(level), 2) for level in threads.levels]
    [-1.0, -0.33, 0.33, 1.0]
    """

    name: str
    levels: Sequence[Level]
    _: KW_ONLY
    scale: str | None = None
    change_s: float = 0.0
    workload: bool = False

    def __post_init__(self) -> None:
        is_named = isinstance(self.name, str) and self.name.isidentifier()
        problems = [] if is_named else [f"name is {short(self.name)}, expected a word"]
        problems += wrong_number(f"change_s of {self.name}", self.change_s, zero=True)
        levels = attempt(problems, listed, self.levels, f"levels of {self.name}", "level") or []
        scale = self.scale
        if scale is None:
            scale = CATEGORY if any(isinstance(level, str) for level in levels) else "linear"
        wrong = wrong_choice(f"scale of {self.name}", scale, SCALES)
        problems += wrong or list(_wrong_levels(self.name, levels, scale))
        refuse(problems)
        object.__setattr__(self, "levels", tuple(levels))
        object.__setattr__(self, "scale", scale)

    @property
    def is_category(self) -> bool:
        """Whether its levels have no order."""
        return self.scale == CATEGORY

    def coded(self, level: Level) -> float:
        """Return a level from -1, the lowest, to 1; or the index of a category's level."""
        return float(self.codes([{self.name: level}])[0])

    def codes(self, points: Sequence[Point]) -> Floats:
        """Return the coded levels of points."""
        levels = [point[self.name] for point in points]
        if self.is_category:
            index_of = {level: index for index, level in enumerate(self.levels)}
            return np.array([index_of[level] for level in levels], dtype=np.float64)
        scaled = _SCALES[str(self.scale)]
        low, high = scaled(np.array([*self._ends()]))
        found: Floats = 2.0 * (scaled(np.array(levels, dtype=np.float64)) - low) / (high - low) - 1
        return found

    def wrong_level(self, level: object) -> list[str]:
        """Return the problems of a level of a point; a number may lie between levels."""
        if self.is_category:
            known = " or ".join(map(repr, self.levels))
            fits = level in self.levels
            return [] if fits else [f"{self.name} is {short(level)}, expected {known}"]
        low, high = self._ends()
        if is_number(level) and low <= level <= high:
            return []
        return [f"{self.name} is {short(level)}, expected a number from {low:g} to {high:g}"]

    def _ends(self) -> tuple[float, float]:
        numbers: Any = self.levels
        return float(min(numbers)), float(max(numbers))


def _is_finite(level: Any) -> bool:
    return is_number(level) and math.isfinite(level)


def _wrong_levels(name: str, levels: Sequence[Any], scale: str) -> Iterable[str]:
    if len(levels) < 2:
        yield f"levels of {name} are {short(levels)}, expected at least two"
        return
    if scale == CATEGORY:
        wrong = (level for level in levels if not isinstance(level, str) and not _is_finite(level))
        for level in wrong:
            yield f"a level of {name} is {short(level)}, expected a text or a finite number"
            return
        if len(set(map(str, levels))) < len(levels):
            yield f"levels of {name} are {short(levels)}, expected different ones"
        return
    for level in levels:
        if not _is_finite(level) or (scale != "linear" and level <= 0.0):
            above = "" if scale == "linear" else f" above 0, since its scale is {scale}"
            yield f"a level of {name} is {short(level)}, expected a finite number{above}"
            return
    scaled = np.sort(_SCALES[scale](np.array(levels, dtype=np.float64)))
    size = max(*np.abs(scaled), 0.0 if scale == "linear" else 1.0)
    if np.diff(scaled).min() <= 1e-12 * size:
        yield f"levels of {name} are {short(levels)}, expected different ones on a {scale} scale"


def spread(factor: Factor, count: int) -> list[float]:
    """Return ``count`` levels of a numeric factor, from lowest to highest, evenly on its scale."""
    ends = [float(level) for level in factor.levels]
    space = np.linspace if factor.scale == "linear" else np.geomspace
    levels: list[float] = space(min(ends), max(ends), count).tolist()
    return levels


@dataclass(frozen=True, slots=True)
class Space:
    """All points of some factors.

    Raises
    ------
    InvalidInput
        Without a factor, or when two have the same name.

    Examples
    --------
    >>> space = Space([Factor("disks", levels=[1, 2]), Factor("fs", levels=["ext4", "xfs"])])
    >>> len(space.grid()), space.coordinates([{"disks": 2, "fs": "xfs"}]).tolist()
    (4, [[1.0, 0.0, 1.0]])
    """

    factors: Sequence[Factor]

    def __post_init__(self) -> None:
        factors = listed(self.factors, "factors", "Factor")
        problems = [
            f"a factor is {short(factor)}, expected a Factor"
            for factor in factors
            if not isinstance(factor, Factor)
        ]
        names = [factor.name for factor in factors if isinstance(factor, Factor)]
        problems += [
            f"two factors are named {name!r}, expected different names"
            for name in sorted({name for name in names if names.count(name) > 1})
        ]
        refuse(problems)
        object.__setattr__(self, "factors", tuple(factors))

    def grid(self) -> list[Point]:
        """Return all combinations of levels, the last factor varying most often."""
        names = [factor.name for factor in self.factors]
        levels = product(*(factor.levels for factor in self.factors))
        return [dict(zip(names, own, strict=True)) for own in levels]

    def wrong_point(self, point: object) -> list[str]:
        """Return the problems of a point."""
        names = {factor.name for factor in self.factors}
        if not isinstance(point, Mapping) or {*point} != names:
            return [f"a point is {short(point)}, expected a level of each of {sorted(names)}"]
        return [
            problem for factor in self.factors for problem in factor.wrong_level(point[factor.name])
        ]

    def key(self, point: Point) -> tuple[Level, ...]:
        """Return the levels of a point; equal points have equal keys."""
        return tuple(point[factor.name] for factor in self.factors)

    def coordinates(self, points: Sequence[Point]) -> Floats:
        """Return a row per point: numbers from -1 to 1, and a 1 for the level of a category.

        A category has one column per level.
        """
        columns: list[Floats] = []
        for factor in self.factors:
            coded = factor.codes(points)
            if factor.is_category:
                columns.extend(
                    (coded == index).astype(np.float64) for index in range(len(factor.levels))
                )
            else:
                columns.append(coded)
        return np.column_stack(columns)

    def terms(self, points: Sequence[Point]) -> Floats:
        """Return the terms of a quadratic model at points, without its constant.

        They are the effects of numbers, and of all levels of a category but the first (-1 at the
        first, so that effects are around the mean), the products of two effects of different
        factors, and the squares of numbers with three levels or more.
        """
        effects: list[list[Floats]] = []
        squares: list[Floats] = []
        for factor in self.factors:
            coded = factor.codes(points)
            if factor.is_category:
                first = (coded == 0.0).astype(np.float64)
                effects.append([(coded == index) - first for index in range(1, len(factor.levels))])
                continue
            effects.append([coded])
            if len(factor.levels) > 2:
                squares.append(coded**2)
        products = [
            one * other
            for own, further in combinations(effects, 2)
            for one in own
            for other in further
        ]
        linear = [column for own in effects for column in own]
        return np.column_stack([*linear, *products, *squares])

    def distances(self, points: Sequence[Point], origin: Point) -> Floats:
        """Return the distances of points from ``origin`` in coded units.

        All factors count equally; two categories are as far apart as the ends of numbers.
        """
        parts = []
        for factor in self.factors:
            own, *coded = factor.codes([origin, *points])
            apart = np.array(coded) - own
            parts.append(2.0 * (apart != 0.0) if factor.is_category else apart)
        distance: Floats = np.sqrt(np.sum(np.square(parts), axis=0))
        return distance


# {{name}} is the text {name}, and ${name} belongs to a shell.
_PLACE = re.compile(r"\{\{(?P<text>[^\W\d]\w*)\}\}|(?<!\$)\{(?P<name>[^\W\d]\w*)\}")


def places_in(item: Any) -> Iterator[str]:
    """Yield the names of places in a text, or in the texts of plain data.

    Examples
    --------
    >>> [*places_in(["serve", "--threads={threads}", "${HOME}", "{{literally}}"])]
    ['threads']
    """
    if isinstance(item, str):
        yield from (found["name"] for found in _PLACE.finditer(item) if found["name"])
    elif isinstance(item, Mapping | list | tuple):
        for inner in item.values() if isinstance(item, Mapping) else item:
            yield from places_in(inner)


def fill_places(item: Any, point: Point, *, again: bool = False) -> Any:
    """Return texts with the levels of a point in their places; other places stay as they are.

    Arguments of a command are filled one by one, so a level with a space is still one argument.
    Texts to be filled ``again`` later keep their ``{{name}}``.

    Examples
    --------
    >>> fill_places(["serve", "{fs}", "{{fs}} {load}", "{gib}GiB"], {"fs": "my xfs", "gib": 2.0})
    ['serve', 'my xfs', '{fs} {load}', '2GiB']
    """
    if isinstance(item, str):
        return _PLACE.sub(lambda found: _level(found, point, again=again), item)
    if isinstance(item, Mapping):
        return {name: fill_places(inner, point, again=again) for name, inner in item.items()}
    if isinstance(item, list | tuple):
        return type(item)(fill_places(inner, point, again=again) for inner in item)
    return item


def _level(found: re.Match[str], point: Point, *, again: bool) -> str:
    if found["text"]:
        return found[0] if again else f"{{{found['text']}}}"
    level = point.get(found["name"], found[0])
    return str(int(level) if isinstance(level, float) and level.is_integer() else level)


Answer = Estimate | tuple[float, float, float]
_LEAST_ERROR = 1e-4  # relative, of an answer that counts as exact


def read_answer(name: str, answer: object, confidence: float) -> Estimate:
    """Return an answer, an Estimate or value, low and high, as an Estimate above 0."""
    if isinstance(answer, tuple) and len(answer) == 3:
        answer = estimate_of(*answer, confidence=confidence, n=1, method="told")
    if not isinstance(answer, Estimate):
        raise InvalidInput(f"{name} is {short(answer)}, expected an Estimate or three numbers")
    refuse(wrong_quantity(name, answer))
    if answer.low <= 0.0:
        raise InvalidInput(f"{name} is {answer.value!r} from {answer.low!r}, expected more than 0")
    return answer


def relative_error(estimate: Estimate) -> float:
    """Return the standard error over the value: by the delta method, the error of its logarithm.

    A disturbed estimate may be off by anything up to the share of its time that others took.
    """
    error = estimate.standard_error
    if error is None:
        error = estimate.half_width / student_t(math.inf, estimate.confidence)
    lost = max(map(lost_share, estimate.notices), default=0.0)
    return math.hypot(max(error / estimate.value, _LEAST_ERROR), lost / math.sqrt(3.0))


def lost_share(notice: Notice) -> float:
    """Return the share of the time that other work took, as a notice says; 0 if it says none."""
    percent = notice.evidence.get("measured_percent") if notice.code is Code.DISTURBED else None
    return percent / 100.0 if isinstance(percent, int | float) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MapSample(OneLine):
    """A point that a map asks to measure.

    Parameters
    ----------
    id
        Counted from 0.
    point
        The levels by factor.
    seed_load
        The first load of a search for a peak: the peak of the nearest finished sample; None before
        the first one.
    accuracy
        Target relative half-width of the answer.
    """

    id: int
    point: Mapping[str, Level]
    seed_load: float | None = None
    accuracy: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(OneLine):
    """The result of a sample.

    Parameters
    ----------
    sample
        The sample that the map asked for.
    estimates
        By response; empty for a sample that failed, or if its answer is only known to be beyond a
        limit.
    at_least, at_most
        Bounds of an answer without a value: the peak was not reached, or the lowest load exceeded
        the limits.
    host
        The host that measured it; None if unknown.
    cost_s
        Its cost in seconds.
    reason
        Why estimates are missing.
    """

    sample: MapSample
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    at_least: float | None = None
    at_most: float | None = None
    host: str | None = None
    cost_s: float = 0.0
    reason: str | None = None

    @property
    def lost_share(self) -> float:
        """The share of its time that other work took, as its estimates say."""
        notices = (notice for one in self.estimates.values() for notice in one.notices)
        return max(map(lost_share, notices), default=0.0)

    def lacks(self, response: str) -> bool:
        """Return whether a response has neither an estimate nor a bound."""
        return response not in self.estimates and self.at_least is None and self.at_most is None


def weak_samples(samples: Sequence[Measured]) -> Iterable[Notice]:
    """Report the samples without a number, which models ignore, and those that others disturbed."""
    lost = [sample for sample in samples if not sample.estimates]
    beyond = sum(sample.at_least is not None or sample.at_most is not None for sample in lost)
    if lost:
        since = f", {beyond} of them since the answer is beyond a limit" if beyond else ""
        figures = {"samples": len(samples), "beyond": beyond}
        yield Notice.of(Code.SAMPLES_WITHOUT_NUMBER, lost_=len(lost), since_=since, **figures)
    shares = [sample.lost_share for sample in samples if sample.lost_share]
    if shares:
        n, most = len(shares), max(shares)
        yield Notice.of(Code.DISTURBED, "samples", samples=n, all_=len(samples), most=most)


_STARTS = 20
_CANDIDATES = 100
# The time of 20 starts for 100 candidates grows with the square of the samples. This limit takes up
# to 8 s of a busy core, at some 50 microseconds per determinant.
_MOST_WORK = 200_000
_MOST_DETERMINANTS = 60_000  # of one start
# The weight of all candidates in addition to the design. Without it pydoe picks the first points by
# rounding errors: starts differ all the more, but some never determine every term.
_SHARES = (1e-3, 0.0)


def d_optimal(space: Space, samples: int, *, seed: int) -> list[Point]:
    """Return the points of a grid that determine a quadratic model best.

    They have the greatest determinant of X'X that exchanges (Fedorov 1972) from several starts
    reach; X has the constant and the terms of `Space.terms`.

    Parameters
    ----------
    space
        Its grid has the candidates.
    samples
        The number to choose, all of them different; see `wrong_samples`.
    seed
        Of the starts. The same seed gives the same points.

    Returns
    -------
    list of points
        In no particular order, see `snake`.

    Raises
    ------
    MissingExtra
        When pydoe is not installed: ``pip install 'benchrigor[workbench]'``.

    Notes
    -----
    An exchange may end far from the best design, so up to 20 starts are tried, with the candidates
    in different orders. If the grid is larger than 100 points, or three times the samples, a start
    draws that number of candidates, by their weights in the best continuous design (`_weights`).
    The number of starts depends on the size of the problem, not on a clock: 5 for 20 samples of
    1,000 points.

    Examples
    --------
    >>> space = Space([Factor("threads", levels=[1, 2, 4, 8, 16], scale="log2")])
    >>> [point["threads"] for point in snake(space, d_optimal(space, 3, seed=1))]
    [1, 4, 16]
    """
    grid = space.grid()
    terms = space.terms(grid)
    # A common factor does not change the order of determinants. But pydoe ignores increases below
    # 1e-12, and determinants of many terms may be smaller. So the determinant of the grid is made
    # 1, and then the factor 2 keeps small designs above it.
    terms *= 2.0 * np.exp(-_log_determinant(terms) / (2 * terms.shape[1]))
    index_of = {row.tobytes(): index for index, row in enumerate(terms)}
    design = max(_choose_rows(terms, samples, seed), key=_log_determinant)
    return [grid[index_of[row.tobytes()]] for row in design]


def wrong_samples(space: Space, samples: object) -> list[str]:
    """Return the problems of the number of samples of a D-optimal design."""
    grid = space.grid()
    needed = 1 + space.terms(grid[:1]).shape[1]
    fits = is_number(samples, Integral) and needed <= samples <= len(grid)
    limits = f"from {needed}, the terms of the model, to {len(grid)}, the points of the grid"
    return wrong_values([("samples", samples, fits, f"a whole number {limits}")])


def _log_determinant(terms: Floats) -> float:
    """Return the logarithm of det(X'X / n), X with a constant."""
    model = _with_constant(terms)
    return float(np.linalg.slogdet(model.T @ model / len(model))[1])


def _with_constant(terms: Floats) -> Floats:
    return np.column_stack([np.ones(len(terms)), terms])


def _choose_rows(terms: Floats, samples: int, seed: int) -> Iterable[Floats]:
    """Yield the chosen rows by start."""
    try:
        from pydoe import optimal_design  # type: ignore[import-untyped]  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise MissingExtra("a D-optimal design", package="pydoe", extra="workbench") from error
    random = np.random.default_rng(seed)
    weights = _weights(terms)
    candidates = min(len(terms), max(_CANDIDATES, 3 * samples))
    exchanges = min(samples, _MOST_DETERMINANTS // (samples * candidates))
    for start in range(max(1, min(_STARTS, _MOST_WORK // (samples**2 * candidates)))):
        drawn = random.choice(len(terms), candidates, replace=False, p=weights)
        rows = terms[random.permutation(drawn)]
        design, _ = optimal_design(
            rows,
            samples,
            degree=1,
            criterion="D",
            method="fedorov",
            max_iter=exchanges,
            alpha=_SHARES[start % 2],
        )
        yield design


def _weights(terms: Floats) -> Floats:
    """Return the shares of candidates in the best design of infinitely many samples.

    Silvey, Titterington & Torsney (1978): a weight is repeatedly multiplied by the variance of the
    prediction over the number of terms. Good designs have few candidates of little weight.
    """
    model = _with_constant(terms)
    weights = np.full(len(model), 1.0 / len(model))
    for _ in range(100):
        information = (model.T * weights) @ model
        weights *= np.sum(model @ np.linalg.inv(information) * model, axis=1) / model.shape[1]
    shares: Floats = weights / weights.sum()
    return shares


def far_apart(space: Space, samples: int, *, seed: int) -> list[Point]:
    """Return points of a grid that lie far from each other, also inside of it.

    Greedy choices begin at 20 random points. The one with the greatest least distance wins
    (Johnson, Moore & Ylvisaker 1990, maximin); the other distances decide a tie.

    Parameters
    ----------
    space
        Its grid has the candidates.
    samples
        The number to choose, all of them different; up to the whole grid.
    seed
        Of the starts. The same seed gives the same points.

    Returns
    -------
    list of points
        In no particular order, see `snake`.

    Examples
    --------
    >>> space = Space([Factor("threads", levels=[1, 2, 4, 8, 16], scale="log2")])
    >>> sorted(point["threads"] for point in far_apart(space, 3, seed=1))
    [1, 4, 16]
    """
    grid = space.grid()
    if samples >= len(grid):
        return grid
    # Columns of a category are as far from each other as the ends of numbers, see `distances`.
    factors = space.factors
    scale = [math.sqrt(2.0) if one.is_category else 1.0 for one in factors for _ in _columns(one)]
    rows = space.coordinates(grid) * scale
    random = np.random.default_rng(seed)
    choices = [_greedy(rows, samples, random) for _ in range(_STARTS)]
    return [grid[index] for index in max(choices, key=lambda chosen: _apart(rows[chosen]))]


def _columns(factor: Factor) -> range:
    return range(len(factor.levels) if factor.is_category else 1)


def _greedy(rows: Floats, samples: int, random: np.random.Generator) -> list[int]:
    """Choose rows one by one, always the farthest from the previous ones, ties by chance."""
    chosen = [int(random.integers(len(rows)))]
    nearest = np.linalg.norm(rows - rows[chosen[0]], axis=1)
    while len(chosen) < samples:
        farthest = np.flatnonzero(nearest >= nearest.max() - 1e-9)
        chosen.append(int(random.choice(farthest)))
        nearest = np.minimum(nearest, np.linalg.norm(rows - rows[chosen[-1]], axis=1))
    return chosen


def _apart(rows: Floats) -> tuple[float, float]:
    """Return the least distance, and a score that falls with the number of nearly equal ones."""
    if len(rows) == 1:
        return 0.0, 0.0
    distances = scipy.spatial.distance.pdist(rows)
    return round(float(distances.min()), 9), -float(np.sum(distances**-4.0))


def snake(space: Space, points: Sequence[Point]) -> list[Point]:
    """Return points in the order of measurement, to and fro through the grid.

    Factors with costly changes change less often. On a full grid successive points differ by one
    level of one factor. If changes cost the same, the configuration changes less often than the
    workload, and then an earlier factor less often than a later one.

    Parameters
    ----------
    space
        Of the points.
    points
        Points of the space, in any order.

    Returns
    -------
    list of points
        The same ones.

    Examples
    --------
    >>> space = Space([Factor("load", [1, 2], workload=True), Factor("fs", ["ext4", "xfs"])])
    >>> [(point["fs"], point["load"]) for point in snake(space, space.grid())]
    [('ext4', 1), ('ext4', 2), ('xfs', 2), ('xfs', 1)]
    """
    dearest = sorted(space.factors, key=lambda factor: (-factor.change_s, factor.workload))
    return _to_and_fro(space, dearest, list(points))


def _to_and_fro(space: Space, factors: Sequence[Factor], points: list[Point]) -> list[Point]:
    """Return points by levels of the first factor; a level begins at its nearer end."""
    if not factors:
        return points
    first, *others = factors
    levels = [first.coded(point[first.name]) for point in points]
    order: list[Point] = []
    for level in sorted(set(levels)):
        own = [point for point, found in zip(points, levels, strict=True) if found == level]
        part = _to_and_fro(space, others, own)
        is_far = order and space.distances([part[0], part[-1]], order[-1]).argmin()
        order += part[::-1] if is_far else part
    return order


def seed_of(space: Space, finished: Sequence[tuple[Point, float]], point: Point) -> float | None:
    """Return the first load of the search for the peak of a point.

    Parameters
    ----------
    space
        Of the points.
    finished
        Points with known peaks, and these peaks.
    point
        The next one.

    Returns
    -------
    float or None
        The peak of the nearest finished point of the same categories (the first of several), by
        coded levels; the median of all peaks if none has these categories; None before the first.

    Notes
    -----
    Shivam et al. (USENIX ATC 2008).

    Examples
    --------
    >>> space = Space([Factor("disks", [1, 2, 3, 4]), Factor("fs", ["ext4", "xfs"])])
    >>> finished = [({"disks": 1, "fs": "xfs"}, 100.0), ({"disks": 4, "fs": "xfs"}, 300.0)]
    >>> seed_of(space, finished, {"disks": 3, "fs": "xfs"})
    300.0
    >>> seed_of(space, finished, {"disks": 3, "fs": "ext4"})
    200.0
    """
    if not finished:
        return None
    categories = [factor.name for factor in space.factors if factor.is_category]
    near = [
        (known, peak)
        for known, peak in finished
        if all(known[name] == point[name] for name in categories)
    ]
    if not near:
        return float(np.median([peak for _, peak in finished]))
    return near[int(space.distances([known for known, _ in near], point).argmin())][1]
