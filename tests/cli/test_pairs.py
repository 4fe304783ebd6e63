"""Recorded pairs of work amount and duration on the command line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from benchrigor.cli import main


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    work = rng.uniform(1e5, 1e8, 60)
    seconds = (0.05 + work / 5e7) * (1.0 + 0.03 * rng.normal(size=60))
    path = tmp_path / "pairs.csv"
    lines = [f"{int(amount)},{took:.6f}" for amount, took in zip(work, seconds, strict=True)]
    path.write_text("\n".join(["bytes,seconds", *lines]))
    return path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["analyze", *arguments])


def test_pairs_give_the_speed_and_every_pair_counts(pairs: Path) -> None:
    done = run(str(pairs), "--work", "bytes", "--column", "seconds", "--unit", "B", "--json")
    assert done.exit_code == 0, done.output
    (analysis,) = json.loads(done.stdout)["analyses"]
    assert analysis["metric"]["unit"] == "B/s"
    assert analysis["n"] == analysis["n_kept"] == 60
    found = analysis["estimate"]
    assert abs(found["value"] - 5e7) < 2.0 * (found["high"] - found["low"]) < 0.2 * 5e7


@pytest.mark.slow
def test_pairs_are_shown_explained_and_drawn(pairs: Path, tmp_path: Path) -> None:
    chosen = [str(pairs), "--work", "bytes", "--column", "seconds", "--unit", "B"]
    shown = run(*chosen, "--plot", str(tmp_path / "line.png"))
    assert "MB/s ±" in shown.output
    assert (tmp_path / "line.png").stat().st_size > 10_000


def test_a_target_out_of_reach_is_told_by_the_exit_code(pairs: Path) -> None:
    chosen = [str(pairs), "--work", "bytes", "--column", "seconds"]
    assert run(*chosen, "--target", "0.1%").exit_code == 3
    assert run(*chosen, "--target", "20%").exit_code == 0


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("a,b\n-1,2\n2,3\n4,5", ["--work", "a", "--column", "b"], "work[0] is -1.0"),
        ("a,b\n1,2\n2,-3\n4,5", ["--work", "a", "--column", "b"], "duration_s[1] is -3.0"),
        ("a,b,c\n1,2,3\n", ["--work", "a"], "columns a, b, c"),
        ("a,b\n1,2\n", ["--work", "a", "--round", "b"], "--work and --round"),
        ("a,b\n1,2\n", ["--work", "c", "--column", "b"], "columns a, b"),
        ("a,b\n1,2\n", ["--work", "a", "--column", "b", "--statistic", "p90"], "no quantiles"),
    ],
)
def test_bad_pairs_are_named(tmp_path: Path, text: str, arguments: list[str], said: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    done = run(str(path), *arguments)
    assert done.exit_code == 2, done.output
    assert said in done.output


def test_standard_input_may_hold_both_columns() -> None:
    rows = "".join(f"{work},{0.5 + work / 100 + work % 7 / 1000}\n" for work in range(1, 30))
    done = CliRunner().invoke(main, ["analyze", "--work", "a"], input=f"a,b\n{rows}")
    assert done.exit_code == 0, done.output


def test_too_few_pairs_are_no_speed(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("a,b\n1,2\n2,3\n")
    done = run(str(path), "--work", "a", "--column", "b")
    assert done.exit_code == 4


def test_pairs_are_merged_up_to_the_limit_asked_for(pairs: Path) -> None:
    chosen = [str(pairs), "--work", "bytes", "--column", "seconds", "--method", "subsessions"]
    done = run(*chosen, "--autocorrelation-limit", "0.3", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["analyses"][0]["estimate"]["method"] == "wps-subsessions"
