"""Designs: which points of a grid are measured, in which order, and where their searches begin."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Integral

import numpy as np
import scipy

from benchrigor.errors import MissingExtra
from benchrigor.model import Floats
from benchrigor.model.checks import is_number, refuse, wrong_number, wrong_values, wrong_whole
from benchrigor.workbench.surfaces.factors import Factor, Point, Space

_STARTS = 20
_CANDIDATES = 100
# What 20 starts for 100 candidates take grows with the square of the samples. This much takes up
# to 8 s of a busy core, at some 50 microseconds for each determinant.
_MOST_WORK = 200_000
_MOST_DETERMINANTS = 60_000  # of one start
# How much all candidates count beside the design. Without them pydoe picks the first points by
# rounding errors: all the more different starts, but some never tell every term.
_SHARES = (1e-3, 0.0)


def d_optimal(space: Space, samples: int, *, seed: int) -> list[Point]:
    """Return the points of a grid that tell most about a quadratic model.

    They make the determinant of X'X as great as the exchanges of Fedorov (1972) can, of several
    starts; X has the constant and the terms of `Space.terms`.

    Parameters
    ----------
    space
        Whose grid has the candidates.
    samples
        How many to choose, all of them different.
    seed
        Of the starts. The same seed gives the same points.

    Returns
    -------
    list of points
        In no particular order, see `snake`.

    Raises
    ------
    InvalidInput
        With fewer samples than the model has terms, or more than the grid has points.
    MissingExtra
        When pydoe is not installed: ``pip install 'benchrigor[workbench]'``.

    Notes
    -----
    An exchange may end far from the best design, so up to 20 starts are tried, each with the
    candidates in another order. Of more than 100 candidates, or three times the samples, each start
    draws as many, by their weights in the best continuous design (`_weights`). The number of starts
    depends on the size of the problem only, not on a clock: 5 for 20 samples of 1,000 points.

    Examples
    --------
    >>> space = Space([Factor("threads", levels=[1, 2, 4, 8, 16], scale="log2")])
    >>> [point["threads"] for point in snake(space, d_optimal(space, 3, seed=1))]
    [1, 4, 16]
    """
    refuse(wrong_samples(space, samples), wrong_whole("seed", seed, least=0))
    grid = space.grid()
    terms = space.terms(grid)
    # A common factor leaves the order of determinants as it is, but pydoe counts an increase by
    # more than 1e-12 only, which those of many terms may never reach. That of the grid is made 1,
    # and then 2 keeps small designs above it.
    terms *= 2.0 * np.exp(-_log_determinant(terms) / (2 * terms.shape[1]))
    index_of = {row.tobytes(): index for index, row in enumerate(terms)}
    design = max(_choose_rows(terms, samples, seed), key=_log_determinant)
    return [grid[index_of[row.tobytes()]] for row in design]


def wrong_samples(space: Space, samples: object) -> list[str]:
    """Return what is wrong with the number of samples of a D-optimal design."""
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
    """Yield the rows that each start chooses."""
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
    """Return the share of each candidate in the best design of infinitely many samples.

    Silvey, Titterington & Torsney (1978): a weight is multiplied by the variance of the prediction
    over the number of terms, again and again. Good designs have few candidates of little weight.
    """
    model = _with_constant(terms)
    weights = np.full(len(model), 1.0 / len(model))
    for _ in range(100):
        information = (model.T * weights) @ model
        weights *= np.sum(model @ np.linalg.inv(information) * model, axis=1) / model.shape[1]
    shares: Floats = weights / weights.sum()
    return shares


def far_apart(space: Space, samples: int, *, seed: int) -> list[Point]:
    """Return points of a grid that lie far from each other, those within it too.

    Of greedy choices from 20 random points the one whose least distance is the greatest (Johnson,
    Moore & Ylvisaker 1990, maximin), and of equal ones that whose other distances are.

    Parameters
    ----------
    space
        Whose grid has the candidates.
    samples
        How many to choose, all of them different; the whole grid where it has no more.
    seed
        Of the starts. The same seed gives the same points.

    Returns
    -------
    list of points
        In no particular order, see `snake`.

    Raises
    ------
    InvalidInput
        When ``samples`` is no whole number above 0.

    Examples
    --------
    >>> space = Space([Factor("threads", levels=[1, 2, 4, 8, 16], scale="log2")])
    >>> sorted(point["threads"] for point in far_apart(space, 3, seed=1))
    [1, 4, 16]
    """
    refuse(wrong_whole("samples", samples), wrong_whole("seed", seed, least=0))
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
    """Choose rows one by one, each the farthest from those before, ties by chance."""
    chosen = [int(random.integers(len(rows)))]
    nearest = np.linalg.norm(rows - rows[chosen[0]], axis=1)
    while len(chosen) < samples:
        farthest = np.flatnonzero(nearest >= nearest.max() - 1e-9)
        chosen.append(int(random.choice(farthest)))
        nearest = np.minimum(nearest, np.linalg.norm(rows - rows[chosen[-1]], axis=1))
    return chosen


def _apart(rows: Floats) -> tuple[float, float]:
    """Return the least distance, and what is the greater the fewer are nearly as small."""
    if len(rows) == 1:
        return 0.0, 0.0
    distances = scipy.spatial.distance.pdist(rows)
    return round(float(distances.min()), 9), -float(np.sum(distances**-4.0))


def snake(space: Space, points: Sequence[Point]) -> list[Point]:
    """Return points in the order in which they are measured, to and fro through the grid.

    The dearer a change of a factor, the less often it changes. On a full grid successive points
    differ by one level of one factor. Where changes cost the same, the configuration changes less
    often than the workload, and then an earlier factor less often than a later one.

    Parameters
    ----------
    space
        Of the points.
    points
        Any of it, in any order.

    Returns
    -------
    list of points
        The same ones.

    Raises
    ------
    InvalidInput
        With a point that is not of the space.

    Examples
    --------
    >>> space = Space([Factor("load", [1, 2], workload=True), Factor("fs", ["ext4", "xfs"])])
    >>> [(point["fs"], point["load"]) for point in snake(space, space.grid())]
    [('ext4', 1), ('ext4', 2), ('xfs', 2), ('xfs', 1)]
    """
    refuse(problem for point in points for problem in space.wrong_point(point))
    dearest = sorted(space.factors, key=lambda factor: (-factor.change_s, factor.workload))
    return _to_and_fro(space, dearest, list(points))


def _to_and_fro(space: Space, factors: Sequence[Factor], points: list[Point]) -> list[Point]:
    """Return points level by level of the first factor, each level from its end that is nearer."""
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
    """Return where the search for the peak of a point may begin.

    Parameters
    ----------
    space
        Of the points.
    finished
        Points whose peaks are known, with these.
    point
        The next one.

    Returns
    -------
    float or None
        The peak of the nearest finished point of the same categories (the first of several), by
        coded levels; the median of all peaks where there is none of these categories; None before
        one is finished.

    Raises
    ------
    InvalidInput
        With a point that is not of the space, or a peak that is not above 0.

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
    refuse(
        space.wrong_point(point),
        (problem for known, _ in finished for problem in space.wrong_point(known)),
        (problem for _, peak in finished for problem in wrong_number("a peak", peak)),
    )
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
