"""The level of readings at the full speed of the machine, from a reference timed in turn with them.

The speed of a shared machine changes within a millisecond, and no counter of the kernel shows it.
The reference before and after a short segment of readings does. Segments between two slow
references, compared with segments between two fast ones, show how sensitive the readings are to
it. The mean of the segments between two references at the fastest level of a run, moved by the
distance of that from full speed, is the level at full speed.

The reference of commands is a bare start of the interpreter. The wall time of a command is its
processor time, its measured delay, and a rest. At full speed the processor time is shorter by the
pace of the bare starts, without any delay.

The rest includes uncounted waiting: until the parent runs again, and while another system has the
processor. The rest of a bare start is uncounted waiting alone; so is the rest of a command that
never gave a processor up. A command that sleeps or waits for data has a rest of its own. It lies
between the whole rest, and the rest beyond that of the starts (their mean or minimum): a command
that sleeps has less uncounted waiting than one that runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchrigor.model import Pace
from benchrigor.model.machine import COMMAND, COMMAND_CPU, COMMAND_REST, INTERPRETER
from benchrigor.model.series import Floats, Ints
from benchrigor.stats.series.full_speed import NEAR, SENSITIVITY, SENSITIVITY_SD, fastest_level
from benchrigor.stats.series.interval import block_starts
from benchrigor.stats.statistic import MEAN, Statistic

# The prior of the sensitivity, as a mixture of two kinds of work: their shares, means and standard
# deviations. Of 48 workloads on two kinds of processors, 30 were limited by the interpreter, and
# the others by something else; see docs/evidence/results/pace.jsonl.
_KINDS_OF_WORK = ((0.63, 1.0, 0.18), (0.37, 0.67, 0.36))
# The fastest moments of runs differ for other reasons than the moments of one run, above all by the
# clock of the machine: both sensitivities differ by as much.
_OTHER_WAY = 0.15
BETWEEN = 0.02  # relative sd between runs of one process that the reference does not explain
BETWEEN_OF_PROCESSES = 0.01  # of runs of several processes, which show part of it themselves
BETWEEN_RESTS = 0.003  # of the time in which no processor worked: how late sleeps end
BETWEEN_PROCESSES = 0.015  # the part of it that pieces of one process share
# The same for work that the pace of the interpreter does not limit, such as copies in memory.
BETWEEN_UNLIKE, UNLIKE = 0.04, 0.5
_CONTRAST = 0.03  # relative error of the contrast between segments at either pace
_DEPENDENT = 10.0  # neighbouring segments that are worth one independent segment
_DIFFERENCE = 0.03  # sd of the sensitivity between versions of the same work
_UNLIKELY = 3.0  # standard errors
_REAL = 0.05  # share of the ends of segments, from which on they show the fastest level of a run
# The fastest references of a run may differ from full speed because the machine is slower, or by
# their place in the memory of this process. So the work follows them by the share _FOLLOWS. From
# the distance _NEARLY on (a logarithm) more and more of it is the machine; all at twice that.
_FOLLOWS, _FOLLOWS_SD, _NEARLY = 0.6, 0.3, 0.15
_EXTREME = 0.1  # minimum share of segments that count as fast, and as slow
_SLOW = math.log(1.4)  # log of the reference over the fastest
_FEWEST_FAST = 10  # segments near the fastest level that show the sensitivity
_FEWEST_TELLING = 20  # and that show the level of readings
# Below this log contrast between slow and fast segments the jitter of the reference makes up much
# of the contrast, and the sensitivity comes out too small.
_LEAST_CONTRAST = 0.1
_INTERRUPTED = 2.0  # times the median: such a reference was interrupted, and shows no pace
FEWEST = 3  # segments between references; a long reading repeats the reference
_IN_BLOCK, _MOST_BLOCKS = 10, 16  # neighbouring segments resemble each other: they form blocks
_ENOUGH = 30  # segments that show the sensitivity, and that fill blocks of wall time
_LEAST_BUSY = 1e-3  # with a smaller share of work readings show no sensitivity
_COLD = 0.05  # relative sd of the cost of a preemption beyond the waiting: cold caches


class Sensitivity(NamedTuple):
    """By how many per cent work takes longer where the reference takes 1 % longer.

    Parameters
    ----------
    value, sd
        Between moments of a run, and its standard deviation.
    to_full, to_full_sd
        Between the fastest moments of a run and full speed, and its standard deviation.
    """

    value: float
    sd: float
    to_full: float
    to_full_sd: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Segments:
    """Segments of undisturbed readings, each between two references; arrays of shape (k,).

    Parameters
    ----------
    level
        Mean reading of the segment without its waiting, more than 0.
    busy
        Share of the level during which a processor worked, 0 to 1. Only this part follows the pace.
    before, after
        Seconds that the reference took before and after the segment.
    duration_s, waited_s
        Wall time of the segment, and its measured delay: 0 if disturbed readings are left out.
    piece
        Index of the piece of the run, from 0.
    """

    level: Floats
    busy: Floats
    before: Floats
    after: Floats
    duration_s: Floats
    waited_s: Floats
    piece: Ints

    @property
    def waited(self) -> float:
        """Share of their time that was waited."""
        return float(self.waited_s.sum() / self.duration_s.sum()) if self.level.size else 0.0

    def only(self, those: npt.NDArray[np.bool_]) -> Segments:
        """Return some of them."""
        return Segments(**{field.name: getattr(self, field.name)[those] for field in fields(self)})


def pace_of(
    segments: Segments,
    full_s: float,
    *,
    version: int,
    statistic: Statistic = MEAN,
    pieces: int = 1,
    processes: bool = False,
    sensitivity: Sensitivity | None = None,
) -> Pace | None:
    """Return the pace of the machine during segments, and their sensitivity to it.

    The sensitivity combines a prior with the contrast between slow and fast segments: the
    difference of the quartiles of their log levels, over the difference of their log paces. The
    pace inside a segment differs from the pace at its ends. If the pace flips at random between two
    states, and the mean of the ends moves by d, the mean inside moves by
    2 (1 - r) / (-log(r) (1 + r)) d, with r the correlation of the ends (the bridge of a telegraph
    process, averaged over the segment).

    The fastest moments are those at the fastest level of the run. They differ from full speed for
    other reasons, above all the clock frequency of the machine; the sensitivity to that is the same
    with a larger error.

    Only the time during which a processor worked follows the pace. Sleeping and waiting for data
    take the same time at any pace, and are added to the level as measured. For a quantile
    their share comes from the segments near it.

    Pieces are parts of one process; with ``processes`` each piece is a process.

    A known ``sensitivity`` refers to whole readings, and is used unchanged.

    None with fewer than 3 segments of references that were not interrupted.
    """
    segments = _leave_whole(segments)
    if segments.level.size < FEWEST:
        return None
    ends = np.stack([segments.before, segments.after]) / full_s
    log_ends, level, busy = np.log(ends), segments.level, segments.level * segments.busy
    share = _share(busy, level, statistic)
    nearest = math.log(fastest_level(ends.ravel(), real=_REAL).seconds)
    beyond = log_ends - nearest
    slope, sd, way, way_sd = of_busy(sensitivity, share) or _sensitivity(_log(busy), beyond)
    blocks = _blocks(log_ends, segments.duration_s)
    whole, (machine, unsure) = _level(busy, beyond, slope, sd), of_machine(nearest)
    between = _between(limits_otherwise(slope, sd), pieces > 1, processes)
    between = math.hypot(between, machine * way_sd, unsure * way)
    to_full, rest = math.exp(-way * machine), _of_group(level - busy, 0.0)
    part = share * to_full * whole.value / max(float(busy.mean()), 1e-300)
    factor = 1.0 - share + part
    part /= factor
    return Pace(
        full_s={INTERPRETER: full_s},
        version=version,
        mean=math.exp(-float(log_ends.mean())),
        slowest=math.exp(-float(blocks.max())),
        fastest=math.exp(-float(blocks.min())),
        ratio=float(level.mean()) / float(ends.mean() * full_s),
        sensitivity=share * slope,
        sensitivity_sd=share * sd,
        factor=(1.0 - segments.waited) * factor,
        error=math.hypot(part * whole.error, (1.0 - part) * rest.error, _COLD * segments.waited),
        between=math.hypot(part * between, (1.0 - part) * BETWEEN_RESTS),
        blocks=whole.blocks,
        by_piece=tuple(_by_piece(segments, beyond, (slope, sd), pieces, to_full)),
        level=to_full * whole.value + rest.value,
        distance=whole.distance,
        at_full=whole.at_full,
        fastest_reference=nearest,
        to_full=share * way,
        to_full_sd=share * way_sd,
        busy=share,
    )


def _leave_whole(segments: Segments) -> Segments:
    """Return the segments without an interrupted reference."""
    ends = np.stack([segments.before, segments.after])
    if not ends.size:
        return segments
    counted: npt.NDArray[np.bool_] = np.all(ends < _INTERRUPTED * np.median(ends), axis=0)
    return segments.only(counted)


def _blocks(log_ends: Floats, duration_s: Floats) -> Floats:
    """Return the mean logarithm of references in blocks of equal wall time, or of few segments."""
    n = duration_s.size
    starts = block_starts(duration_s) if n >= _ENOUGH else np.arange(n)
    means: Floats = np.add.reduceat(log_ends.mean(axis=0), starts) / np.diff(starts, append=n)
    return means


def _share(busy: Floats, level: Floats, statistic: Statistic) -> float:
    """Return the share of work in all segments, or in the tenth of them around a quantile."""
    near = statistic.near(level, _EXTREME)
    return float(busy[near].sum() / level[near].sum())


def _log(busy: Floats) -> Floats:
    """Return the logarithm of working times; a segment without work gets a small one."""
    floor = _LEAST_BUSY * float(busy.mean())
    return np.log(np.maximum(busy, floor)) if floor > 0.0 else np.zeros(busy.size)


def of_busy(sensitivity: Sensitivity | None, share: float) -> Sensitivity | None:
    """Return the sensitivity of the work alone, if work is that share of the readings."""
    if sensitivity is None or share < _LEAST_BUSY:
        return None
    return Sensitivity(*(part / share for part in sensitivity))


def _between(is_unlike: bool, in_pieces: bool, processes: bool) -> float:
    """Return the relative sd between runs, or between pieces of one process."""
    if in_pieces and not processes:
        return BETWEEN_PROCESSES
    if is_unlike:
        return BETWEEN_UNLIKE
    return BETWEEN_OF_PROCESSES if processes else BETWEEN


def of_machine(nearest: float) -> tuple[float, float]:
    """Return the machine's distance from full speed, given the fastest references; also its sd."""
    far = abs(nearest)
    either = min(far, _NEARLY) * min(max(2.0 - far / _NEARLY, 0.0), 1.0)
    return math.copysign(far - (1.0 - _FOLLOWS) * either, nearest), _FOLLOWS_SD * either


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """The mean of segments at full speed, and how it was found."""

    value: float
    distance: float  # bridged by the sensitivity, a logarithm
    error: float  # relative, without the sensitivity's
    blocks: int
    at_full: int


