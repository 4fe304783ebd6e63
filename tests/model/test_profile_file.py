"""The file of a segment profile is plain CSV that any program can write."""

from pathlib import Path

import pytest

import benchrigor as br
from benchrigor.model import SegmentProfile
from benchrigor.stats import profile_interference

TITLE = "# benchrigor segment profile: 1\n"


def loaded(tmp_path: Path, text: str | bytes) -> SegmentProfile:
    path = tmp_path / "run.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return SegmentProfile.load(path)


def test_the_file_reads_as_documented(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    SegmentProfile(
        duration_s=[0.5, 0.25],
        computation={"cpu_s": [0.4, 0.2]},
        nominal={"label": ["solve", "write, sync"], "messages": [3, 4]},
        delays={"run queue": [0.0, 0.01]},
        evidence={"page faults": [1.0, 0.0]},
        program="a\nb",
        run="r7",
        process=1,
        processes=2,
        facts={"bins": 256, "pinned": True, "nothing": None, "run": "not this"},
    ).save(path)
    assert path.read_text() == (
        "# benchrigor segment profile: 1\n"
        "# program: a b\n"
        "# run: r7\n"
        "# process: 1\n"
        "# processes: 2\n"
        "# bins: 256\n"
        "# pinned: True\n"
        "duration_s,computation:cpu_s,nominal:label,nominal:messages,delay:run queue,"
        "evidence:page faults\n"
        "0.5,0.4,solve,3,0.0,1.0\n"
        '0.25,0.2,"write, sync",4,0.01,0.0\n'
    )


def test_what_fortran_and_windows_write_is_read(tmp_path: Path) -> None:
    profile = loaded(
        tmp_path,
        "\ufeff# benchrigor segment profile: 1\r\n#program :  ice  \r\n# dt: 1.0E-03\r\n"
        "nominal:step , computation: flops, duration_s\r\n"
        " init      ,  0.1000000000E+03 ,    1.5000000000E+00\r\n"
        "\r\n"
        " 12        ,  0.2000000000E+03 ,    2.5000000000E+00\r\n",
    )
    assert profile.duration_s.tolist() == [1.5, 2.5]
    assert profile.computation["flops"].tolist() == [100.0, 200.0]
    assert profile.nominal["step"].tolist() == ["init", "12"]
    assert (profile.program, profile.processes) == ("ice", 1)
    assert profile.facts == {"dt": 0.001}


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        pytest.param(["7", "-12"], [7, -12], id="whole"),
        pytest.param(["7.0", "0.5"], [7.0, 0.5], id="floats"),
        pytest.param(["7", "007"], ["7", "007"], id="zeros"),
        pytest.param(["7", "7.0"], ["7", "7.0"], id="mixed"),
        pytest.param(["nan", "inf"], ["nan", "inf"], id="not-finite"),
        pytest.param(["1_0", "10"], ["1_0", "10"], id="underscore"),
        pytest.param(["9" * 25, "9" * 24 + "8"], ["9" * 25, "9" * 24 + "8"], id="huge"),
        pytest.param(["", "x"], ["", "x"], id="empty"),
    ],
)
def test_only_labels_written_alike_are_alike(
    tmp_path: Path, texts: list[str], values: list[object]
) -> None:
    rows = "".join(f"1.0,{text}\n" for text in texts)
    assert loaded(tmp_path, f"{TITLE}duration_s,nominal:x\n{rows}").nominal["x"].tolist() == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "no segment profile, expected '# benchrigor", id="empty"),
        pytest.param(b"\xff\xfe\x00", "no text in UTF-8: 'utf-8' codec", id="binary"),
        pytest.param("a,b\n1,2\n", "no segment profile, expected", id="other-csv"),
        pytest.param(TITLE.replace("1", "2"), "version 2, expected 1", id="version"),
        pytest.param(TITLE, "no column duration_s", id="no-header"),
        pytest.param(TITLE + "duration_s\n", "has no segments", id="no-rows"),
        pytest.param(TITLE + "nominal:x\n1\n", "no column duration_s", id="no-duration"),
        pytest.param(TITLE + "duration_s,x\n1,2\n", "column 'x', expected one of", id="kind"),
        pytest.param(TITLE + "duration_s,delay:\n1,2\n", "column 'delay:', expected", id="unnamed"),
        pytest.param(
            TITLE + "duration_s,delay:x,delay: x\n1,2,3\n", "several columns 'delay:x'", id="twice"
        ),
        pytest.param(
            TITLE + "# run: a\nduration_s,nominal:x\n1,a\n\n2\n",
            "line 6: 1 value, expected 2 as in the header",
            id="cut-short",
        ),
        pytest.param(
            TITLE + 'duration_s,nominal:x\n1,"a,b"\nfast,c\n',
            "line 4, column duration_s: 'fast', expected a finite number",
            id="no-number",
        ),
        pytest.param(
            TITLE + "duration_s\nnan\n",
            "line 3, column duration_s: 'nan', expected a finite",
            id="nan",
        ),
        pytest.param(
            TITLE + "duration_s\n1\n1_000\n",
            "line 4, column duration_s: '1_000', expected a finite",
            id="underscore",
        ),
        pytest.param(
            TITLE + 'duration_s,nominal:x\n1,a\n2,"b\n3,c\n',
            """line 4 is no CSV: '2,"b', a quote that its line does not close""",
            id="quote",
        ),
        pytest.param(
            TITLE + "duration_s\n" + "1\n" * 70_000 + "x\n",
            "line 70003, column duration_s: 'x', expected",
            id="far",
        ),
        pytest.param(
            TITLE + "duration_s,nominal:x\n" + "1,2\n" * 70_000 + "1\n",
            "line 70003: 1 value, expected 2",
            id="short-and-far",
        ),
        pytest.param(
            TITLE + "duration_s\n1\n-2\n", r"run.csv: duration_s\[1\] is -2.0", id="negative"
        ),
        pytest.param(
            TITLE + "# process: one\nduration_s\n1\n", "process is 'one', expected", id="process"
        ),
        pytest.param(
            TITLE + "# process: 3\nduration_s\n1\n", "process is 3 of 1 processes", id="processes"
        ),
        pytest.param(
            TITLE + 'duration_s\n"' + "1" * 200_000, "is no CSV: field larger", id="field"
        ),
    ],
)
def test_a_file_that_is_none_says_what_and_where(
    tmp_path: Path, text: str | bytes, message: str
) -> None:
    with pytest.raises(br.InvalidInput, match=message) as caught:
        loaded(tmp_path, text)
    assert "run.csv" in str(caught.value)


