"""Pictures of maps, by their artists."""

from typing import Any

import numpy as np
import pytest
from known_maps import CACHE, THREADS, surface_of, with_lost
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection

from benchrigor.workbench import Factor
from benchrigor.workbench.picture import plot_map


@pytest.fixture(scope="module")
def lost() -> Any:
    return with_lost()


def panels_of(axes: Axes) -> list[Axes]:
    """Return the panels of a figure, without scales of colours."""
    figure = axes.get_figure(root=True)
    figure.draw_without_rendering()
    return [each for each in figure.axes if each.get_label() != "<colorbar>"]


def dots(axes: Axes, label: str) -> list[tuple[float, float]]:
    """Return the places of the marks that bear a label."""
    found = (each for each in axes.lines if each.get_label() == label)
    return [tuple(place) for each in found for place in each.get_xydata().tolist()]


def legend_of(axes: Axes) -> list[str]:
    (legend,) = axes.get_figure(root=True).legends
    return [each.get_text() for each in legend.get_texts()]


def test_two_numbers_make_contours_of_prediction_and_width_and_a_check() -> None:
    surface = surface_of([THREADS, CACHE], {4: {"reason": "it crashed"}})
    axes = plot_map(surface, unit="1/s", title="a server")
    first, width, check = panels_of(axes)
    assert axes is first
    for each in (first, width):
        assert (each.get_xlabel(), each.get_ylabel()) == ("threads", "cache_mb")
        assert (each.get_xscale(), each.get_yscale()) == ("log", "log")
        assert [tick.get_text() for tick in each.get_yticklabels()] == ["16", "64", "256"]
        assert len(dots(each, "measured")) == 17
        assert dots(each, "failed") == [(2.0, 64.0)]
        best = surface.best().point
        assert dots(each, "best") == [(best["threads"], best["cache_mb"])]
    assert len(dots(check, "measured")) == 17
    assert legend_of(axes) == ["measured", "failed", "best", "equal"]


def test_each_of_more_factors_has_a_profile_through_the_best_point(lost: Any) -> None:
    threads, disks, fs, _check = panels_of(plot_map(lost, unit="1/s"))
    assert [each.get_xlabel() for each in (threads, disks, fs)] == ["threads", "disks", "fs"]
    assert {each.get_ylabel() for each in (threads, disks, fs)} == {"peak (k 1/s)"}
    assert (threads.get_xscale(), disks.get_xscale()) == ("log", "linear")
    assert [tick.get_text() for tick in fs.get_xticklabels()] == ["ext4", "xfs"]
    assert threads.get_ylim() == disks.get_ylim() == fs.get_ylim()
    best = lost.best()
    for place, predicted in dots(threads, "prediction"):
        point = {**best.point, "threads": place}
        assert predicted == pytest.approx(lost.predict(point).value)
    assert dots(fs, "best") == [(["ext4", "xfs"].index(str(best.point["fs"])), best.estimate.value)]
    # The band is the interval of the prediction.
    (band,) = (each for each in threads.collections if isinstance(each, FillBetweenPolyCollection))
    heights = np.asarray(band.get_paths()[0].vertices)[:, 1]
    for found in (lost.predict({**best.point, "threads": level}) for level in (1, 32)):
        assert np.min(np.abs(heights - found.low)) < 1e-6 * found.low
        assert np.min(np.abs(heights - found.high)) < 1e-6 * found.high


def test_samples_without_a_number_stand_at_the_lower_edge_by_their_kind(lost: Any) -> None:
    axes = plot_map(lost)
    threads = panels_of(axes)[0]
    kinds = {"limits not kept": [1.0, 1.0], "peak not reached": [1.0], "failed": [32.0, 32.0]}
    heights = set()
    for kind, places in kinds.items():
        assert [place for place, _ in dots(threads, kind)] == places
        heights |= {height for _, height in dots(threads, kind)}
        assert kind in legend_of(axes)
    assert len(heights) == 3
    assert max(heights) < 0.2


def test_names_are_drawn_as_they_are_with_control_characters_escaped() -> None:
    dear = Factor("fs", levels=["ext4", "x$fs$\x1b[3m"])
    axes = plot_map(surface_of([THREADS, dear]), title="a $x$\n\x1b[3m server")
    labels = panels_of(axes)[1].get_xticklabels()
    assert [each.get_text() for each in labels] == ["ext4", "x$fs$\\x1b[3m"]
    assert not any(each.get_parse_math() for each in labels)
    heading = axes.get_figure(root=True).get_suptitle()
    assert heading.startswith("a $x$\\n\\x1b[3m server\n")
    assert "\x1b" not in heading


def overlap(axes: Axes) -> list[Any]:
    """Return the pairs of labels along a panel's axes that cover each other."""
    labels = [each for each in axes.get_xticklabels() if each.get_text()]
    boxes = [each.get_window_extent() for each in labels]
    return [
        (one.get_text(), other.get_text())
        for one, other, first, second in zip(labels, labels[1:], boxes, boxes[1:], strict=False)
        if first.overlaps(second)
    ]


@pytest.mark.parametrize(
    "factors",
    [
        [THREADS, CACHE],
        [Factor("threads", levels=[*range(1, 31)], scale="log10")],
        [THREADS, Factor("cache_mb", levels=[0.001, 0.01, 100_000.0], scale="log10")],
    ],
)
def test_labels_do_not_cover_each_other(factors: list[Factor]) -> None:
    for each in panels_of(plot_map(surface_of(factors), unit="1/s")):
        assert not overlap(each)


def test_samples_on_a_profile_are_told_from_those_elsewhere(lost: Any) -> None:
    """What was measured is drawn over what the others predict."""
    panel = panels_of(plot_map(lost))[1]
    here, elsewhere = dots(panel, "measured"), dots(panel, "measured elsewhere")
    best, measured = lost.best().point, [each for each in lost.samples if each.estimates]
    check = panels_of(plot_map(lost, unit="1/s"))[-1]
    pairs = [(each.predicted.value, each.measured.value) for each in lost.left_out()]
    assert np.array(dots(check, "measured")) == pytest.approx(np.array(pairs))
    wanted = [
        (each.sample.point["disks"], each.estimates["peak"].value)
        for each in measured
        if all(each.sample.point[name] == best[name] for name in ("threads", "fs"))
    ]
    assert np.array(here) == pytest.approx(np.array(wanted))
    assert len(here) + len(elsewhere) == len(measured)


def test_one_factor_has_a_profile_and_a_check() -> None:
    panels = panels_of(plot_map(surface_of([THREADS])))
    assert len(panels) == 2
    assert len(dots(panels[0], "measured")) == 6
    assert not dots(panels[0], "measured elsewhere")
