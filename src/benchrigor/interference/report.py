"""The interference of a run, and a composite, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from benchrigor.layout import Part, Title, page, table
from benchrigor.model import Code, Interference, Notice
from benchrigor.model.interference import Composite, CompositeGroup, Light, SegmentGroup
from benchrigor.model.notice import Severity
from benchrigor.model.text import show_estimate
from benchrigor.report.fact import Depth, Fact, known, marked_all, rows_of
from benchrigor.report.facts.machine_facts import Pressure, show_pressure, show_total
from benchrigor.stats.interference.one_run import RED_ABOVE, YELLOW_FROM, probability_high
from benchrigor.units import counted, many, show_value

_LABEL = 13
_MOST_GROUPS = 10
_ADVICE = {
    Light.GREEN: "good for performance analysis",
    Light.YELLOW: "good for a rough picture; another run may be worth it",
    Light.RED: "run it again",
    Light.UNKNOWN: "too little to judge by",
}
_ALL = 100.0 - 1e-9
_ALONE = "unknown without a reference"
_KNOWN = 99.5  # per cent of the time that are shown as all of it

Group = SegmentGroup | CompositeGroup
Cells = tuple[str, ...]
T = TypeVar("T", bound=Group)


def render_interference(
    interference: Interference,
    *,
    name: str = "",
    pressure: Pressure | None = None,
    whole: bool = True,
) -> str:
    """Return the interference of a run as plain text, up to 79 columns wide.

    Parameters
    ----------
    interference
        As estimated.
    name
        Of the run; empty for no title.
    pressure
        Share of the time for which tasks of the machine waited, by resource ("cpu", "io", "memory")
        and "some" or "full"; None if it is not known.
    whole
        Whether to add the origin of the light, notes and codes; else only the essentials.

    Examples
    --------
    >>> from benchrigor.model.interference import Light
    >>> interference = Interference(percent=2.0, measured_percent=1.0, light=Light.GREEN,
    ...     probability_high=0.05, unclustered_percent=0.0, continuous_percent=None,
    ...     above_median_percent=2.5, flagged_percent=3.0, n=400, duration_s=12.0)
    >>> print(render_interference(interference).splitlines()[0].strip())
    light        ● green: 3.0% of 12 s lost, good for performance analysis
    """
    depth = Depth.DETAILS if whole else Depth.PAGE
    return page(
        [
            *([Title(name)] if name else []),
            *rows_of(facts_of_interference(interference, pressure or {}), depth, width=_LABEL),
            *_segment_groups(interference.groups),
            *marked_all(interference.notices, whole=whole),
        ]
    )


def facts_of_interference(interference: Interference, pressure: Pressure) -> list[Fact]:
    """Return the facts of the time that other work took from a run."""
    light, continuous = interference.light, _continuous(interference)
    deep = Depth.DETAILS if continuous == _ALONE else Depth.PAGE
    loose = f"{interference.unclustered_percent:.1f}% of the time, in groups of too few segments"
    return known(
        Fact("light", Depth.PAGE, "light", f"{show_total(interference)}, {_ADVICE[light]}", light),
        Fact("doubts", Depth.PAGE, "light", _show_doubts(interference)),
        Fact("probability", Depth.DETAILS, "light", _probability(interference)),
        Fact("measured", Depth.PAGE, "measured", _show_delay(interference)),
        Fact("pressure", Depth.DETAILS, "pressure", show_pressure(pressure)),
        Fact("estimated", Depth.PAGE, "estimated", _show_estimates(interference)),
        Fact("continuous", deep, "continuous", continuous),
        Fact("unclustered", Depth.DETAILS, "unclustered", loose),
        Fact("computation", Depth.PAGE, "computation", _compared_by(interference.groups)),
    )


def render_composite(
    composite: Composite, *, name: str = "", runs: Sequence[str] = (), whole: bool = True
) -> str:
    """Return the composite of several runs as plain text, up to 79 columns wide.

    Parameters
    ----------
    composite
        Of several runs.
    name
        Of the program; empty for no title.
    runs
        Names of the runs; empty to count them.
    whole
        Whether with notes and codes.
    """
    names = runs or [str(number) for number in range(1, len(composite.runs) + 1)]
    lights = Counter(run.light for run in composite.runs)
    counts = ", ".join(f"{lights[light]} {light}" for light in Light if lights[light])
    header = ("run", "light", "lost", "measured", "estimated", "duration")
    shown = f"{show_estimate(composite.duration, 's')}, without interference"
    facts = known(
        Fact("duration", Depth.PAGE, "duration", shown, composite.duration),
        Fact("computation", Depth.PAGE, "computation", _compared_by(composite.groups)),
        Fact("runs", Depth.PAGE, "runs", f"{len(composite.runs)}: {counts}"),
    )
    return page(
        [
            *([Title(name)] if name else []),
            *rows_of(facts, Depth.PAGE, width=_LABEL),
            *_table([header, *map(_run, names, composite.runs)]),
            *_composite_groups(composite.groups),
            *marked_all((*composite.duration.notices, *composite.notices), whole=whole),
        ]
    )


def _compared_by(groups: Sequence[Group]) -> str:
    """Name the features by which segments count as equal work, and the effects that they hide."""
    if not groups:
        return ""
    names = list(groups[0].computation)
    shown = ", ".join(names) or "not recorded: segments of equal labels count as equal work"
    hidden = (
        "; slowdowns that cost processor time are hidden: a neighbour on the core, a cache or "
        "memory makes a segment count as more work"
    )
    return shown + hidden * any(name.endswith("_s") for name in names)


def show_parts(interference: Interference) -> str:
    """Show how much of it is measured and how much estimated."""
    estimated = f"{interference.percent:.1f}% estimated"
    if not is_estimated(interference):
        estimated = "nothing could be estimated"
    if not interference.is_measured:
        return f"{estimated}, delay not measured"
    known = interference.known_percent
    of = "" if known > _KNOWN else f" in {known:.0f}% of the time"
    return f"{interference.measured_percent:.1f}% measured{of}, {estimated}"


def _show_doubts(interference: Interference) -> str:
    number = len(warnings_of(interference))
    return f"doubtful: {many(number, 'warning')} below" if number else ""


def warnings_of(interference: Interference) -> tuple[Notice, ...]:
    """Return the Notices that weaken the light, and why it is unknown."""
    is_unknown = interference.light is Light.UNKNOWN
    return tuple(
        notice
        for notice in interference.notices
        if notice.severity is not Severity.NOTE
        or (is_unknown and notice.code is Code.DELAY_NOT_MEASURED)
    )


def is_estimated(interference: Interference) -> bool:
    """Whether any segment is in a group."""
    return interference.unclustered_percent < _ALL


def describe_groups(groups: Sequence[Group]) -> list[str]:
    """Describe groups by nominal features that differ, or by computation if these are equal."""
    names = dict.fromkeys(name for group in groups for name in group.nominal)
    differing = [name for name in names if len({group.nominal.get(name) for group in groups}) > 1]
    nominal = [tuple(group.nominal.get(name) for name in differing) for group in groups]
    times = Counter(nominal)
    rest = "nothing else" if differing else "all segments"
    return [
        ", ".join([*_nominal(group, differing), *(_computation(group) if times[it] > 1 else ())])
        or rest
        for group, it in zip(groups, nominal, strict=True)
    ]


def _nominal(group: Group, names: Sequence[str]) -> Iterator[str]:
    """Show nominal features, except features that are 0 in all processes."""
    for name in names:
        value, shown = group.nominal.get(name), name.replace("_", " ")
        if isinstance(value, str) and name == "label":
            yield value or "no label"
        elif isinstance(value, str):
            yield from [f"{shown} {value or 'none'}"] if value != "0" else []
        elif value:
            yield f"{shown} {value:,.9g}"


def _computation(group: Group) -> Iterator[str]:
    """Show the ranges of computation features."""
    for name, (low, high) in group.computation.items():
        unit = "s" if name.endswith("_s") else ""
        ends = dict.fromkeys(show_value(end, unit) for end in (low, high))
        yield f"{name.removesuffix('_s').replace('_', ' ')} {'–'.join(ends)}"


def _probability(interference: Interference) -> str:
    yellow, red = probability_high(YELLOW_FROM), probability_high(RED_ABOVE)
    high = interference.probability_high
    shown = "<0.01" if high < 0.01 else ">0.99" if high > 0.99 else f"{high:.2f}"
    return f"probability of high interference {shown}; yellow is {yellow:.2f} to {red:.2f}"


def _show_delay(interference: Interference) -> str:
    if not interference.is_measured:
        return "no delay was measured, and none is in the light"
    sources = ", ".join(f"{name} {share:.1f}%" for name, share in interference.delays.items())
    return f"{interference.measured_percent:.1f}% delay{f': {sources}' if sources else ''}"


def _show_estimates(interference: Interference) -> str:
    segments = many(interference.n, "segment")
    if not is_estimated(interference):
        return f"nothing could be estimated of {segments}"
    return (
        f"{interference.percent:.1f}% instantaneous: {interference.flagged_percent:.1f}% of "
        f"{segments} lasted longer than the threshold of their group; "
        f"{interference.above_median_percent:.1f}% counted from the median"
    )


def _continuous(interference: Interference) -> str:
    percent = interference.continuous_percent
    if percent is not None:
        return f"{percent:+z.1f}% against the reference, and not in the light"
    differs = any(notice.code is Code.REFERENCE_DIFFERS for notice in interference.notices)
    return "unknown: the reference does not match" if differs else _ALONE


def _segment_groups(groups: Sequence[SegmentGroup]) -> list[Part]:
    """Return the table of the groups with most excess."""
    header = ("group", "n", "median", "threshold", "flagged", "excess")

    def cells(group: SegmentGroup) -> Cells:
        times = [show_value(time, "s") for time in (group.median_s, group.threshold_s)]
        return counted(group.n), *times, counted(group.flagged), show_value(group.excess_s, "s")

    rest_s = sum(group.excess_s for group in groups[_MOST_GROUPS:])
    return _group_table(header, groups, cells, f", with {show_value(rest_s, 's')} of excess")


def _composite_groups(groups: Sequence[CompositeGroup]) -> list[Part]:
    """Return the table of the groups with most time."""

    def cells(group: CompositeGroup) -> Cells:
        duration = group.duration
        shown = "too few runs" if duration is None else show_estimate(duration, "s")
        return counted(group.n), shown

    return _group_table(("group", "n", "one segment, undisturbed"), groups, cells)


def _group_table(
    header: Cells, groups: Sequence[T], cells: Callable[[T], Cells], rest: str = ""
) -> list[Part]:
    """Return the table of the first groups, and a line that counts the others."""
    pairs = zip(describe_groups(groups), groups[:_MOST_GROUPS], strict=False)
    lines = _table([header, *((name, *cells(group)) for name, group in pairs)]) if groups else []
    more = len(groups) - _MOST_GROUPS
    return [*lines, f"  … and {more} more{rest}"] if more > 0 else lines


def _run(name: str, interference: Interference) -> Cells:
    shares = (interference.total_percent, interference.measured_percent, interference.percent)
    duration = show_value(interference.duration_s, "s")
    return (name, f"● {interference.light}", *(f"{share:.1f}%" for share in shares), duration)


def _table(rows: Sequence[Cells]) -> list[Part]:
    return ["", *table(rows, "<" + ">" * (len(rows[0]) - 1), indent=2)]
