"""track-record and plan, and the pace of commands that were stored."""

import platform
from dataclasses import replace
from functools import cache
from itertools import count

import pytest
from simulated.estimates import mean_of
from simulated.paced_commands import run_of

import benchrigor as br
from benchrigor.model import Decision, StopReason
from benchrigor.testing import FakeClock, SyntheticWorkload


@cache
def measured():
    """Return a run, of which each test changes the name and the number."""
    clock = FakeClock()
    return br.measure(lambda: clock.advance(10**6), budget_s=0.1, clock=clock)


@pytest.fixture
def found(keep):
    """Keep a run of a name that found this value, with a standard error of 1."""
    minutes = count()

    def put(name, *values, host=None, reason=StopReason.SATISFIED):
        for value in values:
            record, minute = measured(), next(minutes)
            (analysis,) = record.analyses
            estimate = mean_of(1000, value=value, error=1.0)
            provenance = replace(
                record.provenance,
                host=host or platform.node(),
                commit=None,
                started_at=f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00+00:00",
            )
            keep(
                replace(
                    record,
                    name=name,
                    rounds=(),
                    analyses=(replace(analysis, n=1000, estimate=estimate, notices=()),),
                    decision=Decision(stop=True, reason=reason),
                    provenance=provenance,
                    subject={"kind": "command", "name": name},
                )
            )

    return put


def test_only_runs_of_a_name_and_of_one_machine_count_and_only_complete_ones(cli, found, told):
    for name in ("sort", "parse", "parse-all"):
        found(name, 20.0, 20.1)
    found("sort", 20.0, 20.1, host="elsewhere")
    found("lost", 20.0, reason=StopReason.TIME_BUDGET)
    found("lost", 20.0)
    here, elsewhere = told("track-record")["track_records"]
    assert (here["host"], here["pairs"]) == (platform.node(), 3)
    assert (elsewhere["host"], elsewhere["pairs"]) == ("elsewhere", 1)
    assert told("track-record", "--name", "parse")["track_records"][0]["pairs"] == 2
    # An id may hold the same characters; only names are meant.
    for name in ("nothing", "lost"):
        assert cli("track-record", "--name", name).exit_code == 4
        assert told("track-record", "--name", name)["track_records"] == []


def test_runs_of_the_command_line_itself_can_be_paired(cli):
    for _ in range(6):  # a later interval that is far wider tells nothing of an earlier one
        words = ("--target", "1000%", "--budget", "60", "--disturbed", "keep")
        assert cli("run", *words, "sleep", ".05").exit_code == 0
    result = cli("track-record")
    assert result.exit_code == 0, result.stderr


@pytest.fixture
def pilot(keep):
    """A pilot that stopped short of its target, by its id and its record."""
    clock = FakeClock()
    session = br.Session(br.Options(target=0.001, budget_readings=600), seed=1, clock=clock)
    record = session.run(SyntheticWorkload(mean=0.001, cv=0.1, seed=1, clock=clock))
    return keep(record), record


def test_a_short_run_plans_a_long_one(cli, pilot):
    run_id, record = pilot
    result = cli("plan", run_id[:4], "--change", "2%", "--margin", "1%", "--power", "90%")
    expected = br.plan(record, change=0.02, margin=0.01, power=0.9)
    assert result.stdout == f"{expected}\n"
    codes = [each.code for each in expected.notices]
    assert codes.count("this-process-only") == 1
    assert "not-converged" not in codes
    assert max(map(len, result.stdout.splitlines())) <= 79


def test_widths_confidence_and_metric_are_passed_on(told, pilot):
    run_id, record = pilot
    words = ("--half-width", "3%", "--half-width", "0.001", "--confidence", "99%")
    document = told("plan", run_id, *words, "--metric", "time")
    assert document["run_id"] == run_id
    expected, found = (
        br.plan(record, half_widths=(0.03, 0.001), confidence=0.99),
        document["plan"],
    )
    assert found["n"] == expected.n
    assert found["pilot"]["confidence"] == 0.99
    assert [each["half_width"] for each in found["prices"]] == [0.03, 0.001]
    assert [each["n"] for each in found["prices"]] == [each.n for each in expected.prices]


def test_bad_wishes_and_a_run_that_measured_nothing_have_exit_codes(cli, pilot, keep):
    for words in (("--change", "1%", "--margin", "2%"), ("--power", "100%"), ("--metric", "speed")):
        assert cli("plan", pilot[0], *words).exit_code == 2
    assert cli("plan", keep(br.Session(seed=1).result())).exit_code == 4


@pytest.fixture
def run_ids(keep):
    """Return a run on a machine that is hardly busy, and one where the command waits for long."""
    return [
        keep(run_of(slower=slower, rest_s=rest_s, seed=2))
        for slower, rest_s in ((1.05, 0.0001), (1.3, 0.05))
    ]


def words(text):
    return " ".join(text.split())


def test_each_place_tells_the_pace_that_the_figures_have(cli, run_ids, told):
    analysis = told("show", run_ids[1])["analyses"][0]
    share = analysis["at_full_pace"]["value"] / analysis["estimate"]["value"]
    assert 0.2 < share < 0.4
    explained, compared = cli("explain", run_ids[1]), cli("compare", *run_ids, "--details")
    for shown in (cli("show", run_ids[1], "--details"), explained):
        assert f" {100 * share:.0f}% of " in words(shown.stdout)
    assert f"{100 * share:.1f}% of it" in words(compared.stdout)
    assert words(compared.stdout).count("at full") == 2
    assert "10 ms" in words(explained.stdout)  # the start of the interpreter
