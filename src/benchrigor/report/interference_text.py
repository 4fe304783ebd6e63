"""How far a run can be trusted, as text: the light first, then what it stands on."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from benchrigor import stats
from benchrigor.model import (
    Code,
    Composite,
    CompositeGroup,
    Interference,
    Light,
    Notice,
    SegmentGroup,
    Severity,
)
from benchrigor.model.text import counted, many, show_estimate, show_value
from benchrigor.report.lines import WIDTH, marked, row

__all__ = [
    "describe",
    "doubtful",
    "doubts",
    "is_estimated",
    "lost",
    "parted",
    "render_composite",
    "render_interference",
]

_LABEL = 13
_MOST_GROUPS = 10
_MEANING = {
    Light.GREEN: "good for performance analysis",
    Light.YELLOW: "good for a rough picture; another run may be worth it",
    Light.RED: "run it again",
}
_LIMITS = (7.5, 15.0)
_ALL = 100.0 - 1e-9
_NARROWEST = 12

Group = SegmentGroup | CompositeGroup
Rows = list[tuple[str, ...]]


def render_interference(found: Interference, *, name: str = "") -> str:
    """Return what is known of a run's interference as plain text, at most 79 columns wide.

    The light comes first, then measured delay and estimated interference, the groups of
    segments with most excess, and every Notice.

    Parameters
    ----------
    found
        As estimated.
    name
        Of the run; empty for no title.

    Examples
    --------
    >>> from benchrigor.model import Light
    >>> found = Interference(percent=2.0, measured_percent=1.0, light=Light.GREEN,
    ...     probability_high=0.05, unclustered_percent=0.0, continuous_percent=None,
    ...     above_median_percent=2.5, flagged_percent=3.0, n=400, duration_s=12.0)
    >>> print(render_interference(found).splitlines()[0].strip())
    light        ● green: 3.0% of 12 s lost, good for performance analysis
    """
    return "\n".join(
        [
            *_title(name),
            *_row("light", f"{lost(found)}, {_MEANING[found.light]}", doubtful(found)),
            *_row("", _soft(found)),
            *_row("measured", _measured(found)),
            *_row("estimated", *_estimated(found)),
            *_row("continuous", _continuous(found)),
            *_row("unclustered", _unclustered(found)),
            *_groups(found.groups),
            *_notices(found.notices),
        ]
    )


def render_composite(found: Composite, *, name: str = "", runs: Sequence[str] = ()) -> str:
    """Return the profile free of instantaneous interference as plain text, 79 columns wide.

    Parameters
    ----------
    found
        Of several runs.
    name
        Of the program; empty for no title.
    runs
        A name for each run; empty to count them.
    """
    names = runs or [str(number) for number in range(1, len(found.runs) + 1)]
    lights = Counter(each.light for each in found.runs)
    seen = ", ".join(f"{lights[light]} {light}" for light in Light if lights[light])
    return "\n".join(
        [
            *_title(name),
            *_row("duration", show_estimate(found.duration, "s")),
            *_row("", "without instantaneous interference and measured delay"),
            *_row("runs", f"{len(found.runs)}: {seen}"),
            *_table([_RUN, *map(_run, names, found.runs)]),
            *_composed(found.groups),
            *_notices((*found.duration.notices, *found.notices)),
        ]
    )


def lost(found: Interference) -> str:
    """Say what share of the time was lost, and by which light that goes."""
    return (
        f"● {found.light}: {found.total_percent:.1f}% of {show_value(found.duration_s, 's')} lost"
    )


def is_estimated(found: Interference) -> bool:
    """Tell whether any segment had enough others like it to be judged beside them."""
    return found.unclustered_percent < _ALL


def parted(found: Interference) -> str:
    """Say how much of that was measured and how much is an estimate."""
    estimated = f"{found.percent:.1f}% estimated"
    if not is_estimated(found):
        estimated = "nothing could be estimated"
    if _is_unmeasured(found):
        return f"{estimated}, delay not measured"
    return f"{found.measured_percent:.1f}% measured, {estimated}"


def doubts(found: Interference) -> tuple[Notice, ...]:
    """Return the Notices that weaken the light."""
    return tuple(each for each in found.notices if each.severity is not Severity.NOTE)


def doubtful(found: Interference) -> str:
    """Say next to the light that there are doubts; empty where there are none."""
    number = len(doubts(found))
    return f"doubtful: {many(number, 'warning')} below" if number else ""


def describe(groups: Sequence[Group]) -> list[str]:
    """Say of each group what tells it from the others.

    What all groups have in common is left out, and so is how much they computed where the rest
    tells them apart.

    Examples
    --------
    >>> solve, write = (
    ...     SegmentGroup(n=9, nominal={"label": label, "writes": n}, median_s=1.0, mad_s=0.1,
    ...                  threshold_s=1.4, duration_s=9.0, flagged=0, excess_s=0.0)
    ...     for label, n in (("solve", 0), ("write", 3)))
    >>> describe([solve, write]), describe([solve])
    (['solve', 'write, writes 3'], ['all that were judged'])
    """
    names = dict.fromkeys(name for each in groups for name in each.nominal)
    telling = [name for name in names if len({each.nominal.get(name) for each in groups}) > 1]
    did = [tuple(each.nominal.get(name) for name in telling) for each in groups]
    alike = Counter(did)
    return [
        ", ".join(
            [
                *_nominal(each, telling),
                *(_computed(each) if alike[values] > 1 else ()),
            ]
        )
        or ("nothing else" if telling else "all that were judged")
        for each, values in zip(groups, did, strict=True)
    ]


def _nominal(group: Group, telling: Sequence[str]) -> Iterator[str]:
    """Say what the segments of a group did; what they did not goes without saying."""
    for name in telling:
        value = group.nominal.get(name)
        if isinstance(value, str):
            yield (value or "no label") if name == "label" else f"{name} {value or 'none'}"
        elif value:
            yield f"{name.replace('_', ' ')} {value:,.9g}"


def _computed(group: Group) -> Iterator[str]:
    """Say how much the segments of a group computed."""
    for name, (low, high) in group.computation.items():
        unit = "s" if name.endswith("_s") else ""
        ends = dict.fromkeys(show_value(each, unit) for each in (low, high))
        yield f"{name.removesuffix('_s').replace('_', ' ')} {'–'.join(ends)}"


def _title(name: str) -> list[str]:
    return [name, "─" * min(len(name), WIDTH)] if name else []


def _row(label: str, *parts: str) -> list[str]:
    return row(label, parts, width=_LABEL)


def _soft(found: Interference) -> str:
    """Say how far the light is from the next one."""
    yellow, red = (stats.probability_high(limit) for limit in _LIMITS)
    high = found.probability_high
    shown = "<0.01" if high < 0.01 else ">0.99" if high > 0.99 else f"{high:.2f}"
    return f"probability of high interference {shown}; yellow is {yellow:.2f} to {red:.2f}"


def _is_unmeasured(found: Interference) -> bool:
    return not found.delays and not found.measured_percent


def _measured(found: Interference) -> str:
    if _is_unmeasured(found):
        return "no delay was measured, and none is in the light"
    sources = ", ".join(f"{name} {share:.1f}%" for name, share in found.delays.items())
    return f"{found.measured_percent:.1f}% delay{f': {sources}' if sources else ''}"


def _estimated(found: Interference) -> tuple[str, ...]:
    if not is_estimated(found):
        return (f"nothing could be estimated of {many(found.n, 'segment')}",)
    return (
        f"{found.percent:.1f}% instantaneous: {found.flagged_percent:.1f}% of "
        f"{many(found.n, 'segment')} lasted longer than the threshold of their group",
        f"{found.above_median_percent:.1f}% if all beyond the median counted",
    )


def _continuous(found: Interference) -> str:
    if found.continuous_percent is None:
        differs = any(each.code is Code.REFERENCE_DIFFERS for each in found.notices)
        return "unknown: the reference does not match" if differs else "unknown without a reference"
    return f"{found.continuous_percent:+z.1f}% against the reference, and not in the light"


def _unclustered(found: Interference) -> str:
    return f"{found.unclustered_percent:.1f}% of the time, in groups too small to be judged"


def _notices(notices: Sequence[Notice]) -> list[str]:
    return ["", *(line for each in notices for line in marked(each))] if notices else []


def _groups(groups: Sequence[SegmentGroup]) -> list[str]:
    """Return the table of the groups with most excess."""
    if not groups:
        return []
    shown, more = groups[:_MOST_GROUPS], groups[_MOST_GROUPS:]
    header = ("group", "n", "median", "threshold", "flagged", "excess")
    rows: Rows = [
        (
            name,
            counted(each.n),
            show_value(each.median_s, "s"),
            show_value(each.threshold_s, "s"),
            counted(each.flagged),
            show_value(each.excess_s, "s"),
        )
        for each, name in zip(shown, describe(groups), strict=False)
    ]
    excess = show_value(sum(each.excess_s for each in more), "s")
    tail = [f"  … and {len(more)} more, with {excess} of excess"] if more else []
    return [*_table([header, *rows]), *tail]


def _composed(groups: Sequence[CompositeGroup]) -> list[str]:
    """Return the table of the groups that take most of the time."""
    if not groups:
        return []
    header = ("group", "n", "one segment, undisturbed")
    rows: Rows = [
        (
            name,
            counted(each.n),
            "too few runs" if each.duration is None else show_estimate(each.duration, "s"),
        )
        for each, name in zip(groups[:_MOST_GROUPS], describe(groups), strict=False)
    ]
    more = len(groups) - _MOST_GROUPS
    return [*_table([header, *rows]), *([f"  … and {more} more"] if more > 0 else [])]


_RUN = ("run", "light", "lost", "measured", "estimated", "duration")


def _run(name: str, found: Interference) -> tuple[str, ...]:
    shares = (found.total_percent, found.measured_percent, found.percent)
    return (
        name,
        f"● {found.light}",
        *(f"{share:.1f}%" for share in shares),
        show_value(found.duration_s, "s"),
    )


def _table(rows: Rows) -> list[str]:
    """Set a table: names to the left, broken where they are long, all else to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    room = WIDTH - 2 - sum(widths[1:]) - 2 * len(widths[1:])
    names = max(min(widths[0], room), _NARROWEST)
    lines = [""]
    for name, *cells in rows:
        first, *rest = textwrap.wrap(name, names, break_on_hyphens=False) or [""]
        values = (f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
        lines.append("  ".join([f"  {first:<{names}}", *values]))
        lines += [f"    {more}" for more in rest]
    return lines
