"""Picks read numbers from output, in order, and say by name what is wrong with it."""

from __future__ import annotations

import io
import json
import os
import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.workloads import Pick
from benchrigor.workloads.processes import picking
from benchrigor.workloads.processes.picking import read_picks


def picked(output: str | bytes, spec: str, **options: bool) -> list[float]:
    data = output.encode() if isinstance(output, str) else output
    pick = Pick.parse(spec, **options)
    return read_picks(io.BytesIO(data), [pick]).found[pick.metric].tolist()


@given(
    metric=st.text(min_size=1),
    unit=st.text().map(str.strip),
    key=st.text(min_size=1),
    unit_readings=st.booleans(),
)
def test_what_can_be_made_survives_being_written(
    metric: str, unit: str, key: str, unit_readings: bool
) -> None:
    made: dict[str, Any] = {"metric": metric, "unit": unit, "unit_readings": unit_readings}
    try:
        pick = Pick(**made, how="json", where=key)
    except InvalidInput:
        assert set(metric + unit) & set(":=,±+") or not metric.strip()
        return
    assert Pick.parse(str(pick), unit_readings=unit_readings) == pick


@pytest.mark.parametrize(
    ("output", "spec", "expected"),
    [
        ("rps: 12.5\nrps: 13\n", "x=regex:rps: ([0-9.]+)", [12.5, 13.0]),
        ("a 1 b 2\nc 3", "x=regex:[0-9]+", [1.0, 2.0, 3.0]),
        ("10%\r20%\r\n30%", "x=regex:([0-9]+)%", [10.0, 20.0, 30.0]),
        ("bits \xff\xfe 7\n".encode("latin-1"), "x=regex:[0-9]", [7.0]),
        ("n seconds\n0 .25\n1   5e-1\n\nend\n", "x=column:1", [0.25, 0.5]),
        ("n, seconds\n0, 0.25\n1,,3\n2,0.5\n", "x=column:1", [0.25, 0.5]),
        ('{"a": 1}\nnot json\n{"b": 2}\n[3]\n{"a": 4e0}\n', "x=json:a", [1.0, 4.0]),
        ('{"a": {"b": 1}}\n{"a": 2}\n{"a": {"b": "3"}}\n', "x=json:a.b", [1.0, 3.0]),
        ("{" * 100_000 + '\n{"a": 1}', "x=json:a", [1.0]),
        ('{"a":' * 100_000 + '\n{"a": 1}', "x=json:a", [1.0]),
        # a number beside another
        ("1.5,2.5,3.5", "x=regex:[0-9.]+", [1.5, 2.5, 3.5]),
        ("10,20,30", "x=regex:[0-9.]+", [10.0, 20.0, 30.0]),
        ("[1,5] (2,7)", "x=regex:[0-9.]+", [1.0, 5.0, 2.0, 7.0]),
        ("1,5", "x=regex:([0-9.]+)(?:,|$)", [1.0, 5.0]),
        ("name,12,34", "x=regex:name,([0-9]+)", [12.0]),
        ("name,12,34,x", "x=regex:([0-9]+),x", [34.0]),
        ("took 12.", "x=regex:took ([0-9]+)", [12.0]),
        ("took 12, then 13", "x=regex:([0-9.]+)", [12.0, 13.0]),
        ("p95 1.5e3", "x=regex:p95 (.+)", [1500.0]),
        ("at p99 7", "x=regex:p99 ([0-9]+)", [7.0]),
        ("key.5 p995", "x=regex:p99([0-9]+)", [5.0]),
        ("v2.5", "x=regex:v[0-9]+\\.([0-9]+)", [5.0]),
        ("key.5", "x=regex:key.([0-9]+)", [5.0]),
        ("1,5", "x=column:1", [5.0]),
        ("02-03 10:00:00,1.5,2", "x=column:1", [1.5]),
        # a unit of time, which is converted to that of the metric
        ("Latency 487.51us", r"lat:ms=regex:Latency (\S+)", [0.48751]),
        ("Latency 487.51us", "lat:ms=regex:Latency ([0-9.]+)", [0.48751]),
        ("took 5 s", "lat:ms=regex:took ([0-9]+)", [5000.0]),
        ("took 5 ms", "lat:ms=regex:took ([0-9]+)", [5.0]),
        ("5 seconds-old", "age=regex:^([0-9]+)", [5.0]),
        ("12 min/km", "pace:ms=regex:^([0-9]+)", [12.0]),
        ("real\t0m1.234s", r"real:s=regex:real\s+(.*)", [1.234]),
        ("real\t2m1.234s", r"real:s=regex:real\s+([0-9]+)", [121.234]),
        ("p50 1ms\np90 250us", "lat:us=column:1", [1000.0, 250.0]),
        ('{"p99": "1m2s"}', "lat:s=json:p99", [62.0]),
        # brackets, quotes, and a line of just under a mebibyte
        ('{\n{"x": 1}\n{"x": 2}\n', "x=json:x", [1.0, 2.0]),
        ('name,n\n"a, 7, b",5\n"c","6"\n', "x=column:1", [5.0, 6.0]),
        ('5" disk, 3\n', "x=column:1", [3.0]),
        ("n;seconds\n0;0.25\na b;0.5\n", "x=column:1", [0.25, 0.5]),
        ('"a; b";5\n"c";"6"\n', "x=column:1", [5.0, 6.0]),
        ("done; 5 ms\n", "x=column:1", [5.0]),
        ("\ufeff1,2\n", "x=column:0", [1.0]),
        (" " * (2**20 - 2) + "7", "v=column:0", [7.0]),
        (" " * (2**20 - 2) + "7\n8", "v=column:0", [7.0, 8.0]),
    ],
)
def test_all_matches_are_found_in_order(
    output: str | bytes, spec: str, expected: list[float]
) -> None:
    assert picked(output, spec) == expected


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_come_back_exactly_as_printed(values: list[float]) -> None:
    output = "".join(f'{{"v": {value!r}}}\n' for value in values)
    assert picked(output, "x=json:v") == values
    assert picked(output, "x=regex:: (.*)}") == values


