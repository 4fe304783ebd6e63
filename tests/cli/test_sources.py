import io
import json
import sys
import time

import numpy as np
import pytest

from benchrigor.formats.readings import Columns


def read(path, column=None):
    return Columns(column=column).read(str(path))


READABLE = {
    "two columns of whole numbers below a header": ("time,n\n1,05\n2.5,1\n3,2\n", "time"),
    "one number per line, blank lines between": ("\n1\n\n2.5\n3\n\n", None),
    "a column by its name": ("run,time\na,1\nb,2.5\nc,3\n", "time"),
    "a column by its number, without header": ("1,a\n2.5,b\n3,c\n", "0"),
    "a column by its number, below a header": ("run;time\na;1\nb;2.5\nc;3\n", "1"),
    "tabs": ("run\ttime\n\t1\n\t2.5\n\t3\n", "time"),
    "columns set apart by spaces": ("  run   time\n   0  1\n  10  2.5\n  20  3 \n", "time"),
    "quoted cells": ('"run, of","time"\n"a",1\n"b","2.5"\n"c",3\n', "time"),
    "a byte order mark": ("\ufefftime\n1\n2.5\n3\n", None),
    "line ends of Windows, none at the end": ("time\r\n1\r\n2.5\r\n3", None),
    "a delimiter at the end of each line": ("time;\n1;\n2.5;\n3;\n", None),
    "semicolons, with commas in a text": ("note;time\na, b;1\nc, d;2.5\ne;3\n", "time"),
    "commas behind times of day": ("at,time\n01-02 10:00:00,1\n01-02 10:00:01,2.5\nx,3\n", "time"),
    "a column whose name another one has": ("t,t\n9,1\n9,2.5\n9,3\n", "1"),
    "a header that is a comment": ("#run,time\na,1\na,2.5\na,3\n", "time"),
    "a name of several words": ("response time (ms)\n1\n2.5\n3\n", None),
    "numbers and their unit": ("1 ms\n2.5 ms\n3 ms\n", "0"),
    "a row of nothing but delimiters": ("a,b\n1,x\n,\n2.5,y\n3,z\n", "a"),
    "a JSON object with several lists": ('{"a": [7], "b": [1, 2.5, 3]}', "b"),
    "a JSON list of objects": ('[{"t": 1, "n": 9}, {"t": 2.5, "n": 9}, {"t": 3, "n": 9}]', "t"),
    "times with units below a header": ("n,time\n1,1s\n2,2.5s\n3,.05min\n", "time"),
    "times with units and no header": ("a,1s\nb,2.5s\nc,3 s\n", "1"),
    "names such as those of averages": ("1m,5m\n1,7\n2.5,7\n3,7\n", "1m"),
    "times with units in JSON": ('{"t": ["1000ms", "2.5s", "3s"]}', None),
    "a path in JSON": ('{"a": [{"t": [1, 2.5, 3]}], "b": [0]}', "a.0.t"),
    "a path in a list": ('[{"t": [9]}, {"t": [1, 2.5, 3]}]', "1.t"),
    "a path in each object": ('[{"a": {"t": 1}}, {"a": {"t": 2.5}}, {"a": {"t": 3}}]', "a.t"),
    "a path on each line": ('{"a": [0, 1]}\n{"a": [0, 2.5]}\n{"a": [0, 3]}\n', "a.1"),
    "a key with a point": ('{"a.b": [1, 2.5, 3], "a": {"b": [9]}}', "a.b"),
    "an object per line": ('{"t": 1, "n": 9}\n{"t": 2.5, "n": 9}\n{"t": 3, "n": 9}\n', "t"),
}


@pytest.mark.parametrize(("text", "column"), READABLE.values(), ids=READABLE)
def test_readings_are_read_from(text, column, tmp_path):
    (tmp_path / "file").write_text(text, encoding="utf-8")
    (series,) = read(tmp_path / "file", column).series
    np.testing.assert_array_equal(series, [1.0, 2.5, 3.0])


def test_a_table_of_many_columns_is_read_as_fast_as_one_of_many_lines(tmp_path):
    names = ",".join(f"c{number}" for number in range(100_000))
    (tmp_path / "file").write_text(f"{names}\n{','.join(['1'] * 100_000)}\n")
    start = time.process_time()
    assert read(tmp_path / "file", "c7").series[0].tolist() == [1.0]
    assert time.process_time() - start < 8.0


