"""The state of nodes, one row per node."""

from __future__ import annotations

from collections.abc import Iterable

from benchrigor.control_characters import escaped
from benchrigor.instrument.data.node import NodeCondition, NodeView
from benchrigor.model.text import many, shortened, show_duration, show_value

COLUMNS = ("node", "is", "age", "busy", "load", "free", "pressure", "clock", "alarms")
_PRESSURE = ("pressure cpu some", "pressure io some", "pressure memory some")
_LONGEST = 200  # characters of a note
_WIDEST = 9  # characters of a figure: no answer of a node makes the others unreadable
_MOST_ALARMS = 5  # shown per node


def node_rows(views: Iterable[NodeView]) -> list[tuple[str, ...]]:
    """Return a row of `COLUMNS` per node: its condition now, and its last report.

    Parameters
    ----------
    views
        As `benchrigor.instrument.Hub.pull` returns them.

    Examples
    --------
    >>> view = NodeView(address="http://a:9560", condition=NodeCondition.SILENT, reason="no answer")
    >>> node_rows([view])
    [('a:9560', 'silent', '', '', '', '', '', '', '')]
    >>> node_notes([view])
    ['a:9560: no answer']
    """
    return [
        (_name(view), str(view.condition), *(shortened(cell, _WIDEST) for cell in _figures(view)))
        for view in views
    ]


def node_notes(views: Iterable[NodeView]) -> list[str]:
    """Return lines for failed answers, and for the first alarms of all nodes."""
    return [
        f"{_name(view)}: {shortened(note, _LONGEST)}"
        for view in views
        for note in (
            view.reason if view.condition is not NodeCondition.WELL else "",
            *_alarms(view),
        )
        if note
    ]


def _alarms(view: NodeView) -> list[str]:
    alarms = view.report.alarms if view.report else ()
    more = len(alarms) - _MOST_ALARMS
    first = [str(alarm) for alarm in alarms[:_MOST_ALARMS]]
    return [*first, f"and {many(more, 'more alarm')}"] if more > 0 else first


def _figures(view: NodeView) -> tuple[str, ...]:
    report = view.report
    status = report.status.samples if report and report.status else ()
    known = {item.name: item.value for item in status if isinstance(item.value, int | float)}
    pressures = [known[name] for name in _PRESSURE if name in known]
    return (
        "" if view.age_s is None else show_duration(view.age_s),
        f"{known['cpu busy']:.0f}%" if "cpu busy" in known else "",
        f"{known['load 1 min']:.1f}" if "load 1 min" in known else "",
        show_value(known["memory available"], "B") if "memory available" in known else "",
        f"{max(pressures):.0f}%" if pressures else "",
        _clock(view),
        str(len(report.alarms) or "") if report else "",
    )


def _name(view: NodeView) -> str:
    return escaped(view.address.partition("://")[2])


def _clock(view: NodeView) -> str:
    """Show how far the node's clock is ahead, or the error from the round trip if it is larger."""
    if view.offset_s is None or view.offset_error_s is None:
        return ""
    if abs(view.offset_s) <= view.offset_error_s:
        return f"< {show_value(view.offset_error_s, 's')}"
    return f"{'+' if view.offset_s > 0.0 else '-'}{show_duration(abs(view.offset_s))}"