@pytest.mark.parametrize(
    ("line", "spec", "whole"),
    [
        ("took 1,5 s", "x=regex:took ([0-9.]+)", "1,5"),
        ("took 1,234.5 s", "x=regex:took ([0-9.]+)", "1,234.5"),
        ("took 1,5.", "x=regex:([0-9]+)", "1,5"),
        ("took 1,5", "x=regex:took ([0-9.]+).*", "1,5"),
        ("took 12,345,678 ns", "x=regex:([0-9]+) ns", "12,345,678"),
        ("took 1.234,5 s", "x=regex:took ([0-9.]+)", "1.234,5"),
        ("took 1'234 s", "x=regex:took ([0-9.]+)", "1'234"),
        ("took 1\u202f234 s", "x=regex:took ([0-9.]+)", "1\u202f234"),
        ("took 1.2e-05 s", "x=regex:took ([0-9.]+)", "1.2e-05"),
        ("took 12.5ms", "x=regex:([0-9]+)ms", "12.5"),
        ("took .5 s", "x=regex:([0-9]+) s", ".5"),
        ("took 123 s", "x=regex:took ([0-9]{1,2})", "123"),
        ("1,001 ms", "x=column:0", "1,001"),
        ("v nan", "x=regex:v (.*)", "nan"),
        ("v 1,5", "x=regex:v (.*)", "1,5"),
        ("v", "x=regex:v( [0-9])?", ""),
        ("inf", "x=column:0", "inf"),
        ('{"v": NaN}', "x=json:v", "nan"),
        ('{"v": true}', "x=json:v", "True"),
        ('{"v": null}', "x=json:v", "None"),
        ('{"v": [1, 2]}', "x=json:v", "[1, 2]"),
        ('{"v": "1_0"}', "x=json:v", "1_0"),
        ("took 1_0 s", "x=regex:took ([^ ]+)", "1_0"),
        ('{"v": 1' + "0" * 400 + "}", "x=json:v", "1" + "0" * 79),
        ('"1', "x=column:0", '"1'),
        ('"x,8', "x=column:1", '"x,8'),
        ('b,"6', "x=column:1", 'b,"6'),
        ("took 1,5", "x=column:1", "1,5"),
        ("1,5;2,5", "x=column:0", "1,5"),
        ("took 1,234.5 s", "x=column:1", "1,234.5"),
    ],
)
def test_what_is_no_number_or_a_part_of_one_is_no_reading(line: str, spec: str, whole: str) -> None:
    with pytest.raises(WorkloadFailed, match=f"line 3 .*{re.escape(repr(whole))} "):
        picked(f"\nother\n{line}\n", spec)


