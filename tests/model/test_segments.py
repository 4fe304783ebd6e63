"""A segment profile checks its columns, and comes back from its file as it was."""

import io
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import benchrigor as br
from benchrigor.model import SegmentProfile, codec, profile_file

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


def through_a_file(profile: SegmentProfile) -> SegmentProfile:
    file = io.StringIO()
    columns = {each.name: getattr(profile, each.name) for each in fields(profile)}
    profile_file.write(columns, file)
    file.seek(0)
    return SegmentProfile(**profile_file.read(file, name="run.csv"))


@pytest.mark.slow
@settings(max_examples=40)
@given(profile=profiles())
def test_what_was_written_is_read(profile: SegmentProfile) -> None:
    assert codec.encode(through_a_file(profile)) == codec.encode(profile)


@settings(max_examples=40)
@given(labels=st.lists(TEXTS, min_size=2, max_size=6))
def test_labels_are_equal_in_the_file_where_they_are_in_memory(labels: list[str]) -> None:
    profile = SegmentProfile(duration_s=[1.0] * len(labels), nominal={"label": labels})
    found = through_a_file(profile).nominal["label"].tolist()
    assert [a == b for a in found for b in found] == [a == b for a in labels for b in labels]


def test_a_profile_is_saved_whole_and_alone(tmp_path: Path) -> None:
    profile = SegmentProfile(duration_s=[0.1, 0.2], nominal={"label": ["a\rb", "c"]})
    profile.save(tmp_path / "run.csv")
    loaded = SegmentProfile.load(tmp_path / "run.csv")
    assert loaded.duration_s.tolist() == [0.1, 0.2]
    assert loaded.nominal["label"].tolist() == ["a b", "c"]
    assert [each.name for each in tmp_path.iterdir()] == ["run.csv"]


def test_delays_add_up_to_no_more_than_the_segment_lasted() -> None:
    profile = SegmentProfile(
        duration_s=[1.0, 1.0, 1.0],
        delays={"run queue": [0.1, 0.7, 0.0], "steal": [0.2, 0.7, 0.0]},
    )
    assert profile.delay_s == pytest.approx([0.3, 1.0, 0.0])


def test_columns_are_read_only_copies() -> None:
    mine = np.array([1, 2])
    profile = SegmentProfile(duration_s=[1.0, 2.0], computation={"work": mine}, nominal={"n": mine})
    mine[0] = 7
    assert profile.computation["work"].tolist() == profile.nominal["n"].tolist() == [1, 2]
    for column in (profile.duration_s, profile.computation["work"], profile.nominal["n"]):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 5


def test_truth_values_are_numbers_and_come_back(tmp_path: Path) -> None:
    profile = SegmentProfile(duration_s=[1.0, 2.0], nominal={"saved": [True, False]})
    profile.save(tmp_path / "run.csv")
    assert codec.encode(SegmentProfile.load(tmp_path / "run.csv")) == codec.encode(profile)
    assert profile.nominal["saved"].tolist() == [1, 0]


def test_all_columns_that_do_not_fit_are_named_at_once() -> None:
    with pytest.raises(br.InvalidInput) as caught:
        SegmentProfile(
            duration_s=[1.0, -2.0],
            computation={"work": [1.0]},
            delays={"steal": [0.0, -1.0]},
            evidence={"faults": [0.0, np.nan]},
            nominal={"label": "ab", "tags": [["a"], ["b"]], "x": [1.0, np.inf], "y": ["a"]},
            process=2,
            processes=2,
        )
    expected = [
        r"duration_s\[1\] is -2.0",
        r"computation\['work'\] has 1 items, expected 2",
        r"delays\['steal'\]\[1\] is -1.0",
        r"evidence\['faults'\]\[1\] is nan",
        r"nominal\['label'\] is 'ab'",
        r"nominal\['tags'\] has shape \(2, 1\)",
        r"nominal\['x'\]\[1\] is inf",
        r"nominal\['y'\] has 1 items, expected 2",
        r"process is 2 of 2 processes, expected 0 to 1",
    ]
    assert len(caught.value.problems) == len(expected)
    for problem, pattern in zip(caught.value.problems, expected, strict=True):
        assert re.search(pattern, problem), problem


def test_no_segments_are_no_profile() -> None:
    with pytest.raises(br.InvalidInput, match="duration_s is empty"):
        SegmentProfile(duration_s=[])


def test_a_profile_with_text_that_is_not_utf_8_is_written_with_that_escaped(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    SegmentProfile(duration_s=[1.0]).save(path)
    SegmentProfile(duration_s=[2.0], nominal={"label": ["\ud800"]}).save(path)
    assert SegmentProfile.load(path).nominal["label"].tolist() == ["\\ud800"]
    assert [each.name for each in tmp_path.iterdir()] == ["run.csv"]
