"""What people read of a map, at 80 and 40 columns."""

from dataclasses import replace

import pytest
from known_maps import CACHE, DISKS, FS, THREADS, known, surface_of, with_lost

from benchrigor.layout import Line, Page
from benchrigor.model.text import show_short
from benchrigor.workbench.maps.map_report import plan_page, progress_line, surface_page
from benchrigor.workbench.planning.surface_map import SurfaceMap
from benchrigor.workbench.surfaces.factors import Factor, Space, show_point
from benchrigor.workbench.surfaces.samples import Measured, Sample
from benchrigor.workbench.surfaces.surface import Surface, fit_surface

UNITS = {"peak": "1/s"}


@pytest.fixture(scope="module")
def lost() -> Surface:
    return with_lost()


def rows_of(page: Page) -> dict[str, str]:
    """Return the labelled rows of a page."""
    lines = (each for each in page.parts if isinstance(each, Line))
    return {each.first.strip(): each.text for each in lines}


def test_the_best_configuration_comes_first_and_at_most_eight_rows_follow_the_name(
    lost: Surface,
) -> None:
    page = surface_page(lost, "a server", UNITS)
    assert page.startswith("a server: 36 samples in 36 min\n  best      threads")
    assert [*rows_of(page)] == [
        *("best", "regret", "matters", "swap", "model", "measured", "limits", "no number")
    ]
    best = lost.best()
    assert rows_of(page)["best"].startswith(show_point(best.point))
    assert "samples-without-number" not in page


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize("whole", [False, True])
def test_nothing_is_wider_than_the_screen_nor_lost(
    lost: Surface, width: int, *, whole: bool
) -> None:
    page = surface_page(lost, "a server", UNITS, whole=whole)
    shown = page.at(width)
    assert max(map(len, shown.splitlines())) <= width
    assert whole or "".join(shown.split()) == "".join(page.split())
    for word in ("threads", "xfs", "k 1/s", "left out", "failed"):
        assert word in " ".join(shown.split())
    assert "\x1b" not in shown
    assert "\\x1b[31mno space" in shown


def test_sensitivities_are_listed_from_the_largest_on(lost: Surface) -> None:
    text = rows_of(surface_page(lost, "a server", UNITS))["matters"]
    assert text.startswith("from worst to best level: threads ")
    assert text.index("threads") < text.index("disks") < text.index("fs")


def test_a_factor_that_may_not_matter_is_marked() -> None:
    idle = Factor("idle", levels=[1, 2, 3])
    text = rows_of(surface_page(surface_of([THREADS, idle]), "a server", UNITS))["matters"]
    threads, other = text.split("; ")
    assert "perhaps not" not in threads
    assert "perhaps not" in other


def test_it_says_where_categories_swap_places(lost: Surface) -> None:
    """The curves 120 n / (1 + .12 n) and 95 n / (1 + .05 n) cross at n = 4.63."""
    text = rows_of(surface_page(lost, "a server", UNITS))["swap"]
    assert text.startswith("fs ext4 is better up to threads ")
    assert 3.0 < float(text.removeprefix("fs ext4 is better up to threads ").split()[0]) < 7.0
    assert text.split(", xfs above")[1] in {"", " (probability 90%)"}
    assert "swap" not in rows_of(surface_page(surface_of([THREADS, DISKS]), "a", UNITS))


def test_it_says_where_the_operating_range_ends(lost: Surface) -> None:
    rows = rows_of(surface_page(lost, "a server", UNITS))
    assert rows["limits"] == (
        "no load keeps them at threads 1, disks 1, fs ext4; threads 1, disks 1, fs xfs"
    )
    at_most = {"at_most": 5.0}
    surface = surface_of([THREADS, FS], {0: at_most, 1: at_most, 2: at_most})
    assert rows_of(surface_page(surface, "a server", UNITS))["limits"] == (
        "no load keeps them at threads 1 (all 2 samples); threads 2, fs ext4"
    )
    nowhere = surface_of([THREADS, FS], dict.fromkeys(range(12), at_most))
    page = surface_page(nowhere, "a server", UNITS)
    assert rows_of(page)["limits"] == "no load keeps them in any sample"
    assert "best" not in rows_of(page)


def test_samples_without_a_number_have_their_reason(lost: Surface) -> None:
    rows = rows_of(surface_page(lost, "a server", UNITS))
    assert rows["no number"].split("; ") == [
        "threads 1, disks 3, fs xfs: at least 5 k 1/s",
        "threads 32, disks 3, fs ext4: failed, exit code 1, \x1b[31mno space",
        "threads 32, disks 3, fs xfs: failed, exit code 1, \x1b[31mno space",
    ]
    assert rows["regret"].endswith("; 1 sample did not reach the peak, which may be higher")


def test_the_model_is_told_with_what_it_misses(lost: Surface) -> None:
    missed = f"{100.0 * (lost.loo_error or 0.0):.2g}%"
    text = rows_of(surface_page(lost, "a server", UNITS))["model"]
    names = {"quadratic": "a quadratic", "gaussian-process": "a Gaussian process"}
    name = names[str(lost.model)]
    assert text == f"{name}; it misses points left out by {missed} on average"


