"""The one number that all that looks like chance is derived from."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from benchrigor.errors import InvalidInput

__all__ = ["check_seed", "draw_seed"]


def draw_seed() -> int:
    """Return a seed that the system's own entropy gives."""
    return int(np.random.SeedSequence().generate_state(1)[0])


def check_seed(seed: object) -> int:
    """Return the seed, or raise InvalidInput unless it is a whole number of 0 or more."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise InvalidInput(f"seed is {seed!r}, expected a whole number of 0 or more")
    return int(seed)