def _level(level: Floats, log_ends: Floats, slope: float, sd: float) -> _Level:
    """Return the mean of segments at the fastest pace of the run, from near segments or from all.

    Both means cross their remaining distance by the sensitivity. The mean pace inside a segment
    lies between the pace at its ends and the pace of all segments, see `pace_of`. The mean with the
    smaller error counts: the ends of a long segment say nothing about its inside, so that all
    segments are as good as those between two fast references.
    """
    around = log_ends.mean(axis=0)
    mean, share = float(around.mean()), _share_inside(log_ends)
    inside = mean + share * (around - mean)
    everything = _of_group(level / np.exp(slope * log_ends).mean(axis=0), mean)
    fast = log_ends.max(axis=0) <= NEAR
    if fast.sum() < _FEWEST_TELLING:
        return everything
    near = level[fast] * np.exp(-slope * inside[fast])
    nearby = _of_group(near, float(inside[fast].mean()), at_full=int(fast.sum()))
    unsure = (share - _least_share(log_ends)) * slope * (mean - float(around[fast].mean()))
    nearby = replace(nearby, error=math.hypot(nearby.error, unsure))
    return min((everything, nearby), key=lambda one: math.hypot(one.error, one.distance * sd))


def _of_group(moved_level: Floats, distance: float, at_full: int = 0) -> _Level:
    """Return the mean of a group of segments that were moved to full speed, in order of time."""
    value, size = float(moved_level.mean()), moved_level.size
    count = size if size < _ENOUGH else min(_MOST_BLOCKS, size // _IN_BLOCK)
    means = np.array([block.mean() for block in np.array_split(moved_level, count)])
    can_tell = value > 0.0 and count > 1
    error = float(means.std(ddof=1)) / math.sqrt(count) / value if can_tell else 0.0
    return _Level(value=value, distance=distance, error=error, blocks=count, at_full=at_full)


def common_sensitivity(
    one: Pace,
    two: Pace,
    others: Sequence[Pace] = (),
    *,
    to_full: tuple[float, float] | None = None,
) -> Sensitivity | None:
    """Return one sensitivity for two runs of similar work; None if theirs differ significantly.

    ``others`` are further runs of that work, and ``to_full`` is the known sensitivity to
    the distance from full speed; None takes it from the two. The error of a shared sensitivity
    counts only by the difference between the distances of the two runs.
    """
    variance = one.sensitivity_sd**2 + two.sensitivity_sd**2 + 2.0 * _DIFFERENCE**2
    if abs(one.sensitivity - two.sensitivity) > _UNLIKELY * math.sqrt(variance):
        return None
    known = (one, two, *others)
    weights = np.array([fit.sensitivity_sd**-2 for fit in known])
    mean = float(np.average([fit.sensitivity for fit in known], weights=weights))
    sd = float(weights.sum()) ** -0.5 * _own_error(one.away, two.away)
    far = _own_error(*(of_machine(pace.fastest_reference or 0.0)[0] for pace in (one, two)))
    best = min(one, two, key=lambda pace: pace.to_full_sd)
    way, way_sd = to_full or (best.to_full, best.to_full_sd)
    return Sensitivity(
        mean, math.hypot(_DIFFERENCE, sd), way, math.hypot(_DIFFERENCE, way_sd * far)
    )


def _own_error(one: float, two: float) -> float:
    """Return the share of a common error that remains in the difference of two distances."""
    return abs(one - two) / max(math.hypot(one, two), 1e-9)


def _by_piece(
    segments: Segments,
    log_ends: Floats,
    sensitivity: tuple[float, float],
    pieces: int,
    to_full: float,
) -> Iterator[float | None]:
    """Return the level of each of several pieces: ``to_full`` times its level at the fastest."""
    for piece in range(pieces if pieces > 1 else 0):
        mine = segments.piece == piece
        if not mine.any():
            yield None
            continue
        level = segments.level[mine]
        busy = level * segments.busy[mine]
        at_fastest = _level(busy, log_ends[:, mine], *sensitivity).value
        yield to_full * at_fastest + float((level - busy).mean())


def _sensitivity(log_level: Floats, log_ends: Floats) -> Sensitivity:
    """Return the sensitivity of segments to their pace, from a prior and their contrast."""
    found = _contrast(log_level, log_ends)
    if found is None:
        return Sensitivity(SENSITIVITY, SENSITIVITY_SD, SENSITIVITY, SENSITIVITY_SD)
    value, variance = found
    return Sensitivity(*_posterior(value, variance), *_posterior(value, variance + _OTHER_WAY**2))


def _posterior(value: float, variance: float) -> tuple[float, float]:
    """Return mean and standard deviation of a sensitivity that was measured with a variance."""
    weights, means, variances = [], [], []
    for share, mean, sd in _KINDS_OF_WORK:
        total = sd**2 + variance
        weights.append(share * math.exp(-0.5 * (value - mean) ** 2 / total) / math.sqrt(total))
        means.append((mean * variance + value * sd**2) / total)
        variances.append(sd**2 * variance / total)
    if not sum(weights):  # far from either kind of work
        return value, math.sqrt(variance)
    mean = float(np.average(means, weights=weights))
    spread = [own + (each - mean) ** 2 for own, each in zip(variances, means, strict=True)]
    return mean, math.sqrt(float(np.average(spread, weights=weights)))


def _contrast(log_level: Floats, log_ends: Floats) -> tuple[float, float] | None:
    """Return the sensitivity that slow and fast segments show, with its variance."""
    if log_level.size < _ENOUGH:
        return None
    worse, better = log_ends.max(axis=0), log_ends.min(axis=0)
    fast = worse <= NEAR
    if fast.sum() < _FEWEST_FAST:
        fast = worse <= max(NEAR, float(np.quantile(worse, _EXTREME)))
    slow = better >= min(_SLOW, float(np.quantile(better, 1.0 - _EXTREME)))
    around = log_ends.mean(axis=0)
    share, apart = _share_inside(log_ends), float(around[slow].mean() - around[fast].mean())
    contrast, unsure = share * apart, (share - _least_share(log_ends)) * apart
    if contrast < _LEAST_CONTRAST:
        return None
    high, low = _quartile(log_level[slow]), _quartile(log_level[fast])
    variance = (_CONTRAST**2 + unsure**2 + high[1] + low[1]) / contrast**2
    return (high[0] - low[0]) / contrast, variance


def _quartile(values: Floats) -> tuple[float, float]:
    """Return the first quartile, and its variance, as for normal values of this spread."""
    first, third = np.quantile(values, [0.25, 0.75])
    spread = float(third - first) / 1.349
    return float(first), 1.86 * spread**2 * _DEPENDENT / values.size


def _share_inside(log_ends: Floats, *, less: float = 0.0) -> float:
    """Return the share of a movement of the pace around segments that it makes inside of them.

    It follows from the correlation of their ends, or from one that is less by as much.
    """
    before, after = log_ends - log_ends.mean(axis=1, keepdims=True)
    scale = math.sqrt(float(before @ before) * float(after @ after))
    r = (float(before @ after) / scale if scale > 0.0 else 0.0) - less
    if not 0.0 < r < 1.0:
        return 0.0 if r <= 0.0 else 1.0
    return 2.0 * (1.0 - r) / (-math.log(r) * (1.0 + r))


def _least_share(log_ends: Floats) -> float:
    """Return the same share for a correlation less by two of its standard errors."""
    return _share_inside(log_ends, less=2.0 / math.sqrt(log_ends.shape[1]))


def limits_otherwise(sensitivity: float, sd: float) -> bool:
    """Return whether work of this sensitivity is limited by something else than the reference."""
    return sensitivity + sd < UNLIKE


# Learned on the recording of docs/evidence/results/pace_commands.jsonl.
_OF_COMMANDS, _OF_COMMANDS_SD = 0.95, 0.15
_START_SD = 0.12  # of the log processor time of a start within a run
FEWEST_STARTS = 4  # in 5 % of the second that a run lasts at least
_COMMAND_BLOCKS = 8
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
        """Time that is neither processor time nor delay; 0 if they never gave a processor up."""
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
        Of the wall time; None for the usual one of commands.

    Returns
    -------
    Pace or None
        None with fewer than 4 starts, and of commands with several threads at work.
    """
    starts = invocations.starts
    relative = starts[COMMAND_CPU] / full_s[COMMAND_CPU]
    if relative.size < FEWEST_STARTS or invocations.wall.size < 2 or invocations.are_parallel:
        return None
    share = invocations.share
    known = of_busy(sensitivity, share)
    slope, sd = (_OF_COMMANDS, _OF_COMMANDS_SD) if known is None else known[:2]
    slower = max(float((relative**slope).mean()), 1.0)
    least, whole, rest_error = _command_levels(invocations, slower, full_s[COMMAND_REST], statistic)
    residuals, blocks = _command_blocks(invocations, np.log(relative), slope)
    error = _START_SD / math.sqrt(relative.size)  # few blocks may be equal by chance
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


def _command_levels(
    invocations: Invocations, slower: float, full_rest_s: float, statistic: Statistic
) -> tuple[float, float, float]:
    """Return the level without and with the rest at full speed, and the relative error of the rest.

    Their own part lies anywhere between all of it and the excess over starts.
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
    # Of a sleep nearly all of it. The kernel rarely counts a part of a sleep as delay.
    hardly_hit = 1.0 - _LEAST_HIT ** (1.0 / of_starts.size)
    floor = np.quantile(rest[waiting], hardly_hit) - of_starts.min()
    low = max(most - share * max(float(common), 0.0), least + share * float(floor), least)
    low = min(low, most)
    whole = math.sqrt(low * most)
    spread = math.log(most / low) / math.sqrt(12.0)  # of anywhere between
    own = float(rest.std()) / math.sqrt(rest.size) / whole
    return least, whole, math.hypot(spread, own)


def _command_blocks(invocations: Invocations, pace: Floats, slope: float) -> tuple[Floats, Floats]:
    """Return log processor time at full speed, and log pace, of blocks of equal wall time."""
    count = min(_COMMAND_BLOCKS, pace.size // 2)
    first = block_starts(invocations.wall, blocks=count)
    edges = np.searchsorted(invocations.after, first, side="right")
    edges[0] = 0
    sizes = np.diff(edges, append=pace.size)
    kept = sizes > 0
    paces = np.add.reduceat(pace, edges[kept]) / sizes[kept]
    lengths = np.diff(first, append=invocations.cpu.size)
    levels = np.log(np.add.reduceat(invocations.cpu, first) / lengths)
    return levels[kept] - slope * paces, paces
