"""compare: files of several benchmarks, matched by name."""

import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "formats" / "data"
PAGE = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")


def write_suite(path: Path, seed: int, **means: float) -> None:
    """Write eight processes of five readings for each benchmark, a percent apart."""
    rng = np.random.default_rng(seed)
    lines = []
    for name, mean in means.items():
        for level in mean * (1.0 + 0.003 * rng.normal(size=8)):
            values = (level * (1.0 + 0.001 * rng.normal(size=5))).round(6).tolist()
            lines.append(json.dumps({"name": name, "unit": "ms", "values": values}))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def suites(tmp_path):
    write_suite(tmp_path / "old.json", 1, parse=3.0, render=12.0, load=1.0, gone=1.0)
    write_suite(tmp_path / "new.json", 2, parse=3.3, render=12.0, load=0.8, added=2.0)
    write_suite(tmp_path / "same.json", 3, parse=3.0, render=12.0, load=1.0, gone=1.0)
    return tmp_path


def test_the_page_shows_what_is_printed(cli, suites) -> None:
    result = cli("compare", "old.json", "new.json")
    assert result.exit_code == 0
    block = PAGE.split("$ benchrigor compare old.json new.json\n", 1)[1].split("```", 1)[0]
    assert result.stdout == block


def test_several_files_are_one_family(told, suites) -> None:
    found = told("compare", "old.json", "new.json", "same.json")["suites"]
    assert found["names"] == ["parse", "render", "load", "gone"]
    assert found["missing"] == {"old.json": ["added"], "new.json": ["gone"], "same.json": ["added"]}
    ps = {
        (file, name): each["p_beyond"]
        for file, family in found["families"].items()
        for name, each in family["comparisons"].items()
    }
    least = min(ps, key=ps.get)
    assert found["families"][least[0]]["adjusted"][least[1]] <= len(ps) * ps[least] == 7 * ps[least]


GONE = ("old.json", "new.json", "--filter", "render|gone", "--margin", "5%")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("old.json", "new.json"), 0),  # worse, but in these two runs
        (("old.json", "same.json", "--margin", "5%", "--fail-on", "undecided"), 0),
        (GONE, 0),
        ((*GONE, "--fail-on", "undecided"), 3),
        (("old.json", "new.json", "--fail-on", "worse"), 7),
        (("old.json", "new.json", "--fail-on", "never"), 0),
        (("old.json", "other.json"), 8),
        (("old.json",), 2),
        (("old.json", "old.json"), 2),
        (("old.json", "new.json", "--paired"), 2),
        (("old.json", "new.json", "--filter", "("), 2),
        (("old.json", "new.json", "--filter", "nothing"), 2),
    ],
)
def test_the_exit_code_tells_the_worst(cli, suites, words, code) -> None:
    write_suite(suites / "other.json", 4, first=1.0, second=1.0)
    result = cli("compare", *words)
    assert result.exit_code == code


def test_names_are_matched_in_the_order_in_which_they_repeat(told, tmp_path) -> None:
    rng = np.random.default_rng(1)
    for file, means in (("a.json", (1.0, 5.0)), ("b.json", (1.0, 6.0))):
        times = [rng.normal(mean, 0.01, 50).tolist() for mean in means]
        results = [{"command": "t", "times": each} for each in times]
        (tmp_path / file).write_text(json.dumps({"results": results}))
    found = told("compare", "a.json", "b.json")["suites"]["families"]["b.json"]["comparisons"]
    assert [*found] == ["t", "t #2"]
    ratios = [each["ratio"]["value"] for each in found.values()]
    assert ratios == pytest.approx([1.0, 1.2], rel=0.01)


def test_means_have_no_number_whatever_fails(cli) -> None:
    for more in ((), *(("--fail-on", each) for each in ("worse", "undecided", "never"))):
        means = ("compare", DATA / "hyperfine.csv", DATA / "hyperfine.json", *more)
        assert cli(*means).exit_code == 4


@pytest.mark.parametrize("columns", [20, 80])
def test_no_line_is_wider_than_the_terminal(cli, suites, monkeypatch, columns) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in ((), ("same.json",), ("--details",)):
        result = cli("compare", "old.json", "new.json", *words)
        assert max(map(len, result.stdout.splitlines())) <= columns


def test_another_processor_or_system_is_another_machine(cli, tmp_path) -> None:
    same = "goos: linux\ncpu: X\n"
    heads = [same, "cpu: X\ngoos: linux\n", "goos: linux\ncpu: Y\n", "goos: darwin\ncpu: X\n"]
    for name, head in zip("abcd", heads, strict=True):
        lines = "".join(f"BenchmarkA-8 10 {30 + n % 3} ns/op\n" for n in range(12))
        (tmp_path / name).write_text(head + lines)
    data = json.loads((DATA / "google-benchmark.json").read_text())
    for cores in (4, 8):
        data["context"]["num_cpus"] = cores
        (tmp_path / f"{cores}.json").write_text(json.dumps(data))
    assert cli("compare", "a", "b", "--same-machine").exit_code in {0, 3}
    for sides in (("a", "c"), ("a", "d"), ("4.json", "8.json")):
        assert cli("compare", *sides, "--same-machine").exit_code == 8
