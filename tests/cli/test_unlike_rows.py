"""Rows of unlike things, text around a table, and files of no known tool."""

import json
import time

import pytest

from benchrigor.cli.sources import read_rounds

TWO = [("sort", 1.0), ("copy", 9.0), ("sort", 1.1), ("copy", 9.1)]


def table(rows, head="name,time\n", mark=","):
    return head.replace(",", mark) + "".join(f"{name}{mark}{time}\n" for name, time in rows)


LIKE = {
    "labels in blocks": table([("warm", 1.0), ("warm", 2.5), ("steady", 3.0)], "phase,time\n"),
    "one label": table([("a", 1.0), ("a", 2.5), ("a", 3.0)]),
    "a label each": table([("a", 1.0), ("b", 2.5), ("c", 3.0)]),
    "a remark now and then": table([("", 1.0), ("gc", 2.5), ("", 3.0)]),
    "numbers beside": table([(1, 1.0), (2, 2.5), (1, 3.0)]),
    "comments": "# a program\n# name,time\nname,time\na,1\n# more, or less, or not\na,2.5\na,3\n",
    "a header that is a comment": "#name,time\na,1\na,2.5\na,3\n",
    "a header of one column below comments": "# c\n# d\ntime\n1\n2.5\n3\n",
    "a header below one comment": "# c\n\ntime\n1\n2.5\n3\n",
    "a header below a comment as wide": "# of host, x\nname,time\na,1\na,2.5\na,3\n",
    "numbers as texts": '[{"time": "1"}, {"time": "2.5"}, {"time": "3e0"}]',
    "rows that begin with an empty cell": table([("", 1.0), ("", 2.5), ("", 3.0)], head=""),
}


@pytest.mark.parametrize("text", LIKE.values(), ids=LIKE)
def test_what_is_one_series_is_read(text, tmp_path) -> None:
    (tmp_path / "f").write_text(text)
    column = "1" if text.startswith(("#n", ",")) else "time"
    (series,) = read_rounds(str(tmp_path / "f"), column).series
    assert series.tolist() == [1.0, 2.5, 3.0]


