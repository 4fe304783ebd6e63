"""--plot, where there are readings to draw."""

import sys

import numpy as np
import pytest

from benchrigor.cli import readings_verbs


@pytest.fixture
def recording(series):
    """A CSV file: 100 slow readings, then 900 around 10 ms."""
    rng = np.random.default_rng(1)
    times = np.where(np.arange(1000) < 100, 0.02, 0.01) + rng.normal(0.0, 0.0005, 1000)
    return series("readings.csv", times)


STARTS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize(
    ("verb", "suffix"), [*(("changes", each) for each in STARTS), ("analyze", ".png")]
)
def test_readings_are_drawn_into_a_file_of_the_kind_that_its_suffix_names(
    cli, recording, tmp_path, verb, suffix
):
    path = tmp_path / f"trace{suffix}"
    result = cli(verb, recording, "--unit", "s", "--plot", path)
    assert result.exit_code == 0, result.output
    assert path.read_bytes().startswith(STARTS[suffix])
    assert result.stdout == cli(verb, recording, "--unit", "s").stdout


VARIED = ("--work", "1:9", "--short-round")
UNITS = ("--read-units", "u:s=regex:u (.+)")
KINDS = {
    "single readings": ((), ()),
    "one reading": (("--max-rounds", "1"), ()),
    "rounds of various work": ((*VARIED, "0.0001"), ("{work}",)),
    "rounds that do not count": ((*VARIED, "100", "--max-rounds", "2"), ("{work}",)),
    "unit readings": (UNITS, ()),
    "unit readings of various work": ((*VARIED, "0.0001", *UNITS), ("{work}",)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_run_of_any_kind_is_drawn(cli, tmp_path, kind):
    options, words = KINDS[kind]
    printing = "for i in 1 2 3; do echo u $i; done"
    ran = cli("run", "--max-rounds", "4", *options, "sh", "-c", printing, "sh", *words)
    assert ran.exit_code in {0, 4}
    drawn = cli("show", "--plot", "run.svg")
    assert drawn.exit_code == 0, drawn.stderr
    assert (tmp_path / "run.svg").read_bytes().startswith(STARTS[".svg"])


def test_readings_without_a_stable_phase_are_drawn_and_still_end_with_4(cli, tmp_path):
    steps = np.random.default_rng(1).normal(np.repeat(np.arange(4.0) * 10, 50), 1.0)
    path = tmp_path / "trace.PNG"
    assert cli("changes", "--plot", path, input="\n".join(map(str, steps))).exit_code == 4
    assert path.exists()


@pytest.mark.parametrize(
    "words", ["changes", "analyze", "analyze --explain", "changes --json", "show"]
)
def test_what_was_computed_is_printed_also_where_no_picture_can_be_drawn(
    cli, recording, words, monkeypatch
):
    verb, *more = words.split()
    if verb == "show":
        cli("run", "--max-rounds", "3", "true")
    source = [recording] if verb != "show" else []
    printed = cli(verb, *source, *more).stdout
    results = [cli(verb, *source, *more, "--plot", "no/such/folder/trace.png")]
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    results.append(cli(verb, *source, *more, "--plot", "trace.png"))
    for result in results:
        assert (result.exit_code, result.stdout) == (2, printed)


@pytest.mark.parametrize(("named", "title"), [(True, "readings.csv"), (False, "standard input")])
def test_the_picture_of_changes_bears_the_name_of_the_file(
    cli, recording, monkeypatch, named, title
):
    drawn = []
    monkeypatch.setattr(readings_verbs, "write_picture", lambda draw: drawn.append(draw()))
    source = recording if named else "-"
    assert cli("changes", source, "--plot", "t.png", input=recording.read_text()).exit_code == 0
    assert title in [text.get_text() for text in drawn[0].texts]
