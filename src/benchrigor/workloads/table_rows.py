"""Find the rows of a table among the lines of a program's output with a number in place."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field

_LETTER = re.compile(r"[^\W\d_]")
_HELD = 1_024  # numbers of a shape; earlier ones are lost, since another had far more
_FEWEST = 2  # rows of a table
_MOST = 2.0 / 3.0  # of the lines that have a number in place must be rows


@dataclass(slots=True)
class _Shape:
    """Lines with the same number of cells, and words in the same cells, except a few."""

    words: tuple[bool, ...]
    n: int = 0
    held: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=_HELD))


class TableRows:
    """Finds the rows of a table: the lines with the most common shape.

    Numbers are held until there is a second line of their shape, and while another shape has more
    lines. So a heading with a number does not count, and the output can be searched as it comes.
    If no two lines have the same shape, there is no table, and all lines count.
    """

    def __init__(self) -> None:
        self._shapes: dict[tuple[bool, int], list[_Shape]] = {}
        self._lines = self._most = 0

    @property
    def is_clear(self) -> bool:
        """Whether there is no table, or most of the lines are its rows."""
        return self._most < _FEWEST or self._most >= _MOST * self._lines

    def take(self, line: str, number: float) -> list[float]:
        """Take the number of the next line that has one in place; return those that count now."""
        shape = self._shape(line)
        shape.n += 1
        shape.held.append((self._lines, number))
        self._lines += 1
        self._most = max(self._most, shape.n)
        if shape.n < max(self._most, _FEWEST):
            return []
        numbers = [number for _, number in shape.held]
        shape.held.clear()
        return numbers

    def rest(self) -> list[float]:
        """Return the numbers of all lines, in order, if there is no table."""
        if self._most >= _FEWEST:
            return []
        shapes = (shape for alike in self._shapes.values() for shape in alike)
        return [number for _, number in sorted(line for shape in shapes for line in shape.held)]

    def __str__(self) -> str:
        return f"{self._most} of {self._lines} lines with a number there are alike"

    def _shape(self, line: str) -> _Shape:
        commas = "," in line
        cells = line.split("," if commas else None)
        words = tuple(map(_is_word, cells))
        alike = self._shapes.setdefault((commas, len(cells)), [])
        for shape in alike:
            # A row may lack a figure, or have a name that is a number.
            apart = shape.words != words and sum(map(bool.__ne__, shape.words, words))
            if 2 * apart < len(cells):
                return shape
        alike.append(_Shape(words))
        return alike[-1]


def _is_word(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return _LETTER.search(cell) is not None
    return False
