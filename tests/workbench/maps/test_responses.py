"""What a map measures: searches for peaks, and functions."""

import pytest

from benchrigor import Limit, LoadResult, PeakRate, PeakStatus
from benchrigor.errors import WorkloadFailed
from benchrigor.model import (
    Analysis,
    Code,
    Decision,
    Estimate,
    Notice,
    Options,
    RunRecord,
    StopReason,
    codec,
)
from benchrigor.model.analysis import Kind
from benchrigor.model.metric import describe_metric
from benchrigor.storage import Journal
from benchrigor.workbench import PeakRun, PeakSearch
from benchrigor.workbench.maps import responses
from benchrigor.workbench.maps.map_file import PeakResponse, read_map
from benchrigor.workbench.maps.map_run import Found, MapRun, round_of
from benchrigor.workbench.maps.responses import (
    Samples,
    answer_of_peak,
    metric_of,
    search_options,
    unfinished_samples,
)
from benchrigor.workbench.maps.surfaces_of_maps import search_for
from benchrigor.workbench.surfaces.samples import Measured, Sample

ONE = {"confidence": 0.95, "n": 9, "n_effective": 9.0, "method": "told"}
LIMIT = Limit(metric="mean", at_most=0.04)
POINT = {"threads": 2}


def searched(answer, **options):
    """Search for the peak of a server whose mean response is ``answer`` of the load."""
    search = PeakSearch(limits=[LIMIT], **options)
    while (trial := search.ask()) is not None:
        search.tell(trial, LoadResult(mean_response_s=answer(trial.load)))
    return search.result()


def test_a_peak_is_the_answer_of_its_sample():
    found = answer_of_peak(searched(lambda load: 1 / (200 - load) if load < 200 else 9.0), "3f2a")
    assert found.estimates["peak"].low < 175.0 < found.estimates["peak"].high
    assert (found.run_id, found.reason) == ("3f2a", None)


@pytest.mark.parametrize(
    ("response_s", "options", "bounds"),
    [(0.001, {"max_load": 400.0}, (400.0, None)), (0.9, {"min_load": 2.0}, (None, 2.0))],
)
def test_a_peak_that_lies_beyond_the_loads_is_bounded(response_s, options, bounds):
    found = answer_of_peak(searched(lambda _: response_s, **options), None)
    assert not found.estimates
    assert (found.at_least, found.at_most) == bounds
    assert found.reason


@pytest.mark.parametrize("status", [PeakStatus.BUDGET_SPENT, PeakStatus.UNSTABLE])
def test_two_bounds_are_an_interval_unless_they_contradict_each_other(status):
    peak = PeakRate(status=status, load=None, at_least=88.7, at_most=93.5)
    found = answer_of_peak(peak, None)
    if status is PeakStatus.UNSTABLE:
        assert not found.estimates
        assert found.reason
    else:
        estimate = found.estimates["peak"]
        assert (estimate.low, estimate.high, estimate.method) == (88.7, 93.5, "bounds")
        assert estimate.value == pytest.approx((88.7 * 93.5) ** 0.5)


def test_a_search_begins_below_the_peak_of_a_neighbour():
    response = PeakResponse(limits={"mean": "40ms"}, search={"seed_load": 10.0})
    first = search_options(response, Sample(id=0, point=POINT))
    later = search_options(response, Sample(id=1, point=POINT, seed_load=80.0, accuracy=0.02))
    assert (first["seed_load"], later["seed_load"]) == (10.0, pytest.approx(56.0))
    assert later["accuracy"] == 0.02
    assert later["limits"] == [LIMIT]


COMMAND = """
[factors.threads]
levels = [1, 2]
[response]
command = "no-such-program {threads}"
read = "rate:op/s=regex:(.+)"
"""


@pytest.mark.parametrize(
    ("lost", "expected"),
    [
        ([5.0], (100.0, 0.0)),
        ([12.0], (100.0, 0.12)),  # yellow: weighed
        ([37.0, 4.0], (101.0, 0.0)),
        ([37.0, 20.0], (101.0, 0.2)),
        ([37.0, 60.0], (100.0, 0.37)),
    ],
)
def test_a_disturbed_sample_is_repeated_once_and_else_counts_less(
    lost, expected, tmp_path, monkeypatch
):
    (tmp_path / "map.toml").write_text(COMMAND)
    told = []

    def measured(_samples, _response, _sample, _earlier):
        percent, value = lost[len(told)], 100.0 + len(told)
        told.append(percent)
        warning = Notice.warning(Code.DISTURBED, "Other work.", measured_percent=percent)
        return record_of(value, (warning,) if percent > 7.5 else ())

    monkeypatch.setattr(Samples, "_measure_metric", measured)
    with Samples(read_map(tmp_path / "map.toml"), cwd=str(tmp_path)) as samples:
        found = samples.measure(Sample(id=0, point={"threads": 1}))
    kept = Measured(sample=Sample(id=0, point=POINT), estimates=found.estimates)
    assert (found.estimates["rate"].value, kept.lost_share) == expected
    assert told == lost


