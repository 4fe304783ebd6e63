"""Reports as parts: lines, labelled rows and tables, which rich lays out at any width.

A `Page` is a text as wide as `WIDTH`; a terminal of another width, or with colours, asks it for
its parts again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

from benchrigor.safe_text import escaped

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WIDTH = 79  # Columns of a page that is not shown on a terminal
_LABEL = 10
_NARROWEST = 16  # Columns that a text or a first cell has at least; else it stands below
_SHORT_NAME = 24  # A name no longer than this stays in its row, and the last column is broken
_GAP = 2  # Spaces between the columns of a table
_WHOLE = re.compile(r"(±[\d.,]+) %")  # is not broken at its space, which this stands for:
_GLUE = "\ue000"
_LIGHTS = {name: f"bold {name}" for name in ("green", "yellow", "red")} | {"unknown": "bold"}
_BEHIND = re.compile(r"(?: |\x1b\[[\d;]*m)+$", re.MULTILINE)  # spaces, and ends of colours


@dataclass(frozen=True, slots=True)
class Line:
    """A text that is broken at the edge of the page.

    ``first`` stands before it. Further lines begin below the text, or after ``hanging`` columns.
    """

    text: str
    first: str = ""
    hanging: int | None = None
    style: str = ""
    first_style: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with aligned columns; the first one names them.

    If a screen is too narrow for it, a row becomes a list of its cells, with their names.
    """

    rows: tuple[tuple[str, ...], ...]
    sides: str  # "<" or ">" per column
    has_names: bool = True
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Title:
    """An underlined name."""

    text: str


Part = str | Line | Table | Title  # a str is a line; further lines begin below its first word


class Page(str):
    """The text of a report, and its parts.

    Examples
    --------
    >>> shown = page([*row("mean", ["4.2 ms"]), *table([("name", "n"), ("a", "1,000")], "<>")])
    >>> print(shown)
      mean      4.2 ms
    name      n
    a     1,000
    """

    __slots__ = ("parts",)
    parts: tuple[Part, ...]

    def at(self, width: int, *, coloured: bool = False) -> str:
        """Return the text as wide as a terminal, with colours or without."""
        return _laid_out(self.parts, width, coloured=coloured)


def page(parts: Iterable[Part]) -> Page:
    """Make a page of parts, which may be pages."""
    flat: list[Part] = []
    for part in parts:
        flat += part.parts if isinstance(part, Page) else [part]
    made = Page(_laid_out(flat, WIDTH))
    made.parts = tuple(flat)
    return made


def join_pages(pages: Iterable[Part]) -> Page:
    """Put pages below each other, an empty line between them."""
    parts = [part for page in pages for part in ("", page)]
    return page(parts[1:])


def wrapped(
    text: str, first: str = "", *, hanging: int | None = None, style: str = ""
) -> list[Part]:
    """Return a text that is broken at the edge of the page, with ``first`` before it."""
    return [Line(text, first, hanging, style)] if text.strip() else []


def row(label: str, parts: Iterable[str], *, width: int = _LABEL, style: str = "") -> list[Part]:
    """Return a labelled row; none if all of its parts are empty.

    A label that is wider than its column moves the text to the right, and from half a line on
    stands on a line of its own.
    """
    text = "; ".join(part for part in parts if part)
    if not text:
        return []
    if len(label) < width:
        return [Line(text, f"  {label:<{width}}", None, style, "cyan")]
    if len(label) < WIDTH // 2:
        return [Line(text, f"  {label}  ", width + 2, style, "cyan")]
    return [Line(label, "  ", style="cyan"), Line(text, " " * (width + 2), style=style)]


def table(
    rows: Iterable[Sequence[str]], sides: str, *, has_names: bool = True, indent: int = 0
) -> list[Part]:
    """Return a table with columns aligned to their sides, "<" or ">"; empty ones are left out."""
    columns = zip(sides, *rows, strict=True)
    filled = [column for column in columns if any(column[1 + has_names :])]
    kept, *cells = zip(*filled, strict=True) if filled else [()]
    return [Table(tuple(cells), "".join(kept), has_names, indent)] if cells else []