def test_a_byte_order_mark_in_a_pipe_is_no_header(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\ufeff1\n2.5\n3\n".encode())))
    assert read("-").series[0].tolist() == [1.0, 2.5, 3.0]


@pytest.mark.parametrize("verb", ["analyze", "changes", "plan", "compare"])
def test_no_verb_reads_a_number_off_a_row_of_other_width_nor_half_of_one(cli, series, verb):
    rows = [1.0 + index % 3 / 10 for index in range(100)]
    series("wide.csv", [*rows, "1,001.5"])
    series("half.csv", [f"12,{index % 7}" for index in range(60)], "11,5")
    for name, column in (("wide.csv", "time"), ("half.csv", "0")):
        files = [name] * (2 if verb == "compare" else 1)
        assert cli(verb, *files, "--column", column).exit_code == 2


@pytest.mark.parametrize("more", [("--work", "0"), ("--round", "0")])
def test_two_columns_that_are_named_by_number_are_two(cli, more):
    rows = "".join(f"{1 + index % 4},{3 + 2 * (index % 4)}\n" for index in range(40))
    result = cli("analyze", "-", "--column", "1", *more, input=rows)
    assert result.exit_code in {0, 4}, result.stderr


def test_a_name_of_digits_behind_a_line_heads_a_column(cli, series):
    series("spark.csv", ["1.5,2", "1.6,2"] * 20, "_1,_2")
    assert cli("analyze", "spark.csv", "--column", "_1").exit_code in {0, 3, 4}


HEAD = "measured on a Monday, 3 times\n\nby Ada\n"


@pytest.mark.parametrize("verb", ["analyze", "changes", "compare"])
@pytest.mark.parametrize("body", ["index,time\n{rows}", "time\n{rows}"])
def test_the_first_lines_are_not_read_on_request(cli, tmp_path, verb, body):
    before = "{},".format if "index" in body else lambda _: ""
    rows = "".join(f"{before(index)}{1.0 + index % 3 / 10}\n" for index in range(100))
    (tmp_path / "a.csv").write_text(HEAD + body.format(rows=rows))
    (tmp_path / "b.csv").write_text(HEAD + body.format(rows=rows))
    words = (verb, *["a.csv", "b.csv"][: 2 if verb == "compare" else 1], "--column", "time")
    assert cli(*words, "--ignore-lines", "3").exit_code in (0, 4)
    assert cli(*words).exit_code == 2  # the next command reads all lines again
    assert cli(*words, "--ignore-lines", "-1").exit_code == 2


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "text", ["time\r\n1.0\r\n2.5\r\n3.0\r\n", '{"t": 1}\n{"t": 2.5}\n{"t": 3}\n', "[1, 2.5, 3]"]
)
def test_an_encoding_is_recognised(cli, tmp_path, encoding, text):
    (tmp_path / "file").write_bytes(text.encode(encoding))
    assert read(tmp_path / "file").series[0].tolist() == [1.0, 2.5, 3.0]
    assert cli("analyze", tmp_path / "file").exit_code == 0


def test_times_with_units_are_read_in_the_unit_that_is_asked_for(told, series):
    series("times.csv", ["a,0m0.0125s", "b,12.5ms", "a,12500us"] * 20, "who,time")

    def found(*more):
        (analysis,) = told("analyze", "times.csv", "--column", "time", *more)["analyses"]
        return analysis["metric"]["unit"], round(analysis["estimate"]["value"], 12)

    assert found("--where", "who=a") == ("s", 0.0125)
    assert found("--unit", "ms", "--where", "who=b") == ("ms", 12.5)
    assert found("--round", "who") == ("s", 0.0125)


def test_truths_are_chosen_as_json_writes_them(tmp_path):
    rows = ('{"ok": true, "t": 1}', '{"ok": false, "t": 9}', '{"ok": true, "t": 2}')
    (tmp_path / "f").write_text("\n".join(rows) + "\n")
    chosen = Columns(column="t", where=(("ok", "true"),)).read(str(tmp_path / "f"))
    assert chosen.series[0].tolist() == [1.0, 2.0]


def test_a_path_selects_in_what_another_tool_wrote(told, tmp_path):
    times = [0.1, 0.2, 0.3, 0.25] * 10
    results = [{"command": "sleep 1", "times": times}, {"command": "a.b", "times": times[:20]}]
    (tmp_path / "file").write_text(json.dumps({"results": results}))
    columns = {"results.1.times": (20, ""), "sleep 1": (40, "s"), "a.b": (20, "s")}
    for column, found in columns.items():
        (analysis,) = told("analyze", "file", "--column", column)["analyses"]
        assert (analysis["n"], analysis["metric"]["unit"]) == found


CUT = {
    "a missing cell": ("a,t\n1,1\n2,2\n3", 2),
    "an empty cell": ("a,t\n1,1\n2,2\n3,", 2),
    "decimals": ("1.25\n2.5\n12\n", 3),  # its line has an end
    "no decimals": ("1.25\n2.5\n1", 2),
    "a point at the end": ("1.25\n2.5\n1.", 2),
    "a point at the end, behind whole numbers": ("1\n2\n3.", 2),
    "half of an exponent": ("1.25\n2.5\n1.0e-", 2),
    "few digits": ("1025\n" * 25 + "10", 25),
    "few digits among few": ("10\n12\n9", 3),
    "half a unit": ("12ms\n13ms\n14m", 2),
    "no seconds": ("0m1.5s\n0m1.6s\n0m", 2),
    "all of its unit": ("12ms\n13us\n14us", 3),
    "half an object": ('{"t": 1}\n{"t": 2}\n{"t"', 2),
    "half a number of an object": ('{"t": 1}\n{"t": 2}\n{"t": 3', 2),
}


@pytest.mark.parametrize(("text", "n"), CUT.values(), ids=CUT.keys())
def test_a_last_line_without_its_end_is_reported_and_not_used_where_it_was_cut(tmp_path, text, n):
    (tmp_path / "file").write_text(text)
    column = "t" if "t" in text else None
    found = read(tmp_path / "file", column)
    last = found.unfinished and found.unfinished.number
    is_whole = text.endswith("\n")
    assert (found.series[0].size, last) == (n, None if is_whole else text.count("\n") + 1)


def test_a_last_line_with_its_end_is_not_reported(cli):
    for text in ("1\n2\n3\n", "1\n2\n3\n ", "1\n2\n3\r\n", "[1, 2]", '{"t": 1}\n{"t": 2}'):
        assert not cli("analyze", input=text).stderr
