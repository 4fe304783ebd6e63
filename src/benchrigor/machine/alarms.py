"""Alarms: raised and cleared by thresholds, or by others; decided without I/O."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from benchrigor.errors import InvalidInput
from benchrigor.machine.thresholds import (
    LONGEST,
    MOST_CODES,
    Threshold,
    checked_thresholds,
    read_thresholds,
    tables_of,
    wrong_code,
)
from benchrigor.model.checks import is_number, refuse, wrong_values
from benchrigor.model.machine import Alarm, Health, Sample, Status
from benchrigor.model.notice import Figure
from benchrigor.model.series import LARGEST, short
from benchrigor.safe_text import hide_in_text

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
