"""What commands would take at the full pace of the machine, by bare starts in turn with them.

A process waits in places where nobody counts it: until it first runs, until the one that started it
runs again, while another system has the processor. What is neither processor time nor measured
delay is about as long for any command of the same time and machine, and hardly anything where the
machine is idle; of a bare start of the interpreter it is nothing else. So a command's time at full
pace is its processor time, by that of such starts, and what is left of it beyond theirs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchrigor.model import Floats, Pace
from benchrigor.model.pace import COMMAND, COMMAND_CPU, COMMAND_REST
from benchrigor.model.series import Ints
from benchrigor.stats.estimators.pace import BETWEEN
from benchrigor.stats.series.wall_time_blocks import block_starts

# Learned on the recording of docs/evidence/pace_commands.py.
SENSITIVITY, SENSITIVITY_SD = 0.95, 0.15
_START_SD = 0.12  # of the log processor time of a start within a run
FEWEST_STARTS = 4  # in 5 % of the second that a run lasts at least
_BLOCKS = 8
# Standard errors, of skewed times: beyond it a command does more than run and wait.
_STANDS_OUT = 4.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Invocations:
    """What commands and starts of the reference took, in seconds.

    Parameters
    ----------
    wall, cpu, waited
        Wall time, processor time and measured delay of each command, shape (n,).
    starts
        Of the reference the same by kind: wall time, processor time, and what is left of the wall
        time without processor time and delay, each of shape (k,).
    after
        How many commands had ended before each of these, shape (k,).
    """

    wall: Floats
    cpu: Floats
    waited: Floats
    starts: Mapping[str, Floats]
    after: Ints

    @property
    def rest(self) -> Floats:
        """What is neither processor time nor measured delay; negative of several processors."""
        return self.wall - self.cpu - self.waited


def command_pace(
    invocations: Invocations,
    full_s: Mapping[str, float],
    value: float,
    *,
    version: int,
    q: float | None = None,
    sensitivity: tuple[float, float] | None = None,
) -> Pace | None:
    """Return the pace of the machine during commands, with the factor of their level to full pace.

    Parameters
    ----------
    invocations
        Commands and starts.
    full_s
        Of the starts by kind, at full pace.
    value
        The level measured: the mean, or the quantile ``q``.
    version
        Of the reference.
    sensitivity
        Of the processor time, with its standard deviation; None for that of most commands.

    Returns
    -------
    Pace or None
        None with fewer than 4 starts.
    """
    starts = invocations.starts
    relative = starts[COMMAND_CPU] / full_s[COMMAND_CPU]
    if relative.size < FEWEST_STARTS or invocations.wall.size < 2:
        return None
    slope, sd = sensitivity or (SENSITIVITY, SENSITIVITY_SD)
    rest, rest_error = _own_rest(invocations.rest, starts[COMMAND_REST])
    busy = invocations.cpu * max(1.0 + min(rest / float(invocations.cpu.mean()), 0.0), 0.0)
    level = float(busy.mean() if q is None else np.quantile(busy, q))
    at_full = level / float((relative**slope).mean())
    whole = at_full + max(rest, 0.0) + full_s[COMMAND_REST]
    residuals, blocks = _blocks(invocations, np.log(relative), slope)
    error = _START_SD / math.sqrt(relative.size)  # few blocks may be alike by chance
    if residuals.size > 1:
        error = max(error, float(residuals.std(ddof=1)) / math.sqrt(residuals.size))
    return Pace(
        full_s=dict(full_s),
        version=version,
        mean=math.exp(-float(np.log(relative).mean())),
        slowest=math.exp(-float(blocks.max())),
        fastest=math.exp(-float(blocks.min())),
        blocks=residuals.size,
        ratio=float(invocations.wall.mean()) / float(starts[COMMAND].mean()),
        sensitivity=slope,
        sensitivity_sd=sd,
        factor=whole / value,
        error=math.hypot(error * at_full, rest_error) / whole,
        between=BETWEEN,
    )


def _own_rest(rest: Floats, of_starts: Floats) -> tuple[float, float]:
    """Return the mean rest of commands beyond that of starts, where it stands out, and its error.

    Negative where commands ran on several processors: then it is not what they waited.
    """
    if (mean := float(rest.mean())) < 0.0:
        return mean, 0.0
    apart = mean - float(of_starts.mean())
    error = math.sqrt(rest.var(ddof=1) / rest.size + of_starts.var(ddof=1) / of_starts.size)
    return (apart, error) if apart > _STANDS_OUT * error else (0.0, 0.0)


def _blocks(invocations: Invocations, pace: Floats, slope: float) -> tuple[Floats, Floats]:
    """Return log processor time at full pace, and log pace, of blocks of equal wall time."""
    count = min(_BLOCKS, pace.size // 2)
    first = block_starts(invocations.wall, blocks=count)
    edges = np.searchsorted(invocations.after, first, side="right")
    edges[0] = 0
    sizes = np.diff(edges, append=pace.size)
    kept = sizes > 0
    paces = np.add.reduceat(pace, edges[kept]) / sizes[kept]
    lengths = np.diff(first, append=invocations.cpu.size)
    levels = np.log(np.add.reduceat(invocations.cpu, first) / lengths)
    return levels[kept] - slope * paces, paces
