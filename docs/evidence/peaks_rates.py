"""Searches with all defaults for the peaks of slow and fast servers, idle and beside a hog."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from coverage_tables import Setting, heading, row

__all__ = ["rates"]

_SERVER = Path(__file__).with_name("peaks_rates_server.py")
_KINDS = ("asyncio", "threads", "queue")
_RATES = (25.0, 100.0, 400.0, 2000.0)
_TOO_SLOW = (5.0, 1.0)
_MOST = {25.0: 4.0, 400.0: 1.5, 2000.0: 1.5}  # times the cost at 100 a second


class _Search(NamedTuple):
    """One search, as its command tells it."""

    status: str
    low: float | None
    value: float | None
    high: float | None
    cost_s: float
    code: int


@contextmanager
def _serving(kind: str, rate: float) -> Iterator[str]:
    command = [sys.executable, str(_SERVER), kind, str(rate)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/"
        server.kill()


@contextmanager
def _hog() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as hog:
        yield
        hog.kill()


def _search(kind: str, rate: float) -> _Search:
    with _serving(kind, rate) as url:
        command = [sys.executable, "-m", "benchrigor", "peak", "--url", url, "--p95", "200ms"]
        done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    told = json.loads(done.stdout)
    peak = told.get("peak", told)
    load = peak.get("load") or {}
    return _Search(
        str(peak.get("status", told.get("error"))),
        load.get("low", peak.get("at_least")),
        load.get("value"),
        load.get("high", peak.get("at_most")),
        float(peak.get("cost_s", np.nan)),
        done.returncode,
    )


def _all_at(rate: float, kinds: Sequence[str]) -> list[_Search]:
    with ThreadPoolExecutor(len(kinds)) as pool:
        return list(pool.map(lambda kind: _search(kind, rate), kinds))


def rates(setting: Setting) -> None:
    """Print the peaks of three servers at once, of each rate, and what their searches cost."""
    heading(["requests a second", "beside", "server", "status", "peak", "cost", "exit"])
    costs: dict[tuple[float, str], list[float]] = {}
    found: list[bool] = []
    kinds = _KINDS[:1] if setting.quick else _KINDS
    for rate, beside in product((*_RATES, *_TOO_SLOW), ("nothing", "a hog")):
        for _ in range(setting.runs(2, 1)):
            with _hog() if beside == "a hog" else nullcontext():
                searches = _all_at(rate, kinds)
            for kind, one in zip(kinds, searches, strict=True):
                value = "none" if one.value is None else f"{one.value:.3g}"
                ends = " to ".join("?" if x is None else f"{x:.3g}" for x in (one.low, one.high))
                cost = f"{one.cost_s:.0f} s"
                row(f"{rate:g}", beside, kind, one.status, f"{value} ({ends})", cost, one.code)
            if rate in _RATES:
                costs.setdefault((rate, beside), []).extend(one.cost_s for one in searches)
                found += [one.value is not None for one in searches]
    verdict = setting.verdict("peaks found", all(found))
    print(f"\na peak of {sum(found)} of {len(found)}, all: {verdict}")
    for (rate, beside), spent in costs.items():
        if rate in _MOST:
            times = float(np.median(spent) / np.median(costs[100.0, beside]))
            told = setting.verdict(f"cost at {rate:g}, {beside}", times <= _MOST[rate])
            print(f"{rate:g} a second beside {beside}: {times:.2f} times the cost at 100: {told}")
