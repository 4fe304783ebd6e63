"""What tests of reports share: runs of known readings, and what is in a picture."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from benchrigor.model import Delays, Metric, Options, Round, RunRecord
from benchrigor.session.engine import Engine
from benchrigor.session.subject import Subject


def told(
    *rounds: Any,
    metrics: Sequence[Metric] = (Metric(name="time", unit="s"),),
    name: str = "a",
    facts: dict[str, object] | None = None,
    delays: dict[int, Delays] | None = None,
    **options: Any,
) -> RunRecord:
    """Return the record of rounds with these readings of the first metric, one or many each."""
    given = Options(**{"target": 1e-9, "max_rounds": len(rounds), "budget_s": 60.0, **options})
    engine = Engine(Subject(given, metrics, name=name, recorded=True))
    for index, values in enumerate(rounds):
        kind = "unit_readings" if np.ndim(values) else "readings"
        of: dict[str, Any] = {kind: {metrics[0].name: values}, "facts": facts or {}}
        turn, lost = engine.ask(), (delays or {}).get(index)
        assert turn is not None
        engine.tell(Round(plan=turn.plan, elapsed_ns=10**9, delays=lost, **of))
    return engine.result()


def named(axes: Axes, label: str) -> list[Any]:
    """Return the artists of this label."""
    artists = [*axes.collections, *axes.lines, *axes.patches]
    return [each for each in artists if each.get_label() == label]


def drawn(axes: Axes) -> Axes:
    """Draw a picture, which places its texts."""
    axes.figure.draw_without_rendering()
    return axes


def ticks(axis: Any) -> list[Text]:
    """Return the labels of those ticks that lie within the axes."""
    low, high = sorted(axis.get_view_interval())
    pairs = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
    return [label for place, label in pairs if low <= place <= high]


def misplaced(axes: Axes) -> list[tuple[str, ...]]:
    """Find the texts of a picture that overlap, or that leave it."""
    figure: Any = axes.figure
    assert isinstance(figure, Figure)
    labels = (axes.xaxis.label, axes.yaxis.label, *ticks(axes.xaxis), *ticks(axes.yaxis))
    texts = [each for each in (*axes.texts, *labels) if each.get_text()]
    boxes = [(each.get_text(), each.get_window_extent()) for each in texts]
    width, height = figure.bbox.size
    overlapping = [
        (one, other)
        for (one, first), (other, second) in combinations(boxes, 2)
        if first.overlaps(second)
    ]
    outside = [
        (one,)
        for one, box in boxes
        if not (-1.0 <= box.x0 < box.x1 <= width + 1.0 and -1.0 <= box.y0 < box.y1 <= height + 1.0)
    ]
    return overlapping + outside
