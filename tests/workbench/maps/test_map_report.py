"""What people read of a map, at 80 and 40 columns."""

import pytest
from known_maps import CACHE, FS, THREADS, surface_of, with_lost

from benchrigor.layout import Line
from benchrigor.workbench import Factor
from benchrigor.workbench.maps.map_report import surface_page
from benchrigor.workbench.surfaces.surface import Surface

UNITS = {"peak": "1/s"}


@pytest.fixture(scope="module")
def lost() -> Surface:
    return with_lost()


def rows_of(surface: Surface) -> dict[str, str]:
    """Return the labelled rows of a page."""
    lines = surface_page(surface, "a server", UNITS).parts
    return {each.first.strip(): each.text for each in lines if isinstance(each, Line)}


def test_the_best_configuration_comes_first_and_at_most_eight_rows_follow_the_name(
    lost: Surface,
) -> None:
    assert [*rows_of(lost)] == [
        *("best", "regret", "matters", "swap", "model", "measured", "limits", "no number")
    ]


@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize("whole", [False, True])
def test_nothing_is_wider_than_the_screen_nor_lost(
    lost: Surface, width: int, *, whole: bool
) -> None:
    page = surface_page(lost, "a server", UNITS, whole=whole)
    shown = page.at(width)
    assert max(map(len, shown.splitlines())) <= width
    assert whole or "".join(shown.split()) == "".join(page.split())
    assert "\x1b" not in shown
    assert "\\x1b[31m" in shown


def test_a_factor_that_may_not_matter_is_marked() -> None:
    text = rows_of(surface_of([THREADS, Factor("idle", levels=[1, 2, 3])]))["matters"]
    assert ["perhaps" in each for each in text.split("; ")] == [False, True]


def test_measured_configurations_are_ranked_as_one_family() -> None:
    surface = surface_of([FS, CACHE])
    text = rows_of(surface)["measured"]
    first = [each for each in surface.ranking() if each.place == 1]
    assert all(each.name in text for each in first[:3])


def test_the_whole_page_has_all_samples_and_places(lost: Surface) -> None:
    page = surface_page(lost, "a server", UNITS, whole=True)
    places, samples = (each for each in page.parts if not isinstance(each, str | Line))
    assert [row[0] for row in places.rows[1:]] == [each.name for each in lost.ranking()]
    assert [row[0] for row in samples.rows[1:]] == [str(number) for number in range(36)]
