"""What published policies and MLRsearch cost on servers of eight shapes, and their orderings."""

from __future__ import annotations

import math
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from coverage_tables import Setting, heading
from peaks_servers import HIGH, LOW, SHAPES, Server, server_of
from peaks_simulated import SETUP_S, search

from benchrigor.workbench.planning.search import POLICIES

__all__ = ["orderings", "rivals"]

# As often as the cost of the adaptive policy.
BARS = {"strawman": 50.0, "linear": 8.0, "binsearch": 3.5, "MLRsearch": 1.2}
PUBLISHED = {"width": 0.10, "accuracy": 0.10}
Outcome = tuple[float, float]
"""Cost, and relative error (nan for no number)."""


def _run(seed: int, policy: str, options: dict[str, float], run: int) -> Outcome:
    kind = run % len(SHAPES)
    server = server_of(SHAPES[kind], np.random.default_rng([seed, kind, run // len(SHAPES)]))
    if policy == "MLRsearch":
        return _mlrsearch(server)
    if policy == "seeded binsearch":  # by a neighbour's peak, up to 30 % off
        options = {**options, "seed_load": server.peak * math.exp(server.rng.uniform(-0.3, 0.3))}
        policy = "binsearch"
    found = search(server, policy=policy, **options)
    error = math.nan if found.load is None else found.load.value / server.peak - 1.0
    return found.cost_s, error


def _mlrsearch(server: Server) -> Outcome:
    """Search by FD.io's MLRsearch: a response over its limit counts as so many requests lost."""
    mlr: Any = import_module("MLRsearch")
    cost_s = 0.0

    class Measurer(mlr.AbstractMeasurer):  # type: ignore[misc]
        def measure(self, intended_duration: float, intended_load: float) -> Any:
            nonlocal cost_s
            cost_s += intended_duration + SETUP_S
            response_s = server.offer(intended_load, intended_duration).mean_response_s
            ratio = math.inf if response_s is None else response_s / server.limit_s
            offered = max(round(intended_load * intended_duration), 1)
            lost = round(offered * max(0.0, 1.0 - 1.0 / ratio))
            return mlr.MeasurementResult(
                intended_duration=intended_duration,
                intended_load=intended_load,
                offered_count=offered,
                loss_count=lost,
            )

    goal = mlr.SearchGoal(
        loss_ratio=0.0,
        exceed_ratio=0.5,
        relative_width=0.05,
        initial_trial_duration=30.0,
        final_trial_duration=180.0,
        duration_sum=540.0,
    )
    config = mlr.Config(goals=[goal], min_load=LOW / 10, max_load=HIGH * 8, search_duration_max=1e6)
    result = mlr.MultipleLossRatioSearch(config).search(Measurer())[goal]
    bound = result.relevant_lower_bound
    return cost_s, math.nan if bound is None else float(bound) / server.peak - 1.0


def _cost(found: list[Outcome]) -> float:
    return math.exp(float(np.mean([math.log(cost) for cost, _ in found])))


def rivals(setting: Setting) -> None:
    """Print what each costs, as often as the adaptive policy."""
    runs = len(SHAPES) * setting.runs(50, 5)
    heading(["policy", "cost", "times ours", "at least", "median error", "within 10 %"])
    ours = 0.0
    for policy in (*POLICIES, "MLRsearch"):
        options = {} if policy == "adaptive" else PUBLISHED
        found = setting.repeated(partial(_run, setting.seed, policy, options), runs)
        cost_s = _cost(found)
        ours = ours or cost_s
        errors = np.abs([error for _, error in found])
        bar = BARS.get(policy)
        told = "-" if bar is None else f"{bar:g}: {setting.verdict(policy, cost_s / ours >= bar)}"
        cells = [
            policy,
            f"{cost_s:,.0f} s",
            f"{cost_s / ours:.2f}",
            told,
            f"{np.nanmedian(errors):.3f}",
            f"{np.mean(errors <= 0.10):.2f}",
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


def orderings(setting: Setting) -> None:
    """Print whether costs are ordered as the paper has them (sections 5.2 and 5.3)."""
    runs = len(SHAPES) * setting.runs(10, 2)

    def cost(policy: str, **options: float) -> float:
        given = {**PUBLISHED, **options}
        return _cost(setting.repeated(partial(_run, setting.seed, policy, given), runs))

    binsearch, linear, seeded = cost("binsearch"), cost("linear"), cost("seeded binsearch")
    by_accuracy = [cost("binsearch", accuracy=each) for each in (0.2, 0.1, 0.05)]
    by_confidence = [cost("binsearch", confidence=each) for each in (0.8, 0.95, 0.99)]
    wide, narrow = (cost("linear", width=s) / cost("binsearch", width=s) for s in (0.20, 0.02))
    for name, values in (
        ("strawman above all others", [cost("strawman"), linear]),
        ("linear above binsearch", [linear, binsearch]),
        ("binsearch above seeded binsearch", [binsearch, seeded]),
        ("cost rises with accuracy (.80, .90, .95)", by_accuracy[::-1]),
        ("cost rises with confidence (.80, .95, .99)", by_confidence[::-1]),
        ("linear over binsearch nears 1 as s shrinks (.20 to .02)", [wide, narrow]),
    ):
        met = all(a > b for a, b in pairwise(values))
        shown = " > ".join(f"{each:,.4g}" for each in values)
        print(f"{name}: {shown}: {setting.verdict(name, met)}")
