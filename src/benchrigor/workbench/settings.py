"""The settings of searches for a peak, of maps, choices and hosts, each declared once.

Constructors check their arguments by these rows; the options of `peak` and the keys of files are
made of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchrigor.model.checks import ABOVE_0, FROM_0, wrong_number, wrong_values
from benchrigor.model.series import short
from benchrigor.safe_text import escaped
from benchrigor.settings import FLAG, SETTINGS, SHARE, Kind, Setting, choice, whole
from benchrigor.units import positive_seconds_of, time_limit_of

ADAPTIVE = "adaptive"  # a policy of searches, and a design of maps
LOADS = {"rate": "req/s", "users": "users", "connections": "connections"}
"""Units of loads, by kind."""
_TEXT = Kind()
_LOAD = Kind("LOAD", float, lambda load: 0.0 < load < math.inf, "a load above 0")
_SECONDS = Kind("DURATION", positive_seconds_of, lambda span: not wrong_number("", span), ABOVE_0)
_LIMIT = replace(_SECONDS, read=time_limit_of)
_FROM_0 = Kind(fits=lambda span: not wrong_number("", span, zero=True), expected=FROM_0)
_CONFIDENCE = replace(SETTINGS["confidence"], default=0.95)
_BUDGET = Setting(_LIMIT, flag="budget", may_be_none=True)
_SEED = Setting(whole(0), default=1)

SEARCH = {
    "seed_load": Setting(_LOAD, "The first load.", default=50.0),
    "min_load": Setting(_LOAD, "The least load that is tried.", default=1.0),
    "max_load": Setting(_LOAD, "The greatest load that is tried.", may_be_none=True),
    "accuracy": Setting(
        SHARE, "Half-width wanted of the peak; published policies 10%.", default=0.05
    ),
    "width": Setting(
        SHARE,
        "The published policies take a response this near to the limit for the peak.",
        default=0.10,
    ),
    "confidence": _CONFIDENCE,
    "trial_s": Setting(
        _SECONDS,
        "Length of each trial.",
        flag="trial-time",
        may_be_none=True,
        usual="as the policy wants: 3min, strawman 5min, adaptive as the interval needs",
    ),
    "budget_s": replace(
        _BUDGET,
        help="The search takes no longer than this; none for no limit.",
        usual="240; none for the published policies",
    ),
    "policy": Setting(
        choice(ADAPTIVE, "strawman", "linear", "binsearch", "model", "quadratic"),
        "How loads are chosen; all but the first are published.",
        default=ADAPTIVE,
    ),
}
"""Of a search for a peak."""
GOAL = SEARCH | {"setup_s": Setting(_FROM_0, default=0.0), "whole": Setting(FLAG, default=False)}
"""Of `PeakSearch`, apart from limits."""
SENDING = {
    "arrivals": Setting(
        choice("poisson", "constant"), "How requests follow each other.", default="poisson"
    ),
    "timeout_s": Setting(
        _SECONDS,
        "A request without an answer by then failed.",
        flag="timeout",
        may_be_none=True,
        usual="10s, or 3 times the greatest limit",
    ),
    "processes": Setting(whole(), "The least number of processes to send from.", may_be_none=True),
}
"""Of what sends requests."""
LOAD = {
    "load": Setting(
        choice(*LOADS),
        "The unit of load: requests per second; or, of a COMMAND, users or connections that each "
        "wait for an answer.",
        default="rate",
    )
}
"""Of any generator of load."""
DESIGN = {
    "design": Setting(choice(ADAPTIVE, "d-optimal", "full"), flag="kind", default=ADAPTIVE),
    "samples": Setting(whole(), may_be_none=True),
    "target": Setting(SHARE, default=0.05),
    "confidence": _CONFIDENCE,
    "seed": _SEED,
}
"""Of a map."""
MAP = DESIGN | {
    "budget_s": _BUDGET,
    "model": Setting(choice("auto", "quadratic", "gaussian-process"), default="auto"),
}
"""Of `SurfaceMap`, apart from factors and responses."""
# Limits of the steps of a server: "ready" counts from the start; "stop" from the command, and again
# from SIGTERM.
STEPS = {
    "configure": Setting(_SECONDS, default=3600.0),
    "ready": Setting(_SECONDS, default=60.0),
    "warm_up": Setting(_SECONDS, default=600.0),
    "ramp": Setting(_SECONDS, default=600.0),
    "stop": Setting(_SECONDS, default=10.0),
    "clean": Setting(_SECONDS, default=60.0),
}
FACTOR = {"change_s": Setting(_SECONDS, flag="change"), "workload": Setting(FLAG)}
SAMPLE = {
    "accuracy": SEARCH["accuracy"],
    "budget_s": _BUDGET,
    "timeout_s": SENDING["timeout_s"],
}
"""Of a sample that a command measures."""
CHOICE = {
    "margin": Setting(
        replace(
            SHARE, fits=lambda share: 0.0 <= share < 1.0, expected="a number from 0 to below 1"
        ),
        default=0.02,
    ),
    "confidence": _CONFIDENCE,
    "budget_s": _BUDGET,
    "direction": Setting(choice("higher", "lower"), default="higher"),
    "seed": _SEED,
}
"""Of `BestChoice`."""
HOSTS = {
    "scheduler": Setting(
        replace(_TEXT, metavar="ADDRESS"),
        "Hosts are workers of this Dask scheduler: all, or those that --host names.",
    ),
    "python": Setting(
        replace(_TEXT, metavar="PATH"), "The interpreter on the hosts.", usual="as here"
    ),
    "cwd": Setting(_TEXT),
    "interchangeable": Setting(FLAG),
    "generators": Setting(whole()),
    "deadline_s": Setting(_LIMIT, flag="deadline", may_be_none=True),
    "limit_s": Setting(_LIMIT, flag="limit", may_be_none=True),
}
"""Of hosts that measure samples, or send requests."""


def wrong_hosts(argument: str, names: Sequence[object]) -> Iterator[str]:
    """Yield all problems of the names of hosts."""
    yield from wrong_values(
        (f"{argument}[{index}]", name, _is_host(name), "a name of a host")
        for index, name in enumerate(names)
    )
    for name, n in Counter(map(str, names)).items():
        if n > 1:
            yield f"{argument} has {short(name)} twice, expected each host once"


def _is_host(name: object) -> bool:
    """Whether a text names a host; one that begins with a dash would be an option of ssh."""
    is_text = isinstance(name, str) and name.strip() == name != ""
    return is_text and not str(name).startswith("-") and escaped(str(name)) == name
