"""The order in which amounts of work come: midpoints of what is left, never a ramp."""

from __future__ import annotations

import numpy as np

from benchrigor.model import Floats

__all__ = ["bisecting", "shuffled"]

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
