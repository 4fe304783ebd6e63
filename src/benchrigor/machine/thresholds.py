"""Thresholds of a machine's alarms, with hysteresis and hold time."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model import toml_tables as toml
from benchrigor.model.checks import is_number, refuse
from benchrigor.model.codec import encode
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import LARGEST, short
from benchrigor.model.toml_tables import Keys, Reader, TomlTables, name_at

MOST_CODES, LONGEST = 100, 300  # Bounds of what others may send: codes, characters of a text
_MOST_LISTED = 8
_LEAST_HOLD_S = 1.0  # No alarm changes more often
_CODE = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_DEFAULTS = Path(__file__).with_name("thresholds.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition(OneLine):
    """A limit of a sample, and the value at which the condition ends.

    Parameters
    ----------
    sample
        Name of a number in a `Status` or a `Health`.
    above, below
        The limit, one of them: the condition holds beyond it.
    clear
        The condition ends at this value, or beyond it on the good side. It may not exceed
        ``above``, nor lie under ``below``. In between nothing changes, which is the hysteresis.

    Examples
    --------
    >>> full = Condition(sample="storage used", above=95.0, clear=90.0)
    >>> [(full.holds(value), full.is_over(value)) for value in (96.0, 93.0, 90.0)]
    [(True, False), (False, False), (False, True)]
    """

    sample: str
    clear: float
    above: float | None = None
    below: float | None = None

    @property
    def limit(self) -> float | None:
        """The limit that a value must be above or below."""
        return self.below if self.above is None else self.above

    def holds(self, value: float) -> bool:
        """Return whether a value is beyond the limit."""
        if self.above is not None:
            return value > self.above
        return self.below is not None and value < self.below

    def is_over(self, value: float) -> bool:
        """Return whether a value is clear of it."""
        return value <= self.clear if self.above is not None else value >= self.clear


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold(OneLine):
    """When an alarm is raised and cleared.

    Parameters
    ----------
    code
        Code of the alarm; lower-case letters, digits and hyphens.
    when
        Conditions that must all hold. The sample of the first must be known; a further condition
        does not count if its sample is not known.
    sentence
        The problem, and its remedy.
    hold_s
        Seconds for which all conditions must hold before the alarm is raised, and for which one
        must be over before it is cleared; 1 or more.
    evidence
        Further samples to show with the alarm.
    enabled
        Whether the threshold counts.

    Examples
    --------
    >>> print(*(threshold.code for threshold in read_thresholds()))
    thrashing under-used throttling hot disk-full disk-failing memory-low memory-errors stolen
    """

    code: str
    when: tuple[Condition, ...]
    sentence: str
    hold_s: float = 10.0
    evidence: tuple[str, ...] = ()
    enabled: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return its table, as `read_thresholds` takes it by code."""
        fields = {key: value for key, value in encode(self).items() if key != "code"}
        if _is_list(fields["when"]):
            fields["when"] = [_without_gaps(condition) for condition in fields["when"]]
        return fields


def _without_gaps(condition: Any) -> Any:
    """Leave out of the table of a condition what has no value."""
    if not isinstance(condition, Mapping):
        return condition
    return {key: value for key, value in condition.items() if value is not None}


def tables_of(thresholds: Iterable[Threshold]) -> dict[str, dict[str, Any]]:
    """Return the tables of thresholds by code; refuse other objects, and codes given twice.

    The content of the tables is not checked.
    """
    is_several = isinstance(thresholds, Iterable) and not isinstance(thresholds, str | Mapping)
    given = tuple(thresholds) if is_several else ()
    if not is_several or not all(isinstance(threshold, Threshold) for threshold in given):
        raise InvalidInput(
            f"thresholds is {short(thresholds)}, expected several Threshold, as read_thresholds "
            "returns them"
        )
    refuse(*(wrong_code(threshold.code) for threshold in given))
    tables = {threshold.code: threshold.to_dict() for threshold in given}
    if len(tables) < len(given):
        raise InvalidInput(f"{len(given)} thresholds have {len(tables)} codes, expected as many")
    return tables


