"""Maps that are carried out: samples are kept, and taken up again."""

import pytest
from known_maps import known

from benchrigor.model.metric import describe_metric
from benchrigor.storage import Journal
from benchrigor.workbench import Factor, SurfaceMap
from benchrigor.workbench.maps.map_run import Found, MapRun, reused_in, samples_of

SIZE = Factor("size", levels=[1, 2, 4, 8], scale="log2")
METRICS = (describe_metric("speed", "1/s"),)
SUBJECT = {"cwd": "where"}


def measure(sample):
    return Found(estimates={"speed": known(100.0 * sample.point["size"])})


def full_map():
    return SurfaceMap([SIZE], design="full")


@pytest.fixture
def store(tmp_path):
    return Journal(tmp_path / "runs.sqlite")


def test_samples_are_kept_as_they_were_told(store):
    search = full_map()
    run = MapRun(search, name="a cache", metrics=METRICS, subject=SUBJECT, store=store)
    surface = run.carry_out(measure)
    record = store.load(run.kept.run_id)
    assert samples_of(record) == list(surface.samples)
    assert record.subject["kind"] == "map"
    assert [each.readings["speed"] for each in record.rounds] == [100, 200, 400, 800]


def test_a_map_that_was_cut_off_repeats_no_sample(store):
    """What was under way when the process ended is measured again, and nothing else."""
    calls = []

    def interrupted(sample):
        calls.append(sample.point["size"])
        if len(calls) == 3:
            raise KeyboardInterrupt
        return measure(sample)

    run = MapRun(full_map(), name="a cache", metrics=METRICS, subject=SUBJECT, store=store)
    with pytest.raises(KeyboardInterrupt) as error:
        run.carry_out(interrupted)
    assert len(error.value.record.rounds) == 2
    again = MapRun.resume(full_map(), store.load(run.kept.run_id), store)
    again.carry_out(interrupted)
    assert calls == [1, 2, 4, 4, 8]
    assert len(store.load(run.kept.run_id).rounds) == 4


def test_a_sample_that_was_under_way_is_measured_first(store):
    run = MapRun(full_map(), name="a cache", metrics=METRICS, store=store)
    search = full_map()
    asked = [search.ask() for _ in range(3)]
    run.kept.begin()
    seen = []

    def seeing(sample):
        seen.append(sample)
        return measure(sample)

    again = MapRun.resume(full_map(), store.load(run.kept.run_id), store, begun=[asked[2]])
    again.carry_out(seeing)
    assert seen[0] == asked[2]
    assert sorted(each.point["size"] for each in seen) == [1, 2, 4, 8]


def test_a_sample_that_fails_is_kept_with_its_reason(store):
    def failing(sample):
        if sample.point["size"] == 2:
            return Found(reason="killed")
        return measure(sample)

    told = []
    run = MapRun(full_map(), name="a cache", metrics=METRICS, store=store)
    surface = run.carry_out(failing, after=told.append)
    reasons = [each.reason for each in surface.samples]
    assert reasons == [None, "killed", None, None]
    assert told == list(surface.samples)
    assert samples_of(store.load(run.kept.run_id)) == told


def test_samples_of_earlier_maps_are_kept_with_the_map(store):
    earlier = MapRun(full_map(), name="a cache", metrics=METRICS, store=store)
    known = earlier.carry_out(measure).samples
    search = full_map()
    run = MapRun(search, name="a cache", metrics=METRICS, reused=known[:3], store=store)
    run.carry_out(measure)
    record = store.load(run.kept.run_id)
    assert reused_in(record) == list(known[:3])
    assert [each.sample.point["size"] for each in samples_of(record)] == [8]
    again = MapRun.resume(full_map(), record, store)
    assert len(again.carry_out(measure).samples) == 4
