"""Files of JMeter, k6 and vegeta, and of JSON lines."""

import json
from pathlib import Path

import pytest
from tests.formats.written_files import DATA, lines, point

import benchrigor as br
from benchrigor.model import Code


def test_methods_and_statuses_are_requests_of_their_own(held, evidence) -> None:
    sent = [("GET", "200", 12.0), ("POST", "201", 80.0), ("GET", "503", 0.4)] * 3
    points = [
        point(metric, value, name="http://a/", method=method, status=status)
        for method, status, time in sent
        for metric, value in (
            ("http_req_duration", time),
            ("http_req_failed", int(status == "503")),
        )
    ]
    found = {each.name: each for each in held(lines(*points)["a"])}
    assert [*found] == ["GET http://a/ 200", "POST http://a/ 201", "GET http://a/ 503"]
    assert found["GET http://a/ 200"].readings().tolist() == [0.012, 0.012, 0.012]
    for status in ("503", "200"):
        told = evidence(found[f"GET http://a/ {status}"], Code.FAILED_RUNS)
        assert told == {"failed": 3, "total": 6}
    assert found["POST http://a/ 201"].session_notices == ()


def test_checks_of_k6_that_failed_are_told_of_every_request(held, evidence) -> None:
    requests = [point("http_req_duration", 12.0, name=name) for name in "aabb"]
    checks = [point("checks", value, check="ok") for value in (1, 1, 1, 0)]
    for each in held(lines(*requests, *checks)["a"]):
        assert evidence(each, Code.FAILED_RUNS) == {"failed": 1, "total": 4}


@pytest.mark.parametrize("nested", [True, False])
def test_a_summary_of_k6_tells_what_failed(held, document, nested) -> None:
    counts = {"passes": 1, "fails": 3}
    data = document("k6-summary.json")
    for name in ("checks", "http_req_failed"):
        data["metrics"][name] = {"values": counts} if nested else counts
    (found,) = held(data)
    failed = [each for each in found.notices if each.code is Code.FAILED_RUNS]
    assert [each.evidence["failed"] for each in failed] == [3, 1]


@pytest.mark.parametrize("form", ["json", "csv"])
def test_targets_of_vegeta_that_come_back_are_told_apart(held, form) -> None:
    line = (
        '{"seq": %d, "code": 200, "timestamp": "t", "latency": 1, "method": "GET", "url": "%s"}\n'
        if form == "json"
        else '1795200000000000000,200,1,0,0,"","",load,%d,GET,%s,\n'
    )
    attack = "vegeta" if form == "json" else "load"
    found = held("".join(line % (n, "ab"[n % 2]) for n in range(6)))
    assert [each.name for each in found] == [f"{attack} GET a", f"{attack} GET b"]
    (found,) = held("".join(line % (n, f"item/{n}") for n in range(6)))  # each once
    assert (found.name, found.readings().size) == (attack, 6)


def test_a_list_of_values_is_read_as_json_lines(held) -> None:
    units = {"a": "s", "b": "MB"}
    rows = [{"name": n, "unit": units[n], "value": value} for value in (1.0, 2.0) for n in units]
    one, other = held(rows)
    assert [one.metrics[0].unit, other.metrics[0].unit] == ["s", "MB"]
    assert one.readings().tolist() == [1.0, 2.0]
    assert held(rows[0])[0].readings().tolist() == [1.0]


def test_what_convert_writes_for_github_is_read_back_as_numbers(
    tmp_path: Path, cli, evidence
) -> None:
    written = tmp_path / "history.json"
    assert cli("convert", DATA / "hyperfine.json", written, "--to", "github").exit_code == 0
    numbers = {each["name"]: each["value"] for each in json.loads(written.read_text())}
    assert len(numbers) == 2
    for each in br.read_results(written):
        assert each.rounds == ()
        assert evidence(each, Code.NO_RAW_READINGS)["value"] == numbers[each.name]
    assert cli("analyze", written).exit_code == 4
