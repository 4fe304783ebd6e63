"""Tables of probes: the use of time, units of work that are too small, the work of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchrigor.instrument.advice import BATCH_ABOVE, KernelPartition, NodeLoad
from benchrigor.instrument.data import ProbeReading, ProbeReadings, ProbeRow
from benchrigor.layout import Part, page, table
from benchrigor.model.checks import refuse, wrong_share
from benchrigor.report.fact import Depth, Fact, known, list_rows, rows_of, sentence, told_by
from benchrigor.units import counted, first_few, percent, shortened, show_duration, show_value

_WORK = ".work"
_LONGEST_LIST = 4  # kernels that the row of a node names
_LONGEST_NAME = 24  # characters of a node, so that its kernels have room next to it


def probe_table(
    readings: Mapping[str, ProbeReading], *, batch_above: float = BATCH_ABOVE
) -> tuple[ProbeRow, ...]:
    """Return the rows of the table of probes, one per kernel that ran.

    The probe of a kernel's work ("assign.work") is a part of the kernel's row. Dispatch is the time
    of the kernel without its work and without the cost of that probe.

    Parameters
    ----------
    readings
        By name, as `benchrigor.instrument.ProbeRegistry.read` returns them.
    batch_above
        Share of dispatch above which a kernel is marked for batching.

    Raises
    ------
    InvalidInput
        When ``batch_above`` is not between 0 and 1.

    Examples
    --------
    >>> from benchrigor.instrument import ProbeRegistry
    >>> registry = ProbeRegistry()
    >>> with registry.probe("refine"):
    ...     pass
    >>> [row.kernel for row in probe_table(registry.read())]
    ['refine']
    """
    refuse(wrong_share("batch_above", batch_above))
    kernels = [
        (reading, readings.get(f"{name}{_WORK}"))
        for name, reading in readings.items()
        if reading.count and not (name.endswith(_WORK) and name.removesuffix(_WORK) in readings)
    ]
    all_s = sum(_self_s(kernel, work) for kernel, work in kernels)
    return tuple(_row(kernel, work, all_s, batch_above) for kernel, work in kernels)


def _self_s(kernel: ProbeReading, work: ProbeReading | None) -> float:
    """Return the time of a kernel without the kernels nested in it."""
    return min(kernel.total_s, kernel.self_s + (work.self_s if work else 0.0))


def _row(
    kernel: ProbeReading, work: ProbeReading | None, all_s: float, batch_above: float
) -> ProbeRow:
    count, total_s = kernel.count, kernel.total_s
    known = work if work and work.count else None
    dispatch_s = share = None
    if known:
        # Of what probes cost, the kernel's time has half of its own events and all of the work's,
        # and half of it is in the work's time already.
        dispatch_s = max(total_s - known.total_s - known.count * known.own_cost_s, 0.0)
        share = dispatch_s / (dispatch_s + known.total_s) if dispatch_s else 0.0
    return ProbeRow(
        kernel=kernel.name,
        instances=count,
        dispatch_s=None if dispatch_s is None else dispatch_s / count,
        work_s=known.total_s / count if known else None,
        mean_s=total_s / count,
        total_s=total_s,
        share=_self_s(kernel, work) / all_s if all_s else 0.0,
        dispatch_share=share,
        batch=share is not None and share > batch_above,
        own_cost_s=kernel.own_cost_s + (known.own_cost_s * known.count / count if known else 0.0),
    )


def render_probes(readings: ProbeReadings, *, batch_above: float = BATCH_ABOVE) -> str:
    """Return the table of probes as plain text.

    A kernel with a probe of its work shows means of dispatch and work, and the share of dispatch,
    with "batch" if the share is above ``batch_above``. Other kernels show their mean as work. The
    last column is the cost of the probes themselves per instance, which is not dispatch.

    Raises
    ------
    InvalidInput
        When ``batch_above`` is not between 0 and 1.

    Examples
    --------
    >>> from benchrigor.instrument import ProbeRegistry
    >>> registry = ProbeRegistry()
    >>> with registry.probe("refine"):
    ...     pass
    >>> render_probes(registry.read()).split()[:5]
    ['kernel', 'instances', 'dispatch', 'work', 'total']
    """
    return page(rows_of(facts_of_probes(readings, batch_above=batch_above), Depth.PAGE))


def facts_of_probes(readings: ProbeReadings, *, batch_above: float = BATCH_ABOVE) -> list[Fact]:
    """Return a table of kernels, of their quantiles and deadlines, and the cost of probes."""
    rows = probe_table(readings, batch_above=batch_above)
    if not rows:
        return [sentence("kernels", "No probe has counted anything.")]
    head = ("kernel", "instances", "dispatch", "work", "total", "share", "in dispatch", "probe")
    cost_s = sum(row.own_cost_s * row.instances for row in rows)
    share, elapsed = percent(cost_s / readings.elapsed_s, digits=2), readings.elapsed_s
    cost = f"{show_value(cost_s, 's')}, {share} of {show_duration(elapsed)}"
    rejected = sum(reading.rejected for reading in readings.values())
    return known(
        list_rows("kernels", table([head, *map(_cells, rows)], "<>>>>>>>")),
        list_rows("quantiles", _quantiles(readings.values())),
        list_rows("deadlines", _deadlines(readings.values())),
        sentence("cost", f"Probes themselves took about {cost}."),
        sentence("rejected", f"Rejected events: {counted(rejected)}." * bool(rejected)),
        *told_by((), readings.notices, depth=Depth.PAGE),
    )


def _cells(row: ProbeRow) -> tuple[str, ...]:
    share = row.dispatch_share
    return (
        row.kernel,
        counted(row.instances),
        "-" if row.dispatch_s is None else show_value(row.dispatch_s, "s"),
        show_value(row.mean_s if row.work_s is None else row.work_s, "s"),
        show_value(row.total_s, "s"),
        percent(row.share, digits=2),
        "-" if share is None else f"{'batch ' if row.batch else ''}{percent(share, digits=2)}",
        show_value(row.own_cost_s, "s"),
    )


def _quantiles(readings: Iterable[ProbeReading]) -> list[Part]:
    rows: list[tuple[str, ...]] = [("raw samples of", "kept", "rest", "p50", "p99")]
    for probe in readings:
        if probe.p50_s is not None and probe.p99_s is not None:
            shown = (show_value(quantile_s, "s") for quantile_s in (probe.p50_s, probe.p99_s))
            rows.append((probe.name, counted(probe.samples), counted(probe.samples_lost), *shown))
    return ["", *table(rows, "<>>>>")] if len(rows) > 1 else []


def _deadlines(readings: Iterable[ProbeReading]) -> list[Part]:
    rows: list[tuple[str, ...]] = [("deadline of", "deadline", "missed", "share")]
    for probe in readings:
        if probe.deadline_s is not None and probe.count:
            share = percent(probe.missed / probe.count, digits=2)
            known = show_duration(probe.deadline_s), counted(probe.missed), share
            rows.append((probe.name, *known))
    return ["", *table(rows, "<>>>")] if len(rows) > 1 else []


def facts_of_nodes(partition: KernelPartition) -> list[Fact]:
    """Return the busiest node, and a row per node."""
    busiest = max(partition.nodes, key=lambda node: node.load_s)
    cut = partition.traffic_cut / partition.traffic_total if partition.traffic_total else 0.0
    header = ("node", "speed", "load", "of work", "traffic", "kernels")
    kernels = (first_few(node.kernels, _LONGEST_LIST) or "-" for node in partition.nodes)
    imbalance = (
        f"{busiest.name} is busiest: {show_value(busiest.load_s, 's')}, "
        f"{percent(partition.imbalance)} above an even load; {percent(cut)} of the traffic "
        "crosses nodes"
    )
    rows = [(*_node_cells(node), text) for node, text in zip(partition.nodes, kernels, strict=True)]
    return [
        sentence("busiest", imbalance),
        list_rows("nodes", table([header, *rows], "<>>>><")),
    ]


def _node_cells(node: NodeLoad) -> tuple[str, ...]:
    """Return the row of a node, without its kernels."""
    return (
        shortened(node.name, _LONGEST_NAME),
        f"{node.speed:.3g}",
        show_value(node.load_s, "s"),
        percent(node.share),
        show_value(node.traffic, ""),
    )
