"""Tables of readings as users have them: read quickly or carefully, or refused."""

import io
import json
import sys
import time

import numpy as np
import pytest
from tests.texts.causes.cli_files import TWO, table

from benchrigor.errors import InvalidInput
from benchrigor.formats import readings
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
    "labels in blocks": ("phase,time\nwarm,1\nwarm,2.5\nsteady,3\n", "time"),
    "a remark now and then": ("name,time\n,1\ngc,2.5\n,3\n", "time"),
    "comments": (
        "# a program\n# name,time\nname,time\na,1\n# more, or less, or not\na,2.5\na,3\n",
        "time",
    ),
    "a header below one comment": ("# c\n\ntime\n1\n2.5\n3\n", "time"),
    "a header below a comment as wide": ("# of host, x\nname,time\na,1\na,2.5\na,3\n", "time"),
    "numbers as texts": ('[{"time": "1"}, {"time": "2.5"}, {"time": "3e0"}]', "time"),
    "rows that begin with an empty cell": (",1\n,2.5\n,3\n", "1"),
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


ROWS = [f"{index},{index / 7!r},a b" for index in range(5_000)]
TEXT = "\n".join(["n,time,who", *ROWS, ""])


def long_file(tmp_path, text: str, **how) -> str:
    path = tmp_path / "long.csv"
    path.write_bytes(text.encode(**how))
    return str(path)


def values_of(path: str, column: str | None) -> list[float]:
    return readings.Columns(column=column).read(path).series[0].tolist()


