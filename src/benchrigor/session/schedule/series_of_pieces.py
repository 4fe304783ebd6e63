"""The readings of a run in pieces, as one series per piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from benchrigor.model import Notice, Options
from benchrigor.model.analysis import Kind
from benchrigor.model.series import Floats
from benchrigor.stats.statistics.variance_components import MIN_PIECES, few_pieces

T = TypeVar("T")


def by_piece(
    pieces: Sequence[int], parts: Sequence[T], join: Callable[[Sequence[T]], T]
) -> list[T]:
    """Join the successive parts of every piece."""
    whole: dict[int, list[T]] = {}
    for piece, part in zip(pieces, parts, strict=True):
        whole.setdefault(piece, []).append(part)
    return [parts[0] if len(parts) == 1 else join(parts) for parts in whole.values()]


def first_pieces(options: Options) -> int:
    """Return from how many pieces on their levels make an interval: one look before the last."""
    return min(MIN_PIECES - 1, max(2, options.pieces - 1))


def in_pieces(
    series: Sequence[Floats], options: Options
) -> tuple[Kind, tuple[Floats, ...], tuple[Notice, ...]]:
    """Return kind and series of readings in pieces; few pieces are one series so far."""
    if len(series) >= first_pieces(options):
        return Kind.PIECES, tuple(series), ()
    return Kind.UNIT_READINGS, (np.concatenate(series),), (few_pieces(len(series), options.pieces),)
