"""Commented CSV: what is read fast is what is read line by line, and misfits are named."""

from __future__ import annotations

import csv
from io import StringIO
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.errors import InvalidInput
from benchrigor.model import commented_csv
from benchrigor.model.commented_csv import CommentedCsv, Labels, Numbers, one_line, write_head


def read(text: str, **kinds: Numbers | Labels) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {name: [] for name in kinds}
    for part in CommentedCsv(StringIO(text), name="run.csv").parts(kinds):
        for name, kind in kinds.items():
            values = part.columns[name].tolist()
            columns[name] += (
                [kind.distinct[i] for i in values] if isinstance(kind, Labels) else values
            )
    return columns


def test_comments_and_header_come_first_in_any_order_of_blanks() -> None:
    table = CommentedCsv(
        ['\ufeff# size : 5" disk\n', "\n", "#no value\n", ' a ,"b, c"\n', "1,x\n"], name="run.csv"
    )
    assert table.comments == {"size": '5" disk', "no value": ""}
    assert table.place_of("no value") == "run.csv, line 3"
    assert (table.header, table.line) == (("a", "b, c"), 4)


def test_without_a_header_there_is_none() -> None:
    assert CommentedCsv(["# a: 1\n"], name="run.csv").header == ()


@pytest.mark.parametrize("blank", ["", "\n", "   \n", "\r\n"])
def test_blank_lines_do_not_count(blank: str) -> None:
    found = read(f"a,b\n1,x\n{blank}2,y\n", a=Numbers(), b=Labels())
    assert found == {"a": [1.0, 2.0], "b": ["x", "y"]}


def test_whole_numbers_keep_all_digits_and_may_have_fractions() -> None:
    assert read("a\n1763788800123456789\n", a=Numbers(whole=True))["a"] == [1763788800123456789]
    assert read("a\n0.5\n2\n", a=Numbers(whole=True))["a"] == [0.5, 2.0]


@given(
    st.lists(
        st.tuples(
            st.floats(-1e300, 1e300),
            st.text(st.characters(codec="utf-8", exclude_characters="\0\n")),
        ),
        min_size=1,
        max_size=20,
    ),
    st.integers(1, 5),
)
def test_rows_come_back_in_whatever_parts_they_are_read(
    rows: list[tuple[float, str]], size: int
) -> None:
    file = StringIO()
    write_head(file, {"unit": "s"}, ["number", "label"])
    csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC).writerows(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commented_csv, "LINES_AT_ONCE", size)
        found = read(file.getvalue(), number=Numbers(), label=Labels())
    assert found["number"] == [number for number, _ in rows]
    assert found["label"] == [label.strip() for _, label in rows]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3\n", "line 3: 1 value, expected 2 as in the header"),
        ("a,b\n\n1,2,3\n", "line 3: 3 values, expected 2"),
        ("a,b\n1,x\n", "line 2, column b: 'x', expected a number from 0 to 9"),
        ("a,b\n1,2\n1,-1\n", "line 3, column b: '-1', expected a number from 0 to 9"),
        ("a,b\n1,nan\n", "line 2, column b: 'nan', expected a number from 0 to 9"),
        ("a,b\ninf,1\n", "line 2, column a: 'inf', expected a finite number"),
        ('a,b\n1,1\n"2,1\n', "line 3 is no CSV: '\"2,1', a quote that its line does not close"),
        ('a,b\n1,"2\n3"\n', "line 2 is no CSV: '1,\"2', a quote that its line does not close"),
        ('a,"b\nc"\n1,2\n', "line 1 is no CSV: 'a,\"b', a quote that its line does not close"),
        ('a,b\n1,"2"3\n', "line 2 is no CSV: ',' expected after"),
    ],
)
def test_what_does_not_fit_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(text, a=Numbers(), b=Numbers(least=0, most=9))
    assert str(caught.value).startswith("run.csv")
    assert message in str(caught.value)


def test_a_number_may_be_missing_where_that_is_known() -> None:
    assert np.isnan(read("a\nnan\n", a=Numbers(may_miss=True))["a"]).all()


def test_a_last_line_that_is_not_finished_counts_unless_lines_are_whole() -> None:
    lines = ["a\n", "1\n", "2"]
    for whole_lines, expected in ((False, [1.0, 2.0]), (True, [1.0])):
        table = CommentedCsv(lines, name="run.csv", whole_lines=whole_lines)
        (part,) = table.parts({"a": Numbers()})
        assert part.columns["a"].tolist() == expected
        assert table.unfinished == 3


def test_a_last_line_that_ends_within_a_number_is_refused() -> None:
    with pytest.raises(
        InvalidInput, match=r"run.csv line 3 is unfinished: '6,2\.' ends in a point"
    ):
        read("a,b\n1.5,2.5\n6,2.", a=Numbers(), b=Numbers())
    assert read("a,b\n1.5,2.\n", a=Numbers(), b=Numbers())["b"] == [2.0]
    assert read("a,b\n1.5,end.", a=Numbers(), b=Labels())["b"] == ["end."]


def test_a_text_is_kept_to_one_line() -> None:
    assert one_line("a\nb\r\nc\x85d") == "a b c d"
