"""The settings of a measurement, each declared once.

`Options` checks its fields by these rows; the options of verbs and of pytest, the arguments of
markers and the keys of pyproject.toml are made of them. Side systems have tables of such rows of
their own. pytest loads them in every run, so they import hardly anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from benchrigor.units import positive_seconds_of, share_of, statistic_of, time_limit_of

FEWEST_ROUNDS = 10  # of various work: a line through fewer says little


@dataclass(frozen=True, slots=True)
class Kind:
    """The values that a setting takes.

    ``read`` makes one of a text, or raises ValueError. ``fits`` says whether a number is in the
    bounds that ``expected`` describes; without it and ``choices``, a value is a text, unless
    `Options` has a check of its own. ``least`` is the first of whole numbers.
    """

    metavar: str | None = None
    read: Callable[[str], Any] = str
    fits: Callable[[float], bool] | None = None
    expected: str = ""
    choices: tuple[object, ...] = ()
    least: int | None = None


def whole(least: int = 1) -> Kind:
    """Return the kind of whole numbers from the least one on."""

    def read(text: str) -> int:
        if not (text.isdecimal() and int(text) >= least):
            raise ValueError(f"{text!r} is not a whole number from {least} on")
        return int(text)

    def fits(number: float) -> bool:
        return number >= least and float(number).is_integer()

    return Kind("N", read, fits, f"a whole number from {least} on", least=least)


def choice(*words: str | None) -> Kind:
    """Return the kind of some words; None stands for no choice."""
    return Kind(choices=words, expected=f"one of {', '.join(map(repr, words))}")


def _is_above_0(number: float) -> bool:
    return number > 0.0


def _statistic(text: str) -> str:
    """Check the name of a statistic."""
    statistic_of(text)
    return text


def _timeout(text: str) -> float | None:
    """Read a time limit; None for no limit."""
    limit_s = time_limit_of(text)
    return None if limit_s == math.inf else limit_s


def _cut(text: str) -> str | tuple[float, ...]:
    """Read what to cut: auto, none, 10%, or 10%:5%; shares are checked with all other options."""
    word = text.strip()
    if word in ("auto", "none"):
        return word
    try:
        shares = tuple(map(share_of, word.split(":")))
    except ValueError:
        raise ValueError(
            f"{text!r} is not a cut, expected auto, none, 10%, or 10%:5% for the two ends"
        ) from None
    return shares if len(shares) > 1 else shares * 2


def _share_from_0(text: str) -> float:
    """Read a share that may be 0."""
    if (share := share_of(text)) < 0.0:
        raise ValueError(f"{text!r} is below 0, expected 0 or more")
    return share


_WIDTH = Kind("SHARE", share_of, _is_above_0, "more than 0")
_CHANGE = Kind("SHARE", _share_from_0, lambda share: share >= 0.0, "0 or more")
SHARE = Kind(
    "SHARE", share_of, lambda share: 0.0 < share < 1.0, "a number between 0 and 1, both excluded"
)
_SPAN = Kind(fits=lambda seconds: seconds >= 0.0, expected="0 or more")
_DURATION = Kind("DURATION", positive_seconds_of, _is_above_0, "more than 0")
LIMIT = Kind("DURATION", time_limit_of, _is_above_0, "more than 0")
STATISTIC = Kind("NAME", _statistic)
FLAG = Kind(choices=(True, False), expected="True or False")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: its values, and where it can be given.

    Parameters
    ----------
    kind, may_be_none
        What fits.
    help
        One sentence.
    flag
        The name that users type; empty for the name of the field or parameter.
    default
        Of settings outside of `Options`, whose fields have their own.
    usual
        The default in words: of tests, and of verbs that have no value for it.
    places
        Besides verbs: "project" for pyproject.toml, "marker" and "option" for pytest's.
    """

    kind: Kind
    help: str = ""
    may_be_none: bool = False
    flag: str = ""
    default: Any = None
    usual: str = ""
    places: tuple[str, ...] = ()


_EVERYWHERE = ("project", "marker", "option")

