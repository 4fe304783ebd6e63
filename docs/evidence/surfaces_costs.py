"""What it costs to measure every configuration of simulated servers, by policy of the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from coverage_tables import Setting, heading, row
from peaks_servers import server_of
from peaks_simulated import search
from surfaces_servers import peaks_of, space_of

from benchrigor.workbench.planning.surface_map import SurfaceMap

__all__ = ["cost"]

_KINDS = ("database", "web", "mail")
_STREAM = 41  # of random numbers, apart from those of the other sections
_ALONE = 50.0  # where a search begins without a seed
# Options of the searches, and whether each begins at the peak of its nearest finished neighbour.
_POLICIES: dict[str, tuple[dict[str, object], bool]] = {
    "adaptive, seeded": ({}, True),
    "binsearch, seeded": ({"policy": "binsearch", "accuracy": 0.10}, True),
    "binsearch": ({"policy": "binsearch", "accuracy": 0.10}, False),
    "linear, seeded": ({"policy": "linear", "accuracy": 0.10}, True),
    "linear": ({"policy": "linear", "accuracy": 0.10}, False),
}
_OLD = [name for name in _POLICIES if not name.startswith("adaptive")]
_HOUR_S = 3600.0


class Mapped(NamedTuple):
    """All configurations: hours, mean absolute error of the peaks found, how many were found."""

    hours: float
    error: float
    found: int


def _mapped(
    seed: int, kind: str, policy: str, options: Mapping[str, object], most: int, run: int
) -> Mapped:
    """Search for the peak of each configuration, in the order of a full map; of so many at most."""
    rng = np.random.default_rng([seed, _STREAM, _KINDS.index(kind), run])
    space = space_of(kind)
    grid, peaks = space.grid(), peaks_of(kind, rng)
    typical = server_of("two in a row", rng)  # all configurations have its curve and noise
    given, is_seeded = _POLICIES[policy]
    mapping = SurfaceMap(space.factors, design="full")
    cost_s, errors = 0.0, []
    while (sample := mapping.ask()) is not None and sample.id < most:
        peak = float(peaks[grid.index(sample.point)])
        begin = (sample.seed_load if is_seeded else None) or _ALONE
        found = search(replace(typical, peak=peak), seed_load=begin, **{**given, **options})
        cost_s += found.cost_s
        mapping.tell(sample, found.load)
        if found.load is not None:
            errors.append(abs(found.load.value / peak - 1.0))
    return Mapped(cost_s / _HOUR_S, float(np.mean(errors)), len(errors))


def _mean(
    setting: Setting, kind: str, policy: str, options: Mapping[str, object] | None = None
) -> Mapped:
    most = 8 if setting.quick else 99
    run = partial(_mapped, setting.seed, kind, policy, options or {}, most)
    return Mapped(*np.mean(setting.repeated(run, setting.runs(3, 1)), axis=0).tolist())


def cost(setting: Setting) -> None:
    """Print hours of each policy, and whether the orders of the figures of Shivam et al. hold.

    A quick run only compares the first two policies, in eight configurations of the first map.
    """
    kinds, policies = (_KINDS[:1], [*_POLICIES][:2]) if setting.quick else (_KINDS, [*_POLICIES])
    hours = _table(setting, kinds, policies)
    for kind in kinds:
        share = hours[kind, "adaptive, seeded"] / hours[kind, "binsearch, seeded"]
        name = f"{kind}: adaptive of seeded binary search, 1/4 at most"
        _ordered(setting, name, f"{share:.3f}", share <= 0.25)
    together = [sum(hours[kind, policy] for kind in kinds) for policy in policies[:2]]
    print(f"all of them together: {together[0] / together[1]:.3f}")
    if not setting.quick:
        _figure_8(setting, hours)
        _figure_9(setting)
        _figure_10(setting)


def _table(
    setting: Setting, kinds: Sequence[str], policies: Sequence[str]
) -> dict[tuple[str, str], float]:
    heading(["map", "policy", "hours", "mean error", "found of 32"])
    hours = {}
    for kind in kinds:
        for policy in policies:
            mean = _mean(setting, kind, policy)
            hours[kind, policy] = mean.hours
            row(kind, policy, f"{mean.hours:.1f}", f"{mean.error:.3f}", f"{mean.found:.1f}")
    print()
    return hours


def _ordered(setting: Setting, name: str, found: str, is_so: bool) -> None:
    print(f"{name}: {found}: {setting.verdict(name, is_so)}", flush=True)


def _figure_8(setting: Setting, hours: Mapping[tuple[str, str], float]) -> None:
    for kind in _KINDS:
        found = {policy: hours[kind, policy] for policy in _OLD}
        told = ", ".join(f"{policy} {value:.1f}" for policy, value in found.items())
        if kind != "mail":
            is_first = min(found, key=lambda policy: found[policy]) == "binsearch, seeded"
            _ordered(setting, f"{kind}: seeded binary search is cheapest", told, is_first)
        most = max(found["binsearch"], found["linear, seeded"])
        _ordered(
            setting, f"{kind}: linear above all", f"{found['linear']:.1f}", most < found["linear"]
        )
    share = hours["web", "linear"] / min(hours["web", policy] for policy in _OLD)
    _ordered(setting, "web: linear 5 times the cheapest", f"{share:.1f}", share > 5.0)
    seeded, alone = hours["mail", "binsearch, seeded"], hours["mail", "binsearch"]
    _ordered(
        setting,
        "mail: seeding makes binary search dearer",
        f"{seeded:.1f}, {alone:.1f}",
        seeded > alone,
    )


def _rises(hours: Mapping[float, float]) -> bool:
    values = list(hours.values())
    return all(one < other for one, other in pairwise(values))


def _figure_9(setting: Setting) -> None:
    policy = "binsearch, seeded"
    for name, levels in (("accuracy", (0.20, 0.10, 0.05)), ("confidence", (0.80, 0.90, 0.95))):
        hours = {level: _mean(setting, "database", policy, {name: level}).hours for level in levels}
        told = ", ".join(f"{level:g} {value:.1f}" for level, value in hours.items())
        _ordered(setting, f"figure 9: hours rise with {name}", told, _rises(hours))


def _figure_10(setting: Setting) -> None:
    """Print how far the policies are apart, by the width of the region of peaks."""
    apart = {}
    for width in (0.20, 0.10, 0.05, 0.025):
        hours = [_mean(setting, "database", each, {"width": width}).hours for each in _OLD]
        apart[width] = max(hours) / min(hours)
        told = ", ".join(f"{each:.1f}" for each in hours)
        print(f"width {width:g}: {told}", flush=True)
    told = ", ".join(f"{width:g} {value:.2f}" for width, value in apart.items())
    falls = _rises({width: -value for width, value in apart.items()})
    _ordered(setting, "figure 10: policies converge as the region narrows", told, falls)