@pytest.mark.parametrize("spec", ["", "x=", "x=regex:", "x=regex:(", "x=column:" + "9" * 5000])
def test_what_has_no_form_is_refused(spec: str) -> None:
    with pytest.raises(InvalidInput):
        Pick.parse(spec)


def test_other_units_than_those_of_time_are_not_converted() -> None:
    with pytest.raises(WorkloadFailed):
        picked("size 12MB", "size:B=column:0")


def test_a_negative_duration_is_named_with_its_line_and_a_difference_is_none() -> None:
    output = "u 1\nu -2\n"
    with pytest.raises(WorkloadFailed, match="'-2'"):
        picked(output, "x:ms=regex:u (.*)")
    for unit in ("ms,other", "req/s"):
        assert picked(output, f"x:{unit}=regex:u (.*)") == [1.0, -2.0]


def test_a_line_that_is_too_long_is_not_searched_and_not_cut_into_numbers() -> None:
    output = "x=1\n" + "2" * (2**20 + 10) + "x=3\nx=4\n" + "5" * 2**20
    assert picked(output, "v=regex:x=([0-9])") == [1.0, 4.0]
    with pytest.raises(WorkloadFailed, match=r"4 lines \(2 "):
        picked(output, "v=json:x")


@pytest.mark.alone
def test_a_hundred_megabytes_without_a_line_end_need_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, 100_000_000)
    tracemalloc.start()
    try:
        with path.open("rb") as output, pytest.raises(WorkloadFailed, match="100 MB in 1 "):
            read_picks(output, [Pick.parse("x=regex:[0-9]+")])
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_the_trials_are_those_of_the_last_share() -> None:
    pick = Pick.parse("ok:share=regex:ok ([0-9./]+)")
    found = read_picks(io.BytesIO(b"ok 998/1000\nok 999/1000\n"), [pick])
    assert (found.found["ok"].tolist(), found.trials) == ([0.998, 0.999], {"ok": 1000.0})
    assert read_picks(io.BytesIO(b"ok 998/1000\nok 0.5\n"), [pick]).trials == {}
    with pytest.raises(WorkloadFailed, match="successes/trials"):
        read_picks(io.BytesIO(b"ok 11/10\n"), [pick])


@pytest.mark.parametrize("indent", [None, 1, 4, "\t"])
@pytest.mark.parametrize("end", ["", "\n", "\nIperf Done.\n"])
def test_json_may_span_several_lines(indent: int | str | None, end: str) -> None:
    report = {"start": {}, "end": {"streams": [{"rate": 12.5}, {"rate": 7}], "sum": {"rate": 19.5}}}
    printed = f"server says:\n{json.dumps(report, indent=indent)}{end}"
    assert picked(printed, "rate:b/s=json:end.sum.rate") == [19.5]
    assert picked(printed, "rate:b/s=json:end.streams.1.rate") == [7.0]


def test_long_output_is_searched_for_as_long_as_its_lines_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(picking, "_TICK_S", 0.001)  # shorter than all lines, longer than any
    assert (
        len(picked("took 5 ms\n" * 20_000, "x=regex:took ([0-9]+)", unit_readings=True)) == 20_000
    )
