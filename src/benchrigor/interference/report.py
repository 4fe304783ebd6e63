"""The interference of a run, and a composite, as text; the segments of a run as a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from benchrigor.layout import Part, table
from benchrigor.model import Code, Interference, Notice, SegmentProfile
from benchrigor.model.notice import Severity
from benchrigor.model.segments import Composite, CompositeGroup, Light, SegmentGroup
from benchrigor.model.series import Floats
from benchrigor.model.text import show_estimate
from benchrigor.report.fact import (
    Depth,
    Fact,
    known,
    labelled,
    list_rows,
    noticed,
    page_of_facts,
    title,
)
from benchrigor.report.facts.machine_facts import Pressure, show_pressure, show_total
from benchrigor.report.plots.drawing import (
    BAD,
    CHANGE,
    DOTS,
    DOUBTFUL,
    FRAME,
    GOOD,
    INK,
    NUMBER,
    SMALL,
    UNKNOWN,
    above,
    entitle,
    name_axes,
    new_axes,
)
from benchrigor.stats.interference import RED_ABOVE, YELLOW_FROM, probability_high
from benchrigor.stats.segment_groups import segment_thresholds
from benchrigor.units import counted, many, show_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    >>> from benchrigor.model.segments import Light
    >>> interference = Interference(percent=2.0, measured_percent=1.0, light=Light.GREEN,
    ...     probability_high=0.05, unclustered_percent=0.0, continuous_percent=None,
    ...     above_median_percent=2.5, flagged_percent=3.0, n=400, duration_s=12.0)
    >>> print(render_interference(interference).splitlines()[0].strip())
    light        ● green: 3.0% of 12 s lost, good for performance analysis
    """
    depth = Depth.DETAILS if whole else Depth.PAGE
    return page_of_facts([title(name), *facts_of_interference(interference, pressure)], depth)


def facts_of_interference(interference: Interference, pressure: Pressure | None) -> list[Fact]:
    """Return the facts of the time that other work took from a run."""
    light, continuous = interference.light, _continuous(interference)
    deep = Depth.DETAILS if continuous == _ALONE else Depth.PAGE
    shown = f"{show_total(interference)}, {_ADVICE[light]}"
    loose = f"{interference.unclustered_percent:.1f}% of the time, in groups of too few segments"
    return [
        *known(
            Fact("light", Depth.PAGE, "light", shown, light),
            Fact("doubts", Depth.PAGE, "light", _show_doubts(interference)),
            Fact("probability", Depth.DETAILS, "light", _probability(interference)),
            labelled("measured", _show_delay(interference)),
            labelled("pressure", show_pressure(pressure or {}), depth=Depth.DETAILS),
            labelled("estimated", _show_estimates(interference)),
            labelled("continuous", continuous, depth=deep),
            labelled("unclustered", loose, depth=Depth.DETAILS),
            labelled("computation", _compared_by(interference.groups)),
            list_rows("groups", _segment_groups(interference.groups)),
        ),
        *noticed(interference.notices),
    ]


def facts_of_composite(composite: Composite, runs: Sequence[str]) -> list[Fact]:
    """Return the facts of the duration without interference, and a table of runs."""
    names = runs or [str(number) for number in range(1, len(composite.runs) + 1)]
    lights = Counter(run.light for run in composite.runs)
    counts = ", ".join(f"{lights[light]} {light}" for light in Light if lights[light])
    header = ("run", "light", "lost", "measured", "estimated", "duration")
    shown = f"{show_estimate(composite.duration, 's')}, without interference"
    return [
        *known(
            Fact("duration", Depth.PAGE, "duration", shown, composite.duration),
            labelled("computation", _compared_by(composite.groups)),
            labelled("runs", f"{len(composite.runs)}: {counts}"),
            list_rows("lights", _table([header, *map(_run, names, composite.runs)])),
            list_rows("groups", _composite_groups(composite.groups)),
        ),
        *noticed((*composite.duration.notices, *composite.notices)),
    ]


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