def test_rows_are_chosen_or_told_apart_as_rounds(cli, tmp_path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(table(TWO * 10))
    asked = cli("analyze", path, "--column", "time")
    assert asked.exit_code == 2
    assert "name=sort" in asked.stderr
    assert cli("compare", path, path, "--column", "time").exit_code == 2
    chosen = cli("analyze", path, "--column", "time", "--where", "name=copy", "--json")
    assert '"n_readings": 20' in chosen.stdout or "20" in chosen.stdout
    assert cli("analyze", path, "--column", "time", "--round", "name").exit_code == 0


ALTERNATING = table([(f"{n},time", t) for n, t in TWO * 5], "label,metric,v\n")
LEFT = {
    "a table": (ALTERNATING, "metric=time", "label=sort"),
    "objects": (
        json.dumps([{"label": n, "metric": "time", "v": t} for n, t in TWO]),
        "metric=time",
        "label=sort",
    ),
    "a long table": (ALTERNATING + ALTERNATING[15:] * 900, "metric=time", "label=sort"),
    "truths in the second column": (
        table([(f"{n},{n == 'sort'}", t) for n, t in TWO * 5], "label,ok,v\n"),
        "",
        "label=sort",
    ),
    "benchmarks in blocks": (
        table([("sort", 1.0)] * 3 + [("copy", 9.0)] * 3, "benchmark,v\n"),
        "",
        "benchmark=sort",
    ),
    "names in blocks of objects": (
        json.dumps([{"Name": n, "v": t} for n, t in TWO[:1] * 3 + TWO[1:] * 3]),
        "",
        "Name=sort",
    ),
    "names in blocks of a long table": (
        table(TWO[:1] * 9_000 + TWO[1:] * 9_000, "name,v\n"),
        "",
        "name=sort",
    ),
}


@pytest.mark.parametrize(("text", "where", "cure"), LEFT.values(), ids=LEFT)
def test_the_rows_that_are_left_are_of_one_thing(text, where, cure, cli, tmp_path) -> None:
    path, chosen = tmp_path / "f", ["--where", where] if where else []
    path.write_text(text)
    for verb, files in (("analyze", [path]), ("changes", [path]), ("compare", [path, path])):
        asked = cli(verb, *files, "--column", "v", *chosen)
        assert (asked.exit_code, f"--where {cure}" in " ".join(asked.stderr.split())) == (2, True)
    assert cli("analyze", path, "--column", "v", *chosen, "--where", cure).exit_code in {0, 4}


def test_rounds_told_apart_by_another_column_are_of_one_thing(cli, tmp_path) -> None:
    (tmp_path / "f").write_text(
        table([(f"{n},{k // 4}", 1 + t) for k, (n, t) in enumerate(TWO * 6)], "label,run,v\n")
    )
    asked = cli("analyze", tmp_path / "f", "--column", "v", "--round", "run")
    assert asked.exit_code == 2
    assert "label=sort" in " ".join(asked.stderr.split())
    assert cli("analyze", tmp_path / "f", "--column", "v", "--round", "label").exit_code == 0


def test_benchmarks_of_a_converted_file_are_chosen(cli, tmp_path) -> None:
    go, out = tmp_path / "two.txt", tmp_path / "o.csv"
    go.write_text(
        "".join(
            f"Benchmark{n} 100 {t + k} ns/op\n"
            for n, t in (("A", 10), ("B", 110))
            for k in range(4)
        )
    )
    assert cli("convert", go, out).exit_code == 0
    asked = cli("analyze", out, "--column", "value", "--where", "metric=time")
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
def test_nobody_is_told_to_measure_a_file_longer_by_an_option(verb, n, cli, tmp_path) -> None:
    for name in ("f.csv", "g.csv"):
        (tmp_path / name).write_text("".join(f"{1 + 0.1 * (k % 7)}\n" for k in range(n)))
    files = ["f.csv", "g.csv"] if verb == "compare" else ["f.csv"]
    done = cli(
        verb, *(tmp_path / each for each in files), *(["x.json"] if verb == "convert" else [])
    )
    assert not {"--budget", "budget_s", "--fresh"} & set((done.stdout + done.stderr).split())
    assert "--budget" not in done.stdout + done.stderr


UNITS = {
    "a table": "time,unit\n" + "12,ms\n13,ms\n12,ms\n",
    "tabs": "Units\ttime\n" + "ms\t12\nms\t13\nms\t12\n",
    "objects": json.dumps([{"time": t, "unit": "ms"} for t in (12, 13, 12)]),
    "an object per line": "".join(f'{{"time": {t}, "unit": "ms"}}\n' for t in (12, 13, 12)),
    "a long table": "time,unit\n" + "12,ms\n13,ms\n12,ms\n" * 6_000,
    "long lines": '{"time": 12, "unit": "ms"}\n{"time": 13, "unit": "ms"}\n' * 6_000,
    "one of several": "what,time,unit\n" + "rows,5,points\na,12,ms\na,13,ms\nrows,5,points\n",
}


@pytest.mark.parametrize("text", UNITS.values(), ids=UNITS)
def test_a_column_of_units_says_the_unit(text, cli, strict, tmp_path) -> None:
    path = tmp_path / "f"
    path.write_text(text)
    words = ("analyze", path, "--column", "time", "--json")
    words += ("--where", "what=a") if text.startswith("what") else ()
    for given, unit in (((), "ms"), (("--unit", "higher"), "ms"), (("--unit", "s"), "s")):
        (analysis,) = strict(cli(*words, *given).stdout)["analyses"]
        assert analysis["metric"]["unit"] == unit


def test_a_unit_of_the_project_and_one_of_the_table_are_not_mixed(cli, tmp_path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.benchrigor.metrics]\nsize = "MB"\n')
    (tmp_path / "f.csv").write_text("size,unit\n" + "3,kB\n4,kB\n5,kB\n" * 9)
    asked = cli("analyze", "f.csv", "--column", "size")
    assert asked.exit_code == 2
    assert "--unit" in asked.stderr
    for unit in ("kB", "MB"):
        assert unit in cli("analyze", "f.csv", "--column", "size", "--unit", unit).stdout
    (tmp_path / "other.csv").write_text("size\n" + "3\n4\n5\n" * 9)
    assert "MB" in cli("analyze", "other.csv", "--column", "size").stdout


@pytest.mark.slow
def test_the_time_for_a_long_table_grows_as_its_rows(tmp_path) -> None:
    path = tmp_path / "f"
    path.write_text("time,unit\n" + "12,ms\n13,ms\n" * 50_000)
    begun_s = time.process_time()
    assert read_rounds(str(path), "time").series[0].size == 100_000
    assert time.process_time() - begun_s < 15.0  # 30 s if each row looked at all others
