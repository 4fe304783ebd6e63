"""Rows of unlike things, text around a table, and files of no known tool."""

import json
import time

import pytest
from tests.texts.causes.cli_files import TWO, table

from benchrigor.formats.readings import Columns

CSV = "who,t\na,1\nb,100\na,N/A\na,2\na,3\n"
PER_LINE = "".join(
    f'{{"who": "{who}", "t": {t}}}\n'
    for who, t in [("a", 1), ("b", 9), ("a", "null"), ("a", 2), ("a", 3)]
)


@pytest.mark.parametrize("text", [CSV, PER_LINE])
def test_rows_are_selected_and_missing_ones_left_out_when_asked(cli, told, tmp_path, text) -> None:
    (tmp_path / "f").write_text(text)
    words = ("analyze", "f", "--column", "t")
    (found,) = told(*words, "--where", "who=a", "--missing", "skip")["analyses"]
    assert found["n"] == 3
    for where in ("x=1", "who=z", "who"):
        assert cli(*words, "--where", where).exit_code == 2


LIKE = {
    "labels in blocks": table([("warm", 1.0), ("warm", 2.5), ("steady", 3.0)], "phase,time\n"),
    "a remark now and then": table([("", 1.0), ("gc", 2.5), ("", 3.0)]),
    "comments": "# a program\n# name,time\nname,time\na,1\n# more, or less, or not\na,2.5\na,3\n",
    "a header that is a comment": "#name,time\na,1\na,2.5\na,3\n",
    "a header below one comment": "# c\n\ntime\n1\n2.5\n3\n",
    "a header below a comment as wide": "# of host, x\nname,time\na,1\na,2.5\na,3\n",
    "numbers as texts": '[{"time": "1"}, {"time": "2.5"}, {"time": "3e0"}]',
    "rows that begin with an empty cell": table([("", 1.0), ("", 2.5), ("", 3.0)], head=""),
}


@pytest.mark.parametrize("text", LIKE.values(), ids=LIKE)
def test_what_is_one_series_is_read(text, tmp_path) -> None:
    (tmp_path / "f").write_text(text)
    column = "1" if text.startswith(("#n", ",")) else "time"
    (series,) = Columns(column=column).read(str(tmp_path / "f")).series
    assert series.tolist() == [1.0, 2.5, 3.0]


@pytest.mark.parametrize("names", [("parse", "parse_fast"), ("a", "b"), ("sort", "sort rev")])
def test_a_large_file_of_two_things_is_refused_as_a_small_one_is(names, cli, tmp_path) -> None:
    """What comes first may be a part of what comes later, or of the header."""
    lines = (
        f"{name},{10.0 - 5.0 * k}{n % 7}\n" for k, name in enumerate(names) for n in range(5_000)
    )
    (tmp_path / "f.csv").write_text("name,time\n" + "".join(lines))
    assert cli("analyze", "f.csv", "--column", "time").exit_code == 2


def test_rows_are_chosen_or_told_apart_as_rounds(cli, told, tmp_path) -> None:
    (tmp_path / "f.csv").write_text(table(TWO * 10))
    words = ("analyze", "f.csv", "--column", "time")
    assert cli(*words).exit_code == 2
    assert cli("compare", "f.csv", *words[1:]).exit_code == 2
    assert told(*words, "--where", "name=copy")["analyses"][0]["n"] == 20
    assert cli(*words, "--round", "name").exit_code == 0


ALTERNATING = table([(f"{n},time", t) for n, t in TWO * 5], "label,metric,v\n")
LEFT = {
    "a table": (ALTERNATING, "metric=time", "label=sort"),
    "objects": (
        json.dumps([{"label": n, "metric": "time", "v": t} for n, t in TWO]),
        "metric=time",
        "label=sort",
    ),
    "a long table": (ALTERNATING + ALTERNATING[15:] * 900, "metric=time", "label=sort"),
    "benchmarks in blocks": (
        table([("sort", 1.0)] * 3 + [("copy", 9.0)] * 3, "benchmark,v\n"),
        "",
        "benchmark=sort",
    ),
    "names in blocks of a long table": (
        table(TWO[:1] * 9_000 + TWO[1:] * 9_000, "name,v\n"),
        "",
        "name=sort",
    ),
}


@pytest.mark.parametrize(("text", "where", "cure"), LEFT.values(), ids=LEFT)
def test_the_rows_that_are_left_are_of_one_thing(text, where, cure, cli, tmp_path) -> None:
    (tmp_path / "f").write_text(text)
    chosen = ("--column", "v", *(("--where", where) if where else ()))
    for words in (("analyze", "f"), ("changes", "f"), ("compare", "f", "f")):
        asked = cli(*words, *chosen)
        assert (asked.exit_code, f"--where {cure}" in " ".join(asked.stderr.split())) == (2, True)
    assert cli("analyze", "f", *chosen, "--where", cure).exit_code in {0, 4}


