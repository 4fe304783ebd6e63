"""The pace of a machine while something was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from benchrigor.model.one_line import OneLine

INTERPRETER = "interpreter"  # kind of the reference: byte code
# A bare start of the interpreter: wall time, processor time, and what is neither that nor delay.
COMMAND, COMMAND_CPU, COMMAND_REST = "command", "command cpu", "command rest"


def reference_s(full_s: Mapping[str, float]) -> float:
    """Return the time at full pace by which readings are scaled: of commands processor time.

    Examples
    --------
    >>> reference_s({"interpreter": 4e-6}), reference_s({"command": 0.02, "command cpu": 0.01})
    (4e-06, 0.01)
    """
    return full_s[COMMAND_CPU if COMMAND_CPU in full_s else INTERPRETER]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietPace(OneLine):
    """What the reference takes on a machine while nothing else runs there.

    Parameters
    ----------
    seconds
        By kind of that work.
    sd
        Standard deviation of their logarithm.
    runs
        How many quiet runs show it; 0 where the run's own references stand in for them.
    """

    seconds: Mapping[str, float]
    sd: float
    runs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace(OneLine):
    """How fast a machine was during a run, by fixed work timed in turn with the readings.

    Parameters
    ----------
    full_s
        By kind of that work, seconds that it takes at full pace: the best level so far of this
        machine, interpreter and version of the work.
    version
        Of the work.
    mean, slowest, fastest
        The pace, 1 at full pace, below 1 where it was slower: over all readings that count, and of
        the slowest and the fastest of blocks of wall time. Of commands that of their processor
        time alone, as of starts.
    blocks
        How many there were; of commands, how many starts.
    ratio
        Mean reading over the mean time of that work beside it.
    sensitivity, sensitivity_sd
        By how many per cent a reading takes longer where that work takes 1 % longer, and the
        standard deviation of that.
    factor
        From the mean of all segments to that at full pace.
    error
        Relative standard error of the level at full pace, without those below.
    between
        Relative standard deviation between runs that the reference does not explain, assumed; of
        runs in pieces, between processes.
    by_piece
        The level of each piece, or invocation, at full pace; None for one without references.
        Empty for a run in one, and where not all invocations that count have enough.
    level
        The mean at full pace, in the unit of the readings; None of commands, of rounds of various
        work, and where not all invocations tell theirs: these have the factor alone.
    distance
        Of what tells the level from the fastest references of the run, as a logarithm: the
        sensitivity bridges it. None for that of the whole run from full pace.
    fastest_reference
        How far these are from full pace, as a logarithm: that is the machine, and where it is
        little, in part how they lie in the memory of the process. None of commands.
    at_full
        How many segments between two of them, or nearly, tell the level; 0 where all do.
    busy
        Share of the readings, without their waiting, during which a processor worked, 0 to 1. The
        pace changes that part alone. 1 of commands, whose parts are told apart elsewhere, and where
        it was not measured.
    quiet
        The quiet pace of the machine, to which the headline is brought.
    widening
        Factor by which the spread of stored runs widens the headline, or below 1 narrows it.
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
    at_full: int = 0
    busy: float = 1.0
    quiet: QuietPace | None = None
    widening: float = 1.0
    reducible: float = 1.0

    @property
    def away(self) -> float:
        """How far what tells the level is from where the sensitivity takes it, as a logarithm."""
        return -math.log(self.mean) if self.distance is None else self.distance

    @property
    def of_command(self) -> bool:
        """Whether it is that of commands, by a bare start of the interpreter."""
        return COMMAND in self.full_s

    @property
    def share(self) -> float:
        """The time at full pace over that taken: of commands theirs, else that of the reference."""
        return min(self.factor if self.of_command else self.mean, 1.0)
