"""The result of a gate: each benchmark of a suite in two versions, one verdict, and a null arm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchrigor.model import Estimate, Notice, StopReason, Verdict, codec
from benchrigor.model.comparison import FAILING, Family, NullArm
from benchrigor.model.one_line import Reported
from benchrigor.units import many

SCOPE = "this session on this host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate(Reported):
    """A suite in two versions; ``print(gate)`` is a table, the worst benchmark first.

    Parameters
    ----------
    labels
        Labels of the sides, by role: "old" and "new".
    family
        The comparisons of new with old, judged together; None if no benchmark has numbers of both.
    geometric_mean
        Geometric mean of the ratios, with an interval over blocks; None with fewer than two.
    null
        What two copies of the old code showed; None without a comparison of copies.
    refused
        By benchmark, why it has no comparison although both sides ran it.
    failures
        By role and benchmark, why it failed.
    only
        By role, the benchmarks that only this side has.
    blocks, elapsed_s
        How many blocks of processes ran, and their time in seconds.
    reason
        Why it ended.
    seed
        Draws the order of the sides; the same seed gives the same order.
    notices
        What else to know.
    """

    _page = "benchrigor.gate.report:gate_page"

    labels: Mapping[str, str]
    family: Family | None
    geometric_mean: Estimate | None
    null: NullArm | None
    refused: Mapping[str, str] = field(default_factory=dict)
    failures: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    blocks: int = 0
    elapsed_s: float = 0.0
    reason: StopReason | None = None
    seed: int = 0
    notices: tuple[Notice, ...] = ()

    @property
    def is_advisory(self) -> bool:
        """Whether copies of the same code seem to differ, so that no verdict can be believed."""
        return self.null is not None and self.null.verdict == "failed"

    @property
    def verdict(self) -> Verdict:
        """Return the verdict on the suite: worse if a benchmark is, else undecided if one is."""
        found = {*self.family.verdicts.values()} if self.family else set[Verdict]()
        order = (Verdict.WORSE, Verdict.UNDECIDED, Verdict.DIFFERENT, Verdict.BETTER)
        chosen = next((kind for kind in order if kind in found), Verdict.EQUIVALENT)
        return Verdict.UNDECIDED if self.is_advisory or not found else chosen

    @property
    def broken(self) -> dict[str, str]:
        """Benchmarks that fail on the new side only, and why."""
        old = self.failures.get("old", {})
        return {name: why for name, why in self.failures.get("new", {}).items() if name not in old}

    def fails(self, fail_on: str) -> bool:
        """Return whether a verdict is one to fail on; advisory ones count as undecided."""
        return self.verdict in FAILING[fail_on]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, each benchmark with its ratio, verdict and adjusted p-value."""
        benchmarks, family, null = list[dict[str, Any]](), self.family, codec.encode(self.null)
        if family is not None:
            benchmarks = [
                {
                    "name": name,
                    "ratio": codec.encode(each.ratio),
                    "verdict": family.verdicts[name],
                    "p_adjusted": family.adjusted[name],
                    "visible": family.visible.get(name),
                }
                for name, each in family.comparisons.items()
            ]
        return {
            "verdict": "advisory" if self.is_advisory else self.verdict,
            "scope": SCOPE,
            "sides": dict(self.labels),
            "benchmarks": benchmarks,
            "geometric_mean": codec.encode(self.geometric_mean),
            "null": null and {**null, "verdict": self.null.verdict},  # type: ignore[union-attr]
            "refused": dict(self.refused),
            "failures": {role: dict(each) for role, each in self.failures.items()},
            "only": {role: list(names) for role, names in self.only.items()},
            "blocks": self.blocks,
            "elapsed_s": self.elapsed_s,
            "reason": self.reason,
            "seed": self.seed,
            "notices": codec.encode(self.notices),
        }

    def _line(self) -> str:
        count = len(self.family.comparisons) if self.family else 0
        return f"{many(count, 'benchmark')}: {'advisory' if self.is_advisory else self.verdict}"
