"""Tables of a TOML file that people write: all that is wrong in them at once, with its lines."""

from __future__ import annotations

import io
import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from benchrigor.errors import InvalidInput
from benchrigor.files import readable
from benchrigor.model.checks import checked, refuse, wrong_values
from benchrigor.model.series import short
from benchrigor.model.shell_words import words_of as split_words
from benchrigor.settings import FLAG, Setting, names_by_key
from benchrigor.units import time_limit_of

T = TypeVar("T")
Keys = tuple[str, ...]
Reader = Callable[[str, Any], Any]  # of a key's name and value; InvalidInput if it is wrong


def lines_of(text: str) -> dict[Keys, int]:
    r"""Return the line of each table and key of a TOML document; tables of arrays are counted.

    Each statement is read by itself, from its first line to that with which it is complete.

    Examples
    --------
    >>> lines_of("a = 1\n[b.c]\nd = [\n  2]\n[[e]]\nf = 3")
    {('a',): 1, ('b', 'c'): 2, ('b', 'c', 'd'): 3, ('e', '0'): 5, ('e', '0', 'f'): 6}
    """
    found: dict[Keys, int] = {}
    table: Keys = ()
    statement, begun = "", 1
    for number, line in enumerate(io.StringIO(text, newline=""), start=1):
        statement += line
        with suppress(tomllib.TOMLDecodeError):
            paths = [*_paths(tomllib.loads(statement))]
            if statement.lstrip().startswith("["):
                table = paths[-1]
                if table[-1] == "0":  # of an array
                    n = sum(keys[:-1] == table[:-1] and keys[-1].isdigit() for keys in found)
                    table = (*table[:-1], str(n))
                paths = [()]
            for keys in paths:
                found.setdefault((*table, *keys), begun)
            statement, begun = "", number + 1
    return found


def _paths(item: Any) -> Iterator[Keys]:
    """Yield the keys of all that is in tables, and in arrays of tables."""
    if isinstance(item, list) and not all(isinstance(table, dict) for table in item):
        return
    for name, value in items_of(item).items():
        yield (name,)
        yield from ((name, *keys) for keys in _paths(value))


def items_of(item: Any) -> Mapping[str, Any]:
    """Return the items of a table by name, or of an array by index; else no items."""
    if isinstance(item, list | tuple):
        return {str(index): inner for index, inner in enumerate(item)}
    return item if isinstance(item, Mapping) else {}


def name_at(keys: Keys) -> str:
    """Return the name of an item, with its place in an array, as in ``when[0].clear``."""
    return re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", ".".join(keys))


