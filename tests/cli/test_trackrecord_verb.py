import math
import platform

import numpy as np
import pytest
from simulated.estimates import mean_of

from benchrigor.model import Analysis, Decision, Metric, Options, RunRecord, StopReason
from benchrigor.model.analysis import Kind
from benchrigor.model.run import Provenance
from benchrigor.storage import Journal

TIME = Metric(name="time", unit="s")


@pytest.fixture
def keep(store):
    """Keep a run of a name that found this value, with a standard error of 1."""
    journal = Journal(store)

    def kept(name, value, *, host=None, reason=StopReason.SATISFIED):
        minute = len(journal.runs())
        estimate = mean_of(1000, value=value, error=1.0)
        record = RunRecord(
            name=name,
            options=Options(),
            metrics=(TIME,),
            seed=1,
            rounds=(),
            analyses=(Analysis(metric=TIME, kind=Kind.UNIT_READINGS, n=1000, estimate=estimate),),
            decision=Decision(stop=True, reason=reason),
            provenance=Provenance(
                host=host or platform.node(),
                system="",
                cpu="",
                cores=1,
                python="CPython 3.12",
                packages={},
                commit=None,
                capabilities=(),
                started_at=f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00+00:00",
            ),
            subject={"kind": "command", "name": name},
        )
        run_id = journal.begin(record)
        journal.finish(run_id, record)
        return run_id

    return kept


@pytest.mark.slow
def test_honest_runs_agree_with_what_they_claim(cli, keep):
    for value in np.random.default_rng(1).normal(20.0, 1.0, 80):
        keep("sort", float(value))
    result = cli("track-record")
    assert result.exit_code == 0, result.stderr
    first, second = result.stdout.splitlines()
    assert " of 40 times [" in first
    assert "agrees with" in second


def test_runs_that_differ_by_more_than_they_claim_are_named_the_worst_first(cli, keep):
    far, near = 30.0 * math.sqrt(2.0), 0.5
    for _ in range(6):
        for name, gap in (("a long name " * 20, far), ("sort", near)):
            keep(name, 20.0)
            keep(name, 20.0 + gap)
    result = cli("track-record")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "50% of 12" in lines[0]
    (worst,) = [line for line in lines if line.startswith("  0 of 6  ")]
    assert worst.split()[3:5] == ["a", "long"]
    assert lines[-1].split() == ["6", "of", "6", "sort"]
    assert max(map(len, lines)) <= 80


def test_only_runs_of_a_name_count_when_one_is_given(cli, keep):
    for name in ("sort", "parse", "parse-all"):
        keep(name, 20.0)
        keep(name, 20.1)
    assert " of 3 times " in cli("track-record").stdout
    assert " of 2 times " in cli("track-record", "--name", "parse").stdout
    # An id may hold the same characters; only names are meant.
    assert cli("track-record", "--name", "nothing").exit_code == 4


def test_another_machine_is_called_by_its_name(cli, keep):
    for host in (None, None, None, None, "elsewhere", "elsewhere"):
        keep("sort", 20.0, host=host)
    here, elsewhere = cli("track-record").stdout.split("\n\n")
    assert "100% of 2" in here
    assert elsewhere.startswith("on elsewhere")


def test_it_speaks_json(cli, keep, strict):
    for value in (20.0, 20.1, 20.0, 30.0):
        keep("sort", value)
    document = strict(cli("track-record", "--json").stdout)
    assert document["schema"] >= 1
    (found,) = document["track_records"]
    assert (found["held"], found["pairs"], found["share"]) == (1, 2, 0.5)
    assert found["host"] == platform.node()
    assert found["standing"] == "as claimed"
    assert found["by_name"] == [{"name": "sort", "held": 1, "pairs": 2}]


def test_without_pairs_it_says_what_it_takes(cli, keep, strict):
    keep("sort", 20.0)
    keep("sort", 20.0, reason=StopReason.TIME_BUDGET)
    result = cli("track-record")
    assert result.exit_code == 4
    assert result.stdout == ""
    assert strict(cli("track-record", "--json").stdout)["track_records"] == []
    assert "'sort'" in cli("track-record", "--name", "sort").stderr


def test_without_a_store_it_says_so_and_makes_none(cli, store):
    assert cli("track-record").exit_code == 6
    assert not store.exists()


@pytest.mark.slow
def test_runs_of_the_command_line_itself_can_be_paired(cli, store):
    for _ in range(6):  # a later interval that is far wider tells nothing of an earlier one
        words = ("--target", "1000%", "--budget", "60", "--disturbed", "keep")
        assert cli("run", *words, "true").exit_code == 0
    result = cli("track-record")
    assert result.exit_code == 0, result.stderr
