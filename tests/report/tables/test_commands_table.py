"""The table of commands: their numbers are all of a quiet machine, or all as they ran."""

from dataclasses import replace

import pytest
from simulated.paced_commands import run_of

from benchrigor.layout import page
from benchrigor.model import RunRecord
from benchrigor.report.tables.commands_table import command_table

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def records() -> dict[str, RunRecord]:
    paces = {"quiet": (1.0, 0.0001), "busy": (1.3, 0.01)}
    return {
        name: replace(run_of(slower=slower, rest_s=rest_s, seed=2), name=name)
        for name, (slower, rest_s) in paces.items()
    }


def shown(
    records: dict[str, RunRecord], *, target: float | None = None, target_given: bool = True
) -> str:
    asked = {
        name: replace(each, options=replace(each.options, target=target, target_given=target_given))
        for name, each in records.items()
    }
    return page(command_table(asked, {name: each.estimate() for name, each in asked.items()}))


def test_a_command_has_its_headline_and_beside_it_what_was_measured(records) -> None:
    title, quiet, busy, *notes = shown(records).splitlines()
    assert title.split() == ["command", "mean", "just", "now"]
    assert quiet.split() == ["1.", "quiet", "20.1", "ms", "±7", "%"]
    assert busy.startswith("2. busy   26.0 ms [")  # its processor time, at least
    assert busy.endswith("35.3 ms")
    assert "mean: at the full speed of this machine; just now: as it ran" in notes


def test_no_command_has_a_headline_where_one_has_none(records) -> None:
    unpaced = run_of(slower=1.3, rest_s=0.01, seed=2, references=False)
    text = shown({**records, "other": replace(unpaced, name="other")})
    assert "mean" not in text
    assert text.count(" ms ") == 3


def test_a_line_tells_of_which_commands_the_target_is_missed(records) -> None:
    text = " ".join(shown(records, target=0.02).split())
    assert "target ±2 % of each time as it ran: missed by busy (±7.8 %)" in text
    assert "as it ran: reached" in shown(records, target=0.5)
    assert "target" not in shown(records)  # none was set
    assert "target" not in shown(records, target=0.02, target_given=False)
