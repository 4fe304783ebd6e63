"""Stored runs that are alike tell how far apart runs are; files of other tools are runs."""

import importlib
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from simulated.paced import TRUE_S, told
from tests.session.telling import codes

import benchrigor as br
from benchrigor.errors import StoreFailed
from benchrigor.model import Code, RunRecord
from benchrigor.session.stored_runs import with_history
from benchrigor.storage import Journal
from benchrigor.testing import MemoryStore, SyntheticWorkload


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


def stored(store, levels, *, version, first=1, slow_share=0.5, apart_s=3600.0, **options):
    """Keep runs of a version whose levels differ by chance, and load them again."""
    journal, found = Journal(store), []
    began = datetime(2027, 1, 1, tzinfo=UTC)
    for seed, level in enumerate(levels, first):
        record = simulated(seed, level, slow_share, **options)
        at = (began + timedelta(seconds=seed * apart_s)).isoformat()
        where = replace(record.provenance, commit="abc", source=version, started_at=at)
        run_id = journal.begin(replace(record, provenance=where, rounds=(), run_id=None))
        for each in record.rounds:
            journal.append(run_id, each)
        journal.finish(run_id, replace(record, provenance=where, run_id=run_id))
        found.append(journal.load(run_id))
    return found


@cache
def simulated(seed, level_s, slow_share, **options):
    """Return a run of two rounds; many tests want the same one."""
    options = br.Options(**{"target": 0.0001, "max_rounds": 2, **options})
    where = MemoryStore()  # what is stored says where it is from
    return told(seed, level_s=level_s, options=options, slow_share=slow_share, store=where)


def levels(seed, n, mean=TRUE_S, spread=0.05):
    return mean * np.exp(np.random.default_rng(seed).normal(0.0, spread, n))


def counted_with(comparison):
    """Return how many stored runs count with each side, as a Notice says."""
    (told_of,) = (each for each in comparison.notices if each.code is Code.STORED_RUNS)
    return re.findall(r"\d+", told_of.sentence)


def test_like_runs_in_the_store_count_with_a_side(store):
    old = stored(store, levels(1, 4), version="a")
    new = stored(store, levels(2, 4, 1.1 * TRUE_S), version="b", first=10)
    alone = br.compare_runs(old[0], new[0])
    together = br.compare_runs(old[0], new[0], store=store)
    assert Code.STORED_RUNS not in codes(alone)
    means = [
        math.exp(np.mean([math.log(each.at_full_pace().value) for each in group]))
        for group in (old, new)
    ]
    assert together.ratio.value == pytest.approx(means[1] / means[0], rel=0.02)


def test_runs_that_are_alike_are_compared_one_by_one(store):
    first, second, *_ = stored(store, levels(1, 7, spread=0.1), version="a")
    comparison = br.compare_runs(first, second, store=store)
    assert Code.STORED_RUNS not in codes(comparison)
    ratio = second.at_full_pace().value / first.at_full_pace().value
    assert comparison.ratio.value == pytest.approx(ratio, rel=0.05)
    assert comparison.ratio.relative_half_width > 0.1  # the runs are 10 % apart


@pytest.mark.parametrize(
    ("where", "subject", "counted"),
    [
        ({"source": "0123"}, {}, ["0", "2"]),
        ({"function": "cd"}, {"pair": "1"}, ["2", "2"]),  # another pair, or an edited benchmark
    ],
)
def test_runs_of_the_same_source_count_whatever_their_pair(store, where, subject, counted):
    (mine, *_) = stored(store, levels(1, 3), version="a")
    other = stored(store, levels(2, 3, 1.3 * TRUE_S), version="b", first=10)
    edited = replace(
        mine,
        provenance=replace(mine.provenance, **where),
        subject={**mine.subject, **subject},
        run_id="e" * 8 if "source" in where else mine.run_id,
    )
    assert counted_with(br.compare_runs(edited, other[0], store=store)) == counted


def test_runs_of_another_statistic_or_other_options_do_not_count(store):
    old = stored(store, levels(1, 3), version="a")
    (new,) = stored(store, levels(2, 1), version="b", first=10)
    stored(store, levels(3, 3, 2 * TRUE_S), version="a", first=20, disturbed="keep")
    stored(store, levels(4, 3, 3 * TRUE_S), version="a", first=30, statistic="p90")
    alone = br.compare_runs(old[0], new)
    together = br.compare_runs(old[0], new, store=store)
    assert counted_with(together) == ["2", "0"]
    assert together.ratio.value == pytest.approx(alone.ratio.value, rel=0.15)


