"""Thresholds of a machine, with hysteresis and hold time, and the alarms that they raise."""

from __future__ import annotations

import math
import re
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model import toml_tables as toml
from benchrigor.model.checks import is_number, refuse, wrong_values
from benchrigor.model.codec import encode
from benchrigor.model.machine import Alarm, Health, Sample, Status
from benchrigor.model.notice import Figure
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import LARGEST, short
from benchrigor.model.toml_tables import Keys, Reader, TomlTables, name_at
from benchrigor.safe_text import hide_in_text

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


MOST_EVIDENCE = 16

Change = tuple[Alarm, bool]  # Whether it stands from now on


class Alarms:
    """The alarms of a machine: thresholds on its states raise them, or they are raised by hand.

    A code never has two standing alarms. An alarm changes only after its condition has held for
    the threshold's ``hold_s``, a second or more, so that a wrong threshold cannot flood a reader.
    Any thread may call any method.

    Parameters
    ----------
    thresholds
        Thresholds from `read_thresholds`; None for the thresholds of the package.
    now
        Returns the moment, ISO 8601 in UTC, at which an alarm is raised by hand.

    Attributes
    ----------
    changes
        By code, the number of times that an alarm was raised or cleared.
    unjudged
        By code, why a threshold cannot be judged: its sample is not known.
    callback_error
        The last error that a callback raised; empty if none did.

    Raises
    ------
    InvalidInput
        When a threshold is wrong, with all problems.

    Examples
    --------
    >>> from benchrigor.machine import StatusReader
    >>> from benchrigor.testing import FakeSampler
    >>> memory = FakeSampler({"memory available share": 3.0})
    >>> reader, alarms = StatusReader(samplers=[memory]), Alarms()
    >>> for now_s in range(12):
    ...     alarms.tell(reader.read(), now_s)
    >>> [(alarm.code, alarm.value, alarm.threshold) for alarm in alarms.standing()]
    [('memory-low', 3.0, 5.0)]
    """

    def __init__(
        self,
        thresholds: Iterable[Threshold] | None = None,
        *,
        now: Callable[[], str] = lambda: datetime.now(UTC).isoformat(timespec="milliseconds"),
    ) -> None:
        self._now = now
        self._lock = threading.RLock()
        self._standing: dict[str, Alarm] = {}
        self._since: dict[str, tuple[float, str]] = {}  # by code, when a change began to show
        self._callbacks: list[Callable[[Alarm, bool], object]] = []
        self.changes: Counter[str] = Counter()
        self.unjudged: dict[str, str] = {}
        self.callback_error = ""
        self._thresholds: tuple[Threshold, ...] = ()
        self.configure(read_thresholds() if thresholds is None else thresholds)

    @property
    def thresholds(self) -> tuple[Threshold, ...]:
        """The thresholds in force."""
        return self._thresholds

    def configure(self, thresholds: Iterable[Threshold]) -> None:
        """Put other thresholds in force; clear alarms of codes that they no longer name.

        Raises
        ------
        InvalidInput
            When a threshold is wrong, with all problems; the previous ones stay in force.
        """
        checked = checked_thresholds(tables_of(thresholds))
        with self._lock:
            before = {threshold.code for threshold in self._thresholds}
            codes = {threshold.code for threshold in checked if threshold.enabled}
            self._thresholds, self._since = checked, {}
            self.unjudged = dict.fromkeys(codes, "no state has been reported yet")
            changes = [
                self._change(self._standing[code], is_standing=False)
                for code in before - codes
                if code in self._standing
            ]
        self._announce(changes)

    def tell(self, state: Status | Health, now_s: float) -> None:
        """Judge a state; raise and clear alarms.

        Samples that a state does not hold have no effect, so that statuses may come often, and
        health now and then.

        Parameters
        ----------
        state
            A `Status` or `Health`.
        now_s
            Seconds of any clock, by which alarms are held; the same clock in each call.

        Raises
        ------
        InvalidInput
            When the state is of another type, or ``now_s`` is not a finite number.
        """
        if not isinstance(state, Status | Health):
            raise InvalidInput(f"state is {short(state)}, expected a Status or a Health")
        if not (is_number(now_s) and math.isfinite(now_s)):
            raise InvalidInput(f"now_s is {short(now_s)}, expected a finite number of seconds")
        samples = {sample.name: sample for sample in state.samples}
        with self._lock:
            found = [
                self._judge(threshold, samples, state.at, now_s)
                for threshold in self._thresholds
                if threshold.enabled
            ]
        self._announce(alarm for alarm in found if alarm is not None)

    def standing(self) -> tuple[Alarm, ...]:
        """Return the alarms that stand now, the oldest first, with their latest figures."""
        with self._lock:
            return tuple(self._standing.values())

    def on_change(self, callback: Callable[[Alarm, bool], object]) -> None:
        """Call back with the alarm and True when it is raised, with False when it is cleared.

        A callback runs in the thread that caused the change. Its errors are only kept, see
        ``callback_error``.

        Raises
        ------
        InvalidInput
            When the callback cannot be called.
        """
        if not callable(callback):
            raise InvalidInput(f"callback is {short(callback)}, expected a function")
        with self._lock:
            self._callbacks.append(callback)

    def raise_(self, code: str, /, sentence: str = "", **evidence: Figure) -> None:
        """Raise an alarm by hand; one that stands already has its figures renewed.

        Parameters
        ----------
        code
            Lower-case letters, digits and hyphens. A threshold of that code may clear it.
        sentence
            The problem and its remedy; empty for the sentence of the code's threshold.
        evidence
            Up to 16 finite numbers, or texts of up to 300 printable characters.

        Raises
        ------
        InvalidInput
            When the code or the evidence is out of bounds, or a hundred codes were used already.
        """
        refuse(wrong_code(code), _wrong_figures(sentence, evidence))
        with self._lock:
            standing = self._standing.get(code)
            if code not in self.changes and len(self.changes) >= MOST_CODES:
                raise InvalidInput(
                    f"{MOST_CODES} codes of alarms were used, and {code!r} is another: say in "
                    "evidence what differs"
                )
            known = {threshold.code: threshold.sentence for threshold in self._thresholds}
            alarm = Alarm(
                code=code,
                sentence=sentence or (standing.sentence if standing else known.get(code, code)),
                since=standing.since if standing else self._now(),
                evidence=evidence,
            )
            self._standing[code] = alarm
            changes = [] if standing else [self._change(alarm, is_standing=True)]
        self._announce(changes)

    def clear(self, code: str) -> None:
        """Clear an alarm, if it stands."""
        with self._lock:
            alarm = self._standing.get(code)
            changes = [self._change(alarm, is_standing=False)] if alarm else []
        self._announce(changes)

    def _judge(
        self, threshold: Threshold, samples: Mapping[str, Sample], at: str, now_s: float
    ) -> Change | None:
        """Judge one threshold by the samples of a moment."""
        code, first = threshold.code, threshold.when[0]
        values = {one: samples[one.sample].value for one in threshold.when if one.sample in samples}
        known = {condition: value for condition, value in values.items() if is_number(value)}
        if first not in known:
            if first in values:
                sample = samples[first.sample]
                self.unjudged[code] = f"{sample.name}: {sample.reason or 'is no number'}"
            return None
        self.unjudged.pop(code, None)
        standing = self._standing.get(code)
        alarm = Alarm(
            code=code,
            sentence=threshold.sentence,
            since=standing.since if standing else at,
            value=known[first],
            threshold=first.limit,
            evidence={condition.sample: value for condition, value in known.items()}
            | {name: samples[name].value for name in threshold.evidence if name in samples},
        )
        if standing is None:
            is_changing = all(condition.holds(value) for condition, value in known.items())
        else:
            self._standing[code] = alarm
            is_changing = any(condition.is_over(value) for condition, value in known.items())
        if not is_changing:
            self._since.pop(code, None)
            return None
        since_s, since = self._since.get(code, (now_s, at))
        if now_s < since_s:  # the clock was set back
            since_s, since = now_s, at
        self._since[code] = since_s, since
        if now_s - since_s < threshold.hold_s:
            return None
        if standing is None:
            return self._change(replace(alarm, since=since), is_standing=True)
        return self._change(alarm, is_standing=False)

    def _change(self, alarm: Alarm, *, is_standing: bool) -> Change:
        """Raise or clear an alarm, and count that."""
        self.changes[alarm.code] += 1
        self._since.pop(alarm.code, None)
        if is_standing:
            self._standing[alarm.code] = alarm
        else:
            del self._standing[alarm.code]
        return alarm, is_standing

    def _announce(self, changes: Iterable[Change]) -> None:
        """Call back, outside of the lock."""
        for alarm, is_standing in changes:
            for callback in tuple(self._callbacks):
                try:
                    callback(alarm, is_standing)
                except Exception as error:  # noqa: BLE001 - no callback may stop the alarms
                    self.callback_error = f"{callback!r} raised {hide_in_text(repr(error))}"


def _wrong_figures(sentence: object, evidence: Mapping[str, object]) -> list[str]:
    """Return the problems with the sentence and the evidence of an alarm."""
    fits = len(evidence) <= MOST_EVIDENCE and all(
        _is_figure(value) and _is_line(f"{name}{value}") for name, value in evidence.items()
    )
    is_text = isinstance(sentence, str) and _is_line(sentence)
    return wrong_values(
        [
            (
                "evidence",
                evidence,
                fits,
                f"up to {MOST_EVIDENCE} finite numbers or texts, each up to {LONGEST} printable "
                "characters long with its name",
            ),
            ("sentence", sentence, is_text, f"a text of up to {LONGEST} printable characters"),
        ]
    )


def _is_line(text: str) -> bool:
    """Return whether a text is short, and has no control characters, which a terminal obeys."""
    return len(text) <= LONGEST and text.isprintable()


def _is_figure(value: object) -> bool:
    if isinstance(value, int | float):
        return -LARGEST <= value <= LARGEST
    return value is None or isinstance(value, str)
