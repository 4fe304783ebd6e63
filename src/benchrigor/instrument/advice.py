"""What measured times suggest: how many instances to batch, and which node runs which kernel."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput, MissingExtra
from benchrigor.model.checks import (
    listed,
    refuse,
    wrong_confidences,
    wrong_kinds,
    wrong_number,
    wrong_quantity,
    wrong_setting,
    wrong_share,
    wrong_values,
    wrong_whole,
)
from benchrigor.model.estimate import Quantity, ends
from benchrigor.model.one_line import OneLine, Reported
from benchrigor.model.series import Floats, Ints, short
from benchrigor.safe_text import escaped
from benchrigor.settings import SETTINGS
from benchrigor.units import many, percent, show_value

if TYPE_CHECKING:
    from scipy import sparse

    Links: TypeAlias = sparse.csr_array[np.int64, tuple[int, int]]

BATCH_ABOVE = 0.2  # Share of dispatch above which larger units of work pay


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel(OneLine):
    """A unit of work that a program dispatches again and again.

    Parameters
    ----------
    name
        A name that no other kernel has.
    instances
        Number of times that it was dispatched.
    dispatch_s, work_s
        Seconds per instance: the overhead of starting it, and its work. A plain number counts as
        exact.

    Examples
    --------
    >>> round(Kernel(name="yDCT", instances=80_784, dispatch_s=3.07e-6, work_s=170.3e-6).total_s, 2)
    14.01
    """

    name: str
    instances: int
    dispatch_s: Quantity
    work_s: Quantity

    def __post_init__(self) -> None:
        named = isinstance(self.name, str) and self.name != ""
        of = f" of {short(self.name)}" if named else ""
        refuse(
            wrong_values([("name", self.name, named, "the name of a kernel")]),
            wrong_whole(f"instances{of}", self.instances),
            wrong_quantity(f"dispatch_s{of}", self.dispatch_s, zero=True),
            wrong_quantity(f"work_s{of}", self.work_s, zero=True),
            wrong_confidences(f"dispatch_s and work_s{of}", (self.dispatch_s, self.work_s)),
        )

    @property
    def total_s(self) -> float:
        """Seconds of all instances, dispatch and work."""
        return self.instances * (ends(self.dispatch_s)[0] + ends(self.work_s)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAdvice(OneLine):
    """The number of instances of a kernel to dispatch at once.

    Parameters
    ----------
    share, share_low, share_high
        Present share of dispatch in the time of the kernel, and its smallest and largest value
        within the intervals of the times.
    batch
        Smallest batch that keeps the share within the bound for all times in their intervals, or
        all instances if even they do not; 1 leaves the kernel as it is. None if no batch would do.
    saving_s
        Seconds of dispatch that batches save, over all instances; None without a batch.
    reason
        Why the batch is missing, or a doubt about it.
    """

    name: str
    share: float
    share_low: float
    share_high: float
    batch: int | None
    saving_s: float | None
    reason: str | None = None

    def __str__(self) -> str:
        advice = "no batch" if self.batch is None else "leave"
        if self.saving_s:
            advice = f"batch {self.batch:,} to save {show_value(self.saving_s, 's')}"
        why = f" ({self.reason})" if self.reason else ""
        return escaped(f"{self.name}: {percent(self.share)} dispatch, {advice}{why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLoad(OneLine):
    """The load of one node.

    Parameters
    ----------
    speed
        Relative to the node on which the kernels were timed.
    kernels
        Names of its kernels, in the order given.
    load_s
        Seconds that they take at its speed.
    share
        Its share of all work.
    traffic
        Traffic of its kernels with other nodes, both ways, in the unit given.
    """

    name: str
    speed: float
    kernels: tuple[str, ...]
    load_s: float
    share: float
    traffic: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPartition(Reported):
    """Which node runs which kernel.

    Parameters
    ----------
    nodes
        Loads of the nodes, in the order given.
    even_s
        Seconds that all nodes would take if work could be divided at will.
    traffic_cut, traffic_total
        Traffic between kernels on different nodes, and between all different kernels.
    """

    _facts = "benchrigor.instrument.probe_report:facts_of_nodes"

    nodes: tuple[NodeLoad, ...]
    even_s: float
    traffic_cut: float
    traffic_total: float

    @property
    def assignment(self) -> dict[str, str]:
        """The nodes of the kernels, by kernel."""
        return {kernel: node.name for node in self.nodes for kernel in node.kernels}

    @property
    def imbalance(self) -> float:
        """How much longer than the even load the busiest node takes: 0.1 is 10%."""
        return max(max(node.load_s for node in self.nodes) / self.even_s - 1.0, 0.0)


_Traffic: TypeAlias = Mapping[tuple[str, str], float]
_WHOLE = 2**30  # METIS takes whole weights, and their sum must fit an int of 32 bits
_BISECTED, _DRAWN = 8, 56  # Partitions to start from: of METIS, and drawn at random
_FEW, _MANY = 32, 200  # Kernels and nodes from which on draws, and exchanges, would take seconds
_LEAST_SIDE = 1e-6  # Target of a side, for METIS refuses 0


def advise_batching(
    kernels: Iterable[Kernel], *, bound: float = BATCH_ABOVE
) -> tuple[BatchAdvice, ...]:
    """Say which kernels are dominated by dispatch, and how many instances to batch.

    Parameters
    ----------
    kernels
        Kernels with different names.
    bound
        Maximum share of dispatch in the time of a kernel, in (0, 1).

    Returns
    -------
    tuple of BatchAdvice
        One per kernel, the largest saving first.

    Raises
    ------
    InvalidInput
        Naming everything that does not fit.

    Notes
    -----
    A batch of n instances takes one dispatch d, and n times the work w. The share of dispatch is
    d / (d + n w), which is within the bound b from n = d (1 - b) / (b w) on. Numbers count as the
    decimals that they are written as, so that a bound of 0.3 is 30%. For estimates, the upper end
    of dispatch counts, and the lower end of work.

    Examples
    --------
    >>> assign = Kernel(name="assign", instances=2_024_251, dispatch_s=4.07e-6, work_s=6.95e-6)
    >>> refine = Kernel(name="refine", instances=1_000, dispatch_s=3.21e-6, work_s=92.91e-6)
    >>> for advice in advise_batching([refine, assign]):
    ...     print(advice)
    assign: 36.9% dispatch, batch 3 to save 5.49 s
    refine: 3.34% dispatch, leave
    """
    given = listed(kernels, "kernels", "Kernel")
    refuse(
        wrong_kinds(given, "kernels", Kernel),
        wrong_share("bound", bound),
    )
    names = Counter(kernel.name for kernel in given)
    refuse(
        f"{name!r} is the name of {count} kernels, expected a name of its own for each"
        for name, count in names.items()
        if count > 1
    )
    advice = (_batch_advice(kernel, _exact(bound)) for kernel in given)
    return tuple(sorted(advice, key=lambda batch: -(batch.saving_s or 0.0)))


def partition_kernels(
    times: Mapping[str, float],
    traffic: _Traffic,
    nodes: Mapping[str, float],
    *,
    tolerance: float = 0.05,
    seed: int = 0,
) -> KernelPartition:
    """Assign kernels to nodes: a balanced load first, then little traffic between nodes.

    Parameters
    ----------
    times
        By kernel, its seconds on a node of speed 1, over all instances.
    traffic
        By pair of kernels, the traffic between them, in any unit. Both directions count equally;
        traffic of a kernel with itself does not count.
    nodes
        By node, its speed: a node of speed 2 takes half the seconds.
    tolerance
        Extra time, relative to the best balance, that the busiest node may take to save traffic,
        in (0, 1).
    seed
        Seed of METIS and of the random partitions; the same seed gives the same partition.

    Returns
    -------
    KernelPartition
        A node may be left without kernels, if there are few.

    Raises
    ------
    InvalidInput
        Naming every name, time, traffic and speed that does not fit.
    MissingExtra
        When pymetis is not installed: ``pip install 'benchrigor[advice]'``.

    Notes
    -----
    Several partitions are refined, and the best is kept. One places the longest kernels first, on
    the node that ends soonest (Graham 1969). Others are from METIS (Karypis & Kumar 1998), which
    bisects the graph with the speeds as targets, from several seeds. If kernels are few and uneven,
    METIS is far from a balance: so up to 32 random partitions are refined, too. To refine, kernels
    move to other nodes as long as that helps. With up to 200 kernels and nodes, two kernels may
    also change places.

    Times and traffic are scaled to whole numbers with a sum of 2**30; a number above 0 counts at
    least 1. The result is summed up from the original numbers.

    Examples
    --------
    >>> times = {"read": 2.0, "dct": 9.0, "vlc": 4.0, "write": 1.0}
    >>> traffic = {("read", "dct"): 50.0, ("dct", "vlc"): 10.0, ("vlc", "write"): 20.0}
    >>> found = partition_kernels(times, traffic, {"big": 2.0, "small": 1.0})
    >>> found.assignment
    {'read': 'big', 'dct': 'big', 'vlc': 'small', 'write': 'small'}
    >>> print(found)
    big is busiest: 5.5 s, 3.12% above an even load; 12.5% of the traffic crosses
      nodes
    node   speed   load  of work  traffic  kernels
    big        2  5.5 s    68.8%       10  read, dct
    small      1    5 s    31.2%       10  vlc, write
    """
    refuse(
        _wrong_weights("times", times, "a kernel", zero=True),
        _wrong_weights("nodes", nodes, "a node"),
        _wrong_traffic(traffic, times),
        wrong_share("tolerance", tolerance),
        wrong_setting("seed", SETTINGS["seed"], seed),
    )
    if not any(times.values()):
        raise InvalidInput("times are all 0, expected at least one above 0")
    between = {key: value for key, value in traffic.items() if key[0] != key[1] and value > 0.0}
    graph = _graph_of(times, between, nodes)
    best = _partition(graph, float(tolerance), int(seed) % (2**31 - _BISECTED))
    places = dict(zip(times, map([*nodes].__getitem__, best), strict=True))
    return _describe(places, times, between, nodes)


def _exact(number: float) -> Fraction:
    """Return a number as the decimal that it is written as."""
    return Fraction(str(float(number)))


def _batch_advice(kernel: Kernel, bound: Fraction) -> BatchAdvice:
    dispatch, dispatch_low, dispatch_high = ends(kernel.dispatch_s)
    work, work_low, work_high = ends(kernel.work_s)
    wanted = _fewest(dispatch_high, work_low, bound)
    batch = saving_s = reason = None
    if wanted is None:
        reason = "its work is 0" if work == 0.0 else "its work may be 0: measure longer"
    else:
        batch = min(wanted, int(kernel.instances))
        saving_s = dispatch * (kernel.instances - -(-kernel.instances // batch))
        if batch < wanted:
            left = percent(_share(dispatch_high, batch * work_low))
            reason = f"{many(batch, 'instance')} at once: still {left}"
        elif _fewest(dispatch_low, work_high, bound) == 1 < batch:
            reason = "or leave, for all that the intervals say: measure longer"
    return BatchAdvice(
        name=kernel.name,
        share=_share(dispatch, work),
        share_low=_share(dispatch_low, work_high),
        share_high=_share(dispatch_high, work_low),
        batch=batch,
        saving_s=saving_s,
        reason=reason,
    )


def _fewest(dispatch: float, work: float, bound: Fraction) -> int | None:
    """Return the fewest instances of a batch within the bound; None if no number is enough."""
    if dispatch <= 0.0:
        return 1
    if work <= 0.0:
        return None
    return max(math.ceil(_exact(dispatch) * (1 - bound) / (bound * _exact(work))), 1)


def _share(dispatch: float, work: float) -> float:
    """Return the share of dispatch, 0 of no time; the low end of an interval may be below 0."""
    dispatch, work = max(dispatch, 0.0), max(work, 0.0)
    return dispatch / (dispatch + work) if dispatch else 0.0


class _Graph(NamedTuple):
    """Kernels with whole weights, and the nodes that run them."""

    times: Ints  # (kernels,)
    links: Links  # (kernels, kernels), symmetric
    speeds: Floats  # (nodes,)


def _wrong_weights(name: str, given: object, of: str, *, zero: bool = False) -> Iterator[str]:
    """Name the problem with numbers by name."""
    if not isinstance(given, Mapping) or not given:
        yield f"{name} is {short(given)}, expected a mapping from the name of {of} to a number"
        return
    for key, value in given.items():
        if not isinstance(key, str) or not key:
            yield f"{name} has the key {short(key)}, expected the name of {of}"
        yield from wrong_number(f"{name}[{key!r}]", value, zero=zero)


def _wrong_traffic(traffic: object, times: object) -> Iterator[str]:
    """Name the problem with traffic between kernels."""
    if not isinstance(traffic, Mapping):
        yield f"traffic is {short(traffic)}, expected a mapping from two names to a number"
        return
    known = times if isinstance(times, Mapping) else {}
    for key, value in traffic.items():
        if not isinstance(key, tuple) or len(key) != 2:
            yield f"traffic has the key {short(key)}, expected the names of two kernels"
        else:
            yield from (
                f"traffic[{key!r}] names {short(name)}, expected a kernel of times"
                for name in key
                if name not in known
            )
        yield from wrong_number(f"traffic[{key!r}]", value, zero=True)


def _graph_of(times: Mapping[str, float], between: _Traffic, nodes: Mapping[str, float]) -> _Graph:
    from scipy import sparse  # noqa: PLC0415  # a tenth of a second that batches do not need

    place = {name: index for index, name in enumerate(times)}
    pairs = ([place[one] for one, _ in between], [place[other] for _, other in between])
    links = sparse.coo_array((_whole(between.values()), pairs), shape=(len(place), len(place)))
    return _Graph(
        times=_whole(times.values()),
        links=(links + links.T).tocsr(),
        speeds=np.array([*nodes.values()], dtype=np.float64),
    )


def _partition(graph: _Graph, tolerance: float, seed: int) -> Ints:
    """Return the nodes of the kernels."""
    kernels, nodes = len(graph.times), len(graph.speeds)
    bisections = max(math.ceil(math.log2(nodes)), 1)  # one inside the other
    slack = (1.0 + tolerance) ** (1.0 / bisections) - 1.0
    starts = [_longest_first(graph)]
    starts += [_bisect(graph, slack, seed + extra) for extra in range(_BISECTED)]
    if kernels + nodes <= _FEW:
        starts += [*np.random.default_rng(seed).integers(nodes, size=(_DRAWN, kernels))]
        starts += [_refine(graph, start, 0.0) for start in starts]
    most = (1.0 + tolerance) * _busiest(graph, np.array(starts)).min()
    # The first is balanced, and would take thousands of steps to a small cut.
    parts = np.array([starts[0], *(_refine(graph, start, most) for start in starts[1:])])
    busiest = _busiest(graph, parts)
    best: Ints = parts[_least(np.maximum(busiest, most), _traffic_between(graph, parts), busiest)]
    return best


def _whole(weights: Iterable[float]) -> Ints:
    """Scale weights to whole numbers with the sum 2**30; one above 0 counts 1 or more."""
    values = np.array([*weights], dtype=np.float64)
    scaled = np.rint(values / (values.sum() or 1.0) * _WHOLE)
    return np.asarray(np.maximum(scaled, values > 0.0), dtype=np.int64)


def _longest_first(graph: _Graph) -> Ints:
    """Place the longest kernels first, on the node that ends soonest (Graham 1969)."""
    loads = np.zeros_like(graph.speeds)
    part = np.zeros_like(graph.times)
    for kernel in np.argsort(-graph.times, kind="stable"):
        ending = loads + graph.times[kernel] / graph.speeds
        part[kernel] = ending.argmin()
        loads[part[kernel]] = ending.min()
    return part


def _bisect(graph: _Graph, slack: float, seed: int) -> Ints:
    """Bisect kernels and nodes together by METIS, until there is one node.

    METIS is asked for two sides only: with more, it prints a complaint if a side is empty.
    """
    try:
        import pymetis  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise MissingExtra("a partition", package="pymetis", extra="advice") from error
    part = np.zeros_like(graph.times)
    half = len(graph.speeds) // 2
    if half == 0 or not len(part):
        return part
    left = graph.speeds[:half].sum() / graph.speeds.sum()
    target = float(min(max(left, _LEAST_SIDE), 1.0 - _LEAST_SIDE))
    _, sides = pymetis.part_graph(
        2,
        pymetis.CSRAdjacency(graph.links.indptr, graph.links.indices),
        vweights=graph.times,
        eweights=graph.links.data,
        tpwgts=[target, 1.0 - target],
        options=pymetis.Options(seed=seed, ufactor=max(int(1000 * slack), 1)),
    )
    for side, first, speeds in ((0, 0, graph.speeds[:half]), (1, half, graph.speeds[half:])):
        own = np.flatnonzero(np.asarray(sides) == side)
        inner = _Graph(graph.times[own], graph.links[own][:, own], speeds)
        part[own] = first + _bisect(inner, slack, seed)
    return part


def _refine(graph: _Graph, part: Ints, most: float) -> Ints:
    """Let two kernels of different nodes change places, the best first, as long as that helps.

    The criteria are the load of the busiest node if it exceeds ``most``, then the cut, then that
    load. Every node also has an empty kernel: a kernel that changes places with it just moves.
    """
    kernels, nodes = len(graph.times), len(graph.speeds)
    size = kernels + nodes
    partners = np.arange(0 if size <= _MANY else kernels, size)
    part = np.concatenate([part, np.arange(nodes)])
    times = np.pad(graph.times, (0, nodes))
    gain = times[partners] - times[:, None]  # [i, j]: of the node of i
    between = np.pad(graph.links[:, partners[partners < kernels]].toarray(), (0, nodes))
    while True:
        here, there = part[:, None], part[partners]
        sums = np.bincount(part, times, minlength=nodes)
        loads = sums / graph.speeds
        busiest = np.maximum(
            (sums[here] + gain) / graph.speeds[here], (sums[there] - gain) / graph.speeds[there]
        )
        others = np.zeros_like(busiest)
        for node in np.argsort(-loads)[2::-1]:  # of the three busiest one stays as it is
            others = np.where((here == node) | (there == node), others, loads[node])
        busiest = np.maximum(busiest, others)
        excess = np.where(here == there, np.inf, np.maximum(busiest, most))
        to = graph.links @ (here[:kernels] == np.arange(nodes)).astype(np.int64)
        to = np.pad(to, ((0, nodes), (0, 0)))  # traffic by node
        stay = to[np.arange(size), part]
        cut = stay[:, None] - to[:, there] + stay[partners] - to[partners].T[part] + 2 * between
        best = _least(excess, cut, busiest)
        now = loads.max()
        if not (excess.flat[best], cut.flat[best], busiest.flat[best]) < (max(now, most), 0, now):
            return part[:kernels]
        one, other = best // len(partners), partners[best % len(partners)]
        part[[one, other]] = part[[other, one]]


def _least(*keys: npt.NDArray[Any]) -> int:
    """Return the flat index of the least item by the first key; ties by the second, ..."""
    found = np.arange(keys[0].size)
    for key in keys:
        values = key.ravel()[found]
        found = found[values == values.min()]
    return int(found[0])


def _busiest(graph: _Graph, parts: Ints) -> Floats:
    """Return the load of the busiest node, by partition."""
    loads = [(parts == node) @ graph.times / speed for node, speed in enumerate(graph.speeds)]
    return np.asarray(np.max(loads, axis=0), dtype=np.float64)


def _traffic_between(graph: _Graph, parts: Ints) -> Ints:
    """Return the traffic between nodes, both ways, by partition."""
    links = graph.links.tocoo()
    return np.asarray((parts[:, links.row] != parts[:, links.col]) @ links.data)


def _describe(
    places: Mapping[str, str],
    times: Mapping[str, float],
    between: _Traffic,
    nodes: Mapping[str, float],
) -> KernelPartition:
    """Return the loads of a partition, from times and traffic as they were given."""
    total = math.fsum(times.values())
    crossing = {key: value for key, value in between.items() if len({*map(places.get, key)}) > 1}
    loads = []
    for node, speed in nodes.items():
        kernels = tuple(name for name, place in places.items() if place == node)
        own = math.fsum(times[name] for name in kernels)
        loads.append(
            NodeLoad(
                name=node,
                speed=float(speed),
                kernels=kernels,
                load_s=own / speed,
                share=own / total,
                traffic=math.fsum(
                    value for key, value in crossing.items() if node in map(places.get, key)
                ),
            )
        )
    return KernelPartition(
        nodes=tuple(loads),
        even_s=total / math.fsum(nodes.values()),
        traffic_cut=math.fsum(crossing.values()),
        traffic_total=math.fsum(between.values()),
    )
