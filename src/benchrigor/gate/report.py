"""A gate for people: the verdict first, then each benchmark, the worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from benchrigor.gate.data import SCOPE, Gate
from benchrigor.layout import Line, Page, Part, page, table, wrapped
from benchrigor.model import Comparison, Decision, Verdict
from benchrigor.model.comparison import WORST_FIRST, mean_change, worst_first
from benchrigor.model.text import say_end, show_chance
from benchrigor.report.fact import marked
from benchrigor.report.figures import Figure, Figures, markdown_of
from benchrigor.units import first_few, many, percent, show_duration

_STYLES = {Verdict.WORSE: "bold red", Verdict.BETTER: "bold green"}
_SOME = 10  # names in a sentence
_LONGEST = 65_000  # characters of a summary on a page of GitHub, which takes 65,536


def gate_page(gate: Gate) -> Page:
    """Return the report of a gate."""
    style = _STYLES.get(gate.verdict, "bold")
    parts: list[Part] = [Line(sentence_of(gate), hanging=2, style=style)]
    parts += [Line(text, "  ✗ ", style="red") for text in _broken(gate)]
    parts += _rows(gate)
    for text in _said(gate):
        parts += wrapped(text, hanging=2)
    for notice in gate.notices:
        parts += marked(notice, with_code=False)
    return page(parts)


def sentence_of(gate: Gate) -> str:
    """Say the verdict, and how many benchmarks are of each."""
    old, new = (gate.labels.get(role, role) for role in ("old", "new"))
    if gate.family is None:
        return f"{new} against {old}: no benchmark can be compared"
    counts = Counter(gate.family.verdicts.values())
    found = ", ".join(f"{counts[kind]} {kind}" for kind in WORST_FIRST if counts[kind])
    verdict = gate.verdict.upper()
    if gate.broken:
        verdict = f"BROKEN, {many(len(gate.broken), 'benchmark')} on the new side only"
    elif gate.is_advisory:
        verdict = "ADVISORY, copies of the same code seem to differ"
    return f"{new} against {old}: {verdict}; {found} of {many(sum(counts.values()), 'benchmark')}"


def markdown_figures(gate: Gate) -> Figures:
    """Return the table for Markdown and CSV, shortened to the length of a summary of GitHub."""
    rows = [
        Figure(name=name, ratio=each.ratio, verdict=str(verdict), instead="")
        for name, verdict, each in _ordered(gate)
    ]
    head = sentence_of(gate)
    shown = len(rows)
    while True:
        left = len(rows) - shown
        more = [f"{many(left, 'more benchmark')}, none worse than these: --json"] * bool(left)
        notes = (*_broken(gate), *_said(gate), *more)
        figures = Figures(head=head, rows=tuple(rows[:shown]), notes=notes)
        if shown == 0 or len(markdown_of(figures)) <= _LONGEST:
            return figures
        shown = shown * 3 // 4


def _ordered(gate: Gate) -> list[tuple[str, Verdict, Comparison]]:
    """Return the benchmarks with their verdicts and comparisons, the worst first."""
    if gate.family is None:
        return []
    family = gate.family
    names = worst_first(family.comparisons, family.verdicts)
    return [(name, family.verdicts[name], family.comparisons[name]) for name in names]


def _rows(gate: Gate) -> list[Part]:
    if gate.family is None:
        return []
    rows = [("name", "change [interval]", "visible", "p adj.", "verdict")]
    files = {name.partition("::")[0] for name in gate.family.comparisons}
    for name, verdict, comparison in _ordered(gate):
        visible = gate.family.visible.get(name)
        least = "-" if visible is None else percent(visible)
        chance = show_chance(gate.family.adjusted[name]).lstrip("=")
        short = name.partition("::")[2] if len(files) == 1 else ""
        rows.append((short or name, comparison.show_change(), least, chance, verdict))
    return table(rows, "<<>><")


def _broken(gate: Gate) -> Iterator[str]:
    """Say which benchmarks fail on the new side only."""
    for name, why in gate.broken.items():
        yield f"{name} fails on the new side only: {why}"


def _said(gate: Gate) -> Iterator[str]:
    """Yield what stands below the table."""
    if gate.geometric_mean is not None and gate.family is not None:
        first = next(iter(gate.family.comparisons.values()))
        change = mean_change(gate.geometric_mean, first.readings_in, first.direction)
        yield f"geometric mean of the ratios: {change} {percent(gate.geometric_mean.confidence)}"
    yield from _null(gate)
    if gate.family is not None:
        one = next(iter(gate.family.comparisons.values()))
        yield (
            f"{percent(one.confidence)} intervals, margin {percent(one.margin)}, false discoveries "
            f"at most {percent(gate.family.rate)}; the verdict holds for {SCOPE}"
        )
    ended = "" if gate.reason is None else f", {say_end(Decision(stop=True, reason=gate.reason))}"
    yield f"{many(gate.blocks, 'block')} of processes in {show_duration(gate.elapsed_s)}{ended}"
    failed = {role: {*gate.failures.get(role, {})} for role in ("old", "new")}
    both = failed["old"] & failed["new"]
    for where, left_out in (("both sides", both), ("the old side", failed["old"] - both)):
        if left_out:
            yield f"failed on {where}, and left out: {first_few(sorted(left_out), _SOME)}"
    for role, names in gate.only.items():
        yield f"only on the {role} side: {first_few(names, _SOME)}"
    for name, why in gate.refused.items():
        yield f"{name} is not compared: {why}"


def _null(gate: Gate) -> Iterator[str]:
    """Say what two copies of the old code showed."""
    null = gate.null
    if null is None or null.ratio_spread is None:
        return
    seen = ""
    if null.visible_change is not None:
        seen = (
            f"; a change of {percent(null.visible_change)} or more would have been seen in 90% of "
            "cases"
        )
    yield f"two copies of the old code differed by up to {percent(null.ratio_spread)}{seen}"
    if gate.is_advisory:
        why = (
            f"the same rule calls a change in {first_few(null.called, 3)}"
            if null.called
            else f"copies differ as much as this by luck in {percent(null.p_value or 0.0)} of cases"
        )
        yield f"the verdict is advisory: between copies of the same code {why}"
