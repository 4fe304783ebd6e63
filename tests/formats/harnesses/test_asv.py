import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model import Code

NAME = "asv-0.6.6/host1/0e3e8712-existing.json"


def test_the_last_parameter_runs_first(sample, document) -> None:
    found = sample(NAME)
    samples = document(NAME)["results"]["b.Sum.time_sum"][11]
    second = found["b.Sum.time_sum(10, 'tuple')"]
    assert second.parameters == {"n": "10", "kind": "'tuple'"}
    (only,) = second.rounds
    assert only.unit_readings["time"].tolist() == samples[1]
    assert only.facts["inner_loop"] == 200


def test_units_are_those_of_the_benchmarks_beside_it(sample, held, document) -> None:
    found = sample(NAME)
    assert found["b.Sum.track_length(10, 'list')"].metrics[0].unit == "items"
    assert found["b.peakmem_list"].metrics[0].unit == "B"
    assert found["b.peakmem_list"].rounds[0].unit_readings["memory"].tolist() == [24686592.0]
    alone = {each.name: each for each in held(document(NAME))}
    assert alone["b.Sum.track_length(10, 'list')"].metrics[0].unit == ""
    assert alone["b.Sum.track_length(10, 'list')"].parameters == {"0": "10", "1": "'list'"}


def test_the_commit_is_told(sample) -> None:
    where = sample(NAME)["b.peakmem_list"].provenance
    assert where.commit == "0e3e87128b7ab1a35bd5e31f59b73d995b79b1e5"
    assert (where.host, where.started_at) == ("host1", "2026-11-27T02:56:28+00:00")


def test_without_samples_there_are_no_readings(held, document) -> None:
    data = document(NAME)
    row = data["results"]["b.Sum.time_sum"]
    data["results"] = {"b.Sum.time_sum": row[:11]}
    data["results"]["b.Sum.time_sum"][0][3] = None
    *others, failed = held(data)
    assert all("asv run with --record-samples" in each.notices[0].sentence for each in others)
    assert failed.notices[0].code is Code.NO_RAW_READINGS
    assert "failed, or was skipped" in failed.notices[0].sentence


def test_another_version_is_refused(held, document) -> None:
    with pytest.raises(InvalidInput, match="version 1 of asv, expected 2"):
        held({**document(NAME), "version": 1})
    with pytest.raises(InvalidInput, match="expected a list of 13 at most"):
        held({**document(NAME), "results": {"a": 3}})
