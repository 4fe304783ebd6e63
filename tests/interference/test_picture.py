"""The picture of a run's segments, by its artists."""

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchrigor.interference import plot_interference
from benchrigor.model import SegmentProfile
from benchrigor.stats import profile_interference

N = 300


def profile(**given: object) -> SegmentProfile:
    """Compose two kinds of segments, a tenth of one of them hit, and three of a kind of its own."""
    rng = np.random.default_rng(1)
    kind = np.arange(N) % 2
    kind[[10, 20, 30]] = 2
    duration_s = np.array([0.01, 0.03, 0.05])[kind] * rng.normal(1.0, 0.01, N)
    duration_s[5 * 2 :: 20] += 0.02
    columns: dict = {"duration_s": duration_s, "nominal": {"label": np.array(list("abc"))[kind]}}
    return SegmentProfile(program="heat", **{**columns, **given})  # type: ignore[arg-type]


def drawn(axes: Axes, label: str) -> np.ndarray:
    """Return the places of the dots that bear a label; shape (k, 2)."""
    (found,) = (each for each in axes.lines if each.get_label() == label)
    return found.get_xydata()


def test_those_beyond_the_threshold_of_their_group_are_highlighted() -> None:
    given = profile()
    found = profile_interference(given)
    axes = plot_interference(given, found)
    limits = sorted(each.threshold_s for each in found.groups)
    (lines,) = (each for each in axes.collections if each.get_label() == "threshold")
    assert sorted(each[0][1] for each in lines.get_segments()) == pytest.approx(limits)
    assert drawn(axes, "disturbed")[:, 1].min() > limits[0]
    assert drawn(axes, "undisturbed")[:, 1].max() <= limits[1]


def test_measured_delay_is_taken_off_and_stands_below() -> None:
    waited_s = np.where(np.arange(N) % 50 == 7, 0.004, 0.0)
    given = profile(delays={"run queue": waited_s})
    axes = plot_interference(given, profile_interference(given))
    (below,) = axes.child_axes
    (bars,) = below.collections
    tops = [each[1][1] for each in bars.get_segments()]
    assert tops == pytest.approx(waited_s)
    heights = np.concatenate([each.get_ydata() for each in axes.lines])
    assert np.sort(heights) == pytest.approx(np.sort(given.duration_s - waited_s))
    assert (bool(below.get_xlabel()), axes.get_xlabel()) == (True, "")


def test_the_light_is_written_above() -> None:
    given = profile()
    found = profile_interference(given)
    axes = plot_interference(given, found, title="run.csv")
    assert axes.get_title(loc="left") == "run.csv"
    (written,) = (each.get_text() for each in axes.texts)
    assert f"{found.light}: {found.total_percent:.1f}%" in written


def test_segments_far_longer_than_others_make_the_axis_logarithmic() -> None:
    far = SegmentProfile(duration_s=[0.001] * 20 + [1.0])
    assert plot_interference(far, profile_interference(far)).get_yscale() == "log"
    assert plot_interference(profile(), profile_interference(profile())).get_yscale() == "linear"


def test_given_axes_are_drawn_into() -> None:
    axes = Figure().add_subplot()
    assert plot_interference(profile(), profile_interference(profile()), axes=axes) is axes
