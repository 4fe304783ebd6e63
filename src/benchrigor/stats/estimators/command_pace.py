"""The time of commands at the full speed of the machine, from bare starts in turn with them.

The wall time of a command is its processor time, its measured delay, and a rest. At full speed the
processor time is shorter by the pace of the bare starts, and there is no delay.

The rest includes uncounted waiting: until the parent runs again, and while another system has the
processor. The rest of a bare start is uncounted waiting alone; so is the rest of a command that
never gave a processor up. A command that sleeps or waits for data has a rest of its own. It lies
between the whole rest, and the rest beyond that of the starts (their mean or minimum): a command
that sleeps has less uncounted waiting than one that runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchrigor.model.pace import COMMAND, COMMAND_CPU, COMMAND_REST, Pace
from benchrigor.model.series import Floats, Ints
from benchrigor.stats.estimators.pace import Sensitivity, of_busy
from benchrigor.stats.series.interval import block_starts
from benchrigor.stats.statistics.statistic import MEAN, Statistic

# Learned on the recording of docs/evidence/results/pace_commands.jsonl.
SENSITIVITY, SENSITIVITY_SD = 0.95, 0.15
_START_SD = 0.12  # of the log processor time of a start within a run
FEWEST_STARTS = 4  # in 5 % of the second that a run lasts at least
_BLOCKS = 8
BETWEEN = 0.02  # relative sd between runs that is left
_LEAST_HIT = 0.55  # chance that none of all starts is among the least hit, whose share follows
_PARALLEL = 0.05  # share of the time up to which threads with work at once matter little
_END = 1  # times that a process gives a processor up which never waits: when it ends


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Invocations:
    """Times of commands and of bare starts of the reference, in seconds.

    Parameters
    ----------
    wall, cpu, waited
        Wall time, processor time and measured delay of each command, shape (n,).
    switches
        How often each command gave a processor up by itself; infinite if unknown.
    starts
        Times of the bare starts by kind: wall time, processor time, and the rest of the wall time
        without processor time and delay, each of shape (k,).
    after
        Number of commands that had ended before each bare start, shape (k,).
    together
        Summed waiting of the threads of each command beyond the waiting of one thread at a time,
        shape (n,); None if unknown.
    """

    wall: Floats
    cpu: Floats
    waited: Floats
    switches: Floats
    starts: Mapping[str, Floats]
    after: Ints
    together: Floats | None = None

    @property
    def are_parallel(self) -> bool:
        """Whether several threads had work at once.

        Then neither the processor time nor the delay of all threads lies on the path of the wall
        time, and cannot be subtracted from it.
        """
        beyond = self.cpu + self.waited - self.wall
        together = 0.0 if self.together is None else float(self.together.sum())
        return max(float(beyond.sum()), together) > _PARALLEL * float(self.wall.sum())

    @property
    def share(self) -> float:
        """The share of the time without delay that was processor time."""
        cpu_s = float(self.cpu.sum())
        return cpu_s / max(float((self.wall - self.waited).sum()), cpu_s)

    @property
    def rest(self) -> Floats:
        """What is neither processor time nor delay, 0 of those that never gave a processor up."""
        return np.where(self.switches > _END, self.wall - self.cpu - self.waited, 0.0)


def command_pace(
    invocations: Invocations,
    full_s: Mapping[str, float],
    value: float,
    *,
    version: int,
    statistic: Statistic = MEAN,
    sensitivity: Sensitivity | None = None,
) -> Pace | None:
    """Return the pace of the machine during commands, with the factor of their level to full speed.

    Parameters
    ----------
    invocations
        Commands and starts.
    full_s
        Of the starts by kind, at full speed.
    value
        The level measured, by the statistic.
    version
        Of the reference.
    sensitivity
        Of the wall time; None for that of most commands.

    Returns
    -------
    Pace or None
        None with fewer than 4 starts, and of commands whose threads had work at once.
    """
    starts = invocations.starts
    relative = starts[COMMAND_CPU] / full_s[COMMAND_CPU]
    if relative.size < FEWEST_STARTS or invocations.wall.size < 2 or invocations.are_parallel:
        return None
    share = invocations.share
    known = of_busy(sensitivity, share)
    slope, sd = (SENSITIVITY, SENSITIVITY_SD) if known is None else known[:2]
    slower = max(float((relative**slope).mean()), 1.0)
    least, whole, rest_error = _levels(invocations, slower, full_s[COMMAND_REST], statistic)
    residuals, blocks = _blocks(invocations, np.log(relative), slope)
    error = _START_SD / math.sqrt(relative.size)  # few blocks may be alike by chance
    if residuals.size > 1:
        error = max(error, float(residuals.std(ddof=1)) / math.sqrt(residuals.size))
    part = least / whole
    return Pace(
        full_s=dict(full_s),
        version=version,
        mean=min(math.exp(-float(np.log(relative).mean())), 1.0),
        slowest=min(math.exp(-float(blocks.max())), 1.0),
        fastest=min(math.exp(-float(blocks.min())), 1.0),
        blocks=relative.size,
        ratio=float(invocations.wall.mean()) / float(starts[COMMAND].mean()),
        sensitivity=share * slope,
        sensitivity_sd=share * sd,
        factor=min(whole / value, 1.0),
        error=math.hypot(part * error, rest_error),
        between=part * BETWEEN,
        busy=share,
    )


def _levels(
    invocations: Invocations, slower: float, full_rest_s: float, statistic: Statistic
) -> tuple[float, float, float]:
    """Return the level without and with the rest at full speed, and the relative error of the rest.

    What is their own of it lies anywhere between all and what is beyond that of starts.
    """

    def level(times: Floats) -> float:
        return statistic.value_of(times) + full_rest_s

    busy, rest, of_starts = invocations.cpu, invocations.rest, invocations.starts[COMMAND_REST]
    least = level(busy / slower)
    if float(rest.mean()) <= 0.0:
        return least, least, 0.0
    waiting = rest != 0.0
    share = float(waiting.mean())
    most = max(level(busy / slower + np.where(waiting, rest - full_rest_s, 0.0)), least)
    common = of_starts.mean() + of_starts.std() / math.sqrt(of_starts.size - 1.0) - full_rest_s
    # Of a sleep nearly all of it. A sleep of which the kernel counts a part as delay is rare.
    hardly_hit = 1.0 - _LEAST_HIT ** (1.0 / of_starts.size)
    floor = np.quantile(rest[waiting], hardly_hit) - of_starts.min()
    low = max(most - share * max(float(common), 0.0), least + share * float(floor), least)
    low = min(low, most)
    whole = math.sqrt(low * most)
    spread = math.log(most / low) / math.sqrt(12.0)  # of anywhere between
    own = float(rest.std()) / math.sqrt(rest.size) / whole
    return least, whole, math.hypot(spread, own)


def _blocks(invocations: Invocations, pace: Floats, slope: float) -> tuple[Floats, Floats]:
    """Return log processor time at full speed, and log pace, of blocks of equal wall time."""
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
