"""A segment profile, and its file: plain CSV that any program can write."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrigor.model import SegmentProfile
from benchrigor.stats import profile_interference

NUMBERS = st.floats(-1e150, 1e150, allow_nan=False)
TIMES = st.floats(0.0, 1e9)
NAMES = st.text("abcµ:,\"#' 1-", min_size=1).map(str.strip).filter(bool)
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"])).map(str.strip)
WORDS = TEXTS.filter(lambda text: not re.match(r"[-+.\d]|inf|nan", text, re.IGNORECASE))


def profiles() -> st.SearchStrategy[SegmentProfile]:
    def of(n: int) -> st.SearchStrategy[SegmentProfile]:
        def columns(*items: st.SearchStrategy) -> st.SearchStrategy:
            column = st.one_of(*(st.lists(item, min_size=n, max_size=n) for item in items))
            return st.dictionaries(NAMES, column, max_size=3)

        whole = st.integers(-(2**63), 2**63 - 1)
        return st.builds(
            SegmentProfile,
            duration_s=st.lists(TIMES, min_size=n, max_size=n),
            computation=columns(NUMBERS),
            nominal=columns(whole, NUMBERS, WORDS),
            delays=columns(TIMES),
            evidence=columns(NUMBERS),
            program=NAMES,
            run=NAMES,
            process=st.integers(0, 6),
            processes=st.just(7),
            facts=st.fixed_dictionaries({"cost_s": TIMES, "bins": whole, "pinned": st.booleans()}),
        )

    return st.integers(1, 5).flatmap(of)


def columns_of(profile: SegmentProfile) -> dict[str, object]:
    """Return all that a profile holds, arrays as lists."""
    shown = {name: getattr(profile, name) for name in profile.__dataclass_fields__}
    columns = {
        name: {key: each.tolist() for key, each in part.items()}
        for name, part in shown.items()
        if name in {"computation", "nominal", "delays", "evidence"}
    }
    return {**shown, **columns, "duration_s": profile.duration_s.tolist()}


@pytest.fixture(scope="module")
def through_a_file(tmp_path_factory) -> Callable[[SegmentProfile], SegmentProfile]:
    """Save a profile and load it."""
    path = tmp_path_factory.mktemp("profiles") / "run.csv"

    def load(profile: SegmentProfile) -> SegmentProfile:
        profile.save(path)
        return SegmentProfile.load(path)

    return load


@settings(max_examples=40)
@given(profile=profiles())
def test_what_was_written_is_read(through_a_file, profile: SegmentProfile) -> None:
    assert columns_of(through_a_file(profile)) == columns_of(profile)


@settings(max_examples=40)
@given(labels=st.lists(TEXTS, min_size=2, max_size=6))
def test_labels_are_equal_in_the_file_where_they_are_in_memory(
    through_a_file, labels: list[str]
) -> None:
    profile = SegmentProfile(duration_s=[1.0] * len(labels), nominal={"label": labels})
    found = through_a_file(profile).nominal["label"].tolist()
    assert [a == b for a in found for b in found] == [a == b for a in labels for b in labels]


def test_a_profile_with_text_that_is_not_utf_8_is_written_with_that_escaped(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    SegmentProfile(duration_s=[1.0]).save(path)
    SegmentProfile(duration_s=[2.0], nominal={"label": ["\ud800"]}).save(path)
    assert SegmentProfile.load(path).nominal["label"].tolist() == ["\\ud800"]
    assert [each.name for each in tmp_path.iterdir()] == ["run.csv"]


TITLE = "# benchrigor segment profile: 1\n"


def loaded(tmp_path: Path, text: str) -> SegmentProfile:
    path = tmp_path / "run.csv"
    path.write_text(text)
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
    written = (
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
    assert path.read_text() == written


def test_what_fortran_and_windows_write_is_read(tmp_path: Path) -> None:
    profile = loaded(
        tmp_path,
        "\ufeff# benchrigor segment profile: 1\r\n#program :  ice  \r\n# dt: 1.0E-03\r\n"
        "nominal:step , computation: flops, duration_s\r\n"
        " init      ,  0.1000000000E+03 ,    1.5000000000E+00\r\n"
        "\r\n"
        " 12        ,  0.2000000000E+03 ,    2.5000000000E+00\r\n 13, 3.",
    )
    assert profile.duration_s.tolist() == [1.5, 2.5]
    assert profile.computation["flops"].tolist() == [100.0, 200.0]
    assert profile.nominal["step"].tolist() == ["init", "12"]
    assert (profile.program, profile.processes) == ("ice", 1)
    assert profile.facts == {"dt": 0.001}
    assert loaded(tmp_path, f"{TITLE}# build: 2024_01\nduration_s\n1\n").facts == {
        "build": "2024_01"  # no number
    }


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


@pytest.mark.parametrize("last", ["7", "07"], ids=["numbers", "texts"])
def test_labels_are_judged_by_all_of_a_long_column(tmp_path: Path, last: str) -> None:
    rows = [str(each % 7) for each in range(20_000)] + [last]
    text = TITLE + "duration_s,nominal:x\n" + "".join(f"0.5,{each}\n" for each in rows)
    found = loaded(tmp_path, text).nominal["x"].tolist()
    assert found == (rows if last == "07" else [int(each) for each in rows])


def test_a_profile_that_a_c_program_wrote_is_estimated_like_any_other() -> None:
    # Rank 1 of 2 of tests/e2e/mpi_program.c under examples/mpi_segments.c: 360 steps, in each
    # tenth of which it slept; 5.423 s in all, by its own clock.
    profile = SegmentProfile.load(Path(__file__).parent / "data" / "mpi_rank_1.csv")
    whose = (profile.n, profile.program, profile.process, profile.processes)
    assert whose == (361, "mpi_program", 1, 2)
    assert profile.facts == {"recorder": "mpi_segments.c"}
    assert [*profile.computation, *profile.delays] == ["cpu_s", "run queue"]
    assert profile.nominal["label"].tolist() == ["Allreduce"] * 360 + ["Finalize"]
    assert profile.nominal["collectives_1_n"].tolist() == [0, 0, 1] * 120 + [0]
    found = profile_interference(profile)
    injected = 100.0 * 5.423 / float(profile.duration_s.sum())
    assert found.percent == pytest.approx(injected, abs=2.0)
    assert sorted(round(group.n, -1) for group in found.groups) == [120, 240]
