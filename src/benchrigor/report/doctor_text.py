"""The state of a machine, and the findings of the doctor, as text."""

from __future__ import annotations

from collections.abc import Sequence

from benchrigor.layout import WIDTH, Page, Part, Title, page, table, wrapped
from benchrigor.model.machine import State
from benchrigor.model.notice import Finding, Fitness, verdict_of
from benchrigor.units import shortened, show_duration, show_value

MARKS = {Fitness.UNFIT: "✗", Fitness.DOUBTFUL: "!", Fitness.OK: "✓", Fitness.UNKNOWN: "?"}
_ASKING = (Fitness.UNFIT, Fitness.DOUBTFUL)
_HEADS = {
    Fitness.OK: "fit: measure here",
    Fitness.DOUBTFUL: "doubtful: measure here, with the following in mind",
    Fitness.UNFIT: "unfit: readings taken here say little",
}


def render_findings(findings: Sequence[Finding], *, whole: bool = True) -> str:
    """Return the findings, up to 79 columns wide: the worst first, the unknown last.

    Parameters
    ----------
    findings
        As `session.examine` returns them.
    whole
        Whether all findings are shown, or up to eight of those that ask for something.

    Examples
    --------
    >>> on = Finding(name="turbo", found="on", verdict=Fitness.DOUBTFUL, advice="turn it off")
    >>> print(render_findings([on]))
    doubtful: measure here, with the following in mind
    ──────────────────────────────────────────────────
      ! turbo  on
               → turn it off
    """
    head = _HEADS[verdict_of(findings)]
    shown = findings if whole else [finding for finding in findings if finding.verdict in _ASKING]
    names = [shortened(finding.name, WIDTH // 2) for finding in shown]
    label = max(map(len, names), default=0) + 2
    lines: list[Part] = [Title(head)]
    for verdict, mark in MARKS.items():
        for finding, name in zip(shown, names, strict=True):
            if finding.verdict is verdict:
                lines += _lines(finding, f"  {mark} {name:<{label}}")
    if rest := len(findings) - len(shown):
        lines += wrapped(f"{rest} findings that ask for nothing: --details", "  ")
    return page(lines)


def _lines(finding: Finding, first: str) -> list[Part]:
    lines = wrapped(finding.found, first)
    if finding.advice:
        code = f" [{finding.code}]" if finding.code else ""
        before = " " * len(first) + "→ "
        lines += wrapped(f"{finding.advice}{code}", before)
    return lines


def state_page(state: State) -> Page:
    """Return a table of samples, and below it the unknown ones by reason."""
    over = "" if state.span_s is None else f", rates over {show_duration(state.span_s)}"
    cost = show_value(sum(state.cost_s.values()), "s")
    known = [(sample.name, sample.shown) for sample in state.samples if sample.value is not None]
    missing: dict[str, list[str]] = {}
    for sample in state.samples:
        if sample.value is None:
            missing.setdefault(sample.reason, []).append(sample.name)
    lines: list[Part] = [f"{type(state).__name__} at {state.at}{over}, read in {cost}"]
    lines += table(known, "<>", has_names=False)
    for reason, names in missing.items():
        lines += wrapped(f"not known: {', '.join(names)}: {reason}", hanging=2)
    return page(lines)