def test_measured_configurations_are_ranked_as_one_family() -> None:
    surface = surface_of([FS, CACHE])
    text = rows_of(surface_page(surface, "a server", UNITS))["measured"]
    first = [each for each in surface.ranking() if each.place == 1]
    assert text.startswith("the best of 6 points")
    assert all(each.name in text for each in first[:3])
    assert ("not shown to differ" in text) is (len(first) > 1)


def test_the_whole_page_has_all_samples_places_and_codes(lost: Surface) -> None:
    page = surface_page(lost, "a server", UNITS, whole=True)
    assert "[samples-without-number]" in page
    places, samples = (each for each in page.parts if not isinstance(each, str | Line))
    assert [row[0] for row in places.rows[1:]] == [each.name for each in lost.ranking()]
    assert samples.rows[0] == ("sample", "threads", "disks", "fs", "peak", "took", "why no number")
    assert [row[0] for row in samples.rows[1:]] == [str(number) for number in range(36)]
    assert samples.rows[1][4:] == ("-", "60 s", "at most 10 1/s (p95 at the lowest load)")
    found = show_short(lost.samples[2].estimates["peak"], "1/s")
    assert samples.rows[3][4:] == (found, "60 s", "")


def test_too_few_samples_have_no_number_but_a_reason_and_what_was_measured() -> None:
    few = surface_of([THREADS, DISKS, FS], step=12)
    page = surface_page(few, "a server", UNITS)
    assert [*rows_of(page)] == ["measured", "✗"]
    assert "a model of these factors takes" in page


def test_of_further_responses_a_page_without_details_has_only_the_best() -> None:
    surface = surface_of([THREADS, FS], names=("peak", "goodput"))
    units = {"peak": "1/s", "goodput": "1/s"}
    lines = surface_page(surface, "a server", units).splitlines()
    assert lines[1] == "peak:"
    assert lines[-2] == "goodput:"
    assert lines[-1].startswith("  best      threads 32, fs xfs: ")
    assert surface_page(surface, "a server", units, whole=True).count("  regret") == 2


SAMPLE = Sample(id=4, point={"fs": "x\x1b[3m\nfs", "disks": 2})


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        ({"estimates": {"peak": known(1234.0)}}, "1.234 k 1/s ±4 %"),
        ({"at_least": 500.0}, "at least 500 1/s"),
        ({"at_most": 5.0, "reason": "p95"}, "at most 5 1/s (p95)"),
        ({"reason": "killed\x07"}, "failed, killed\\x07"),
        ({}, "failed"),
    ],
)
def test_each_sample_is_one_line_with_what_is_left(found: dict, shown: str) -> None:
    measured = Measured(sample=SAMPLE, **found)
    line = progress_line(measured, 5, 12, 480.0, "1/s").at(200)
    point = "fs x\\x1b[3m\\nfs, disks 2"
    assert line == f"sample 5 of 12 · {point}: {shown} · about 8 min left"
    open_end = progress_line(measured, 5, None, None, "1/s").at(200)
    assert open_end == f"sample 5 · {point}: {shown}"
    assert max(map(len, progress_line(measured, 5, 12, 480.0, "1/s").at(40).splitlines())) <= 40


def asked(search: SurfaceMap, count: int) -> list[Sample]:
    return [sample for _ in range(count) if (sample := search.ask()) is not None]


def test_a_plan_prices_its_samples_and_the_full_factorial() -> None:
    """Of 6 samples, 3 for each of 2 disks, one change takes 10 minutes; of all 8 as well."""
    disks = replace(DISKS, levels=[1, 2], change_s=600.0)
    threads = Factor("threads", levels=[1, 2, 3, 4])
    search = SurfaceMap([disks, threads], design="d-optimal", samples=6, budget_s=7200.0)
    page = plan_page(search, asked(search, 6), 300.0)
    rows = rows_of(page)
    assert page.startswith("6 samples of a grid of 8 configurations\n")
    assert (rows["takes"], rows["all 8"], rows["budget"]) == (
        *("about 40 min", "about 50 min"),
        "2 h",
    )
    assert "then" not in rows
    assert [line.split()[0] for line in page.splitlines()[-6:]] == [*"123456"]
    assert "60 s" not in page
    for width in (80, 40):
        assert max(map(len, page.at(width).splitlines())) <= width


def test_a_plan_without_a_time_says_so_and_lists_the_first_twenty() -> None:
    search = SurfaceMap([THREADS, DISKS, FS], design="full")
    page = plan_page(search, asked(search, 36), None)
    assert rows_of(page)["takes"] == "nothing tells how long a sample takes"
    assert page.splitlines()[-1] == "  and 16 more samples"
    assert "all 36" not in page


def test_an_adaptive_plan_says_what_its_samples_decide() -> None:
    search = SurfaceMap([THREADS, FS], samples=10)
    rows = rows_of(plan_page(search, asked(search, 5), 60.0))
    assert rows["then"] == "where predictions are the least certain, at most 10 in all"


def test_an_empty_map_has_a_page() -> None:
    page = surface_page(fit_surface(Space([THREADS]), []), "a server", UNITS, whole=True)
    assert page.startswith("a server: 0 samples\n")
    assert "Only 0 points measured" in page
