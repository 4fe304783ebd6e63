"""A recording is plain CSV that any program can write."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import benchrigor as br
from benchrigor.model import commented_csv
from benchrigor.queues.periods import Periods
from benchrigor.queues.recording.recordings import Recording, RecordingWriter

HEADER = "period_s,items,blocked_s\n"


def read(text: str) -> dict[str, list[Periods]]:
    """Return the parts of each end."""
    found: dict[str, list[Periods]] = {}
    for end, periods in Recording(StringIO(text), name="run.csv").periods():
        found.setdefault(end, []).append(periods)
    return found


def only(text: str) -> Periods:
    ((periods,),) = read(text).values()
    return periods


def saved(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "run.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_rows_hold_what_their_period_brought() -> None:
    found = only(HEADER + "0.1,40,0.02\n0.2,41,0\n")
    assert found.period_s.tolist() == [0.1, 0.2]
    assert found.items.tolist() == [40.0, 41.0]
    assert found.blocked_s.tolist() == [0.02, 0.0]
    assert found.blocked.tolist() == [True, False]
    assert np.isnan([found.bytes, found.cpu_s, found.delay_s]).all()
    assert found.servers == 1


def test_columns_come_in_any_order_and_unit() -> None:
    found = only(
        "# servers: 2\ndelay_ns, blocked_ns,item_bytes,items ,cpu_s,period_ns\n"
        "1000000, 3e7,512,10,0.04,1e8\n"
    )
    assert found.period_s == pytest.approx([0.1])
    assert found.blocked_s == pytest.approx([0.03])
    assert found.bytes == pytest.approx([5120.0])
    assert found.cpu_s == pytest.approx([0.04])
    assert found.delay_s == pytest.approx([0.001])
    assert found.servers == 2


def test_cumulative_counters_are_subtracted_and_the_first_row_is_the_baseline() -> None:
    found = only(
        "# counters: cumulative\nt_ns,items,blocked_ns,bytes\n"
        "1000,100,0,7\n100001000,140,20000000,47\n200001000,180,20000000,87\n"
    )
    assert found.period_s.tolist() == [0.1, 0.1]
    assert found.items.tolist() == [40.0, 40.0]
    assert found.blocked_s.tolist() == [0.02, 0.0]
    assert found.bytes.tolist() == [40.0, 40.0]


def test_with_times_the_first_row_is_where_the_first_period_begins() -> None:
    found = only("t_s,items,blocked\n5.0,99,1\n5.1,40,0\n5.3,41,3\n")
    assert found.period_s == pytest.approx([0.1, 0.2])
    assert found.items.tolist() == [40.0, 41.0]
    assert found.blocked.tolist() == [False, True]
    assert found.blocked_s.tolist() == [0.0, 0.0]


def test_nanoseconds_since_1970_lose_no_digit() -> None:
    start = 1_763_788_800_123_456_789
    rows = "".join(f"{start + 1001 * number},1,0\n" for number in range(3))
    found = only("t_ns,items,blocked\n" + rows)
    assert np.rint(found.period_s * 1e9).tolist() == [1001.0, 1001.0]


def test_nanoseconds_may_have_fractions() -> None:
    found = only("t_ns,items,blocked\n0.5,1,0\n10.75,1,0\n")
    assert found.period_s == pytest.approx([10.25e-9])


def test_each_end_has_its_own_rows() -> None:
    found = read(
        "# counters: cumulative\nt_s,end,items,blocked,servers\n"
        '0.0,parse,0,0,1\n0.0,"a, b",5,0,2\n0.1,parse,3,0,1\n0.2,"a, b",9,0,2\n'
    )
    assert list(found) == ["parse", "a, b"]
    ((parse,), (other,)) = found.values()
    assert (parse.items.tolist(), parse.servers) == ([3.0], 1)
    assert (other.items.tolist(), other.servers) == ([4.0], 2)
    assert other.period_s == pytest.approx([0.2])


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9), st.integers(0, 99)), min_size=1),
    st.integers(1, 7),
)
def test_it_does_not_matter_in_which_parts_a_file_is_read(
    rows: list[tuple[str, int, int]], size: int
) -> None:
    time = dict.fromkeys("abc", 0)
    items = dict.fromkeys("abc", 0)
    text = "# counters: cumulative\nt_s,end,items,blocked\n"
    text += "".join(f"0,{end},0,0\n" for end in "abc")
    for end, width, gained in rows:
        time[end] += width
        items[end] += gained
        text += f"{time[end]},{end},{items[end]},0\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commented_csv, "LINES_AT_ONCE", size)
        parts = read(text)
    for end, found in parts.items():
        told = [(width, gained) for name, width, gained in rows if name == end]
        assert np.concatenate([each.period_s for each in found]).tolist() == [w for w, _ in told]
        assert np.concatenate([each.items for each in found]).tolist() == [n for _, n in told]


def test_windows_lines_a_byte_order_mark_and_blank_lines_are_read(tmp_path: Path) -> None:
    path = saved(
        tmp_path,
        "\ufeff# unit : requests \r\n# a word without meaning\r\n\r\nperiod_s,items,blocked\r\n"
        "0.1,40,0\r\n\r\n   \r\n0.1,41,1\r\n",
    )
    with Recording.open(path) as recording:
        ((_, found),) = recording.periods()
        assert recording.head.unit == "requests"
        assert recording.unfinished is None
    assert found.items.tolist() == [40.0, 41.0]


def test_a_byte_order_mark_on_a_pipe_is_read() -> None:
    recording = Recording(["\ufeff" + HEADER, "0.1,40,0\n"], name="standard input")
    assert recording.head.columns == ("period_s", "items", "blocked_s")


@pytest.mark.parametrize("torn", ["0.1,4", "0.1,41,0", "0.", "0.1,41,\x00", "0.1"])
def test_a_last_line_that_was_not_finished_does_not_count_and_is_named(torn: str) -> None:
    recording = Recording([HEADER, "0.1,40,0\n", "0.1,39,0\n", torn], name="run.csv")
    ((_, found),) = recording.periods()
    assert found.items.tolist() == [40.0, 39.0]
    assert recording.unfinished == 4


def test_blocked_time_may_exceed_the_period_by_what_a_recorder_reads_late() -> None:
    found = only(HEADER + "0.1,1,0.10005\n")
    assert found.blocked_s.tolist() == [0.1]


def test_an_idle_period_is_not_busy_for_what_its_digits_leave() -> None:
    found = only(HEADER + "0.1000004,0,0.1\n0.1000004,1,0.1\n")
    assert found.blocked_s.tolist() == [0.1000004, 0.1]


def test_processor_times_that_are_not_known_stay_so() -> None:
    found = only("# counters: cumulative\nt_s,items,blocked,cpu_s\n0,0,0,nan\n1,1,0,1\n2,2,0,1.5\n")
    np.testing.assert_array_equal(found.cpu_s, [np.nan, 0.5])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "run.csv has no header, expected one such as t_ns,items", id="empty"),
        pytest.param("# counters: delta\n", "run.csv has no header, expected", id="comments"),
        pytest.param("0.1,40,0\n", "line 1: '0.1,40,0' names no column that is", id="no-header"),
        pytest.param("a;b\n1;2\n", "line 1: 'a;b' names no column that is known", id="semicolons"),
        pytest.param(HEADER, "run.csv has no rows, expected one for each period", id="no-rows"),
        pytest.param(HEADER + "\n\n", "run.csv has no rows, expected one", id="blank-rows"),
        pytest.param(
            "t_s,items,blocked\n1,1,0\n", "has one row, expected two at least", id="one-row"
        ),
        pytest.param(
            "# one\nperiod_s,items,blocked,size\n",
            "line 2: column 'size', expected one of t_ns, ",
            id="unknown-column",
        ),
        pytest.param(
            "period_s,items,items,blocked\n", "columns items and items, expected", id="twice"
        ),
        pytest.param(
            "t_s,period_s,items,blocked\n", "columns t_s and period_s, expected one", id="times"
        ),
        pytest.param(
            "t_s,items,blocked,blocked_s\n", "columns blocked and blocked_s, exp", id="blocked"
        ),
        pytest.param(
            "items,blocked\n", "no column t_ns or t_s or period_ns or period_s, ", id="time"
        ),
        pytest.param("t_s,blocked\n", "line 1: no column items, expected one", id="items"),
        pytest.param(
            "t_s,items\n",
            "no column blocked or blocked_ns or blocked_s, expected one, with 0",
            id="no-blocked",
        ),
        pytest.param(
            "# benchrigor queue recording: 2\n" + HEADER,
            "line 1: benchrigor queue recording '2', exp",
            id="new",
        ),
        pytest.param(
            "# counters: sums\n" + HEADER, "line 1: counters 'sums', expected delta or", id="sums"
        ),
        pytest.param("# servers: 0\n" + HEADER, "line 1: servers '0', expected a", id="no-servers"),
        pytest.param("#\n# servers: 1.5\n" + HEADER, "line 2: servers '1.5', expected", id="half"),
        pytest.param("# period_s: x\n" + HEADER, "line 1: period_s 'x', expected sec", id="wanted"),
        pytest.param(
            HEADER + "0.1,40,0\n0.1,many,0\n",
            "line 3, column items: 'many', expected a number",
            id="text",
        ),
        pytest.param(HEADER + "0.1,,0\n", "line 2, column items: '', expected a num", id="nothing"),
        pytest.param(HEADER + "0.1,1_000,0\n", "column items: '1_000', expected a", id="under"),
        pytest.param(
            HEADER + "\n0.1,-1,0\n",
            "line 3, column items: '-1', expected a number from 0 to 1e+100",
            id="negative",
        ),
        pytest.param(HEADER + "0.1,nan,0\n", "line 2, column items: 'nan', expected", id="nan"),
        pytest.param(HEADER + "0.1,1,inf\n", "column blocked_s: 'inf', expected a num", id="inf"),
        pytest.param(HEADER + "0.1,1e400,0\n", "column items: '1e400', expected", id="too-large"),
        pytest.param(
            HEADER + "0.1,1e300,0\n",
            "column items: '1e300', expected a number from 0 to 1e+100",
            id="beyond-the-limit",
        ),
        pytest.param(
            "t_s,items,blocked\n-1e300,1,0\n",
            "column t_s: '-1e300', expected a number from -1e+100 to 1e+100",
            id="time-beyond-the-limit",
        ),
        pytest.param(
            "# period_s: 1e300\n" + HEADER,
            "line 1: period_s '1e300', expected seconds above 0, below 1e+09",
            id="wanted-beyond-the-limit",
        ),
        pytest.param(HEADER + "0.1,1\n", "line 2: 2 values, expected 3 as in the", id="short"),
        pytest.param(HEADER + "1\n0.1,1,0\n", "line 2: 1 value, expected 3 as in", id="shorter"),
        pytest.param(HEADER + "0.1,1,0,0\n", "line 2: 4 values, expected 3 as in", id="long"),
        pytest.param(HEADER + "0.1,1,0\n" + HEADER, "line 3, column period_s: 'per", id="joined"),
        pytest.param(HEADER + "0,1,0\n", "column period_s: '0', expected more than 0", id="zero"),
        pytest.param(
            HEADER + "0.1,1,0.05\n0.1,1,0.2\n",
            "line 3, column blocked_s: '0.2', expected no longer than the period, 0.1 s; where ",
            id="blocked-longer",
        ),
        pytest.param(
            "# servers: 2\n" + HEADER + "0.1,1,0.3\n",
            "'0.3', expected no longer than the period of 2 servers, 0.2 s",
            id="servers-blocked-longer",
        ),
        pytest.param(
            "t_ns,items,blocked\n1,1,0\n5,1,0\n\n5,1,0\n",
            "line 5, column t_ns: '5', expected a later time than in the row before",
            id="time-stands",
        ),
        pytest.param(
            "# counters: cumulative\nt_s,items,blocked\n1,1,0\n2,9,0\n3,8,0\n",
            "line 5, column items: '8', expected at least as much as in the row before",
            id="back",
        ),
        pytest.param(
            "t_s,items,blocked\n" + "".join(f"{n},{3 * n},{n}\n" for n in range(20)),
            "line 21, column items: '57', expected less than before now and then: these look like",
            id="undeclared",
        ),
        pytest.param(
            "period_s,end,items,blocked\n1,a,1,0\n1, ,1,0\n",
            "line 3, column end: '', expected a name",
            id="nameless",
        ),
        pytest.param(
            "period_s,servers,items,blocked\n1,2,1,0\n1,3,1,0\n",
            "line 3, column servers: '3', expected 2 as before",
            id="servers-change",
        ),
        pytest.param(
            "period_s,servers,items,blocked\n1,0,1,0\n",
            "column servers: '0', expected 1 or",
            id="nobody",
        ),
        pytest.param(
            "period_s,end,items,blocked\n" + "".join(f"1,{n},1,0\n" for n in range(1001)),
            "has more than 1000 ends, expected fewer",
            id="ends",
        ),
        pytest.param(
            HEADER + "0.1,\uff11,0\n", "line 2, column items: '\uff11', expected a", id="script"
        ),
    ],
)
def test_what_cannot_be_worked_with_says_what_and_where(text: str, message: str) -> None:
    with pytest.raises(br.InvalidInput) as caught:
        read(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith("run.csv")


def test_a_line_far_down_is_named_with_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commented_csv, "LINES_AT_ONCE", 10)
    rows = [f"0.1,{40 + number % 2},0\n" for number in range(57)]
    with pytest.raises(br.InvalidInput, match="line 59, column items: 'x', expected a number"):
        read("".join([HEADER, *rows, "0.1,x,0\n"]))
    with pytest.raises(br.InvalidInput, match="line 60, column items: '-3', expected"):
        read("".join([HEADER, *rows, "\n0.1,-3,0\n"]))


def test_all_that_is_wrong_with_a_header_is_said_at_once() -> None:
    with pytest.raises(br.InvalidInput) as caught:
        read("t_s,t_ns,items,item_bytes,bytes\n")
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x89PNG\r\n\x1a\n\xff\xfe", "run.csv is no text in UTF-8"),
        (HEADER.encode() + b"0.1,1,0\n" * 9 + b"\xff\xfe\n", "run.csv is no text in UTF-8"),
        (HEADER.encode("utf-16"), "run.csv is no text in UTF-8"),
        (bytes(100), "names no column that is known"),
    ],
    ids=["picture", "far-down", "utf-16", "zeros"],
)
def test_a_file_that_is_no_text_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    with (
        pytest.raises(br.InvalidInput, match=message),
        Recording.open(saved(tmp_path, content)) as recording,
    ):
        list(recording.periods())


def test_a_folder_and_a_file_that_is_not_there_are_named(tmp_path: Path) -> None:
    with (
        pytest.raises(br.InvalidInput, match="cannot be read: Is a direc"),
        Recording.open(tmp_path),
    ):
        pass
    with (
        pytest.raises(br.InvalidInput, match="cannot be read: No such"),
        Recording.open(tmp_path / "none.csv"),
    ):
        pass


def test_counters_that_only_rise_are_read_where_they_are_declared() -> None:
    rows = "".join(f"{number},{3 * number},{number}\n" for number in range(30))
    assert only("# counters: delta\nt_s,items,blocked\n" + rows).items[-1] == 87.0
    assert only("# counters: cumulative\nt_s,items,blocked\n" + rows).items[-1] == 3.0


def test_a_steady_stage_is_not_taken_for_a_counter() -> None:
    assert only(HEADER + "0.1,40,0\n" * 30 + "0.1,41,0\n").n == 31


def test_what_is_written_reads_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    columns = ("t_ns", "end", "items", "blocked", "cpu_s")
    about = {"unit": "lines\nof text", "servers": 2, "period_s": 0.05, "program": None}
    with RecordingWriter.create(path, columns=columns, counters="delta", facts=about) as rows:
        rows.add(0, "a, \nb", 0, False, None)
        rows.add(10**18, "a, \nb", 12, np.True_, np.float64(0.1))
    assert path.read_text().splitlines() == [
        "# benchrigor queue recording: 1",
        "# counters: delta",
        "# unit: lines of text",
        "# servers: 2",
        "# period_s: 0.05",
        "t_ns,end,items,blocked,cpu_s",
        '0,"a,  b",0,0,nan',
        '1000000000000000000,"a,  b",12,1,0.1',
    ]
    with Recording.open(path) as recording:
        ((end, found),) = recording.periods()
        assert (recording.head.period_s, recording.head.unit) == (0.05, "lines of text")
    assert (end, found.period_s.tolist(), found.items.tolist()) == ("a,  b", [1e9], [12.0])
    assert found.cpu_s.tolist() == [0.1]
    assert found.servers == 2


@pytest.mark.slow
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
    assert sum(part.n for parts in found.values() for part in parts) == len(rows)


@pytest.mark.slow
def test_a_writer_that_is_killed_loses_no_row(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    code = (
        "import os, sys\n"
        "from benchrigor.queues.recording.recordings import RecordingWriter\n"
        "columns = ('period_s', 'items', 'blocked')\n"
        "rows = RecordingWriter.create(sys.argv[1], columns=columns, counters='delta')\n"
        "for number in range(100):\n"
        "    rows.add(0.1, number % 7, number % 2)\n"
        "os._exit(9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == 9
    with Recording.open(path) as recording:
        ((_, found),) = recording.periods()
    assert found.n == 100


def test_a_file_is_not_opened_for_columns_that_nobody_could_read(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    with pytest.raises(br.InvalidInput, match="columns: no column items"):
        RecordingWriter.create(path, columns=("t_ns", "blocked"), counters="delta")
    with pytest.raises(br.InvalidInput, match="counters is 'all', expected delta or cumulative"):
        RecordingWriter.create(path, columns=("t_ns", "items", "blocked"), counters="all")
    assert not path.exists()


def test_a_row_of_another_length_is_refused(tmp_path: Path) -> None:
    columns = ("t_ns", "items", "blocked")
    with (
        RecordingWriter.create(tmp_path / "run.csv", columns=columns, counters="delta") as rows,
        pytest.raises(br.InvalidInput, match="row has 2 values, expected 3 as columns has"),
    ):
        rows.add(1, 2)
