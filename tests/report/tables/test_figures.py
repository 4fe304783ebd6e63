"""Markdown and CSV: what is written, and that names are harmless in it."""

import csv
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import benchrigor as br
from benchrigor.control_characters import escaped
from benchrigor.model import Estimate
from benchrigor.report.tables.figures import Figure, Figures, csv_of, markdown_of

PAGE = (Path(__file__).parents[3] / "docs" / "command-line.md").read_text(encoding="utf-8")
HOSTILE = (
    'a|b \\| <script>x</script> "q" `c` *s* _u_ __v__ ~~d~~ [l](http://x) & '
    "\n\r\u2028\u202e\x1b[31m $x$"
)
ESTIMATE = Estimate(
    value=0.00102, low=0.001, high=0.00104, confidence=0.95, n=20, n_effective=20.0, method="means"
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


@pytest.mark.slow
@given(st.one_of(st.just(HOSTILE), st.text(), st.text(alphabet="|\\`*_[]()<>&~!$ab\n")))
def test_names_are_harmless_and_stay_what_they_are(name: str) -> None:
    figures = Figures(rows=(Figure(name=f"x{name}x", file=f"x{name}x", verdict="worse"),))
    header, row = cells_of(markdown_of(figures))
    assert header == ["Name", "File", "Mean", "Verdict"]
    shown = escaped(f"x{name}x")
    assert [" ".join(each.split()) for each in row[:2]] == [" ".join(shown.split())] * 2
    lines = csv_of(figures).split("\n")
    assert len(lines) == 2
    assert next(csv.DictReader(lines))["name"] == shown


def test_columns_that_are_empty_are_left_out_of_markdown_only() -> None:
    figures = Figures(
        rows=(Figure(name="a", estimate=ESTIMATE, unit="s"), Figure(name="b", statistic="p90")),
        notes=("Close <b>them</b>.",),
    )
    text = markdown_of(figures)
    assert text.endswith("&lt;b&gt;them&lt;/b&gt;.")
    assert cells_of(text) == [
        ["Name", "Value", "95% interval"],
        ["a", "1.020 ms", "[1.000, 1.040]"],
        ["b", "no number", ""],
    ]
    first, second = csv.DictReader(csv_of(figures).split("\n"))
    assert (float(first["value"]), first["unit"], first["n"]) == (ESTIMATE.value, "s", "20")
    assert (second["value"], second["ratio"], second["statistic"]) == ("", "", "p90")


def suite(path, factor):
    values = [[factor * (1.0 + index / 100 + k / 1000) for k in range(5)] for index in range(6)]
    rows = [{"name": name, "unit": "ms", "values": row} for name in "ab" for row in values]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")


VERBS = {
    "show": ("show",),
    "pair": ("compare", "old.json", "new.json", "--column", "a"),
    "suite": ("compare", "old.json", "new.json"),
    "rank": ("compare", "old.json", "new.json", "same.json", "--column", "a"),
    "ab": ("ab", "true", "true", "--budget", "1", "--no-store"),
    "commands": ("commands", "true", "true x", "--max-rounds", "4", "--no-store"),
    "baseline": (
        "commands",
        "true",
        "true x",
        "--max-rounds",
        "4",
        "--no-store",
        "--baseline",
        "1",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("words", VERBS.values(), ids=VERBS)
def test_verbs_write_both_beside_or_in_place_of_the_report(cli, tmp_path, store, words) -> None:
    if words == ("show",):
        br.measure(dict, name="a|b", budget_s=0.05, store=store)
    for name, factor in (("old", 1.0), ("new", 1.3), ("same", 1.0)):
        suite(tmp_path / f"{name}.json", factor)
    result = cli(*words, "--markdown", "-", "--csv", "a.csv")
    assert result.exit_code in (0, 3, 4, 7), result.stderr
    header, *rows = cells_of(result.stdout)
    assert header[:2] in (["Name", "Mean"], ["Name", "File"], ["Place", "Name"])
    known = [*csv.DictReader((tmp_path / "a.csv").read_text().splitlines())]
    assert len(known) == len(rows)
    assert [each["name"] for each in known] == [row[header.index("Name")] for row in rows]
    if words[0] == "compare" and "same.json" not in words:
        assert [each["verdict"] for each in known][:2] == ["", "worse"]
        assert float(known[1]["ratio"]) == pytest.approx(1.3)
    beside = cli(*words, "--markdown", "b.md")
    assert not beside.stdout.startswith("|")
    assert (tmp_path / "b.md").read_text().startswith("| ")


def test_the_page_shows_what_is_printed(cli, tmp_path) -> None:
    for name, mean, seed in (("old", 0.01, 1), ("new", 0.0105, 2)):
        values = np.random.default_rng(seed).normal(mean, 0.0005, 1000)
        np.savetxt(tmp_path / f"{name}.csv", values, fmt="%.6f")
    words = "compare old.csv new.csv --unit s --markdown -"
    block = PAGE.split(f"$ benchrigor {words}\n", 1)[1].split("```", 1)[0]
    assert cli(*words.split()).stdout == block
    columns = csv_of(Figures(rows=())).split(",")
    assert ", ".join(f"`{each}`" for each in columns) in " ".join(PAGE.split())


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--markdown", "-", "--csv", "-"), "'-' is standard output"),
        (("--csv", "-", "--json"), "'-' is standard output"),
        (("--csv", "nowhere/a.csv"), "there is no folder"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is_measured(
    cli, store, words, problem
) -> None:
    result = cli("commands", "true", "false", *words)
    assert result.exit_code == 2
    assert problem in result.stderr


def test_a_number_at_full_speed_says_so() -> None:
    paced = replace(ESTIMATE, method="at full speed")
    assert Figure(name="a", estimate=paced, unit="s").shown[0].endswith("full speed")
