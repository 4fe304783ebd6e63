"""Designs: the points of a grid to measure, their order, and the start of their searches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Integral

import numpy as np
import scipy

from benchrigor.errors import MissingExtra
from benchrigor.model.checks import is_number, wrong_values
from benchrigor.model.series import Floats
from benchrigor.workbench.surfaces.samples import Factor, Point, Space

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