class TomlTables:
    """A TOML document that is read table by table; ``refuse`` raises all problems, by their lines.

    ``text`` is the source of the document, if it has lines. Without a ``name``, problems do not
    begin with a place.
    """

    def __init__(self, document: Mapping[str, Any], *, name: str = "", text: str = "") -> None:
        self.document: Any = document
        self._name, self._text, self._problems = name, text, list[tuple[int, str]]()

    @classmethod
    def of_file(cls, path: str | Path) -> TomlTables:
        """Read a file; InvalidInput when it cannot be read, or is not TOML."""
        try:
            text = readable(path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise InvalidInput(f"{path} cannot be read: {why}") from error
        return cls.of_text(text, name=str(path))

    @classmethod
    def of_text(cls, text: str, *, name: str, shown: str = "") -> TomlTables:
        """Read a text; InvalidInput, which may show it otherwise, when it is not TOML."""
        try:
            return cls(tomllib.loads(text), name=name, text=text)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{shown or name} cannot be read: {error}") from error

    @cached_property
    def _lines(self) -> dict[Keys, int]:
        return lines_of(self._text)

    def at(self, *keys: str) -> Any:
        """Return the item at a path of keys, or None."""
        item = self.document
        for key in keys:
            item = items_of(item).get(key)
        return item

    def places(self, *keys: str) -> list[Keys]:
        """Return the paths of the items of an array, or of a table."""
        return [(*keys, name) for name in items_of(self.at(*keys))]

    def table(
        self, keys: Keys, readers: Mapping[str, Reader], needs: Collection[str] = ()
    ) -> dict[str, Any]:
        """Read the valid items of a table, and note wrong values, missing and unknown keys.

        A missing table is empty.
        """
        given = self.at(*keys)
        given = {} if given is None else given
        if not isinstance(given, Mapping):
            self.attempt(keys, table_of, name_at(keys), given)
            return {}
        where = name_at(keys) or "the file"
        for name in (name for name in given if name not in readers):
            near = get_close_matches(str(name), readers, n=1, cutoff=0.5) or [*readers]
            self.note((*keys, name), f"{where} has {short(name)}, expected {' or '.join(near)}")
        for name in needs:
            if name not in given:
                self.note(keys, f"{where} has no {name}")
        found = {
            name: self.attempt((*keys, name), reader, name_at((*keys, name)), given[name])
            for name, reader in readers.items()
            if name in given
        }
        return {name: value for name, value in found.items() if value is not None}

    def settings(
        self,
        keys: Keys,
        rows: Mapping[str, Setting],
        readers: Mapping[str, Reader] = MappingProxyType({}),
        needs: Collection[str] = (),
    ) -> dict[str, Any]:
        """Read a table of settings, and further keys, by the names of settings in the code.

        The limit "none" is None.
        """
        names = names_by_key(rows, rows)
        own = {key: reader_for(rows[name]) for key, name in names.items()}
        given = self.table(keys, {**readers, **own}, needs)
        return {
            names.get(key, key): None if value == math.inf else value
            for key, value in given.items()
        }

    def attempt(self, keys: Keys, make: Callable[..., T], *values: Any, **named: Any) -> T | None:
        """Make an object from values at a place; note the problem with them."""
        try:
            return make(*values, **named)
        except ValueError as error:  # InvalidInput is one
            self.note(keys, *getattr(error, "problems", [str(error)]))
            return None

    def note(self, keys: Keys, *problems: str) -> None:
        """Note the problem there; a problem that begins with the name of a key is on its line."""
        for problem in problems:
            line = self._lines.get((*keys, re.split(r"[ \[]", problem, maxsplit=1)[0]))
            line = line or next(self._lines_around(keys), 1)
            place = f"{self._name}:{line}: " if self._name else ""
            self._problems.append((line, f"{place}{problem}"))

    def _lines_around(self, keys: Keys) -> Iterator[int]:
        """Yield the lines of an item, of its parts, and of the tables that contain it."""
        for n in range(len(keys), 0, -1):
            yield from (line for at, line in self._lines.items() if at[:n] == keys[:n])

    @property
    def is_right(self) -> bool:
        """Whether it is free of problems so far."""
        return not self._problems

    def refuse(self) -> None:
        """Raise InvalidInput with all problems, by their lines."""
        by_line = sorted(dict.fromkeys(self._problems), key=lambda noted: noted[0])
        refuse(problem for _, problem in by_line)


def as_it_is(_name: str, value: Any) -> Any:
    """Take a value that is checked elsewhere."""
    return value


def reader_of(fits: Callable[[Any], object], expected: str) -> Reader:
    """Return a reader that takes values that fit."""

    def read(name: str, value: Any) -> Any:
        refuse(wrong_values([(name, value, bool(fits(value)), expected)]))
        return value

    return read


def reader_for(row: Setting) -> Reader:
    """Return the reader of a setting: a duration needs its unit, and the rest fits as anywhere."""
    if row.kind is FLAG:
        return flag_of

    def read(name: str, value: Any) -> Any:
        if row.kind.metavar == "DURATION":
            value = seconds_of(name, value)
        is_no_limit = row.may_be_none and value == math.inf
        return value if is_no_limit else checked(name, row, value)

    return read


def several_of(reader: Reader) -> Reader:
    """Return a reader that takes one value or a list, and returns a list."""

    def read(name: str, value: Any) -> Any:
        return [reader(name, one) for one in (value if isinstance(value, list) else [value])]

    return read


text_of = reader_of(lambda value: isinstance(value, str), "a text")
flag_of = reader_of(lambda value: isinstance(value, bool), "true or false")
table_of = reader_of(lambda value: isinstance(value, dict), "a table")
list_of = reader_of(lambda value: isinstance(value, list), "a list")


def seconds_of(name: str, value: Any) -> float:
    """Read a duration such as "30s", or "none" for infinitely long."""
    fits = isinstance(value, str) and not value.strip().isdigit()
    refuse(wrong_values([(name, value, fits, 'a duration with its unit, such as "30s"')]))
    try:
        return time_limit_of(value)
    except ValueError as error:
        raise InvalidInput(f"{name}: {error}") from None


def words_of(
    name: str, value: Any, *, instead: str = 'write ["sh", "-c", "..."], or give --shell'
) -> list[str]:
    """Read a program and its arguments, given as a line, which no shell reads, or as a list."""
    words = split_words(value, name, instead=instead) if isinstance(value, str) else value
    fits = isinstance(words, list) and words != [] and all(isinstance(word, str) for word in words)
    refuse(wrong_values([(name, value, fits, "a program and its arguments")]))
    return list(words)