def _laid_out(parts: Sequence[Part], width: int, *, coloured: bool = False) -> str:
    from rich.console import Console  # noqa: PLC0415  # only needed to show something

    target = StringIO()
    console = Console(
        file=target,
        width=width,
        height=1,  # else it asks the terminal
        force_terminal=coloured,
        force_jupyter=False,  # else a notebook shows each line next to the text
        color_system="standard" if coloured else None,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    for part in parts:
        if isinstance(part, Table):
            _show_table(part, console)
        else:
            _print_lines([part], console)
    shown = _BEHIND.sub(lambda behind: behind[0].replace(" ", ""), target.getvalue())
    return shown.removesuffix("\n")


def _print_lines(parts: Iterable[str | Line | Title], console: Console) -> None:
    for part in parts:
        for line in _lines(part, console):
            console.print(line, no_wrap=True, overflow="ignore", crop=False)


def _lines(part: str | Line | Title, console: Console) -> Iterator[Text]:
    """Break a text into lines as wide as the console."""
    from rich.text import Text  # noqa: PLC0415  # likewise

    if isinstance(part, Title):
        name = Text(escaped(part.text), style="bold")
        yield from name.wrap(console, console.width, overflow="fold")
        yield Text("─" * min(name.cell_len, console.width))
        return
    line = part if isinstance(part, Line) else _as_line(part)
    first, text = escaped(line.first), _WHOLE.sub(rf"\1{_GLUE}%", escaped(line.text))
    whole = _text(text, line.style)
    hanging = len(first) if line.hanging is None else line.hanging
    if console.width - max(len(first), hanging) < _NARROWEST and len(first) > _GAP:
        yield from Text(first.rstrip(), style=line.first_style).wrap(
            console, console.width, overflow="fold"
        )
        first = " " * _GAP
        hanging = len(first)
    room = max(console.width - max(len(first), hanging), 1)
    for index, broken in enumerate(whole.wrap(console, room, overflow="fold") or [whole]):
        before = Text(first, style=line.first_style) if index == 0 else Text(" " * hanging)
        broken.rstrip()
        broken.plain = broken.plain.replace(_GLUE, " ")
        yield Text.assemble(before, broken)


def _text(shown: str, style: str = "") -> Text:
    """Make a text with coloured traffic lights."""
    from rich.text import Text  # noqa: PLC0415  # likewise

    made = Text(shown, style)
    for light, colour in _LIGHTS.items():
        made.highlight_words([f"● {light}"], colour)
    return made


def _as_line(text: str) -> Line:
    bare = text.lstrip(" ")
    return Line(bare, text[: len(text) - len(bare)])


def _show_table(part: Table, console: Console) -> None:
    """Print a table; names that are too wide for the first column get their own lines."""
    from rich.padding import Padding  # noqa: PLC0415  # likewise
    from rich.table import Table as Grid  # noqa: PLC0415  # likewise

    rows = [[_text(escaped(cell)) for cell in cells] for cells in part.rows]
    widths = _widths(part, rows, console.width)
    if not widths:
        _print_lines(_list_rows(part), console)
        return
    for index, cells in enumerate(rows):
        style = "bold" if part.has_names and index == 0 else ""
        stands_above = cells[0].cell_len > widths[0]
        if stands_above:
            _print_lines([Line(cells[0].plain, " " * part.indent)], console)
        grid = Grid.grid(padding=(0, _GAP, 0, 0), pad_edge=False)
        for width, side in zip(widths, part.sides, strict=True):
            justify: Any = "right" if side == ">" else "left"
            grid.add_column(width=width, justify=justify, overflow="fold")
        grid.add_row("" if stands_above else cells[0], *cells[1:], style=style)
        console.print(Padding(grid, (0, 0, 0, part.indent)), crop=False)


def _widths(part: Table, rows: Sequence[Sequence[Text]], room: int) -> list[int]:
    """Return the widths of the columns; none if they have no room even when two are broken."""
    widths = [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]
    excess = part.indent + sum(widths) + _GAP * (len(widths) - 1) - room
    if excess <= 0:
        return widths
    last = len(widths) - 1
    least = {0: _SHORT_NAME, last: _NARROWEST if part.sides[last] == "<" else widths[last]}
    for column, fewest in (*least.items(), (0, rows[0][0].cell_len)):
        if excess <= 0:
            break
        narrowed = min(widths[column], max(widths[column] - excess, fewest))
        if column == 0:  # what does not fit stands above
            fitting = (cells[0].cell_len for cells in rows if cells[0].cell_len <= narrowed)
            narrowed = max(fitting, default=narrowed)
        excess -= widths[column] - narrowed
        widths[column] = narrowed
    return widths if excess <= 0 else []


def _list_rows(part: Table) -> Iterator[Line]:
    """Return the rows of a table as lists of their cells."""
    names = part.rows[0] if part.has_names else ("",) * len(part.sides)
    label = max(map(len, names[1:]), default=0)
    for first, *cells in part.rows[1:] if part.has_names else part.rows:
        yield Line(first, " " * part.indent, style="bold")
        for name, cell in zip(names[1:], cells, strict=True):
            if cell:
                yield Line(cell, f"{' ' * (part.indent + _GAP)}{name:<{label}}  ")