def test_rounds_told_apart_by_another_column_are_of_one_thing(cli, tmp_path) -> None:
    (tmp_path / "f").write_text(
        table([(f"{n},{k // 4}", 1 + t) for k, (n, t) in enumerate(TWO * 6)], "label,run,v\n")
    )
    assert cli("analyze", "f", "--column", "v", "--round", "run").exit_code == 2
    assert cli("analyze", "f", "--column", "v", "--round", "label").exit_code == 0


def test_benchmarks_of_a_converted_file_are_chosen(cli, tmp_path) -> None:
    line = "Benchmark{} 100 {} ns/op\n".format
    text = "".join(line(name, t + k) for name, t in (("A", 10), ("B", 110)) for k in range(4))
    (tmp_path / "two.txt").write_text(text)
    assert cli("convert", "two.txt", "o.csv").exit_code == 0
    asked = cli("analyze", "o.csv", "--column", "value", "--where", "metric=time")
    assert asked.exit_code == 2
    assert "benchmark=BenchmarkA" in " ".join(asked.stderr.split())


@pytest.mark.parametrize("above", ["Benchmark of today\n", "Starting, at noon, here\nready\n"])
def test_text_above_a_table_is_named_with_the_option_that_leaves_it_out(above, cli, tmp_path):
    path = tmp_path / "f.csv"
    path.write_text(f"{above}n,time\n1,2.5\n2,2.6\n3,2.4\n")
    lines = str(above.count("\n"))
    assert f"--ignore-lines {lines}" in " ".join(cli("analyze", path).stderr.split())
    assert cli("analyze", path, "--column", "time", "--ignore-lines", lines).exit_code in {0, 4}


@pytest.mark.parametrize("verb", ["analyze", "explain", "plan", "compare", "changes", "convert"])
@pytest.mark.parametrize("n", [1, 3, 9, 60])
def test_nobody_is_told_to_measure_a_file_longer_by_an_option(verb, n, cli, series) -> None:
    for name in ("f.csv", "g.csv"):
        series(name, [1 + 0.1 * (k % 7) for k in range(n)])
    more = {"compare": ["g.csv"], "convert": ["x.json"]}.get(verb, [])
    done = cli(verb, "f.csv", *more)
    assert not [word for word in ("--budget", "budget_s", "--fresh") if word in done.output]


UNITS = {
    "a table": "time,unit\n" + "12,ms\n13,ms\n12,ms\n",
    "tabs": "Units\ttime\n" + "ms\t12\nms\t13\nms\t12\n",
    "objects": json.dumps([{"time": t, "unit": "ms"} for t in (12, 13, 12)]),
    "a long table": "time,unit\n" + "12,ms\n13,ms\n12,ms\n" * 6_000,
    "long lines": '{"time": 12, "unit": "ms"}\n{"time": 13, "unit": "ms"}\n' * 6_000,
    "one of several": "what,time,unit\n" + "rows,5,points\na,12,ms\na,13,ms\nrows,5,points\n",
}


@pytest.mark.parametrize("text", UNITS.values(), ids=UNITS)
def test_a_column_of_units_says_the_unit(text, told, tmp_path) -> None:
    (tmp_path / "f").write_text(text)
    words = ("analyze", "f", "--column", "time")
    words += ("--where", "what=a") if text.startswith("what") else ()
    for given, unit in (((), "ms"), (("--unit", "higher"), "ms"), (("--unit", "s"), "s")):
        (analysis,) = told(*words, *given)["analyses"]
        assert analysis["metric"]["unit"] == unit


def test_a_unit_of_the_project_and_one_of_the_table_are_not_mixed(cli, told, series) -> None:
    series("pyproject.toml", ['size = "MB"'], "[tool.benchrigor.metrics]")
    series("f.csv", ["3,kB", "4,kB", "5,kB"] * 9, "size,unit")
    series("other.csv", [3, 4, 5] * 9, "size")
    words = ("analyze", "f.csv", "--column", "size")
    assert cli(*words).exit_code == 2
    other = ("analyze", "other.csv", "--column", "size")
    for each, unit in ((words, "kB"), (words, "MB"), (other, "MB")):
        given = ("--unit", unit) if each is words else ()
        assert told(*each, *given)["analyses"][0]["metric"]["unit"] == unit


def test_the_time_for_a_long_table_grows_as_its_rows(tmp_path) -> None:
    path = tmp_path / "f"
    path.write_text("time,unit\n" + "12,ms\n13,ms\n" * 50_000)
    begun_s = time.process_time()
    assert Columns(column="time").read(str(path)).series[0].size == 100_000
    assert time.process_time() - begun_s < 15.0  # 30 s if each row looked at all others
