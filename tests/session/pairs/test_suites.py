"""Suites: compared without estimates made first, with the same results."""

from pathlib import Path

import pytest

import benchrigor as br
from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.formats.recognition import results_in
from benchrigor.session.replays.file_results import arrange_file

DATA = Path(__file__).parents[2] / "formats" / "data"
FILES = [*sorted(path for path in DATA.iterdir() if path.is_file()), DATA / "criterion"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_not_analysed_first_compares_alike(path: Path) -> None:
    analysed, arranged = br.read_results(path), arrange_file(results_in(path), str(path))
    for first, second in zip(analysed, arranged, strict=True):
        assert (first.name, first.metrics) == (second.name, second.metrics)
        assert first.subject == second.subject
        kinds = [[(each.kind, each.n) for each in run.analyses] for run in (first, second)]
        assert kinds[0] == kinds[1]
        shown = []
        for run in (first, second):
            try:
                shown.append(repr(br.compare_runs(run, run)))
            except (NotEstimable, InvalidInput) as error:
                shown.append(str(error))
        assert shown[0] == shown[1]
