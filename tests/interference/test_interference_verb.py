"""``benchrigor interference``."""

from dataclasses import replace

import numpy as np
import pytest
from tests.interference.made_profiles import profile

import benchrigor as br
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock, FakeMeter


@pytest.fixture
def saved(tmp_path):
    """Save profiles under their names."""

    def save(**profiles):
        for name, each in profiles.items():
            each.save(tmp_path / f"{name}.csv")
        return [f"{name}.csv" for name in profiles]

    return save


@pytest.fixture
def told(cli, strict):
    """Return the document that the verb prints."""

    def tell(*words):
        result = cli("interference", *words, "--json")
        assert (result.exit_code, result.stderr) == (0, "")
        return strict(result.stdout)

    return tell


def test_a_last_line_without_its_end_is_reported(cli, saved, tmp_path):
    (name,) = saved(run=profile())
    text = (tmp_path / name).read_text()
    (tmp_path / name).write_text(text.rstrip("\n"))
    assert f"line {text.count(chr(10))} " in cli("interference", name).stderr


def test_profiles_of_one_run_are_merged_and_others_are_not(told, saved):
    ranks = {f"rank{k}": profile(k, run="7f3a", process=k, processes=4) for k in range(3)}
    document = told(*saved(**ranks, other=profile(9), another=profile(8)))
    names = ["run 7f3a: heat, 3 of 4 processes", "other.csv: heat", "another.csv: heat"]
    assert [each["name"] for each in document["runs"]] == names
    assert document["runs"][0]["n"] == 600


def test_a_reference_also_of_several_processes_shows_the_continuous_part(told, saved):
    slow, calm = saved(run=profile(1, slower=1.2), calm=profile(2))
    (run,) = told(slow, "--reference", calm)["runs"]
    assert run["continuous_percent"] == pytest.approx(100 * 0.2 / 1.2, abs=1.0)
    files = saved(
        **{f"rank{k}": profile(k, run="7f3a", process=k, processes=2) for k in range(2)},
        **{f"calm{k}": profile(9 + k, run="1c", process=k, processes=2) for k in range(2)},
    )
    (run,) = told(*files[:2], "--reference", files[2], "--reference", files[3])["runs"]
    assert run["continuous_percent"] == pytest.approx(0.0, abs=1.0)


def test_a_composite_is_one_profile_of_all_runs(told, saved):
    runs = {f"day{day}": profile(day, hit=0.1) for day in range(4)}
    document = told(*saved(**runs), "--composite")
    quiet_s = 600 * (0.004 + 0.010 + 0.025) / 3
    assert document["duration"]["value"] == pytest.approx(quiet_s, rel=0.01)
    assert len(document["names"]) == len(document["runs"]) == 4


@pytest.fixture(scope="module")
def measured():
    """Measure with a meter of delay."""
    clock, rng = FakeClock(), np.random.default_rng(1)
    options = br.Options(budget_readings=1000, target=1e-6)
    session = br.Session(options, name="synthetic", seed=1, clock=clock, meter=FakeMeter(clock))
    return session.run(lambda: clock.advance(int(rng.normal(1e7, 1e6))))


@pytest.fixture
def record(measured, tmp_path):
    """Save the record of a session whose delay was measured."""
    measured.save(tmp_path / "record.json")
    return measured


def test_the_saved_record_of_a_session_is_told(told, record):
    """Without a reference, which a session cannot have."""
    (run,) = told("record.json")["runs"]
    assert (run["name"], run["n"]) == ("record.json: synthetic", record.interference.n)
    assert run["light"] == str(record.interference.light)
    assert "no-reference" not in {each["code"] for each in run["notices"]}


def test_an_older_record_is_estimated_from_its_readings(told, record):
    replace(record, interference=None).save("old.json")
    (run,) = told("old.json")["runs"]
    assert run["n"] == record.interference.n
    assert run["measured_percent"] == pytest.approx(record.interference.measured_percent)
    assert run["percent"] == record.interference.percent == 0.0


def test_the_id_of_a_stored_run_is_enough(cli, told, store):
    cli("run", "--max-rounds", "6", "true")
    run_id = Journal(store).runs()[0]["run_id"]
    (run,) = told(run_id)["runs"]
    assert run["name"] == f"{run_id}: true"


@pytest.mark.parametrize(
    "words",
    [
        "rates.json",
        "run.csv --reference record.json",
        "record.json --reference run.csv",
        "run.csv record.json --composite",
        "record.json --plot p.png",
    ],
)
@pytest.mark.usefixtures("record")
def test_what_a_record_does_not_have_is_not_made_up(cli, saved, tmp_path, words):
    saved(run=profile())
    rate = br.Metric(name="rate", unit="B/s", direction="higher")
    session = br.Session(br.Options(max_rounds=1), [rate], name="rates", seed=1)
    session.tell(br.Round(plan=session.ask(), elapsed_ns=0, unit_readings={"rate": [1.0] * 9}))
    session.result().save(tmp_path / "rates.json")
    result = cli("interference", *words.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert next(word for word in words.split() if word.endswith(".json")) in result.stderr


@pytest.mark.parametrize(("picture", "exit_code"), [("run.png", 0), ("no/folder/run.png", 2)])
def test_what_was_found_is_printed_also_where_the_picture_cannot_be_written(
    cli, saved, tmp_path, picture, exit_code
):
    files = saved(run=profile(hit=0.1))
    result = cli("interference", *files, "--plot", picture)
    assert result.exit_code == exit_code
    assert result.stdout == cli("interference", *files).stdout
    if not exit_code:
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
