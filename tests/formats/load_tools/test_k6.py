import json

import numpy as np
import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model import Code
from benchrigor.units import Direction


def named(found, name, request):
    """Return what is of a request: this JSON has no method and no status, unlike the CSV."""
    return found[request if name == "k6.ndjson" else f"GET {request} 200"]


@pytest.mark.parametrize("name", ["k6.ndjson", "k6.csv"])
def test_metrics_of_one_column_and_requests_are_told_apart(sample, name) -> None:
    found = sample(name)
    assert [key.removeprefix("GET ").removesuffix(" 200") for key in found] == [
        *("http://a/", "http://b/", "k6"),
    ]
    (only,) = named(found, name, "http://a/").rounds
    assert [*only.unit_readings] == ["http_req_duration", "size"]
    assert only.unit_readings["http_req_duration"] == pytest.approx(0.012, rel=0.2)
    assert (
        np.median(named(found, name, "http://b/").rounds[0].unit_readings["http_req_duration"])
        > 0.02
    )
    assert [each.name for each in found["k6"].metrics] == ["iteration_duration"]
    assert {each.unit for each in found.values()} == {"series"}


def test_only_the_json_says_what_a_metric_contains(sample) -> None:
    told = sample("k6.ndjson")["http://a/"].metrics[1]
    bare = sample("k6.csv")["GET http://a/ 200"].metrics[1]
    assert (told.unit, told.direction) == ("B", Direction.LOWER)
    assert (bare.unit, bare.direction) == ("", None)


@pytest.mark.parametrize("name", ["k6.ndjson", "k6.csv"])
def test_requests_that_failed_are_told(sample, name) -> None:
    found = sample(name)
    assert named(found, name, "http://a/").notices == ()
    (notice,) = named(found, name, "http://b/").notices
    assert notice.code is Code.FAILED_RUNS
    assert notice.evidence["failed"] == 1


def test_values_that_are_no_numbers_are_named(held) -> None:
    point = '{"type": "Point", "metric": "a", "data": {"value": %s}}\n'
    with pytest.raises(InvalidInput, match=r"object 2 value\[0\] is 'x', expected a number"):
        held(point % "1" + point % '"x"')
    with pytest.raises(InvalidInput, match="line 2 has 'x' for metric_value"):
        held("metric_name,timestamp,metric_value\na,1,x\n")


def point(metric, value, **tags):
    """Write a point as k6 does."""
    data = {"time": "2026-11-28T18:54:42.1Z", "value": value, "tags": tags}
    return json.dumps({"metric": metric, "type": "Point", "data": data}) + "\n"


def test_methods_and_statuses_are_requests_of_their_own(held) -> None:
    sent = [("GET", "200", 12.0), ("POST", "201", 80.0), ("GET", "503", 0.4)] * 3
    lines = [
        point(metric, value, name="http://a/", method=method, status=status)
        for method, status, time in sent
        for metric, value in (("http_req_duration", time), ("http_req_failed", status == "503"))
    ]
    found = {each.name: each for each in held("".join(lines))}
    assert [*found] == ["GET http://a/ 200", "POST http://a/ 201", "GET http://a/ 503"]
    assert found["GET http://a/ 200"].rounds[0].unit_readings["http_req_duration"].tolist() == [
        *(0.012, 0.012, 0.012),
    ]
    for status, times in (("503", "and their times count"), ("200", "and they do not count")):
        (notice,) = found[f"GET http://a/ {status}"].notices
        assert dict(notice.evidence) == {"failed": 3, "total": 6}
        assert "50% failed (3 of 6" in notice.sentence
        assert times in notice.sentence
    assert found["POST http://a/ 201"].notices == ()


def test_checks_that_failed_are_told_of_every_request(held) -> None:
    line = "".join(point("http_req_duration", 12.0, name=name) for name in "aabb")
    found = held(line + "".join(point("checks", value, check="ok") for value in (1, 1, 1, 0)))
    for each in found:
        (notice,) = each.notices
        assert (notice.code, notice.evidence["failed"]) == (Code.FAILED_RUNS, 1)
        assert "25% failed (1 of 4, checks" in notice.sentence


@pytest.mark.parametrize("nested", [True, False])
def test_a_summary_tells_what_failed(held, document, nested) -> None:
    counts = {"passes": 1, "fails": 3}
    data = document("k6-summary.json")
    for name in ("checks", "http_req_failed"):
        data["metrics"][name] = {"values": counts} if nested else counts
    (found,) = held(data)
    failed = [each for each in found.notices if each.code is Code.FAILED_RUNS]
    assert [each.evidence["failed"] for each in failed] == [3, 1]
