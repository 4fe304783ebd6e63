"""The state of a machine, and the findings of the doctor, as text."""

from __future__ import annotations

from collections.abc import Sequence

from benchrigor.layout import WIDTH, Title, page, table, wrapped
from benchrigor.model.machine import State
from benchrigor.model.notice import Finding, Fitness, verdict_of
from benchrigor.report.fact import Depth, Fact, known, list_rows, rows_of, sentence
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
      ! turbo   on
                →  turn it off
    """
    facts = facts_of_findings(findings)
    lines = rows_of(facts, Depth.DETAILS if whole else Depth.PAGE)
    rest = sum(fact.depth is Depth.DETAILS for fact in facts) * (not whole)
    if rest:
        lines += wrapped(f"{rest} findings that ask for nothing: --details", "  ")
    return page([Title(_HEADS[verdict_of(findings)]), *lines])


def facts_of_findings(findings: Sequence[Finding]) -> list[Fact]:
    """Return the findings, the worst first; a page has those that ask for something."""
    return [
        Fact(
            finding.name,
            Depth.PAGE if verdict in _ASKING else Depth.DETAILS,
            f"{mark} {shortened(finding.name, WIDTH // 2 - 4)}",
            finding.found,
            finding,
            rows=(("→", _advice_of(finding)),) if finding.advice else (),
        )
        for verdict, mark in MARKS.items()
        for finding in findings
        if finding.verdict is verdict
    ]


def _advice_of(finding: Finding) -> str:
    return f"{finding.advice} [{finding.code}]" if finding.code else finding.advice


def facts_of_state(state: State) -> list[Fact]:
    """Return a table of samples, and the unknown ones by reason."""
    over = "" if state.span_s is None else f", rates over {show_duration(state.span_s)}"
    cost = show_value(sum(state.cost_s.values()), "s")
    present = [(sample.name, sample.shown) for sample in state.samples if sample.value is not None]
    missing: dict[str, list[str]] = {}
    for sample in state.samples:
        if sample.value is None:
            missing.setdefault(sample.reason, []).append(sample.name)
    return known(
        sentence("read", f"{type(state).__name__} at {state.at}{over}, read in {cost}"),
        list_rows("samples", table(present, "<>", has_names=False)),
        *(
            sentence("missing", f"not known: {', '.join(names)}: {reason}")
            for reason, names in missing.items()
        ),
    )