def test_another_statistic_than_that_of_the_runs_has_no_runs_beside_it(store):
    old = stored(store, levels(1, 4), version="a")
    (new,) = stored(store, levels(2, 1), version="b", first=10)
    alone = br.compare_runs(old[0], new, statistic="p90")
    together = br.compare_runs(old[0], new, statistic="p90", store=store)
    assert Code.STORED_RUNS not in codes(together)
    assert together.ratio == alone.ratio


def test_an_unknown_source_is_like_no_other(store):
    """As of functions that are typed in: three pairs of one name, the second thrice as slow."""
    old = stored(store, levels(1, 3), version=None)
    new = stored(store, levels(2, 3, 3 * TRUE_S), version=None, first=10)
    comparison = br.compare_runs(old[0], new[0], store=store)
    assert comparison.verdict is br.Verdict.WORSE
    assert comparison.baseline.low > 0.9 * TRUE_S
    assert Code.STORED_RUNS not in codes(comparison)


FUNCTIONS = """
def f():
    sum(range(10))

first = f

def f():
    sum(range(100))

def keeping(n):
    return lambda: sum(range(n))
"""


def test_the_source_of_a_function_tells_two_of_one_name_apart(tmp_path, monkeypatch):
    (tmp_path / "twice.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("twice")

    def source(func):
        record = br.measure(func, budget_s=0.02, target=None, reference=False)
        return record.provenance.source

    assert source(module.first) == source(module.first) is not None
    assert source(module.first) != source(module.f)
    assert source(module.keeping(1)) is None


@pytest.mark.parametrize(("spread", "narrower"), [(0.001, True), (0.2, False)])
def test_like_runs_narrow_or_widen_the_headline(store, spread, narrower):
    *_, record = stored(store, levels(1, 9, spread=spread), version="a")
    again = with_history(replace(record, run_id="e" * 8), Journal(store))
    assert again.headline().value == pytest.approx(record.headline().value, rel=0.01)
    assert again.estimate() == record.estimate()
    ratio = again.headline().relative_half_width / record.headline().relative_half_width
    assert ratio < 0.9 if narrower else ratio > 1.5


def test_a_store_that_cannot_be_read_leaves_the_headline_as_it_is(tmp_path, monkeypatch):
    (record,) = stored(tmp_path / "runs.sqlite", levels(1, 1), version="a")
    journal = Journal(tmp_path / "runs.sqlite")

    def fail(_query):
        raise StoreFailed("it is gone")

    monkeypatch.setattr(journal, "runs", fail)
    assert with_history(record, journal) == record


DATA = Path(__file__).parents[1] / "formats" / "data"


def read(path: Path, found: object) -> RunRecord:
    """Write a file of one benchmark, and read it."""
    path.write_text(json.dumps(found))
    (record,) = br.read_results(path)
    return record


@pytest.mark.parametrize("name", [path.name for path in DATA.iterdir() if path.is_file()])
def test_every_sample_is_a_list_of_records_that_can_be_shown_and_saved(name: str) -> None:
    for record in br.read_results(DATA / name):
        assert isinstance(record, RunRecord)
        assert RunRecord.from_dict(record.to_dict()).estimate() == record.estimate()
        assert record.name[:10] in str(record)
        assert "running" not in str(record)
        assert not {Code.NOT_CONVERGED, Code.NO_DATA} & {*codes(record)}


def test_other_options_judge_a_saved_record_anew(tmp_path) -> None:
    session = br.Session(br.Options(max_rounds=5), seed=1)
    path = tmp_path / "record.json"
    session.run(SyntheticWorkload(seed=1)).save(path)
    (record,) = br.read_results(path, options=br.Options(statistic="median"))
    assert record.options.statistic == "median"
    assert "median" in str(record)
    assert record.estimate() is not None


@pytest.mark.parametrize(
    "name", ["hyperfine.json", "pyperf-2.11.0.json", "pytest-benchmark-5.3.1.json"]
)
def test_suites_that_are_not_analysed_first_compare_alike(cli, tmp_path, name):
    again = tmp_path / "again.json"
    again.write_bytes((DATA / name).read_bytes())
    suites = json.loads(cli("compare", DATA / name, again, "--json").stdout)
    compared = suites["suites"]["families"]["again.json"]["comparisons"]
    for record in br.read_results(DATA / name):
        ratio = br.compare_runs(record, record).ratio
        told = compared[record.name]["ratio"]
        found = float(told["low"]), float(told["high"]), told["n"]  # it may be infinite
        assert found == (ratio.low, ratio.high, ratio.n)


def test_a_session_loads_neither_formats_nor_pyperf() -> None:
    code = (
        "import sys, benchrigor as br; br.measure; br.Session; "
        "print([m for m in sys.modules if m.startswith(('benchrigor.formats', 'pyperf'))])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
