from collections.abc import Callable, Sequence
from itertools import combinations

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text


@pytest.fixture
def misplaced() -> Callable[[Figure, Sequence[Text]], list[tuple[str, ...]]]:
    """Find the texts that overlap, or that leave the picture."""

    def find(figure: Figure, texts: Sequence[Text]) -> list[tuple[str, ...]]:
        boxes = [(each.get_text(), each.get_window_extent()) for each in texts if each.get_text()]
        width, height = figure.bbox.size
        overlapping = [
            (one, other)
            for (one, first), (other, second) in combinations(boxes, 2)
            if first.overlaps(second)
        ]
        outside = [
            (one,)
            for one, box in boxes
            if not (
                -1.0 <= box.x0 < box.x1 <= width + 1.0 and -1.0 <= box.y0 < box.y1 <= height + 1.0
            )
        ]
        return overlapping + outside

    return find
