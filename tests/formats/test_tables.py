"""One reader of tables: what `analyze` reads, all formats that are tables read."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.formats.written_files import DATA

import benchrigor as br
from benchrigor.errors import InvalidInput
from benchrigor.formats.readings import Columns
from benchrigor.model import SegmentProfile
from benchrigor.queues import Recording, RecordingWriter

PROFILE = "# benchrigor segment profile: 1\n# program: ice\nduration_s,nominal:x\n"


def results(path: Path) -> Any:
    """Return the readings of what a tool wrote."""
    return {each.name: each.readings().tolist() for each in br.read_results(path)}


def periods(path: Path) -> Any:
    """Return the periods of a recording."""
    with Recording.open(path) as recording:
        return [(end, part.items.tolist(), part.servers) for end, part in recording.periods()]


def profile(path: Path) -> Any:
    """Return the segments of a profile."""
    found = SegmentProfile.load(path)
    return found.program, found.duration_s.tolist(), found.nominal["x"].tolist()


def column(path: Path) -> Any:
    """Return the readings of a column."""
    return Columns(column="time").read(str(path)).series[0].tolist()


TABLES = {
    "jmeter": ((DATA / "jmeter.csv").read_text(), results),
    "k6": ((DATA / "k6.csv").read_text(), results),
    "vegeta": ((DATA / "vegeta.csv").read_text(), results),
    "a recording": ("# servers: 2\nperiod_s,end,items,blocked\n0.1,a,3,0\n0.1,b c,4,1\n", periods),
    "a profile": (PROFILE + "0.5,a\n0.25,b\n1e-1,a\n", profile),
    "a table": ("n,time\n1,2.5\n2,3.5\n3,1e1\n", column),
}


def parted(text: str, mark: str) -> str:
    """Return a table whose cells another mark separates."""
    comments = [line for line in text.splitlines(keepends=True) if line.startswith("#")]
    written = io.StringIO()
    rows = csv.reader(io.StringIO("".join(text.splitlines(keepends=True)[len(comments) :])))
    csv.writer(written, delimiter=mark, lineterminator="\n").writerows(rows)
    return "".join(comments) + written.getvalue()


def remarked(text: str) -> str:
    """Return a table with a comment, and a row of nothing, before its last row."""
    head, _, last = text.rstrip("\n").rpartition("\n")
    return f"{head}\n# a remark, and more\n , \n{last}\n"


FORMS = {
    "semicolons": lambda text: parted(text, ";").encode(),
    "tabs": lambda text: parted(text, "\t").encode(),
    "UTF-16": lambda text: text.encode("utf-16"),
    "comments between rows": lambda text: remarked(text).encode(),
    "line ends of Windows": lambda text: text.replace("\n", "\r\n").encode("utf-8-sig"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("text", "read"), TABLES.values(), ids=TABLES)
def test_every_table_is_read_in_every_form(text: str, read: Any, form: str, tmp_path: Path) -> None:
    plain, other = tmp_path / "plain", tmp_path / "other"
    plain.write_text(text)
    other.write_bytes(FORMS[form](text))
    assert read(other) == read(plain)


def objects(*values: object) -> str:
    """Return an object per line."""
    return "".join(json.dumps({"time": value, "n": 1}) + "\n" for value in values)


K6 = "metric_name,timestamp,metric_value\n"
SENT = '{"attack": "a", "latency": %s, "timestamp": "", "code": 200, "seq": 1}\n'
BAD = {
    "a table": ("time,n\n1,1\nx,1\n\n# no\n-,1\n2,1\n", column, [3, 6]),
    "an object per line": (objects(1.0, "x", 2, float("inf"), None), column, [2, 4, 5]),
    "numbers too large": ("time\n1e200\n1\n-1e151\n", column, [2, 4]),
    "shares": ("time\n5/4\n3/4\n1/0\n", column, [2, 4]),
    "jmeter": ("elapsed,label,success\n1,a,true\nnan,a,true\n-1,b,true\n", results, [3, 4]),
    "k6": (f"{K6}http_req_duration,1,-1\nown,1,-1\nhttp_req_duration,1,-2\n", results, [2, 4]),
    "k6, no numbers": (f"{K6}vus,1,inf\nvus,1,1\nvus,1,\n", results, [2, 4]),
    "vegeta": ((SENT % 1) + (SENT % -1) + (SENT % '"x"'), results, [2, 3]),
    "JSON lines": (
        '{"name": "a", "unit": "s", "value": NaN}\n{"name": "b", "unit": "s", "value": -1}\n',
        results,
        [1, 2],
    ),
    "a recording": ("period_s,items,blocked\n0.1,x,0\n0.1,1,-1\n0.1,1\n", periods, [4, 2, 3]),
    "times of a recording": ("t_s,items,blocked\n3,1,0\n2,1,0\n1,1,0\n", periods, [3, 4]),
    "a profile": (PROFILE + "-1,a\n1,b\nnan,c\n", profile, [4, 6]),
    "many": ("time\n1\n" + "y\n" * 12, column, [3, 4, 5, 6, 7, None]),
}


@pytest.mark.parametrize(("text", "read", "lines"), BAD.values(), ids=BAD)
def test_all_cells_that_do_not_fit_are_told_with_their_lines(
    text: str, read: Any, lines: list[int | None], tmp_path: Path
) -> None:
    path = tmp_path / "f"
    path.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        read(path)
    told = caught.value.problems
    assert len(told) == len(lines)
    for problem, line in zip(told, lines, strict=True):
        assert (f"line {line} has" if line else "7 more") in problem


def test_cells_far_apart_in_a_long_recording_are_told_together(tmp_path: Path) -> None:
    rows = ["0.1,1,0\n"] * 200_000
    rows[10], rows[150_000] = "0.1,x,0\n", "0.1,1,y\n"
    path = tmp_path / "f"
    path.write_text("period_s,items,blocked\n" + "".join(rows))
    with pytest.raises(InvalidInput) as caught:
        periods(path)
    assert [told.split()[2] for told in caught.value.problems] == ["12", "150002"]


def test_missing_cells_are_the_same_in_csv_and_json_and_columns_are_those_of_any_object(
    tmp_path: Path,
) -> None:
    rows = [{"n": 1}, {"n": 2, "time": 1.0}, {"n": 3, "time": None}, {"time": 2.0}]
    texts = [
        "".join(f"{json.dumps(row)}\n" for row in rows),
        json.dumps(rows),
        *(f"n,time\n1,{missing}\n2,1.0\n3,{missing}\n4,2\n" for missing in ("null", "NaN", "N/A")),
        objects(float("nan"), 1.0, float("nan"), 2),
    ]
    for text in texts:
        (tmp_path / "f").write_text(text)
        found = Columns(column="time", skips_missing=True).read(str(tmp_path / "f"))
        assert found.series[0].tolist() == [1.0, 2.0]
        with pytest.raises(InvalidInput) as caught:
            column(tmp_path / "f")
        assert len(caught.value.problems) == 2
        assert all("--missing skip" in problem for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("# servers: 2\n# servers: 4\nperiod_s,items,blocked\n0.1,1,0\n", periods),
        ("# program: a\n" + PROFILE + "1,a\n", profile),
    ],
)
def test_a_comment_that_comes_again_is_refused_by_name(
    text: str, read: Any, tmp_path: Path
) -> None:
    (tmp_path / "f").write_text(text)
    with pytest.raises(InvalidInput, match=r"(servers|program)' again.*line 1"):
        read(tmp_path / "f")


@pytest.mark.parametrize("name", ["vegeta.json", "vegeta.csv"])
def test_the_columns_of_vegeta_have_one_name_in_csv_and_json(name: str) -> None:
    chosen = Columns(column="latency", where=(("code", "200"), ("method", "GET")))
    found = chosen.read(str(DATA / name)).series[0]
    assert (found.size, found[:2].tolist()) == (49, [2546760.0, 2405130.0])


@pytest.mark.parametrize("n", [3, 9_000])  # few, and as many as are read at once
@pytest.mark.parametrize(
    ("name", "unit"), [("time (ms)", "ms"), ("rate [req/s]", "req/s"), ("time (mean)", "")]
)
def test_a_unit_in_the_name_of_a_column_is_that_of_its_readings(
    name: str, unit: str, n: int, tmp_path: Path
) -> None:
    (tmp_path / "f").write_text(f"n,{name}\n" + "".join(f"{k},{1 + k % 7}.5\n" for k in range(n)))
    found = Columns(column=name).read(str(tmp_path / "f"))
    assert (found.unit, found.series[0].size) == (unit, n)


def test_an_end_that_is_named_like_a_comment_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "f"
    columns = ("end", "period_s", "items", "blocked")
    with RecordingWriter.create(path, columns=columns, counters="delta") as rows:
        rows.add("#1", 0.1, 5, 0)
    assert periods(path) == [("#1", [5.0], 1)]
