import re
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import benchrigor as br
from benchrigor.model import Code, Metric, RunRecord
from benchrigor.model.text import percent
from benchrigor.report import explain, render
from benchrigor.report.run_table import tabulate
from benchrigor.testing import FakeClock, StepWarmUp, SyntheticWorkload


def run(**given: object) -> RunRecord:
    clock = FakeClock()
    options = br.Options(**{"target": 0.01, "budget_s": 30.0, **given})  # type: ignore[arg-type]
    workload = SyntheticWorkload(
        mean=0.001,
        cv=0.1,
        warm_up=StepWarmUp(amplitude=2.0, length=80),
        restarted=options.rounds == "restarted",
        seed=1,
        clock=clock,
    )
    return br.Session(options, seed=1, clock=clock, name="synthetic").run(workload)


def told(
    draw: Callable[[int], np.ndarray],
    metric: Metric | None = None,
    inner_loop: int = 1,
    **given: object,
) -> RunRecord:
    session = br.Session(
        br.Options(**given),  # type: ignore[arg-type]
        (metric or Metric(name="time", unit="s"),),
        name="told",
        seed=1,
    )
    while (plan := session.ask()) is not None:
        values = {session.result().metrics[0].name: draw(plan.readings)}
        elapsed_ns = plan.readings * 1_000_000
        facts = {"inner_loop": inner_loop}
        session.tell(br.Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings=values, facts=facts))
    return session.result()


def bimodal(scale: float = 1e-3) -> Callable[[int], np.ndarray]:
    rng = np.random.default_rng(1)
    return lambda n: scale * (np.where(rng.random(n) < 0.7, 1.07, 1.9) + rng.normal(0.0, 0.02, n))


RATE = Metric(
    name="rate",
    unit="B/s",
    direction="higher",  # type: ignore[arg-type]
    averaging="harmonic",
)


RECORDS = {
    "satisfied": run,
    "out of budget": lambda: run(target=1e-5, budget_readings=2000),
    "restarted": lambda: run(rounds="restarted"),
    "nothing measured": lambda: br.Session(name="empty", seed=1).result(),
    "single reading": lambda: run(max_rounds=1),
    "modes": lambda: told(bimodal(), inner_loop=8),
    "median": lambda: told(bimodal(), statistic="median", inner_loop=8),
    "rate": lambda: told(bimodal(1e3), RATE),
    "many wanted": lambda: told(bimodal(), target=1e-5, budget_readings=2000),
    "restarted median": lambda: run(rounds="restarted", statistic="median"),
}


@cache
def record_of(name: str) -> RunRecord:
    return RECORDS[name]()


def rows(name: str) -> dict[str, str]:
    """Return the rows of a report by their labels, those without one by the label before."""
    found: dict[str, str] = {}
    label = ""
    for line in render(record_of(name)).splitlines()[2:]:
        label = line[2:12].strip() or label
        found[label] = f"{found.get(label, '')} {line[12:]}".strip()
    return found


@pytest.mark.parametrize("name", RECORDS)
def test_reports_fit_a_terminal_of_80_columns(name: str) -> None:
    for text in (render(record_of(name)), explain(record_of(name))):
        assert max(map(len, text.splitlines())) <= 79
        assert not any(line != line.rstrip() for line in text.splitlines())


LONG = [
    "latency_ms",
    "requests_that_were_answered_in_time",
    "a_metric_with_a_name_of_forty_characters_",
    "n" * 90,
]


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("size", [1, 400])
def test_a_name_of_any_length_is_apart_from_its_number(name: str, size: int) -> None:
    session = br.Session(br.Options(budget_readings=size), seed=1)
    values = np.random.default_rng(3).normal(5.0, 0.1, size)
    session.tell(
        br.Round(plan=session.ask(), elapsed_ns=10**9, unit_readings={name: values, "m2": values})
    )
    for text in (render(session.result()), explain(session.result())):
        assert max(map(len, text.splitlines())) <= 79
    assert re.search(rf"{name[-10:]}\s+(5\.\d|4\.\d|no number: )", render(session.result()))


def test_the_report_shows_number_interval_cut_worth_and_ending() -> None:
    text = render(record_of("satisfied"))
    assert "] 95%" in text
    assert "ms [" in text or "µs [" in text
    assert "warm-up 0–79 (median 2.9" in text
    assert "effective sample size" in text
    assert ", satisfied" in text


@pytest.mark.parametrize("name", ["out of budget", "single reading", "restarted"])
def test_the_report_tells_every_notice_once(name: str) -> None:
    flat = " ".join(render(record_of(name)).split())
    for notice in record_of(name).notices:
        assert flat.count(f"[{notice.code}]") == 1
        assert (notice.sentence in flat) == (notice.code is not Code.NOT_CONVERGED)