_MOST_THRESHOLDS = 20
_MOST_DOTS = 4000  # More dots become an image in the file, which would grow with them
_WIDE = 20.0  # A longest segment of that many medians makes the axis logarithmic
_TIME = "time in segments (s)"
_LIGHTS = {Light.GREEN: GOOD, Light.YELLOW: DOUBTFUL, Light.RED: BAD, Light.UNKNOWN: UNKNOWN}


def plot_interference(
    profile: SegmentProfile,
    interference: Interference,
    *,
    title: str = "",
    axes: Axes | None = None,
) -> Axes:
    """Draw the segments of a run over time, with the disturbed ones highlighted.

    A dot is a segment: its start time, and its duration without measured delay. Dots are paler if
    the segment has no group. Short lines at the right edge are the thresholds of the groups with
    most excess. Measured delay is drawn below, if there is any.

    Parameters
    ----------
    profile
        The segments.
    interference
        Of this profile (`benchrigor.stats.profile_interference`).
    title
        Of the run; empty for the program's name.
    axes
        To draw into; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Seconds across, durations upwards.

    Raises
    ------
    MissingExtra
        Without matplotlib, which comes with ``pip install 'benchrigor[report]'``.
    """
    is_new, axes = axes is None, new_axes() if axes is None else axes
    delay_s = profile.delay_s
    own_s = profile.duration_s - delay_s
    began_s = np.cumsum(profile.duration_s) - profile.duration_s
    thresholds_s = segment_thresholds(profile, interference.groups)
    for chosen, color, size, label in (
        (np.isnan(thresholds_s), FRAME, 2.5, "in no group"),
        (own_s <= thresholds_s, INK, 2.5, "undisturbed"),
        (own_s > thresholds_s, CHANGE, 4.0, "disturbed"),
    ):
        style = {**DOTS, "markersize": size, "color": color, "rasterized": profile.n > _MOST_DOTS}
        shown = label if chosen.any() else None
        axes.plot(began_s[chosen], own_s[chosen], label=shown, **style)
    highest_s = [group.threshold_s for group in interference.groups[:_MOST_THRESHOLDS]]
    edge = axes.get_yaxis_transform()
    axes.hlines(highest_s, 0.98, 1.0, NUMBER, linewidth=1.2, transform=edge, label="threshold")
    _scale(axes, own_s)
    name_axes(axes, "" if delay_s.any() else _TIME, "segment")
    _write(axes, interference, title or profile.program)
    if delay_s.any():
        _draw_delays(axes, began_s, delay_s)
        if is_new:  # only a second layout leaves room for the labels below the axes
            cast("Figure", axes.figure).draw_without_rendering()
    return axes


def _scale(axes: Axes, own_s: Floats) -> None:
    """Scale the axis of durations."""
    positive = own_s[own_s > 0.0]
    if positive.size and positive.max() > _WIDE * np.median(positive):
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter("")
    else:
        axes.set_ylim(bottom=0.0)
    axes.yaxis.set_major_formatter(_show_tick)


def _show_tick(seconds: float, _position: object) -> str:
    return show_value(seconds, "s") if seconds else "0"


def _write(axes: Axes, interference: Interference, title: str) -> None:
    """Write title and light above the axes, and the legend next to them."""
    entitle(axes, title)
    doubtful = " (doubtful)" if warnings_of(interference) else ""
    shown = f"{show_total(interference)}: {show_parts(interference)}{doubtful}"
    above(axes, shown, 6.0, color=_LIGHTS[interference.light])
    axes.legend(
        loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=SMALL, labelcolor=INK
    )


def _draw_delays(axes: Axes, began_s: Floats, delay_s: Floats) -> None:
    """Draw measured delay below, segment by segment."""
    below = axes.inset_axes((0.0, -0.3, 1.0, 0.22), sharex=axes)
    below.vlines(began_s, 0.0, delay_s, color=NUMBER, linewidth=0.8, label="measured delay")
    below.set_ylim(bottom=0.0)
    below.locator_params(axis="y", nbins=2)
    below.yaxis.set_major_formatter(_show_tick)
    name_axes(below, _TIME, "delay")
    axes.tick_params(labelbottom=False)
