"""Notices for the reader of a number, with documented codes."""

from __future__ import annotations

import enum
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from benchrigor.codes import CAUSES, Code, Severity
from benchrigor.model.one_line import OneLine
from benchrigor.safe_text import escaped, hide_in_text
from benchrigor.units import many, percent, show_amount, show_plainly, show_value

__all__ = ["Code", "Evidence", "Figure", "Notice", "Severity"]

Figure = str | int | float | bool | None  # One figure of a Notice's evidence

Evidence = Mapping[str, Figure]


class _Sentences(string.Formatter):
    """Formats figures as sentences show them; unknown formats as `format` does."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Format a figure.

        With its unit ("in s"), a noun ("many reading"), in per cent ("percent", or "percent 2"
        digits), without a sign ("abs .1%"), as it was given ("plain"), as an amount of work
        ("amount"); or choose a word: by one and several ("is|are"), truth, or sign ("+more|less").
        """
        kind, _, rest = format_spec.partition(" ")
        match kind:
            case "in":
                return show_value(value, rest)
            case "many":
                return many(value, rest)
            case "percent":
                return percent(value, digits=int(rest or 3))
            case "abs":
                return format(abs(value), rest)
            case "plain":
                return show_plainly(value)
            case "amount":
                return show_amount(value, "")
        if "|" in format_spec:
            first, second = format_spec.removeprefix("+").split("|")
            return first if (value > 0 if format_spec[0] == "+" else value == 1) else second
        return format(value, format_spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(OneLine):
    """One thing that the reader of a number must know.

    Parameters
    ----------
    code, severity
        For programs; stable.
    sentence
        For people; secrets are hidden.
    evidence
        The figures that support the sentence.

    Examples
    --------
    >>> print(Notice.of(Code.CONSTANT, n=12, value=3.0))
    All 12 readings are 3: the interval has no width. [constant-readings]
    """

    code: Code
    severity: Severity
    sentence: str
    evidence: Evidence = field(default_factory=dict)

    @classmethod
    def of(cls, code: Code, case: str = "", /, **figures: Any) -> Notice:
        """Make the Notice of a code, and a case of it, by its row in ``benchrigor.codes``.

        Figures with names that end in ``_`` are shown only.
        """
        severity, sentence = code.sentences[case]
        kept = {name: figure for name, figure in figures.items() if not name.endswith("_")}
        sentence = _Sentences().vformat(sentence, (), figures)
        return cls(code=code, severity=severity, sentence=sentence, evidence=kept)

    def about(self, name: str) -> Notice:
        """Return it with the name of its subject before its sentence."""
        return replace(self, sentence=f"{name}: {self.sentence}")

    def __post_init__(self) -> None:
        # Here, as in a record: a sentence may repeat the command that was run, and its output.
        object.__setattr__(self, "sentence", hide_in_text(self.sentence))

    def __str__(self) -> str:
        return escaped(f"{self.sentence} [{self.code}]")


def weakening(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    """Return the warnings and refusals among Notices."""
    return tuple(notice for notice in notices if notice.severity is not Severity.NOTE)


def leading(notice: Notice, notices: tuple[Notice, ...]) -> tuple[Notice, ...]:
    """Put a Notice before others, but after a warning of several modes: it comes first."""
    modes = [notice for notice in notices if is_of_modes(notice)]
    return (*modes, notice, *(notice for notice in notices if notice not in modes))


def is_of_modes(notice: Notice) -> bool:
    """Whether a Notice warns of modes that are far apart."""
    return notice.code is Code.SEVERAL_MODES and notice.severity is Severity.WARNING


def one_each(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    """Keep the most informative code per cause.

    Examples
    --------
    >>> few = Notice.of(Code.FEW_READINGS, n=9, wanted=30)
    >>> short = Notice.of(Code.SHORT_RUN, n=9, noun_="readings", wanted=30)
    >>> [str(notice.code) for notice in one_each([short, few])]
    ['few-readings']
    """
    given = tuple(notices)
    codes = {notice.code for notice in given}
    found = [[code for code in cause if code in codes] for cause in CAUSES]
    repeats = {code for cause in found for code in cause[1:]}
    return tuple(notice for notice in given if notice.code not in repeats)


class Fitness(enum.StrEnum):
    """Whether a machine is fit to be measured on, by one finding or by all of them."""

    OK = "ok"
    UNKNOWN = "unknown"
    DOUBTFUL = "doubtful"
    UNFIT = "unfit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(OneLine):
    """One thing that a doctor found.

    Parameters
    ----------
    name
        A stable name of the property.
    found
        Its value, or the reason why it is not known.
    verdict
        Whether that value is fit for measurements.
    advice
        The remedy if it is not; else empty.
    code
        The Notice that it leads to in a run, if any.

    Examples
    --------
    >>> print(Finding(name="turbo", found="off", verdict=Fitness.OK))
    turbo: off (ok)
    """

    name: str
    found: str
    verdict: Fitness
    advice: str = ""
    code: Code | None = None

    def __str__(self) -> str:
        code = f" [{self.code}]" if self.code else ""
        return escaped(
            f"{self.name}: {self.found} ({self.verdict}){self.advice and f': {self.advice}'}{code}"
        )


def verdict_of(findings: Iterable[Finding]) -> Fitness:
    """Return the worst verdict; unknown properties do not count.

    Examples
    --------
    >>> verdict_of([Finding(name="smt", found="not known", verdict=Fitness.UNKNOWN)])
    <Fitness.OK: 'ok'>
    """
    worst = max((_ORDER.index(finding.verdict) for finding in findings), default=0)
    return _ORDER[worst] if _ORDER[worst] is not Fitness.UNKNOWN else Fitness.OK


_ORDER = (Fitness.OK, Fitness.UNKNOWN, Fitness.DOUBTFUL, Fitness.UNFIT)
