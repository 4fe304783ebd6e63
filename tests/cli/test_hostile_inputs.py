"""Files, names and numbers at which parsers gave way: each is named, and has an exit code."""

import importlib
from pathlib import Path

import numpy as np
import pytest

import benchrigor as br
from benchrigor import stats
from benchrigor.errors import InvalidInput

MANY_DIGITS = "9" * 400
LONG = "x" * 3000
RAN = (0, 3, 4)  # ten readings may rise or fall by chance, and give no number
FILES = {
    "commas.csv": ",,\n,,\n",
    "digits.csv": f"{MANY_DIGITS}\n1\n",
    "digits.json": f"[{MANY_DIGITS}, 1]",
    "more-digits.json": f"[{'9' * 5000}, 1]",
    "deep.json": "[" * 100_000 + "]" * 100_000,
    "open.json": '{"a":' * 100_000,
    "record.json": '{"schema": 1, "rounds": [], "options": {}, "seed": 1e999}',
    "good.csv": "1\n2\n3\n" * 20,
    "tiny.csv": "".join(f"{1e-300 * (1 + number % 3)}\n" for number in range(60)),
    "\udcff.csv": "1\n2\n3\n" * 20,
}


@pytest.fixture(autouse=True)
def files(store: Path) -> None:
    for name, text in FILES.items():
        (store.parent / name).write_text(text)


@pytest.mark.parametrize("verb", ["analyze", "changes", "plan", "interference", "rate"])
@pytest.mark.parametrize(
    "name", [each for each in FILES if each not in ("good.csv", "tiny.csv", "\udcff.csv")] + [LONG]
)
def test_a_file_without_readings_is_named(cli, verb, name):
    ran = cli(verb, name)
    assert ran.exit_code == 2
    assert name[:10] in ran.output


@pytest.mark.parametrize("pair", [("good.csv", "tiny.csv"), ("tiny.csv", "good.csv")])
@pytest.mark.parametrize("more", [(), ("--paired",), ("--statistic", "median"), ("--margin", "0")])
def test_ratios_far_from_1_are_compared(cli, pair, more):
    assert cli("compare", *pair, "--unit", "s", *more).exit_code in (0, 3, 7)


def test_ratios_far_from_1_need_no_further_units_and_those_that_no_float_holds_are_none():
    rng = np.random.default_rng(1)
    far = 1e-300 * rng.lognormal(0.0, 0.5, 40)
    assert stats.compare(far, rng.lognormal(0.0, 0.5, 40)).required is None
    sides = [[5e-324] * 40, [1.0, 2.0] * 20]
    assert stats.compare(*sides).ratio is stats.compare(*reversed(sides)).ratio is None


@pytest.mark.parametrize(
    ("sides", "at"),
    [(([1.0, 5e-324, 1.0], [1.0] * 3), 1), (([1e100, 1.0, 1.0], [1e-300, 1.0, 1.0]), 0)],
)
def test_ratios_of_pairs_that_no_float_holds_are_named(sides, at):
    with pytest.raises(InvalidInput, match=rf"candidate\[{at}\]"):
        stats.compare(*sides, paired=True)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("analyze", "good.csv", "--target", "1e999%"), 2),
        (("analyze", "good.csv", "--confidence", "nan"), 2),
        (("analyze", "good.csv", "--column", MANY_DIGITS), 2),
        (("analyze", "good.csv", "--unit", f"s,±{MANY_DIGITS}%"), 0),
        (("analyze", "\udcff.csv"), 0),
        (("changes", "good.csv", "--level", "1e-320"), 0),
        (("changes", "good.csv", "--min-segment", MANY_DIGITS), 2),
        (("changes", "good.csv", "--min-segment", "9" * 30), 0),
        (("compare", "good.csv", LONG), 2),
        (("run", "--budget", "1e400", "true"), 2),
        (("run", "--max-rounds", MANY_DIGITS, "true"), 2),
        (("run", "--fresh", "--cpus", "0-999999999999", "os:getpid"), 2),
        (("run", f"{LONG}:f"), 2),
        (("run", "--max-rounds", "3", "sh", "-c", f": {LONG}"), 0),
        (("run", "--read", "x=json:a", "echo", f'{{"a": {MANY_DIGITS}}}'), 5),
        (("commands", "true {n}", "-P", "n", "1", MANY_DIGITS), 2),
        (("commands", "true {n} {m}", "-P", "n", "1", "9999", "-P", "m", "1", "9999"), 2),
        (("export", "record.json", "-o", LONG), 2),
        (("convert", "record.json", f"{LONG}.csv"), 2),
        (("list", "\udcff"), 6),
        (("list", "--store", LONG), 6),
        (("show", "\udcff"), 6),
        (("watch", "--once", "\udcff"), 4),
        (("watch", "--once", "http://127.0.0.1:1/\udcff"), 2),
    ],
    ids=str,
)
def test_an_argument_out_of_range_has_an_exit_code(cli, words, code):
    ran = cli(*words)
    assert ran.exit_code in (RAN if code == 0 else [code]), ran.output


def test_settings_nested_deeply_are_refused(cli, store):
    (store.parent / "deep.toml").write_text(f"a = {'[' * 100_000}")
    (store.parent / "pyproject.toml").write_text(f"a = {'[' * 100_000}")
    assert cli("peak", "--p95", "1ms", "--requests", "deep.toml").exit_code == 2
    assert cli("run", "true").exit_code == 2
    with pytest.raises(InvalidInput, match="record"):
        br.RunRecord.load(store.parent / "deep.json")
    with pytest.raises(InvalidInput, match="max_rounds"):
        br.Options(max_rounds=-(10**400))


def test_inputs_at_random_make_no_traceback(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "docs/evidence")
    fuzzer = importlib.import_module("trust")
    assert fuzzer.fuzz(seed=1, count=100) == []
