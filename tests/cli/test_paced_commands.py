"""What is said of the pace of commands that were stored: one story in each place."""

import pytest
from simulated.paced_commands import run_of


@pytest.fixture
def run_ids(keep):
    """Return a run on a machine that is hardly busy, and one where the command waits for long."""
    return [
        keep(run_of(slower=slower, rest_s=rest_s, seed=2))
        for slower, rest_s in ((1.05, 0.0001), (1.3, 0.05))
    ]


def words(text):
    return " ".join(text.split())


def test_each_place_tells_the_pace_that_the_figures_have(cli, run_ids, told):
    analysis = told("show", run_ids[1])["analyses"][0]
    share = analysis["at_full_pace"]["value"] / analysis["estimate"]["value"]
    assert 0.2 < share < 0.4
    explained, compared = cli("explain", run_ids[1]), cli("compare", *run_ids, "--details")
    for shown in (cli("show", run_ids[1], "--details"), explained):
        assert f" {100 * share:.0f}% of " in words(shown.stdout)
    assert f"{100 * share:.1f}% of it" in words(compared.stdout)
    assert words(compared.stdout).count("at full") == 2
    assert "10 ms" in words(explained.stdout)  # the start of the interpreter


def test_a_busy_and_an_idle_machine_give_no_difference(run_ids, told):
    comparison = told("compare", *run_ids)["comparison"]
    assert comparison["verdict"] in ("undecided", "equivalent")
    assert comparison["ratio"]["low"] <= 1.0 <= comparison["ratio"]["high"]
