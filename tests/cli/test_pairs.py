"""Recorded pairs of work amount and duration on the command line."""

import numpy as np
import pytest

PAIRS = ("analyze", "pairs.csv", "--work", "bytes", "--column", "seconds")


@pytest.fixture(autouse=True)
def pairs(series):
    rng = np.random.default_rng(3)
    work = rng.uniform(1e5, 1e8, 60)
    seconds = (0.05 + work / 5e7) * (1.0 + 0.03 * rng.normal(size=60))
    rows = (f"{int(amount)},{took:.6f}" for amount, took in zip(work, seconds, strict=True))
    series("pairs.csv", rows, "bytes,seconds")


def test_pairs_give_the_speed_and_every_pair_counts(told) -> None:
    (analysis,) = told(*PAIRS, "--unit", "B")["analyses"]
    assert analysis["metric"]["unit"] == "B/s"
    assert analysis["n"] == analysis["n_kept"] == 60
    assert analysis["subsessions"]["size"] >= 1
    assert abs(analysis["subsessions"]["autocorrelation"]) <= 0.1
    found = analysis["estimate"]
    assert abs(found["value"] - 5e7) < 2.0 * (found["high"] - found["low"]) < 0.2 * 5e7


def test_pairs_are_drawn(cli, tmp_path) -> None:
    shown = cli(*PAIRS, "--unit", "B", "--plot", "line.png")
    assert "MB/s ±" in shown.output
    assert (tmp_path / "line.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    "method", [("subsessions", "--autocorrelation-limit", "0.3"), ("merged-subsessions",)]
)
def test_pairs_are_merged_as_asked_for(told, method) -> None:
    (analysis,) = told(*PAIRS, "--method", *method)["analyses"]
    assert analysis["wps"]["slope"]["method"] == f"wps-{method[0]}"


def test_standard_input_may_hold_both_columns_and_too_few_are_no_speed(cli) -> None:
    for rows, code in ((30, 0), (3, 4)):
        lines = "".join(f"{n},{0.5 + n / 100 + n % 7 / 1000}\n" for n in range(1, rows))
        assert cli("analyze", "--work", "a", input=f"a,b\n{lines}").exit_code == code