@pytest.mark.parametrize("again", [WorkloadFailed("the program timed out"), None])
def test_a_disturbed_sample_stays_where_its_repeat_has_no_number(again, tmp_path, monkeypatch):
    (tmp_path / "map.toml").write_text(COMMAND)
    warning = Notice.warning(Code.DISTURBED, "Other work.", measured_percent=37.0)
    told = [record_of(100.0, (warning,))]

    def measured(*_):
        if told:
            return told.pop()
        if again is not None:
            raise again
        return record_of(None, ())

    monkeypatch.setattr(Samples, "_measure_metric", measured)
    with Samples(read_map(tmp_path / "map.toml"), cwd=str(tmp_path)) as samples:
        found = samples.measure(Sample(id=0, point={"threads": 1}))
    assert found.estimates["rate"].value == 100.0


def record_of(value, notices):
    """A run that ended with a rate."""
    metric = describe_metric("rate", "op/s,higher")
    estimate = value and Estimate(value=value, low=value - 1.0, high=value + 1.0, **ONE)
    return RunRecord(
        name="a run",
        options=Options(),
        metrics=(metric,),
        seed=0,
        rounds=(),
        analyses=(Analysis(metric=metric, kind=Kind.READINGS, n=1, estimate=estimate),),
        decision=Decision(stop=True, reason=StopReason.SATISFIED),
        session_notices=notices,
    )


class Queue:
    """A server that serves 200 a second, one after the other."""

    def __init__(self) -> None:
        self.offered = 0

    def offer(self, trial):
        self.offered += 1
        spare = 200.0 - trial.load
        return LoadResult(mean_response_s=1 / spare if spare > 0.0 else 9.0)


FILE = """
[factors.threads]
levels = [1, 2]
[response.peak]
command = "no-such-program {load} {threads}"
read = "mean:ms=regex:mean (.+)"
mean = "40ms"
"""


@pytest.fixture
def begun(tmp_path):
    """A stored map, and a search of it that ended just before the map could keep its answer."""
    (tmp_path / "map.toml").write_text(FILE)
    file = read_map(tmp_path / "map.toml")
    store = Journal(tmp_path / "runs.sqlite")
    whole = MapRun(search_for(file), name="a map", metrics=(metric_of(file.response),), store=store)
    whole.kept.begin()
    sample = Sample(id=0, point={"threads": 2})
    options = search_options(file.response, sample)
    run = PeakRun(
        PeakSearch(**options),
        name=f"a search (of map {whole.kept.run_id})",
        options={**options, "limits": codec.encode(options["limits"])},
        subject={"part of": whole.kept.run_id, "sample": codec.encode(sample)},
        store=store,
    )
    run.carry_out(Queue())
    return file, store, whole.kept.run_id, run.kept.run_id


@pytest.mark.slow
def test_a_search_that_was_over_is_not_repeated(begun, tmp_path):
    """Its generator is not even started: there is none."""
    file, store, whole, part = begun
    ((sample, earlier),) = unfinished_samples(store, store.load(whole)).values()
    assert (sample.id, sample.point, earlier.run_id) == (0, {"threads": 2}, part)
    with Samples(file, cwd=str(tmp_path), store=store, earlier={0: earlier}) as samples:
        found = samples.measure(sample)
    assert found.estimates["peak"].low < 175.0 < found.estimates["peak"].high
    assert found.run_id == part


@pytest.mark.slow
def test_nothing_is_begun_where_the_map_has_the_answer(begun):
    _, store, whole, _ = begun
    told = Measured(sample=Sample(id=0, point={"threads": 2}), reason="told")
    store.append(whole, round_of(told, Found(reason="told")))
    assert unfinished_samples(store, store.load(whole)) == {}


SERVED = """
[factors.threads]
levels = [1, 2]
[factors.page]
levels = ["small", "large"]
workload = true
[server]
start = "no-such-server {threads} {page}"
port = 1
[response]
function = "answering:rate"
direction = "higher"
"""


def test_another_server_is_started_where_the_one_that_was_kept_fails(tmp_path, monkeypatch):
    """It may still work off the load of the sample before."""
    began, busy = [], []

    class Kept:
        def __init__(self, _life_cycle, point, **_):
            self.steps, self.point = [], point

        def __enter__(self):
            began.append(dict(self.point))
            return self

        def __exit__(self, *_):
            busy.clear()

        def warm_up(self, _point):
            busy.append(True)

    def rate(**_point):
        if busy:
            raise WorkloadFailed("no answer within 10 s")
        return Estimate(value=9.0, low=8.0, high=10.0, **ONE)

    monkeypatch.setattr(responses, "Server", Kept)
    monkeypatch.setattr(responses, "values_of", lambda _name, point, *_: {"value": rate(**point)})
    (tmp_path / "map.toml").write_text(SERVED.replace("{page}", ""))
    with Samples(read_map(tmp_path / "map.toml"), cwd=str(tmp_path)) as samples:
        found = [
            samples.measure(Sample(id=index, point={"threads": 1, "page": page}))
            for index, page in enumerate(("small", "large"))
        ]
    assert [each.reason for each in found] == [None, None]
    assert [each["page"] for each in began] == ["small", "large"]
