"""Searches on simulated servers of which the peak is known."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np
from coverage_tables import Bar, Setting, Tally, heading
from peaks_servers import ANOMALIES, SHAPES, Server, server_of, troubled_server

import benchrigor as br
from benchrigor.workbench import PeakSearch

__all__ = ["SETUP_S", "anomalies", "bounds", "costs", "search", "shapes"]

SETUP_S = 20.0
Found = tuple[str, float, bool, float, int, bool]
"""Status, relative error (nan for no number), covered, cost, trials, whether a Notice warns."""


def search(server: Server, **options: object) -> br.PeakRate:
    """Search for the peak of a server."""
    given = {"threshold_s": server.limit_s, "setup_s": SETUP_S, **options}
    searching = PeakSearch(**given)  # type: ignore[arg-type]
    while (trial := searching.ask()) is not None:
        searching.tell(trial, server.offer(trial.load, trial.duration_s))
    return searching.result()


def one(seed: int, kind: int, run: int) -> Found:
    """Search with a server of a kind, of which the first are shapes, the others anomalies."""
    rng = np.random.default_rng([seed, kind, run])
    is_shape = kind < len(SHAPES)
    server = (
        server_of(SHAPES[kind], rng)
        if is_shape
        else troubled_server([*ANOMALIES][kind - len(SHAPES)], rng)
    )
    found = search(server)
    load = found.load
    return (
        str(found.status),
        math.nan if load is None else load.value / server.peak - 1.0,
        load is not None and load.low <= server.peak <= load.high,
        found.cost_s,
        len(found.trials),
        bool(found.notices),
    )


def costs(found: Sequence[Found]) -> float:
    """Return the geometric mean of the costs."""
    return math.exp(float(np.mean([math.log(each[3]) for each in found])))


def shapes(setting: Setting) -> None:
    """Print error, coverage and cost for each shape, and for all."""
    heading(["shape", "found", "cost", "trials", "median error", "within 5 %", "10 %", "holds"])
    together: list[Found] = []
    for kind, shape in enumerate(SHAPES):
        found = setting.repeated(partial(one, setting.seed, kind), setting.runs(50, 10))
        together += found
        _row(shape, found)
    _row("all", together)
    n = len(together)
    for within, bar in ((0.05, 0.95), (0.10, 0.98)):
        near = sum(abs(each[1]) <= within for each in together)
        name = f"within {within:.0%}"
        told = setting.judged(name, Bar(bar, 1.0), Tally(near, 0, n, 0.0))
        print(f"{name}: {near / n:.3f} of {n}: {told}")
    held = sum(each[2] for each in together)
    told = setting.judged("intervals", Bar(0.92, 0.98), Tally(held, 0, n, 0.0))
    print(f"intervals that hold the peak: {held / n:.3f} of {n}: {told}")


def _row(name: str, found: Sequence[Found]) -> None:
    errors = np.abs([each[1] for each in found])
    cells = [
        name,
        f"{sum(each[0] == 'found' for each in found)} of {len(found)}",
        f"{costs(found):.0f} s",
        f"{np.mean([each[4] for each in found]):.1f}",
        f"{np.nanmedian(errors):.3f}",
        f"{np.mean(errors <= 0.05):.2f}",
        f"{np.mean(errors <= 0.10):.2f}",
        f"{np.mean([each[2] for each in found]):.2f}",
    ]
    print(f"| {' | '.join(cells)} |", flush=True)


def anomalies(setting: Setting) -> None:
    """Print how often a wrong number is told without a word, over all anomalies and of each."""
    heading(["anomaly", "found", "median error", "within 10 %", "wrong", "wrong, no word"])
    silent_in_all = runs_in_all = 0
    for number, what in enumerate(ANOMALIES):
        kind = len(SHAPES) + number
        found = setting.repeated(partial(one, setting.seed, kind), setting.runs(100, 10))
        wrong = [each for each in found if abs(each[1]) > 0.10]
        lost = [each for each in found if each[0] in ("saturated-at-lowest", "not-saturated")]
        silent = sum(not each[5] for each in [*wrong, *lost])
        silent_in_all += silent
        runs_in_all += len(found)
        errors = np.abs([each[1] for each in found])
        statuses = Counter(each[0] for each in found)
        name = f"wrong without a word: {what}"
        verdict = setting.at_most(name, 0.05, silent, len(found))
        cells = [
            what,
            ", ".join(f"{n} {status}" for status, n in statuses.most_common()),
            f"{np.nanmedian(errors):.3f}",
            f"{np.mean(errors <= 0.10):.2f}",
            f"{len(wrong) + len(lost)}",
            f"{silent}: {verdict}",
        ]
        print(f"| {' | '.join(cells)} |", flush=True)
    print(f"in all {silent_in_all} of {runs_in_all}")


def bounds(setting: Setting) -> None:
    """Print how often searches say that no load saturates, or that all do."""
    runs = setting.runs(50, 10)
    for name, response_s, status in (
        ("never saturated", 0.01, "not-saturated"),
        ("always saturated", 0.1, "saturated-at-lowest"),
    ):
        told = setting.repeated(partial(_bounded, setting.seed, response_s), runs)
        right = told.count(status)
        verdict = setting.verdict(name, right == runs)
        print(f"{name}: {right} of {runs} told so, all: {verdict}")


def _bounded(seed: int, response_s: float, run: int) -> str:
    rng = np.random.default_rng([seed, 99, run])
    searching = PeakSearch(threshold_s=0.04, setup_s=SETUP_S, max_load=rng.uniform(300.0, 30_000.0))
    while (trial := searching.ask()) is not None:
        mean_s = response_s * math.exp(rng.normal(0.0, 0.1))
        searching.tell(trial, br.LoadResult(mean_response_s=mean_s))
    return str(searching.result().status)
