"""Pages are laid out at any width, with colours or without."""

import re
import subprocess
import sys

import pytest

from benchrigor.layout import Title, page, row, table, wrapped

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
def test_no_line_is_wider_no_word_is_lost_and_colours_change_no_letter(width: int) -> None:
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

    coloured = REPORT.at(width, coloured=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == REPORT.at(width)
    assert "\x1b" not in REPORT + REPORT.at(width)


@pytest.mark.parametrize("length", [1, 9, 10, 11, 20, 38, 39, 40, 77, 78, 100])
def test_a_label_of_any_length_is_apart_from_its_text(length: int) -> None:
    label = "latency_ms" * 10
    text = page(row(label[:length], ["53.4 ms [53.1, 53.7] 95%", "word " * 20]))
    assert all(len(line) <= 79 for line in text.splitlines())
    words = text.split()
    assert "".join(words[: words.index("53.4")]) == label[:length]
    assert words[words.index("53.4") :][:5] == ["53.4", "ms", "[53.1,", "53.7]", "95%;"]


HOSTILE = [Title("\x1b[31m"), *row("[bold]a", ["b\nc"]), *table([("n\x07", "[/]")], "<<")]
SHOWN: list[tuple[list, int, str]] = [
    (HOSTILE, 79, "\\x1b[31m\n────────\n  [bold]a   b\\nc\nn\\x07  [/]"),
    (
        table([*ROWS[:2], ("a" * 30, "12%", "b")], "<><"),
        36,
        f"stage    used  note\nhash[0]    7%\n{'a' * 30}\n          12%  b",
    ),
    (
        table([("name", "mean", "n"), ("json", "4.2 ms [4.1, 4.3]", "1,000")], "<<>"),
        28,
        "json\n  mean  4.2 ms [4.1, 4.3]\n  n     1,000",
    ),
    (row("label", ["", ""]), 79, ""),
    (row("label", ["words", "", "more"]), 79, "  label     words; more"),
    (row("", ["word " * 11]), 60, f"{' ' * 12}{'word ' * 8}word\n{' ' * 12}word word"),
    (wrapped("a " * 12, hanging=2), 20, "a a a a a a a a a\n  a a a"),
    (wrapped("width is ±3.1 %"), 13, "width is\n±3.1 %"),
]


@pytest.mark.parametrize(("parts", "width", "shown"), SHOWN)
def test_parts_of_pages_are_laid_out(parts: list, width: int, shown: str) -> None:
    assert page(parts).at(width) == shown


def test_pages_keep_their_parts_inside_others() -> None:
    inner = page(table([("n", "x"), ("a", "b c d e")], "<<"))
    outer = page(["above", inner])
    assert outer.parts == ("above", *inner.parts)
    assert outer == f"above\n{inner}"


@pytest.mark.parametrize("code", ["import benchrigor", "from benchrigor.cli import main"])
def test_rich_is_not_loaded_before_something_is_shown(code: str) -> None:
    check = f"import sys; {code}; assert 'rich' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)