def both(path: str, monkeypatch, column: str | None = "time"):
    """Read a file as it is read, and carefully."""
    found = []
    for head in (1 << 16, 10**9):
        monkeypatch.setattr(readings, "_HEAD", head)
        try:
            found.append(values_of(path, column))
        except InvalidInput as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace("\n", "\r\n"),
        "\ufeff" + TEXT,
        "\n\n" + TEXT,
        TEXT.replace(",", ";"),
        TEXT.replace(",", "\t"),
        TEXT[len("n,time,who\n") :].replace("a b", "0"),
    ],
    ids=["plain", "windows", "mark", "blank", "semicolon", "tab", "no header"],
)
def test_a_plain_table_is_read_without_the_careful_reader(text, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(readings, "_text", None)
    column = "1" if "time" not in text else "time"
    assert values_of(long_file(tmp_path, text), column) == [index / 7 for index in range(5_000)]


ODD = {
    "row": [
        *("1,2", "1,2,3,4", "1,,a", "1,nan,a", "1,-inf,a", "1,0x10,a", "1,1_0,a", "1,1e999,a"),
        *('1,"2",a', "", " ", ",,", "1, 2.5 ,a", "1,2;3,a", "1,2\t,a", "1,2,\u00e9", "1,2,a\x0bb"),
        *("1,1e,a", "1,+-1,a", "1,1-2,a", "1,.,a", "1,1 2,a", "1,2,a\rb", "1,2,\0", "1,.5e-3,a"),
        *("1,1/2,a", "1,12ms,a", '1,"2,a', "1,-1.e+2,a", "1,1d5,a", "1,١,a", "1,1e-400,a"),
    ],
    "end": ["5000,1.5,a", "5000,1.", "5000", "\n", "5000,1.5,a\r"],
    "line": [
        *('{"n": 1}', '{"time": null}', '{"time": true}', '{"time": NaN}', '{"time": 1e999}'),
        *('{"time": "1"}', '{"time": 1, "time": 2}', '{"time": {"time": 1}}', '{"time": [1]}'),
        *('{"time": 1, "a": "{"}', '{"time": 1} {"time": 2}', '{"time": 1}, {"time": 2}'),
        *("", "[1]", "5", '"time"', "{", "}", '{"time": 1', '{"time": 1},', '{"time": 01}'),
        *('{"a b":\n{"time": 1}}', '{"time": 1, "a": [{"time": 1}\n{}]}, {"time": 1}'),
        *(f'{{"time": 1{"0" * 400}}}', '{"time": 5, "more": {"x": 1}}'),
        '{"who": "\u00e9", "time": -0.5}',
    ],
}
LINES = [f'{{"n": {index}, "time": {index / 7!r}, "who": "a\\u00e9"}}' for index in range(5_000)]


@pytest.mark.parametrize(("kind", "odd"), [(kind, odd) for kind in ODD for odd in ODD[kind]])
def test_any_row_of_many_is_what_the_careful_reader_says(kind, odd, tmp_path, monkeypatch) -> None:
    if kind == "end":
        text = TEXT + odd
    elif kind == "row":
        text = "\n".join(["n,time,who", *ROWS[:4_000], odd, *ROWS[4_000:], ""])
    else:
        text = "\n".join([*LINES[:4_000], odd, *LINES[4_000:], ""])
    quick, careful = both(long_file(tmp_path, text), monkeypatch)
    assert quick == careful


def test_where_a_part_ends_does_not_matter(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(readings, "_text", None)
    whole = "n,time\n" + "".join(f"{n},{n / 3:.3f}\n" for n in range(150_000))
    for column, values in (
        ("n", range(150_000)),
        ("time", (round(n / 3, 3) for n in range(150_000))),
    ):
        assert values_of(long_file(tmp_path, whole), column) == [*values]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_flat_json_lines_are_read_without_the_careful_reader(end, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(readings, "_text", None)
    path = long_file(tmp_path, end.join([*LINES, ""]))
    assert values_of(path, "n") == [*range(5_000)]
    assert values_of(path, "time") == [n / 7 for n in range(5_000)]


@pytest.mark.parametrize("style", [".9g", ".3f", ".15g", ".16f", "g", ".0f", ".6e"])
def test_digits_are_read_as_python_reads_them(style, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(readings, "_text", None)
    monkeypatch.setattr(readings, "_HEAD", 1 << 14)
    values = np.random.default_rng(3).lognormal(0.0, 10.0, 4_000)
    cells = [format(value, style) for value in values]
    for more in ([], ["7", "1.", ".5", "007", "9007199254740993", "0.1234567890123456"]):
        text = "time,n\n" + "".join(f"{cell},1\n" for cell in [*cells, *more])
        assert values_of(long_file(tmp_path, text), "time") == [*map(float, [*cells, *more])]


CSV = "who,t\na,1\nb,100\na,N/A\na,2\na,3\n"
PER_LINE = "".join(
    f'{{"who": "{who}", "t": {t}}}\n'
    for who, t in [("a", 1), ("b", 9), ("a", "null"), ("a", 2), ("a", 3)]
)


@pytest.mark.parametrize("text", [CSV, PER_LINE])
def test_rows_are_selected_and_missing_ones_left_out_when_asked(cli, told, tmp_path, text) -> None:
    (tmp_path / "f").write_text(text)
    words = ("analyze", "f", "--column", "t")
    (found,) = told(*words, "--where", "who=a", "--missing", "skip")["analyses"]
    assert found["n"] == 3
    for where in ("x=1", "who=z", "who"):
        assert cli(*words, "--where", where).exit_code == 2


@pytest.mark.parametrize("names", [("parse", "parse_fast"), ("a", "b"), ("sort", "sort rev")])
def test_a_large_file_of_two_things_is_refused_as_a_small_one_is(names, cli, tmp_path) -> None:
    """What comes first may be a part of what comes later, or of the header."""
    lines = (
        f"{name},{10.0 - 5.0 * k}{n % 7}\n" for k, name in enumerate(names) for n in range(5_000)
    )
    (tmp_path / "f.csv").write_text("name,time\n" + "".join(lines))
    assert cli("analyze", "f.csv", "--column", "time").exit_code == 2


ALTERNATING = table([(f"{n},time", t) for n, t in TWO * 5], "label,metric,v\n")
LEFT = {
    "a table": (ALTERNATING, "metric=time", "label=sort"),
    "objects": (
        json.dumps([{"label": n, "metric": "time", "v": t} for n, t in TWO]),
        "metric=time",
        "label=sort",
    ),
    "a long table": (ALTERNATING + ALTERNATING[15:] * 900, "metric=time", "label=sort"),
    "benchmarks in blocks": (
        table([("sort", 1.0)] * 3 + [("copy", 9.0)] * 3, "benchmark,v\n"),
        "",
        "benchmark=sort",
    ),
    "names in blocks of a long table": (
        table(TWO[:1] * 9_000 + TWO[1:] * 9_000, "name,v\n"),
        "",
        "name=sort",
    ),
}


@pytest.mark.parametrize(("text", "where", "cure"), LEFT.values(), ids=LEFT)
def test_the_rows_that_are_left_are_of_one_thing(text, where, cure, cli, tmp_path) -> None:
    (tmp_path / "f").write_text(text)
    chosen = ("--column", "v", *(("--where", where) if where else ()))
    for words in (("analyze", "f"), ("changes", "f"), ("compare", "f", "f")):
        asked = cli(*words, *chosen)
        assert (asked.exit_code, f"--where {cure}" in " ".join(asked.stderr.split())) == (2, True)
    assert cli("analyze", "f", *chosen, "--where", cure).exit_code in {0, 4}


def test_rounds_told_apart_by_another_column_are_of_one_thing(cli, tmp_path) -> None:
    (tmp_path / "f").write_text(
        table([(f"{n},{k // 4}", 1 + t) for k, (n, t) in enumerate(TWO * 6)], "label,run,v\n")
    )
    assert cli("analyze", "f", "--column", "v", "--round", "run").exit_code == 2
    assert cli("analyze", "f", "--column", "v", "--round", "label").exit_code == 0


@pytest.mark.parametrize("above", ["Benchmark of today\n", "Starting, at noon, here\nready\n"])
def test_text_above_a_table_is_named_with_the_option_that_leaves_it_out(above, cli, tmp_path):
    path = tmp_path / "f.csv"
    path.write_text(f"{above}n,time\n1,2.5\n2,2.6\n3,2.4\n")
    lines = str(above.count("\n"))
    assert f"--ignore-lines {lines}" in " ".join(cli("analyze", path).stderr.split())
    assert cli("analyze", path, "--column", "time", "--ignore-lines", lines).exit_code in {0, 4}


@pytest.mark.parametrize("verb", ["analyze", "explain", "plan", "compare", "changes", "convert"])
@pytest.mark.parametrize("n", [1, 3, 9, 60])
def test_nobody_is_told_to_measure_a_file_longer_by_an_option(verb, n, cli, series) -> None:
    for name in ("f.csv", "g.csv"):
        series(name, [1 + 0.1 * (k % 7) for k in range(n)])
    more = {"compare": ["g.csv"], "convert": ["x.json"]}.get(verb, [])
    done = cli(verb, "f.csv", *more)
    assert not [word for word in ("--budget", "budget_s", "--fresh") if word in done.output]


UNITS = {
    "a table": "time,unit\n" + "12,ms\n13,ms\n12,ms\n",
    "tabs": "Units\ttime\n" + "ms\t12\nms\t13\nms\t12\n",
    "objects": json.dumps([{"time": t, "unit": "ms"} for t in (12, 13, 12)]),
    "a long table": "time,unit\n" + "12,ms\n13,ms\n12,ms\n" * 6_000,
    "long lines": '{"time": 12, "unit": "ms"}\n{"time": 13, "unit": "ms"}\n' * 6_000,
    "one of several": "what,time,unit\n" + "rows,5,points\na,12,ms\na,13,ms\nrows,5,points\n",
}


@pytest.mark.parametrize("text", UNITS.values(), ids=UNITS)
def test_a_column_of_units_says_the_unit(text, told, tmp_path) -> None:
    (tmp_path / "f").write_text(text)
    words = ("analyze", "f", "--column", "time")
    words += ("--where", "what=a") if text.startswith("what") else ()
    for given, unit in (((), "ms"), (("--unit", "higher"), "ms"), (("--unit", "s"), "s")):
        (analysis,) = told(*words, *given)["analyses"]
        assert analysis["metric"]["unit"] == unit


def test_a_unit_of_the_project_and_one_of_the_table_are_not_mixed(cli, told, series) -> None:
    series("pyproject.toml", ['size = "MB"'], "[tool.benchrigor.metrics]")
    series("f.csv", ["3,kB", "4,kB", "5,kB"] * 9, "size,unit")
    series("other.csv", [3, 4, 5] * 9, "size")
    words = ("analyze", "f.csv", "--column", "size")
    assert cli(*words).exit_code == 2
    other = ("analyze", "other.csv", "--column", "size")
    for each, unit in ((words, "kB"), (words, "MB"), (other, "MB")):
        given = ("--unit", unit) if each is words else ()
        assert told(*each, *given)["analyses"][0]["metric"]["unit"] == unit


def test_the_time_for_a_long_table_grows_as_its_rows(tmp_path) -> None:
    path = tmp_path / "f"
    path.write_text("time,unit\n" + "12,ms\n13,ms\n" * 50_000)
    begun_s = time.process_time()
    assert Columns(column="time").read(str(path)).series[0].size == 100_000
    assert time.process_time() - begun_s < 15.0  # 30 s if each row looked at all others
