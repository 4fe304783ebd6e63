import math
import platform
from dataclasses import replace
from functools import cache
from itertools import count

import numpy as np
import pytest
from simulated.estimates import mean_of

import benchrigor as br
from benchrigor.model import Decision, StopReason
from benchrigor.testing import FakeClock


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


def test_honest_runs_agree_with_what_they_claim(found, told):
    found("sort", *np.random.default_rng(1).normal(20.0, 1.0, 80).tolist())
    (record,) = told("track-record")["track_records"]
    assert (record["pairs"], record["standing"]) == (40, "as claimed")


def test_runs_that_differ_by_more_than_they_claim_are_named_the_worst_first(cli, found, told):
    far, near = 30.0 * math.sqrt(2.0), 0.5
    for _ in range(6):
        found("a long name " * 20, 20.0, 20.0 + far)
        found("sort", 20.0, 20.0 + near)
    (record,) = told("track-record")["track_records"]
    assert [(each["held"], each["pairs"]) for each in record["by_name"]] == [(0, 6), (6, 6)]
    assert record["share"] == 0.5
    assert max(map(len, cli("track-record").stdout.splitlines())) <= 80


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
