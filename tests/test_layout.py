"""Pages are laid out at any width, with colours or without."""

import re
import subprocess
import sys

import pytest

from benchrigor.layout import WIDTH, Line, Title, page, row, table, wrapped

WIDTHS = [120, 80, 40, 20]
ROWS = [
    ("stage", "used", "note"),
    ("hash[0]", "7%", ""),
    ("a very long name of a stage that nobody can pronounce", "12%", "busy all of the time"),
]
REPORT = page(
    [
        Title("json[red].dumps"),
        *row("mean", ["53.4 ms ±3.1 % [53.1, 53.7]", "word " * 20]),
        *row("a label of more than a third of a line", ["text"]),
        *wrapped("a sentence that hangs " * 9, hanging=2),
        *wrapped("a warning " * 9, "  ! ", style="yellow"),
        "",
        *table(ROWS, "<><", indent=2),
    ]
)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_terminal_and_no_word_is_lost(width: int) -> None:
    lines = REPORT.at(width).splitlines()
    assert max(map(len, lines)) <= width
    assert not any(line != line.rstrip() for line in lines)
    letters = re.sub(r"[\s─]", "", "".join(lines))
    for text in (
        "json[red].dumps",
        "word" * 20,
        "awarning" * 9,
        *(cell for each in ROWS for cell in each),
    ):
        assert text.replace(" ", "") in letters


@pytest.mark.parametrize("width", WIDTHS)
def test_colours_change_no_letter(width: int) -> None:
    coloured = REPORT.at(width, coloured=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == REPORT.at(width)
    assert "\x1b" not in REPORT + REPORT.at(width)


def test_control_characters_and_markup_are_text() -> None:
    shown = page([Title("\x1b[31m"), *row("[bold]a", ["b\nc"]), *table([("n\x07", "[/]")], "<<")])
    assert shown == "\\x1b[31m\n────────\n  [bold]a   b\\nc\nn\\x07  [/]"


@pytest.mark.parametrize("length", [1, 9, 10, 11, 20, 38, 39, 40, 77, 78, 100])
def test_a_label_of_any_length_is_apart_from_its_text(length: int) -> None:
    label = "latency_ms" * 10
    text = page(row(label[:length], ["53.4 ms [53.1, 53.7] 95%", "word " * 20]))
    assert all(len(line) <= WIDTH for line in text.splitlines())
    words = text.split()
    assert "".join(words[: words.index("53.4")]) == label[:length]
    assert words[words.index("53.4") :][:5] == ["53.4", "ms", "[53.1,", "53.7]", "95%;"]


def test_columns_are_aligned_and_a_long_name_stands_on_lines_of_its_own() -> None:
    rows = [
        ("stage", "used", "note"),
        ("hash", "7%", ""),
        ("a name of thirty letters or so", "12%", "busy"),
    ]
    shown = page(table(rows, "<><"))
    assert shown.splitlines() == [
        "stage                           used  note",
        "hash                              7%",
        "a name of thirty letters or so   12%  busy",
    ]
    assert shown.at(34).splitlines() == [
        "stage  used  note",
        "hash     7%",
        "a name of thirty letters or so",
        "        12%  busy",
    ]


def test_a_table_without_room_becomes_a_list() -> None:
    rows = [("name", "mean", "readings"), ("json", "4.2 ms [4.1, 4.3]", "1,000")]
    assert page(table(rows, "<<>")).at(28).splitlines() == [
        "json",
        "  mean      4.2 ms [4.1,",
        "            4.3]",
        "  readings  1,000",
    ]


def test_rows_and_lines_are_broken_below_their_text() -> None:
    assert row("label", ["", ""]) == []
    assert page(row("label", ["words", "", "more"])) == "  label     words; more"
    assert page(row("", ["word " * 20])).splitlines()[1].startswith(" " * 12 + "word")
    assert page(wrapped("a " * 60, hanging=2)).splitlines()[1].startswith("  a")
    assert page([Line("the half-width is ±3.1 %")]).at(23).splitlines() == [
        "the half-width is",
        "±3.1 %",
    ]


def test_pages_keep_their_parts_inside_others() -> None:
    inner = page(table([("n", "x"), ("a", "b c d e")], "<<"))
    outer = page(["above", inner])
    assert outer.parts == ("above", *inner.parts)
    assert outer == f"above\n{inner}"


@pytest.mark.parametrize("code", ["import benchrigor", "from benchrigor.cli import main"])
def test_rich_is_not_loaded_before_something_is_shown(code: str) -> None:
    check = f"import sys; {code}; assert 'rich' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)
