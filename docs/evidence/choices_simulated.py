"""Choices among configurations of simulated servers, on hosts that differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from coverage_tables import Bar, Setting, Tally, heading, row
from surfaces_servers import ERROR, KINDS, measure, peaks_of, space_of, spread

from benchrigor.model import Floats
from benchrigor.workbench.planning.best_choice import BestChoice, Choice
from benchrigor.workbench.surfaces.factors import Point
from benchrigor.workbench.surfaces.surface import fit_surface

__all__ = ["ahead", "all", "choice", "new", "same"]

_PACE, _EFFECT = 0.20, 0.05
"""Standard deviations of hosts, and of each configuration on each host beside that."""
_LEADING, _SAMPLES, _LARGE_SAMPLES = 8, 12, 20
_NEAR = -math.log(0.98)


class Chosen(NamedTuple):
    """A choice: what it loses, as a logarithm, and its cost, as a share of the equal one."""

    lost: float
    """Against the best mean over these hosts, of all configurations."""
    lost_to_known: float
    """On these hosts, against the configuration whose mean over all hosts is the best."""
    lost_anywhere: float
    """Over all hosts, against that."""
    cost: float
    decided: bool


def _carry_out(
    points: Sequence[Point], logs: Floats, rng: np.random.Generator, seed: int
) -> tuple[Choice, int, int]:
    """Choose, each answer with the noise of a measurement; return also trials and turns.

    The logarithms have a row for each host and a column for each of the points.
    """
    hosts = [f"host {number}" for number in range(len(logs))]
    search = BestChoice(points, hosts, seed=seed)
    trials = turns = 0
    while (turn := search.ask()) is not None:
        own = logs[hosts.index(turn.host)]
        found = [
            math.exp(own[points.index(point)] + rng.normal(0.0, ERROR)) for point in turn.points
        ]
        width = 1.96 * ERROR
        search.tell(turn, [(x, x * (1.0 - width), x * (1.0 + width)) for x in found])
        trials += len(found)
        turns += 1
    return search.result(), trials, turns


def _on_hosts(mean: Floats, hosts: int, effect: float, rng: np.random.Generator) -> Floats:
    pace = rng.normal(0.0, _PACE, (hosts, 1))
    logs: Floats = mean + pace + rng.normal(0.0, effect, (hosts, len(mean)))
    return logs


def _one(seed: int, leading: int | None, run: int) -> Chosen:
    rng = np.random.default_rng([seed, 1, leading or 0, run])
    kind = KINDS[run % len(KINDS)]
    space = space_of(kind)
    grid = space.grid()
    known = np.log(peaks_of(kind, rng))
    logs = _on_hosts(known, 4, _EFFECT, rng)
    candidates, samples = np.arange(len(grid)), 0
    if leading is not None:
        samples = _SAMPLES if len(grid) < 64 else _LARGE_SAMPLES
        chosen = {index: grid[index] for index in spread(space, samples, rng)}
        surface = fit_surface(space, measure(chosen, np.exp(logs[0]), rng))
        candidates = np.argsort(-surface.predictions(grid)[0])[:leading]
    points = [grid[index] for index in candidates]
    found, trials, turns = _carry_out(points, logs[:, candidates], rng, run)
    at, oracle, mean = grid.index(found.point or {}), int(known.argmax()), logs.mean(axis=0)
    return Chosen(
        lost=float(mean.max() - mean[at]),
        lost_to_known=float(mean[oracle] - mean[at]),
        lost_anywhere=float(known.max() - known[at]),
        cost=(samples + trials) / (len(grid) * turns),
        decided=found.verdict != "undecided",
    )


def choice(setting: Setting) -> None:
    """Print what is lost by choices among the leading 8 of a map, and their cost with the map."""
    _print_choices(setting, _LEADING, setting.runs(200, 20))


def all(setting: Setting) -> None:  # noqa: A001  # the name of the section
    """Print the same where all configurations are candidates."""
    _print_choices(setting, None, setting.runs(60, 10))


def _print_choices(setting: Setting, leading: int | None, runs: int) -> None:
    found = setting.repeated(partial(_one, setting.seed, leading), runs)
    heading(
        [
            *("map", "within 2 % of the best mean over the four hosts", "of a known mean surface"),
            *("over all hosts", "mean loss", "cost", "greatest", "decided"),
        ]
    )
    for number, kind in enumerate((*KINDS, "together")):
        own = found if kind == "together" else found[number :: len(KINDS)]
        near = [np.mean([each[at] <= _NEAR for each in own]) for at in range(3)]
        costs = [each.cost for each in own]
        row(
            kind,
            *(f"{each:.3f}" for each in near),
            f"{np.mean([each.lost for each in own]):.4f}",
            f"{np.mean(costs):.2f}",
            f"{max(costs):.2f}",
            f"{np.mean([each.decided for each in own]):.2f}",
        )
    print()
    for name, at in (("best mean over the four hosts", 0), ("known mean surface", 1)):
        near_it = sum(each[at] <= _NEAR for each in found)
        told = setting.judged(name, Bar(0.95), Tally(near_it, 0, runs, 0.0))
        print(f"within 2 % of the {name}: {near_it / runs:.3f} of {runs}: {told}")
    cost = float(np.mean([each.cost for each in found]))
    print(f"mean cost {cost:.2f}, at most .5: {setting.verdict('cost', cost <= 0.5)}")


def _verdict(seed: int, lead: float, case: tuple[int, int, float], run: int) -> tuple[str, bool]:
    """Return the verdict, and whether it is wrong; the first is ahead of all others by a lead."""
    points, hosts, effect = case
    key = [round(1000 * lead), points, hosts, round(1000 * effect)]
    rng = np.random.default_rng([seed, 2, *key, run])
    mean = np.zeros(points)
    mean[0] = lead
    # Fewer than four hosts are all that the choice is for.
    logs = _on_hosts(mean, hosts, effect, rng)
    found, *_ = _carry_out([{"of": index} for index in range(points)], logs, rng, run)
    at = int((found.point or {})["of"])
    truth = mean if hosts >= 4 else logs.mean(axis=0)
    others = np.delete(truth, at).max()
    least = {"best": 0.0, "equivalent": -0.02, "undecided": -math.inf}[found.verdict]
    wrong = truth[at] < others + least - 1e-12
    return found.verdict, bool(wrong)


def _print_verdicts(setting: Setting, lead: float, cases: Sequence[tuple[int, int, float]]) -> None:
    bar = "best, at most .05" if lead == 0.0 else "wrong, at most .05"
    heading(["configurations", "hosts", "effect", "best", "equivalent", "undecided", "wrong", bar])
    for points, hosts, effect in cases:
        run = partial(_verdict, setting.seed, lead, (points, hosts, effect))
        runs = setting.runs(400, 40)
        found = setting.repeated(run, runs)
        count = {
            name: sum(each[0] == name for each in found)
            for name in ("best", "equivalent", "undecided")
        }
        wrong = sum(each[1] for each in found)
        judged = count["best"] if lead == 0.0 else wrong
        name = f"lead {lead:g}: {points} on {hosts}, effect {effect:g}"
        row(
            *(points, hosts, effect),
            *(f"{each / runs:.3f}" for each in count.values()),
            f"{wrong / runs:.3f}",
            setting.at_most(name, 0.05, judged, runs),
        )


def same(setting: Setting) -> None:
    """Print the verdicts on configurations that are equal, on each host or on their mean."""
    cases = [
        *((2, 4, 0.0), (2, 4, _EFFECT), (3, 4, 0.0), (3, 4, _EFFECT), (8, 4, 0.0)),
        *((8, 4, _EFFECT), (2, 8, _EFFECT), (8, 8, _EFFECT), (2, 1, 0.0), (3, 2, 0.0)),
    ]
    _print_verdicts(setting, 0.0, cases)


def ahead(setting: Setting) -> None:
    """Print the verdicts where one is ahead by 10 % or by 1 %, which is less than the margin."""
    cases = [(2, 4, _EFFECT), (4, 4, 0.01), (4, 8, 0.01), (4, 8, _EFFECT), (4, 16, _EFFECT)]
    for lead in (0.10, 0.01):
        print(f"ahead by {lead:g}\n")
        _print_verdicts(setting, lead, cases)
        print()


def _held(seed: int, lead: float, hosts: int, run: int) -> bool:
    rng = np.random.default_rng([seed, 3, round(1000 * lead), hosts, run])
    logs = _on_hosts(np.array([lead, 0.0]), hosts, _EFFECT, rng)
    found, *_ = _carry_out([{"of": 0}, {"of": 1}], logs, rng, run)
    at = int((found.point or {})["of"])
    further = np.array([lead, 0.0]) + rng.normal(0.0, math.hypot(_EFFECT, ERROR / 2.0), 2)
    ratio = math.exp(further[at] - further[1 - at])
    return found.prediction is not None and found.prediction.low <= ratio <= found.prediction.high


def new(setting: Setting) -> None:
    """Print how often the prediction holds the ratio of both configurations on a further host."""
    heading(["ahead by", "hosts", "held"])
    for lead, hosts in ((0.2, 4), (0.2, 8), (0.0, 4), (0.0, 8)):
        runs = setting.runs(400, 40)
        held = sum(setting.repeated(partial(_held, setting.seed, lead, hosts), runs))
        tally = Tally(held, 0, runs, 0.0)
        told = setting.judged(f"new host, {lead:g}, {hosts}", Bar(0.93, 0.99), tally)
        row(lead, hosts, f"{tally.share:.3f}: {told}")
