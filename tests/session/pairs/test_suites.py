"""Suites: compared without estimates made first, with the same results."""

from pathlib import Path

import pytest

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.formats.recognition import results_in
from benchrigor.model import codec
from benchrigor.session.pairs.run_comparison import compare_named
from benchrigor.session.replays.file_results import analyse_file, arrange_file

DATA = Path(__file__).parents[2] / "formats" / "data"
FILES = [*sorted(path for path in DATA.iterdir() if path.is_file()), DATA / "criterion"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_not_analysed_first_compares_alike(path: Path) -> None:
    found = results_in(path)
    assert found
    for first, second in zip(
        analyse_file(found, str(path), None), arrange_file(found, str(path)), strict=True
    ):
        assert (first.name, first.metrics, first.subject) == (
            second.name,
            second.metrics,
            second.subject,
        )
        assert [(each.kind, each.n) for each in first.analyses] == [
            (each.kind, each.n) for each in second.analyses
        ]
        shown = []
        for run in (first, second):
            try:
                comparison = compare_named({"baseline": run, "candidate": run})
                shown.append(codec.encode(comparison))
            except (NotEstimable, InvalidInput) as error:
                shown.append(str(error))
        assert shown[0] == shown[1]