def test_a_narrow_interval_of_little_evidence_says_so() -> None:
    session = br.Session(br.Options(target=0.02, rounds="restarted", max_rounds=5), seed=1)
    for index in range(5):
        taken = np.array([1.0 + 0.001 * index])
        session.tell(br.Round(plan=session.ask(), elapsed_ns=1, unit_readings={"time": taken}))
    flat = " ".join(render(session.result()).split())
    assert "wanted 2%, but too little to be sure [not-converged]" in flat


def test_a_row_tells_what_its_notice_would_say() -> None:
    flat = " ".join(render(record_of("out of budget")).split())
    assert "half-width 0.58% of the value, wanted 0.001%: about" in flat
    assert " are needed [not-converged]" in flat or "of measuring [not-converged]" in flat


def test_a_report_without_a_number_says_why() -> None:
    assert "no number" in str(record_of("single reading"))
    assert "no number: 1 reading, expected at least 2." in render(record_of("single reading"))


def test_the_explanation_retraces_the_number() -> None:
    record = record_of("satisfied")
    analysis, estimate = record.analysis(), record.estimate()
    assert analysis is not None
    assert estimate is not None
    text = explain(record)
    for figure in (
        f"{analysis.n:,} readings were taken in {len(record.rounds)} rounds",
        "Change points at 80",
        f"{analysis.n_kept:,} of {analysis.n:,} readings are kept",
        "time constants of",
        "Standard error",
        "degrees of freedom",
        "ended: satisfied",
    ):
        assert figure in " ".join(text.split())


def test_the_table_has_a_line_per_run() -> None:
    lines = tabulate([record_of("satisfied"), record_of("restarted")]).splitlines()
    assert sum(line.startswith("synthetic") for line in lines) == 2


def test_the_report_shows_the_median_and_the_fastest_tenth_of_averages() -> None:
    found = rows("modes")
    assert found["median"].endswith("] 95% (of averages of 8 calls)")
    assert found["median"].startswith("1.0")
    assert found["p10"].partition(" 2 modes: ")[0].endswith("(of averages of 8 calls)")
    assert "ceiling" not in found


def test_the_report_names_the_modes_with_their_shares() -> None:
    modes = rows("modes")["p10"].partition(" 2 modes: ")[2].split(", ")
    values, shares = zip(*(mode.rsplit(" ", 1) for mode in modes), strict=True)
    assert values == ("1.07 ms", "1.9 ms")
    assert [float(share.rstrip("%")) for share in shares] == pytest.approx([70, 30], abs=5)
    assert " modes" not in render(record_of("satisfied"))


def test_where_more_is_better_the_report_shows_the_highest_tenth() -> None:
    found = rows("rate")
    assert "kB/s [" in found["p90"]
    assert found["median"].endswith("] 95%")
    assert "p10" not in found


def test_the_report_tells_how_invocations_spread() -> None:
    spread = rows("restarted")["spread"]
    assert "% of the value between invocations, " in spread
    assert "% between readings; best with about " in spread
    assert spread.endswith(" of each after the cut")
    assert not {"spread"} & rows("satisfied").keys()


def test_the_report_says_of_what_the_number_is() -> None:
    assert rows("median")["time"].startswith("median 1.0")
    assert rows("modes")["time"].startswith("1.")
    assert str(record_of("median")).startswith("told  median 1.0")
    assert " ms ±" in str(record_of("median"))
    assert "median" not in str(record_of("modes"))


def test_a_session_out_of_budget_says_how_many_readings_would_do() -> None:
    analysis = record_of("many wanted").analysis()
    assert analysis is not None
    assert analysis.required is not None
    assert (
        f"wanted 0.001%: about {analysis.required:,} readings in all are needed"
        in (rows("many wanted")["time"])
    )
    record = record_of("many wanted")
    days = record.elapsed_s * analysis.required / analysis.n / 86400.0
    assert f"are needed, about {days:.1f} days of measuring" in rows("many wanted")["time"]
    assert "are needed" not in render(record_of("modes"))


def test_readings_left_out_without_a_cut_are_accounted_for() -> None:
    expected = "no warm-up or cool-down found; the first 10, which may be cold"
    assert rows("modes")["cut"] == expected


@pytest.mark.parametrize("name", ["restarted", "restarted median"])
def test_the_cut_of_restarted_rounds_is_told_once_for_all(name: str) -> None:
    record = record_of(name)
    analysis = record.analysis()
    assert analysis is not None
    share = 1.0 - analysis.n_kept / analysis.n
    assert rows(name)["cut"] == (
        f"{percent(share)} of the readings, the first 80 of each round and a margin"
    )


def test_the_table_says_which_statistic_it_shows() -> None:
    headers = [
        tabulate([record_of(name) for name in names]).split()[1]
        for names in (("median", "restarted median"), ("modes", "rate"), ("modes", "median"))
    ]
    assert headers == ["median", "mean", "estimate"]


@pytest.mark.parametrize(
    ("share", "shown"), [(12.4, "1,240%"), (9.99, "999%"), (9.996, "1,000%"), (0.0124, "1.24%")]
)
def test_shares_are_never_shown_with_an_exponent(share: float, shown: str) -> None:
    assert percent(share) == shown