def read_thresholds(source: Path | str | Mapping[str, Any] | None = None) -> tuple[Threshold, ...]:
    r"""Read thresholds; missing ones are as in the package.

    Parameters
    ----------
    source
        A file in TOML, its text, or its content: tables by code, with any of the fields of
        `Threshold`. Missing fields and codes have their defaults; ``enabled = false`` turns a
        threshold off. None for the defaults alone.

    Raises
    ------
    InvalidInput
        When the file cannot be read, or with all its problems.

    Examples
    --------
    >>> thresholds = read_thresholds("[hot]\nenabled = false\n[disk-full]\nhold_s = 60.0")
    >>> [(one.hold_s, one.enabled) for one in thresholds if one.code in ("hot", "disk-full")]
    [(10.0, False), (60.0, True)]
    """
    defaults = tomllib.loads(_DEFAULTS.read_text(encoding="utf-8"))
    given = _tables(source)
    given.document = defaults | {
        code: {**defaults.get(code, {}), **table} if isinstance(table, Mapping) else table
        for code, table in given.document.items()
    }
    return _checked(given)


def _tables(source: Path | str | Mapping[str, Any] | None) -> TomlTables:
    match source:
        case Path():
            return TomlTables.of_file(source)
        case Mapping() | None:
            return TomlTables(source or {})
        case str():
            shown = f"thresholds: {short(source)} (a file is a Path)"
            return TomlTables.of_text(source, name="thresholds", shown=shown)
    raise InvalidInput(
        f"thresholds: source is {short(source)}, expected a Path, the text of a file in TOML, "
        "or tables by code"
    )


def checked_thresholds(tables: Mapping[str, Any]) -> tuple[Threshold, ...]:
    """Make thresholds of tables by code, or refuse them with all that is wrong."""
    return _checked(TomlTables(tables))


def _checked(tables: TomlTables) -> tuple[Threshold, ...]:
    codes = [*tables.document]
    if len(codes) > MOST_CODES:
        raise InvalidInput(f"there are {len(codes)} thresholds, expected at most {MOST_CODES}")
    thresholds = [_threshold(tables, code) for code in codes]
    tables.refuse()
    return tuple(threshold for threshold in thresholds if threshold is not None)


def wrong_code(code: object) -> list[str]:
    """Return the problems with the code of an alarm."""
    if isinstance(code, str) and _CODE.fullmatch(code):
        return []
    return [f"{short(code)} is not a code, expected up to 64 of a to z, 0 to 9 and hyphens"]


def _threshold(tables: TomlTables, code: str) -> Threshold | None:
    """Make a threshold of its table; note all that is wrong with it."""
    if problems := wrong_code(code):
        tables.note((code,), *problems)
        return None
    given = tables.table((code,), _THRESHOLD, ("when", "sentence"))
    places = tables.places(code, "when") if "when" in given else []
    given["when"] = tuple(_condition(tables, keys) for keys in places)
    given["evidence"] = tuple(given.get("evidence", ()))
    return Threshold(code=code, **given) if tables.is_right else None


def _condition(tables: TomlTables, keys: Keys) -> Condition | None:
    """Make a condition of its table; note all that is wrong with it."""
    given = tables.table(keys, _CONDITION, ("sample", "clear"))
    if not {"sample", "clear"} <= given.keys():
        return None
    limits = [limit for limit in ("above", "below") if tables.at(*keys, limit) is not None]
    if len(limits) != 1:
        has = f"{name_at(keys)} has {' and '.join(limits) or 'no limit'}"
        tables.note(keys, f"{has}, expected above or below")
    elif (limit := given.get(limits[0])) is not None:
        clear, is_above = given["clear"], limits == ["above"]
        if clear > limit if is_above else clear < limit:
            said = f"{name_at((*keys, 'clear'))} is {clear}"
            bound = "at most" if is_above else "at least"
            tables.note((*keys, "clear"), f"{said}, expected {bound} {limit}, which is {limits[0]}")
    return Condition(**given) if tables.is_right else None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST and value.isprintable()


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) <= _MOST_LISTED


def _is_finite(value: object) -> bool:
    return is_number(value) and -LARGEST <= value <= LARGEST


_text = toml.reader_of(_is_text, f"a text of 1 to {LONGEST} characters, all of them printable")
_THRESHOLD: Mapping[str, Reader] = {
    "when": toml.reader_of(
        lambda value: _is_list(value) and len(value) > 0, "one to eight conditions"
    ),
    "sentence": _text,
    "hold_s": toml.reader_of(
        lambda value: _is_finite(value) and value >= _LEAST_HOLD_S,
        f"a number of seconds from {_LEAST_HOLD_S:g} on",
    ),
    "evidence": toml.reader_of(
        lambda value: _is_list(value) and all(map(_is_text, value)),
        "up to eight names of samples, printable",
    ),
    "enabled": toml.flag_of,
}
_finite = toml.reader_of(_is_finite, "a finite number")
_limit = toml.reader_of(lambda value: value is None or _is_finite(value), "a finite number")
_CONDITION = {"sample": _text, "clear": _finite, "above": _limit, "below": _limit}
