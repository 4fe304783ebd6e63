"""Hosts as a block: the ratios of their answers to their mean."""

from __future__ import annotations

from collections.abc import Mapping

from benchrigor.model import Estimate


def show_hosts(hosts: Mapping[str, Estimate]) -> str:
    """Show the ratios of hosts to their mean, the greatest first.

    Examples
    --------
    >>> known = {"confidence": 0.95, "n": 9, "n_effective": 9.0, "method": "told"}
    >>> show_hosts({
    ...     "elm": Estimate(value=0.97, low=0.9, high=1.02, **known),
    ...     "oak": Estimate(value=1.03, low=0.98, high=1.1, **known),
    ... })
    'oak 1.03 [0.98, 1.1], elm 0.97 [0.9, 1.02] times their mean'
    """
    shown = (
        f"{name} {found.value:.3g} [{found.low:.3g}, {found.high:.3g}]"
        for name, found in sorted(hosts.items(), key=lambda effect: -effect[1].value)
    )
    return f"{', '.join(shown)} times their mean"