# By the names of fields of `Options`, or of parameters of what measures.
SETTINGS = {
    "target": Setting(
        _WIDTH,
        "Half-width at which to stop; only one that you give can be missed.",
        may_be_none=True,
        places=_EVERYWHERE,
        usual="as for time in [tool.benchrigor.metrics] of pyproject.toml, else 2%",
    ),
    "confidence": Setting(SHARE, "Confidence of the intervals.", places=("project", "marker")),
    "statistic": Setting(
        STATISTIC,
        "mean, median, a percentile such as p10 (the floor) or p99, 'trimmed 10%', or min.",
        places=_EVERYWHERE,
        usual="mean",
    ),
    "method": Setting(
        choice("long-run-variance", "subsessions", "merged-subsessions"),
        "How the interval of a mean is made; subsessions covers less than it claims.",
    ),
    "autocorrelation_limit": Setting(
        SHARE,
        "Merge readings until neighbouring means correlate by no more than this.",
    ),
    "trim": Setting(
        Kind("auto|none|SHARE[:SHARE]", _cut),
        "Which readings to cut off: unstable ones, none, or shares at both ends (10%:5%).",
    ),
    "detector": Setting(
        choice("ranks", "edm", "pelt"),
        "What finds the phases: ranks (built in), edm (E-Divisive with medians), or pelt (of "
        "ruptures).",
        usual="ranks",
        places=("marker", "option"),
    ),
    "budget_s": Setting(
        LIMIT,
        "Measure no longer than this; none for no limit.",
        flag="budget",
        places=_EVERYWHERE,
        usual="2s; in fresh interpreters 10s",
    ),
    "max_rounds": Setting(whole(), "Run no more rounds than this.", may_be_none=True),
    "budget_readings": Setting(
        whole(), "Take no more readings than this.", may_be_none=True, flag="max-readings"
    ),
    "preset": Setting(
        choice(None, "quick", "normal", "strict"),
        "How much evidence a run needs before it may stop.",
        usual="normal",
        places=("project",),
    ),
    "rounds": Setting(
        choice("auto", "continuous", "restarted"),
        "Whether the rounds continue one series, or each has its own warm-up. Those of a "
        "function continue one series in this process only; a command starts a process for each.",
    ),
    "work": Setting(
        Kind("AMOUNT|LOW:HIGH"),
        "Work of a round, or from where to where it goes: replaces {work} in the command's "
        "arguments, or is the argument of the function. A range makes the speed the result "
        "(with --read-units, these decide). 1000, 1e6, 64KiB, 1MB:1GB, 1k: (no largest), :5M "
        "(from 0).",
    ),
    "work_order": Setting(choice("bisecting", "random"), "How amounts follow each other."),
    "analysis": Setting(
        choice("auto", "readings", "wps"),
        "readings: what rounds read. wps: the line through their work and durations, whose "
        "slope gives the speed. auto: wps when --work is a range.",
    ),
    "quick_s": Setting(
        _DURATION,
        "How long a first rough answer by rounds of various work may take.",
        flag="quick-time",
    ),
    "quick_rounds": Setting(whole(FEWEST_ROUNDS), "Rounds of the first rough answer, if short."),
    "short_round_s": Setting(
        _DURATION,
        "Rounds of various work shorter than this are kept, but do not count.",
        flag="short-round",
    ),
    "red_rounds": Setting(
        choice("keep", "repeat"),
        "Whether to repeat rounds that lost more than 15% of their time to interference.",
    ),
    "disturbed": Setting(
        choice("leave-out", "keep"),
        "Whether readings that waited for a processor count, if enough others are left.",
    ),
    "reference": Setting(
        FLAG,
        "Do not time fixed work in turn with the readings; it shows the pace of the machine.",
        flag="no-reference",
    ),
    "pieces": Setting(
        whole(),
        "Parts in which a function is measured; the interval comes from their levels.",
        usual="1; 6 for several functions and with --over, fewer where the budget is short",
    ),
    "min_seconds": Setting(_SPAN),
    "min_rounds": Setting(whole()),
    "target_given": Setting(FLAG, may_be_none=True),
    # Not in `Options`.
    "gc": Setting(
        choice("on", "off"),
        "Garbage collection while functions are timed.",
        default="on",
        usual="on",
        places=("project", "marker"),
    ),
    "batch": Setting(
        whole(),
        "Calls that a reading averages; 1 for single calls.",
        usual="as many as the clock needs",
        places=_EVERYWHERE,
    ),
    "timeout_s": Setting(
        Kind("DURATION", _timeout),
        "A command or call that runs longer is ended, and has failed.",
        flag="timeout",
    ),
    "margin": Setting(
        _CHANGE,
        "Change that does not matter; 0 for the classical test.",
        default=0.01,
        places=_EVERYWHERE,
        usual="1%",
    ),
    "seed": Setting(whole(0), "Seed of plans and orders; drawn, and kept, when not given."),
}


def typed_name(name: str, rows: Mapping[str, Setting] = SETTINGS) -> str:
    """Return the name of a setting, or of another option, as users type it."""
    return (name in rows and rows[name].flag) or name.replace("_", "-")


def names_by_key(names: Iterable[str], rows: Mapping[str, Setting] = SETTINGS) -> dict[str, str]:
    """Return the names of settings by those that they have in files and markers."""
    return {typed_name(name, rows).replace("-", "_"): name for name in names}


def settings_in(place: str) -> list[str]:
    """Return the names of the settings that can be given in a place."""
    return [name for name, row in SETTINGS.items() if place in row.places]