@pytest.mark.parametrize("last", ["7", "07"], ids=["numbers", "texts"])
def test_labels_are_judged_by_all_of_a_long_column(tmp_path: Path, last: str) -> None:
    rows = [str(each % 7) for each in range(20_000)] + [last]
    text = TITLE + "duration_s,nominal:x\n" + "".join(f"0.5,{each}\n" for each in rows)
    found = loaded(tmp_path, text).nominal["x"].tolist()
    assert found == (rows if last == "07" else [int(each) for each in rows])


def test_a_fact_with_underscores_is_no_number(tmp_path: Path) -> None:
    profile = loaded(tmp_path, f"{TITLE}# build: 2024_01\nduration_s\n1\n")
    assert profile.facts == {"build": "2024_01"}


def test_a_profile_that_a_c_program_wrote_is_estimated_like_any_other() -> None:
    # Rank 1 of 2 of tests/e2e/mpi_program.c under examples/mpi_segments.c: 360 steps, in each
    # tenth of which it slept; 5.423 s in all, by its own clock.
    profile = SegmentProfile.load(Path(__file__).parent / "data" / "mpi_rank_1.csv")
    assert (profile.n, profile.program, profile.process, profile.processes) == (
        361,
        "mpi_program",
        1,
        2,
    )
    assert profile.facts == {"recorder": "mpi_segments.c"}
    assert [*profile.computation] == ["cpu_s"]
    assert [*profile.delays] == ["run queue"]
    assert profile.nominal["label"].tolist() == ["Allreduce"] * 360 + ["Finalize"]
    assert profile.nominal["collectives_1_n"].tolist() == [0, 0, 1] * 120 + [0]
    found = profile_interference(profile)
    injected = 100.0 * 5.423 / float(profile.duration_s.sum())
    assert found.percent == pytest.approx(injected, abs=2.0)
    assert sorted(round(group.n, -1) for group in found.groups) == [120, 240]
