"""The one line of a result: what `repr` shows of it, at the prompt of Python and in lists."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sized
from dataclasses import MISSING, Field, fields, replace
from importlib import import_module
from typing import Any, ClassVar

from benchrigor.safe_text import escaped

_LONGEST = 100  # Columns of the line
_NAME, _TEXT = 40, 30  # Characters of them for a name, and for another text
_FEW = 3  # Longer tuples, arrays and mappings show their length


class OneLine:
    """A result with a `repr` of one short line: the first that `print` shows.

    A result without its own text shows the fields that differ from their defaults. In a notebook a
    result with a sheet is shown as HTML: ``_sheet`` names the function of a report that makes it,
    as "module:function".
    """

    __slots__ = ()
    _sheet = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # In the class itself: else `dataclass` adds a repr of all fields, raw readings included.
        cls.__repr__ = OneLine.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        line = escaped(self._line())
        return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"

    def _repr_html_(self) -> str | None:
        if not self._sheet:
            return None
        text: str = called("benchrigor.report.html:fragment_of", self)
        return text

    def _line(self) -> str:
        if type(self).__str__ is object.__str__:
            return _show_fields(self)
        name, shown = getattr(self, "name", ""), self
        if isinstance(name, str) and len(name) > _NAME:  # else no number might fit after it
            shown = replace(self, name=_shorten(name, _NAME))  # type: ignore[type-var]
        first, *more = str(shown).splitlines()
        return f"{first} …" if more else first


class Reported(OneLine):
    """A result that prints as a page.

    Data know no layout: ``_facts`` names the function that lists the findings, as
    "module:function", and `print` loads it. ``_page`` names another function that composes the
    text, of a result that prints as a line.
    """

    __slots__ = ()
    _facts: ClassVar[str]
    _page: ClassVar[str] = "benchrigor.report.fact:page_of"
    _sheet = "benchrigor.report.sheets:sheet_of_facts"

    def __str__(self) -> str:
        text: str = called(self._page, self)
        return text


def called(path: str, result: object) -> Any:
    """Call the function of a dotted path with a result."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)(result)


def _shorten(text: str, most: int) -> str:
    """Leave out the middle of a long text, since its ends distinguish it from others."""
    last = most // 2
    return text if len(text) <= most else f"{text[: most - last - 1]}…{text[-last:]}"


def _show_fields(item: Any) -> str:
    shown = ((part.name, getattr(item, part.name)) for part in fields(item) if _differs(item, part))
    return f"{type(item).__name__}({', '.join(f'{name}={_show(value)}' for name, value in shown)})"


def _differs(item: Any, field: Field[Any]) -> bool:
    """Whether a field has another value than its default; arrays do not compare as a whole."""
    default = field.default
    if field.default_factory is not MISSING:
        default = field.default_factory()
    value = getattr(item, field.name)
    return field.repr and not (type(value) is type(default) and value == default)


def _show(value: object) -> str:
    if isinstance(value, enum.Enum):
        return str(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        return repr(_shorten(value, _TEXT))
    if isinstance(value, Sized) and len(value) > _FEW:
        return f"<{len(value):,} items>"
    if isinstance(value, tuple):
        return f"({', '.join(map(_show, value))})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name!r}: {_show(item)}' for name, item in value.items())}}}"
    return repr(value)
