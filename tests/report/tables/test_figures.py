"""Markdown and CSV: what is written, and that names are harmless in it."""

import csv
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import benchrigor as br

PAGE = (Path(__file__).parents[3] / "docs" / "command-line.md").read_text(encoding="utf-8")
HOSTILE = (
    'a|b \\| <script>x</script> "q" `c` *s* _u_ __v__ ~~d~~ [l](http://x) & '
    "\n\r\u2028\u202e\x1b[31m $x$"
)
PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def cells_of(markdown: str) -> list[list[str]]:
    """Return what a reader sees of a table: cells that are nothing but text."""
    rows: list[list[str]] = []
    tokens = PARSER.parse(markdown)
    for token, after in pairwise(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("td_open", "th_open"):
            assert {each.type for each in after.children} <= {"text", "text_special"}
            rows[-1].append("".join(each.content for each in after.children))
    assert not any(each.type == "html_block" for each in tokens)
    return rows


def written(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file, each of which is a line."""
    lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    rows = [*csv.DictReader(lines)]
    assert len(rows) == len(lines) - 1
    return rows


def suite(path: Path, factor: float, *names: str) -> None:
    values = [[factor * (1.0 + index / 100 + k / 1000) for k in range(5)] for index in range(6)]
    rows = [{"name": name, "unit": "ms", "values": row} for name in names for row in values]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.just(HOSTILE), st.text(), st.text(alphabet="|\\`*_[]()<>&~!$ab\n")))
def test_names_are_harmless_and_stay_what_they_are(cli, tmp_path, name: str) -> None:
    suite(tmp_path / "old.json", 1.0, f"x{name}x", "y")
    suite(tmp_path / "new.json", 1.3, f"x{name}x", "y")
    shown = cli("compare", "old.json", "new.json", "--markdown", "-", "--csv", "a.csv").stdout
    header, row, *_ = cells_of(shown)
    assert header[:2] == ["Name", "File"]
    told = written(tmp_path / "a.csv")[0]["name"]
    assert row[0].split() == told.split()
    if name.isprintable():
        assert told == f"x{name}x"


COMMANDS = ("commands", "true", "true x", "--max-rounds", "4", "--no-store")
VERBS = {
    "show": ("show",),
    "pair": ("compare", "old.json", "new.json", "--column", "a"),
    "suite": ("compare", "old.json", "new.json"),
    "rank": ("compare", "old.json", "new.json", "same.json", "--column", "a"),
    "ab": ("ab", "true", "true", "--budget", "1", "--no-store"),
    "commands": COMMANDS,
    "baseline": (*COMMANDS, "--baseline", "1"),
}


@pytest.mark.parametrize("words", VERBS.values(), ids=VERBS)
def test_verbs_write_both_beside_or_in_place_of_the_report(cli, tmp_path, store, words) -> None:
    if words == ("show",):
        br.measure(dict, name="a|b", budget_s=0.05, store=store)
    for name, factor in (("old", 1.0), ("new", 1.3), ("same", 1.0)):
        suite(tmp_path / f"{name}.json", factor, "a", "b")
    result = cli(*words, "--markdown", "-", "--csv", "a.csv")
    assert result.exit_code in (0, 3, 4, 7), result.stderr
    header, *rows = cells_of(result.stdout)
    assert header[:2] in (["Name", "Mean"], ["Name", "File"], ["Place", "Name"])
    known = written(tmp_path / "a.csv")
    assert [each["name"] for each in known] == [row[header.index("Name")] for row in rows]
    assert len(known[0]) > len(header)  # columns that are empty are left out of Markdown
    if words[0] == "compare" and "same.json" not in words:
        assert [each["verdict"] for each in known][:2] == ["", "worse"]
        assert float(known[1]["ratio"]) == pytest.approx(1.3)
    beside = cli(*words, "--markdown", "b.md")
    assert not beside.stdout.startswith("|")
    again = cells_of((tmp_path / "b.md").read_text())
    assert again[0][:2] == header[:2]
    if words[0] in ("compare", "show"):  # others measure again
        assert again == [header, *rows]


def test_the_page_shows_what_is_printed(cli, tmp_path) -> None:
    for name, mean, seed in (("old", 0.01, 1), ("new", 0.0105, 2)):
        values = np.random.default_rng(seed).normal(mean, 0.0005, 1000)
        np.savetxt(tmp_path / f"{name}.csv", values, fmt="%.6f")
    words = "compare old.csv new.csv --unit s --markdown -"
    block = PAGE.split(f"$ benchrigor {words}\n", 1)[1].split("```", 1)[0]
    assert cli(*words.split(), "--csv", "a.csv").stdout == block
    columns = written(tmp_path / "a.csv")[0]
    assert ", ".join(f"`{each}`" for each in columns) in " ".join(PAGE.split())
