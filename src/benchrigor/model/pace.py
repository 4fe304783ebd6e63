"""The pace of a machine while something was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from benchrigor.model.one_line import OneLine

INTERPRETER = "interpreter"  # kind of the reference: byte code
# A bare start of the interpreter: wall time, processor time, and the rest, without delay.
COMMAND, COMMAND_CPU, COMMAND_REST = "command", "command cpu", "command rest"


def reference_s(full_s: Mapping[str, float]) -> float:
    """Return the time at full speed by which readings are scaled: processor time for commands.

    Examples
    --------
    >>> reference_s({"interpreter": 4e-6}), reference_s({"command": 0.02, "command cpu": 0.01})
    (4e-06, 0.01)
    """
    return full_s[COMMAND_CPU if COMMAND_CPU in full_s else INTERPRETER]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace(OneLine):
    """Speed of a machine during a run, from a reference (fixed work) timed between readings.

    Parameters
    ----------
    full_s
        By kind of reference, its seconds at full speed: the fastest level that it holds for a real
        share of its time, in this run and in earlier ones on this machine.
    version
        Version of the reference.
    mean, slowest, fastest
        Pace relative to full speed (1; slower is below 1): the mean over all readings that count,
        and the slowest and fastest block of wall time. For commands, the pace of processor time.
    blocks
        Number of blocks of wall time; for commands, the number of reference starts.
    ratio
        Mean reading divided by the mean reference.
    sensitivity, sensitivity_sd
        Percentage by which a reading slows down when the reference slows down by 1 %, and its
        standard deviation.
    factor
        Factor from the mean of all segments to full speed.
    error
        Relative standard error of the level at full speed, from blocks of time alone.
    between
        Assumed relative standard deviation between runs that the reference does not explain; for
        runs in pieces, between processes.
    by_piece
        Levels of pieces or invocations at full speed; None for one without references. Empty for
        other runs, and if too few invocations have references.
    level
        Mean at full speed, in the unit of the readings; None for commands, for work amounts, and if
        too few invocations have references: then only the factor is known.
    distance
        Logarithm of the pace between the segments that give the level and the fastest references.
        None if it is the distance of the whole run from full speed.
    fastest_reference
        Logarithm of the fastest level of the run over full speed; None for commands.
    to_full, to_full_sd
        Percentage by which a reading slows down for 1 % of that distance, and its standard
        deviation.
    at_full
        Number of segments near the fastest references that give the level; 0 if all segments do.
    busy
        Share of the readings, without waiting, during which a processor worked, 0 to 1. The pace
        changes this part only. 1 if it was not measured.
    widening
        Factor on the width of the headline from the spread of stored runs; below 1 it narrows.
    reducible
        Share of the variance of the headline that more readings reduce, 0 to 1.
    """

    full_s: Mapping[str, float]
    version: int
    mean: float
    slowest: float
    fastest: float
    blocks: int
    ratio: float
    sensitivity: float
    sensitivity_sd: float
    factor: float
    error: float
    between: float
    by_piece: tuple[float | None, ...] = ()
    level: float | None = None
    distance: float | None = None
    fastest_reference: float | None = None
    to_full: float = 0.0
    to_full_sd: float = 0.0
    at_full: int = 0
    busy: float = 1.0
    widening: float = 1.0
    reducible: float = 1.0

    @property
    def away(self) -> float:
        """Logarithm of the pace from the segments that give the level to full speed."""
        return -math.log(self.mean) if self.distance is None else self.distance

    @property
    def of_command(self) -> bool:
        """Whether the reference is a bare start of the interpreter, as for commands."""
        return COMMAND in self.full_s

    @property
    def share(self) -> float:
        """Time at full speed over measured time, of the commands or else of the reference."""
        return min(self.factor if self.of_command else self.mean, 1.0)
