"""What measured times suggest: how many instances to batch, and which node runs which kernel."""

from __future__ import annotations

from dataclasses import dataclass

from benchrigor.control_characters import escaped
from benchrigor.model.checks import (
    refuse,
    wrong_confidences,
    wrong_quantity,
    wrong_values,
    wrong_whole,
)
from benchrigor.model.estimate import Quantity, ends
from benchrigor.model.one_line import OneLine, Reported
from benchrigor.model.series import short
from benchrigor.units import percent, show_value

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
        Why there is no batch, or a doubt about it.
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

    _page = "benchrigor.instrument.probe_report:partition_page"

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
