"""What a map measures: searches for peaks, and functions."""

import pytest

from benchrigor.errors import WorkloadFailed
from benchrigor.workbench.data import Limit, LoadResult
from benchrigor.workbench.maps.map_file import PeakResponse
from benchrigor.workbench.maps.responses import found_in, search_options, value_of
from benchrigor.workbench.planning.search import PeakSearch
from benchrigor.workbench.surfaces.samples import Sample

LIMIT = Limit(metric="mean", at_most=0.04)
POINT = {"threads": 2}


def searched(answer, **options):
    """Search for the peak of a server whose mean response is ``answer`` of the load."""
    search = PeakSearch(limits=[LIMIT], **options)
    while (trial := search.ask()) is not None:
        search.tell(trial, LoadResult(mean_response_s=answer(trial.load)))
    return search.result()


def test_a_peak_is_the_answer_of_its_sample():
    found = found_in(searched(lambda load: 1 / (200 - load) if load < 200 else 9.0), "3f2a")
    assert found.estimates["peak"].low < 175.0 < found.estimates["peak"].high
    assert (found.run_id, found.reason) == ("3f2a", None)


def test_a_peak_that_is_not_reached_is_a_lower_bound():
    found = found_in(searched(lambda _: 0.001, max_load=400.0), None)
    assert not found.estimates
    assert (found.at_least, found.at_most) == (400.0, None)


def test_a_limit_that_no_load_keeps_is_an_upper_bound():
    found = found_in(searched(lambda _: 0.9, min_load=2.0), None)
    assert not found.estimates
    assert (found.at_least, found.at_most) == (None, 2.0)
    assert found.reason


def test_a_search_begins_at_the_peak_of_a_neighbour():
    response = PeakResponse(limits={"mean": "40ms"}, search={"seed_load": 10.0})
    first = search_options(response, Sample(id=0, point=POINT))
    later = search_options(response, Sample(id=1, point=POINT, seed_load=80.0, accuracy=0.02))
    assert (first["seed_load"], later["seed_load"]) == (10.0, 80.0)
    assert later["accuracy"] == 0.02
    assert later["limits"] == [LIMIT]


def test_a_limit_may_differ_by_level():
    by_level = {"threads": {"2": "40ms", "4": "80ms"}}
    response = PeakResponse(limits={"mean": by_level})
    at = {
        threads: search_options(response, Sample(id=0, point={"threads": threads}))["limits"]
        for threads in (2, 4)
    }
    assert [at[threads][0].at_most for threads in (2, 4)] == [0.04, 0.08]


def test_what_a_function_returns_is_an_estimate(tmp_path):
    (tmp_path / "answering.py").write_text(
        "def number(threads):\n    return 10 * threads\n"
        "def ends(threads):\n    return 5, 4, 6\n"
        "def wrong(threads):\n    return None\n"
    )
    told = value_of("answering:number", POINT, str(tmp_path))
    assert (told.value, told.low, told.high) == (20.0, 20.0, 20.0)
    told = value_of("answering:ends", POINT, str(tmp_path))
    assert (told.value, told.low, told.high) == (5.0, 4.0, 6.0)
    with pytest.raises(WorkloadFailed, match="answering:wrong returned None, expected"):
        value_of("answering:wrong", POINT, str(tmp_path))
