"""A recording is plain CSV that any program can write."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.errors import InvalidInput
from benchrigor.queues import Recording, RecordingWriter

HEADER = "period_s,items,blocked_s\n"
CUMULATIVE, DELTA = "# counters: cumulative\n", "# counters: delta\n"
START = 1_763_788_800_123_456_789
RISING = "t_s,items,blocked\n" + "".join(f"{n},{3 * n},{n}\n" for n in range(30))


def read(text: str) -> dict[str, list[Any]]:
    """Return the parts of each end."""
    found: dict[str, list[Any]] = {}
    for end, periods in Recording(StringIO(text), name="run.csv").periods():
        found.setdefault(end, []).append(periods)
    return found


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (
            HEADER + "0.1,40,0.02\n0.2,41,0\n",
            {
                "period_s": [0.1, 0.2],
                "items": [40, 41],
                "blocked_s": [0.02, 0],
                **dict.fromkeys(("bytes", "cpu_s", "delay_s"), [np.nan] * 2),
            },
        ),
        (
            "# servers: 2\ndelay_ns, blocked_ns,item_bytes,items ,cpu_s,period_ns\n"
            "1000000, 3e7,512,10,0.04,1e8\n",
            {
                "period_s": [0.1],
                "blocked_s": [0.03],
                "bytes": [5120],
                "cpu_s": [0.04],
                "delay_s": [0.001],
            },
        ),
        (
            CUMULATIVE + "t_ns,items,blocked_ns,bytes\n"
            "1000,100,0,7\n100001000,140,20000000,47\n200001000,180,20000000,87\n",
            {"period_s": [0.1] * 2, "items": [40] * 2, "blocked_s": [0.02, 0], "bytes": [40] * 2},
        ),
        (
            't_ns,end,items,blocked\n"1700000000000001000",p,5,0\n1700000000000002001,p,5,0\n',
            {"period_s": [1001e-9]},
        ),
        # The first row is where the first period begins.
        (
            "t_s,items,blocked\n5.0,99,1\n5.1,40,0\n5.3,41,3\n",
            {"period_s": [0.1, 0.2], "items": [40, 41], "blocked_s": [0.0, np.nan]},
        ),
        (  # nanoseconds since 1970 lose no digit
            "t_ns,items,blocked\n" + "".join(f"{START + 1001 * n},1,0\n" for n in range(3)),
            {"period_s": [1001e-9] * 2},
        ),
        ("t_ns,items,blocked\n0.5,1,0\n10.75,1,0\n", {"period_s": [10.25e-9]}),
        # What a recorder reads late, and what its digits leave.
        (HEADER + "0.1,1,0.10005\n", {"blocked_s": [0.1]}),
        (HEADER + "0.1000004,0,0.1\n0.1000004,1,0.1\n", {"blocked_s": [0.1000004, 0.1]}),
        (
            CUMULATIVE + "t_s,items,blocked,cpu_s\n0,0,0,nan\n1,1,0,1\n2,2,0,1.5\n",
            {"cpu_s": [np.nan, 0.5]},
        ),
        (DELTA + RISING, {"items": [3.0 * n for n in range(1, 30)]}),
        (CUMULATIVE + RISING, {"items": [3.0] * 29}),
        (HEADER + "0.1,40,0\n" * 30 + "0.1,41,0\n", {"items": [40] * 30 + [41]}),
    ],
)
def test_rows_hold_what_their_period_brought(text: str, columns: dict[str, list[Any]]) -> None:
    ((found,),) = read(text).values()
    assert {*found.servers.tolist()} == {1 + text.startswith("# servers: 2")}
    for name, column in columns.items():
        assert getattr(found, name).tolist() == pytest.approx(column, rel=1e-9, nan_ok=True)


def test_each_end_has_its_own_rows() -> None:
    found = read(
        CUMULATIVE + "t_s,end,items,blocked,servers\n"
        '0,parse,5,0,1\n0," a, b ",5,0,2\n0.1,parse,8,0,1\n0.2,"a, b",9,0,2\n'
    )
    assert [
        (end, each.items.tolist(), each.servers.tolist(), each.period_s.tolist())
        for end, (each,) in found.items()
    ] == [("parse", [3.0], [1], [0.1]), ("a, b", [4.0], [2], [0.2])]


def test_a_long_file_is_read_in_parts_and_its_last_line_is_named_with_its_number() -> None:
    counts = np.random.default_rng(1).integers(0, 9, 70_000)
    rows = [
        f"{number},{end},{total}\n"
        for number, total in enumerate(np.cumsum(counts).tolist())
        for end in "ab"
    ]
    text = CUMULATIVE + "t_s,end,items,blocked\n" + "".join(f"{row[:-1]},0\n" for row in rows)
    for parts in read(text).values():
        assert len(parts) > 1
        assert np.concatenate([each.items for each in parts]).tolist() == counts[1:].tolist()
    for wrong, line in (("70000,a,x,0\n", 140_003), ("\n70000,a,-3,0\n", 140_004)):
        with pytest.raises(InvalidInput, match=f"line {line} has"):
            read(text + wrong)


def test_windows_lines_a_byte_order_mark_and_blank_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_bytes(
        "\ufeff# unit : requests \r\n# a word without meaning\r\n\r\nperiod_s,items,blocked\r\n"
        "0.1,40,0\r\n\r\n   \r\n0.1,41,1\r\n".encode()
    )
    with Recording.open(path) as recording:
        ((_, found),) = recording.periods()
        assert (recording.head.unit, recording.unfinished) == ("requests", None)
    assert found.items.tolist() == [40.0, 41.0]
    piped = Recording(["\ufeff" + HEADER, "0.1,40,0\n"], name="standard input")
    assert piped.head.columns == ("period_s", "items", "blocked_s")


@pytest.mark.parametrize("torn", ["0.1,4", "0.1,41,0", "0.", "0.1,41,\x00", "0.1"])
def test_a_last_line_that_was_not_finished_does_not_count_and_is_named(torn: str) -> None:
    recording = Recording([HEADER, "0.1,40,0\n", "0.1,39,0\n", torn], name="run.csv")
    (found,) = [periods.items.tolist() for _, periods in recording.periods()]
    assert (found, recording.unfinished and recording.unfinished.number) == ([40.0, 39.0], 4)


def test_what_is_written_reads_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    columns = ("t_ns", "end", "items", "blocked", "cpu_s")
    about = {"unit": "lines\nof", "servers": 2, "period_s": 0.05, "program": None}
    with RecordingWriter.create(path, columns=columns, counters="delta", facts=about) as rows:
        rows.add(0, "a, \nb", 0, False, None)
        rows.add(10**18, "a, \nb", 12, np.True_, np.float64(0.1))
    facts = dict(each[2:].split(": ") for each in path.read_text().splitlines()[:5])
    assert [*facts.values()] == ["1", "delta", "lines of", "2", "0.05"]
    assert path.read_text().splitlines()[5:] == [
        "t_ns,end,items,blocked,cpu_s",
        '0,"a,  b",0,0,nan',
        '1000000000000000000,"a,  b",12,1,0.1',
    ]
    with Recording.open(path) as recording:
        ((end, found),) = recording.periods()
        assert (recording.head.period_s, recording.head.unit) == (0.05, "lines of")
    assert (end, found.period_s.tolist(), found.items.tolist()) == ("a,  b", [1e9], [12.0])
    assert (found.cpu_s.tolist(), found.servers.tolist()) == ([0.1], [2])


@given(
    st.lists(
        st.tuples(
            st.integers(1, 2**40),
            st.integers(0, 2**40),
            st.floats(0.0, 1.0),
            st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zs"]), min_size=1),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_every_number_and_name_comes_back(rows: list[tuple[int, int, float, str]]) -> None:
    file = StringIO()
    columns = ("period_ns", "items", "cpu_s", "end", "blocked")
    writer = RecordingWriter(file, columns=columns, counters="delta")
    for row in rows:
        writer.add(*row, 0)
    found = read(file.getvalue())
    for end, parts in found.items():
        told = [row for row in rows if " ".join(row[3].splitlines()).strip() == end]
        assert [n for part in parts for n in part.items.tolist()] == [row[1] for row in told]
        assert parts[0].cpu_s.tolist() == [row[2] for row in told]
    assert sum(part.size for parts in found.values() for part in parts) == len(rows)


KILLED = """
import os, sys
from benchrigor.queues import RecordingWriter
columns = ("period_s", "items", "blocked")
rows = RecordingWriter.create(sys.argv[1], columns=columns, counters="delta")
for number in range(100):
    rows.add(0.1, number % 7, number % 2)
os._exit(9)
"""


def test_a_writer_that_is_killed_loses_no_row(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    assert subprocess.run([sys.executable, "-c", KILLED, path], check=False).returncode == 9
    with Recording.open(path) as recording:
        ((_, found),) = recording.periods()
    assert found.size == 100


def test_a_file_is_not_opened_for_columns_that_nobody_could_read(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    for columns, counters in ((("t_ns",), "delta"), (("t_ns", "items", "blocked"), "all")):
        with pytest.raises(InvalidInput):
            RecordingWriter.create(path, columns=columns, counters=counters)
    assert not path.exists()
