"""The result of a gate: each benchmark of a suite in two versions, one verdict, and a null arm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from benchrigor.model import Decision, Notice, StopReason, Verdict, codec
from benchrigor.model.comparison import FAILING, WORST_FIRST, Family, NullArm
from benchrigor.model.notice import Severity
from benchrigor.model.one_line import Reported
from benchrigor.model.text import say_end
from benchrigor.report.fact import Depth, Fact, facts_of, head, sentence, told_by
from benchrigor.report.facts.comparison_facts import said_of_copies
from benchrigor.units import first_few, many, show_duration

SCOPE = "this session on this host"
_SOME = 10  # names in a sentence, and sentences of a kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate(Reported):
    """A suite in two versions; ``print(gate)`` is a table, the worst benchmark first.

    Parameters
    ----------
    labels
        Labels of the sides, by role: "old" and "new".
    family
        The comparisons of new with old, the worst first, judged together; its summary has an
        interval over blocks. None if no benchmark has numbers of both.
    null
        What two copies of the old code showed; None without a comparison of copies.
    refused
        By benchmark, why it has no comparison.
    failures
        By role and benchmark, why it failed.
    only
        By role, the benchmarks that only this side has.
    at_one_pace
        The benchmarks that are compared as if the machine had kept one pace.
    blocks, elapsed_s
        How many blocks of processes ran, and their time in seconds.
    reason
        Why it ended.
    seed
        Draws the order of the sides; the same seed gives the same order.
    notices
        What else to know.
    """

    _facts = "benchrigor.gate.result:facts_of_gate"

    labels: Mapping[str, str]
    family: Family | None
    null: NullArm | None
    refused: Mapping[str, str] = field(default_factory=dict)
    failures: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    at_one_pace: tuple[str, ...] = ()
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
        """Return the verdict on the suite: the one on its worst benchmark."""
        if self.is_advisory or self.family is None:
            return Verdict.UNDECIDED
        return min(self.family.verdicts.values(), key=WORST_FIRST.index)

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
        plain, family = codec.encode(replace(self, family=None)), self.family
        del plain["family"]
        if self.null is not None:
            plain["null"]["verdict"] = self.null.verdict
        benchmarks = (
            []
            if family is None
            else [
                {
                    "name": name,
                    "ratio": codec.encode(comparison.ratio),
                    "verdict": family.verdicts[name],
                    "p_adjusted": family.adjusted[name],
                    "visible": family.visible.get(name),
                }
                for name, comparison in family.comparisons.items()
            ]
        )
        return {
            "verdict": "advisory" if self.is_advisory else self.verdict,
            "scope": SCOPE,
            "benchmarks": benchmarks,
            "geometric_mean": codec.encode(family and family.summary),
            **plain,
        }

    def _line(self) -> str:
        count = len(self.family.comparisons) if self.family else 0
        return f"{many(count, 'benchmark')}: {'advisory' if self.is_advisory else self.verdict}"


def facts_of_gate(gate: Gate) -> list[Fact]:
    """Return the verdict on a suite, then each benchmark, the worst first."""
    return [
        head(_sentence(gate), gate.verdict),
        *(Fact("broken", Depth.PAGE, "", text, Severity.REFUSAL) for text in _broken(gate)),
        *([] if gate.family is None else facts_of(gate.family)),
        *(sentence("said", text) for text in _said(gate)),
        *told_by((), gate.notices, depth=Depth.PAGE),
    ]


def _sentence(gate: Gate) -> str:
    """Say the verdict, and how many benchmarks are of each."""
    old, new = (gate.labels.get(role, role) for role in ("old", "new"))
    if gate.family is None:
        return f"{new} against {old}: no benchmark can be compared"
    verdict = gate.verdict.upper()
    benchmarks = many(len(gate.family.comparisons), "benchmark")
    if gate.broken:
        fail = "fails" if len(gate.broken) == 1 else "fail"
        verdict = f"BROKEN, {many(len(gate.broken), 'benchmark')} {fail} on the new side only"
    elif gate.is_advisory:
        verdict = "ADVISORY, copies of the same code seem to differ"
    return f"{new} against {old}: {verdict}; {gate.family.counts} of {benchmarks}"


def _broken(gate: Gate) -> Iterator[str]:
    """Say which benchmarks fail on the new side only."""
    broken = gate.broken.items()
    yield from _some(f"{name} fails on the new side only: {why}" for name, why in broken)


def _said(gate: Gate) -> Iterator[str]:
    """Yield what stands below the table."""
    yield from () if gate.null is None else said_of_copies(gate.null)
    if gate.at_one_pace and gate.family is not None:
        count = len(gate.at_one_pace)
        some = "" if count == len(gate.family.comparisons) else f"{count} of them are "
        yield f"{some}compared as if the machine had kept one pace, by a reference timed in between"
    ended = "" if gate.reason is None else f", {say_end(Decision(stop=True, reason=gate.reason))}"
    scope = "" if gate.family is None else f"; the verdict holds for {SCOPE}"
    blocks = f"{many(gate.blocks, 'block')} of processes in {show_duration(gate.elapsed_s)}"
    yield f"{blocks}{ended}{scope}"
    failed = {role: {*gate.failures.get(role, {})} for role in ("old", "new")}
    both = failed["old"] & failed["new"]
    for where, left_out in (("both sides", both), ("the old side", failed["old"] - both)):
        if left_out:
            yield f"failed on {where}, and left out: {first_few(sorted(left_out), _SOME)}"
    for role, names in gate.only.items():
        yield f"only on the {role} side: {first_few(names, _SOME)}"
    yield from _some(f"{name} is not compared: {why}" for name, why in gate.refused.items())


def _some(sentences: Iterable[str]) -> Iterator[str]:
    """Yield the first sentences, and say how many more there are."""
    rest = iter(sentences)
    yield from islice(rest, _SOME)
    left = sum(1 for _ in rest)
    if left:
        yield f"and {left} more like these: --json"
