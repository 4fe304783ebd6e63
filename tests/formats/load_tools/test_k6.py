import numpy as np
import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model import Code
from benchrigor.units import Direction


@pytest.mark.parametrize("name", ["k6.ndjson", "k6.csv"])
def test_metrics_of_one_column_and_requests_are_told_apart(sample, name) -> None:
    found = sample(name)
    assert [*found] == ["http://a/", "http://b/", "k6"]
    (only,) = found["http://a/"].rounds
    assert [*only.unit_readings] == ["http_req_duration", "size"]
    assert only.unit_readings["http_req_duration"] == pytest.approx(0.012, rel=0.2)
    assert np.median(found["http://b/"].rounds[0].unit_readings["http_req_duration"]) > 0.02
    assert [each.name for each in found["k6"].metrics] == ["iteration_duration"]
    assert {each.unit for each in found.values()} == {"series"}


def test_only_the_json_says_what_a_metric_contains(sample) -> None:
    told = sample("k6.ndjson")["http://a/"].metrics[1]
    bare = sample("k6.csv")["http://a/"].metrics[1]
    assert (told.unit, told.direction) == ("B", Direction.LOWER)
    assert (bare.unit, bare.direction) == ("", None)


@pytest.mark.parametrize("name", ["k6.ndjson", "k6.csv"])
def test_requests_that_failed_are_told(sample, name) -> None:
    found = sample(name)
    assert found["http://a/"].notices == ()
    (notice,) = found["http://b/"].notices
    assert notice.code is Code.FAILED_RUNS
    assert notice.evidence["failed"] == 1


def test_values_that_are_no_numbers_are_named(held) -> None:
    point = '{"type": "Point", "metric": "a", "data": {"value": %s}}\n'
    with pytest.raises(InvalidInput, match=r"object 2 value\[0\] is 'x', expected a number"):
        held(point % "1" + point % '"x"')
    with pytest.raises(InvalidInput, match="line 2 has 'x' for metric_value"):
        held("metric_name,timestamp,metric_value\na,1,x\n")
