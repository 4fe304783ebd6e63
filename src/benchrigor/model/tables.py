"""Tables of plain text."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["aligned", "shortened"]


def shortened(name: str, most: int) -> str:
    """Return a name with so many characters at most; its ends tell it from others.

    Examples
    --------
    >>> shortened("parts of the product.head", 15)
    'parts o…ct.head'
    """
    if len(name) <= most:
        return name
    behind = most // 2
    return f"{name[: most - behind - 1]}…{name[-behind:]}"


def aligned(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    r"""Return the rows of a table as lines, with two spaces between its columns.

    Parameters
    ----------
    rows
        Cells, as many in each row.
    sides
        For each column "<" or ">": on which side its cells begin.

    Examples
    --------
    >>> print(*aligned([("stage", "used"), ("hash", "7%")], "<>"), sep="\n")
    stage  used
    hash     7%
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
