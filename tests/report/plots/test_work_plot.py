"""The picture of rounds of various work, by its artists."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchrigor.model import Code, Notice, RunRecord
from benchrigor.model.text import show_estimate
from benchrigor.report import plot_trace, plot_work
from benchrigor.report.plots.work_plot import work_line
from benchrigor.stats import fit_wps

SPEED, OVERHEAD_S = 23.4e6, 0.3
N = 40


def amounts(n: int = N) -> np.ndarray:
    """Return amounts in bisecting order."""
    bits = [int(f"{index:010b}"[::-1], 2) / 1024.0 for index in range(1, n + 1)]
    return 2e6 + 60e6 * np.array(bits)


def durations(work: np.ndarray, overhead: float = OVERHEAD_S, seed: int = 1) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(1.0, 0.02, work.size)
    return overhead + work / SPEED * noise


WORK = amounts()
SHORT = np.geomspace(1e3, 1e6, 8)


def named(axes: Axes, label: str) -> list:
    return [each for each in (*axes.collections, *axes.lines) if each.get_label() == label]


def points(axes: Axes, label: str) -> list[tuple[float, float]]:
    (found,) = named(axes, label)
    return list(zip(found.get_xdata(), found.get_ydata(), strict=True))


def words(axes: Axes) -> str:
    return " ".join(" ".join(text.get_text() for text in axes.texts).split())


def drawn(axes: Axes) -> Axes:
    axes.figure.draw_without_rendering()
    return axes


def ticks(axis) -> list[str]:
    low, high = axis.get_view_interval()
    pairs = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
    return [label.get_text() for place, label in pairs if low <= place <= high]


def test_rounds_that_count_are_solid_and_the_others_hollow(of_pairs) -> None:
    work = np.concatenate([SHORT, WORK])
    took = durations(work)
    axes = drawn(plot_work(of_pairs(work, took, left_out=tuple(range(8)))))
    assert points(axes, "counted") == list(zip(WORK, took[8:], strict=True))
    assert points(axes, "left out") == list(zip(SHORT, took[:8], strict=True))
    (hollow,) = named(axes, "left out")
    (solid,) = named(axes, "counted")
    assert hollow.get_markerfacecolor() == "none"
    assert solid.get_markerfacecolor() != "none"


def test_the_line_is_the_fit_and_its_band_the_interval_at_both_ends(of_pairs) -> None:
    record = of_pairs(WORK, durations(WORK))
    fit = record.analyses[0].wps
    axes = drawn(plot_work(record))
    across, line = map(np.array, zip(*points(axes, "line"), strict=True))
    np.testing.assert_allclose(line, fit.overhead.value + fit.slope.value * across)
    assert (across[0], across[-1]) == (0.0, axes.get_xlim()[1])
    (band,) = named(axes, "interval")
    corners = band.get_paths()[0].vertices
    near = corners[corners[:, 0] == 0.0, 1]
    assert (near.min(), near.max()) == pytest.approx((fit.overhead.low, fit.overhead.high))
    far = across[-1]
    mirrored = fit_wps(far - WORK, durations(WORK)).overhead
    there = corners[corners[:, 0] == far, 1]
    assert there.max() - there.min() == pytest.approx(2.0 * mirrored.half_width, rel=0.2)


@pytest.mark.slow
def test_the_band_covers_the_true_line(of_pairs) -> None:
    hits, n = np.zeros(4), 80
    for seed in range(n):
        record = of_pairs(WORK, durations(WORK, seed=seed))
        line = work_line(record, record.analyses[0])
        at = np.array([0.0, 0.3, 0.6, 1.0]) * line.far
        _, low, high = line.band(record.analyses[0].wps, at)
        true = OVERHEAD_S + at / SPEED
        hits += (low <= true) & (true <= high)
    assert hits.min() >= 68  # binomial: at a coverage of .95 fewer come once in 4000


def test_the_band_never_closes(of_pairs, estimated) -> None:
    fit = {"overhead": estimated(0.3, 0.2, 0.4), "slope": estimated(1 / SPEED, 0.0, 2 / SPEED)}
    record = of_pairs(WORK, durations(WORK), **fit)
    line = work_line(record, record.analyses[0])
    _, low, high = line.band(record.analyses[0].wps, np.linspace(0.0, line.far, 99))
    assert (high - low).min() > 0.05


@pytest.mark.slow
def test_the_whole_line_is_in_the_picture(of_pairs) -> None:
    took = durations(WORK)
    took[WORK > 55e6] *= 0.9
    axes = drawn(plot_work(of_pairs(WORK, took)))
    assert max(took) < points(axes, "line")[-1][1] < axes.get_ylim()[1]


@pytest.mark.slow
@pytest.mark.parametrize("overhead", [OVERHEAD_S, 5.0, -0.2])
def test_the_overhead_is_marked_on_the_axis_with_its_interval(of_pairs, overhead: float) -> None:
    work = WORK + 6e6
    record = of_pairs(work, durations(work, overhead))
    found = record.analyses[0].wps.overhead
    axes = drawn(plot_work(record))
    assert points(axes, "overhead") == [(0.0, found.value)]
    reach = "interval of the overhead"
    assert points(axes, reach) == [(0.0, found.low), (0.0, found.high)]
    low, high = axes.get_ylim()
    assert low < found.low < found.high < high
    assert f"overhead {show_estimate(found, 's')}" in words(axes)


def test_the_speed_stands_beside_the_line(of_pairs) -> None:
    record = of_pairs(WORK, durations(WORK))
    assert show_estimate(record.estimate(), "B/s") in words(drawn(plot_work(record)))


def test_outlying_rounds_are_ringed_and_named_by_their_index_among_all(of_pairs) -> None:
    work = np.concatenate([SHORT, WORK])
    took = durations(work)
    took[25] += 1.0
    left_out = tuple(range(8))
    axes = drawn(plot_work(of_pairs(work, took, left_out=left_out, outliers=(17,))))
    assert points(axes, "outlying") == [(work[25], took[25])]
    assert "round 25" in words(axes)
    assert named(axes, "beyond") == []


def test_names_of_outlying_rounds_stay_inside_and_apart(of_pairs) -> None:
    order = np.argsort(WORK)
    rounds = (*order[:1], *order[20:23], *order[-1:])
    axes = drawn(plot_work(of_pairs(WORK, durations(WORK), outliers=tuple(map(int, rounds)))))
    assert len(points(axes, "outlying")) == 5
    names = [each for each in axes.texts if each.get_text().startswith("round ")]
    assert [(each.get_text(), each.get_ha()) for each in names] == [
        (f"round {order[0]}", "left"),
        (f"round {order[20]}", "right"),
        (f"round {order[-1]}", "right"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("far", "said"),
    [((17,), "round 17 beyond, at 60 s"), ((17, 20), "2 rounds beyond, up to 60 s")],
)
def test_rounds_far_above_do_not_squash_the_others(of_pairs, far: tuple, said: str) -> None:
    took = durations(WORK)
    took[list(far)] = 60.0
    axes = drawn(plot_work(of_pairs(WORK, took, outliers=far)))
    assert axes.get_ylim()[1] < 2.0 * np.delete(took, far).max()
    (marks,) = named(axes, "beyond")
    assert marks.get_xdata().tolist() == WORK[list(far)].tolist()
    assert said in words(axes)


@pytest.mark.slow
def test_axes_are_named_in_sensible_units(of_pairs) -> None:
    took = durations(WORK)
    for unit, scale, name in (
        ("B/s", 1.0, "work (MB)"),
        ("B/s", 1e-4, "work (kB)"),
        ("/s", 1.0, "work (1e6)"),
        ("/s", 1e-6, "work"),
        ("lines/s", 1e-3, "work (lines)"),
        ("lines/s", 1e200, "work (1e207 lines)"),
    ):
        axes = drawn(plot_work(of_pairs(WORK * scale, took, unit=unit)))
        assert (axes.get_xlabel(), axes.get_ylabel()) == (name, "duration (s)")
    assert ticks(drawn(plot_work(of_pairs(WORK, took / 100.0))).yaxis)[:2] == ["0", "5"]
    assert plot_work(of_pairs(WORK, took / 100.0)).get_ylabel() == "duration (ms)"
    assert ticks(drawn(plot_work(of_pairs(WORK, took))).xaxis) == [
        "0", "10", "20", "30", "40", "50", "60",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("decades", "scale"), [(2.9, "linear"), (3.1, "log")])
def test_amounts_over_more_than_three_decades_are_on_logarithmic_axes(
    of_pairs, decades: float, scale: str
) -> None:
    work = 10.0 ** (3.0 + decades * np.linspace(0.0, 1.0, N))[np.argsort(WORK)]
    took = 0.05 + work / 1e5
    took *= np.random.default_rng(3).normal(1.0, 0.02, N)
    axes = drawn(plot_work(of_pairs(work, took)))
    assert (axes.get_xscale(), axes.get_yscale()) == (scale, scale)
    low, high = axes.get_ylim()
    assert low < took.min() < took.max() < high


@pytest.mark.slow
def test_rounds_left_out_over_many_decades_keep_the_axes_linear(of_pairs) -> None:
    work = np.concatenate([2.0 ** np.arange(-20, 21), WORK])
    record = of_pairs(work, durations(work), left_out=tuple(range(41)))
    assert drawn(plot_work(record)).get_xscale() == "linear"


@pytest.mark.slow
def test_logarithmic_ticks_are_powers_in_their_own_unit(of_pairs) -> None:
    work = 10.0 ** np.linspace(3.0, 9.0, N)[np.argsort(WORK)]
    took = (0.02 + work / 1e8) * np.random.default_rng(3).normal(1.0, 0.02, N)
    axes = drawn(plot_work(of_pairs(work, took)))
    assert ticks(axes.xaxis) == ["1 kB", "10 kB", "100 kB", "1 MB", "10 MB", "100 MB", "1 GB"]
    assert ticks(axes.yaxis) == ["100 ms", "1 s", "10 s"]
    lines = drawn(plot_work(of_pairs(work, took, unit="lines/s")))
    assert lines.get_xlabel() == "work (lines)"
    assert ticks(lines.xaxis)[-5:] == ["100,000", "1e6", "1e7", "1e8", "1e9"]


NO_SPEED = Notice.refusal(Code.NO_SPEED, "Work tells nothing.")


def test_without_a_speed_the_picture_says_why_and_the_line_is_pale(of_pairs) -> None:
    refused = of_pairs(WORK, durations(WORK), speed=None, notices=(NO_SPEED,))
    axes = drawn(plot_work(refused))
    known = plot_work(of_pairs(WORK, durations(WORK)))
    assert named(axes, "line")[0].get_color() != named(known, "line")[0].get_color()


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2])
def test_too_few_rounds_are_drawn_without_a_line(of_pairs, n: int) -> None:
    axes = drawn(plot_work(of_pairs(WORK[:n], durations(WORK[:n]), notices=(NO_SPEED,))))
    assert len(points(axes, "counted")) == n
    assert named(axes, "line") == named(axes, "interval") == named(axes, "overhead") == []
    assert f"{n} of {n} round{'s count' if n > 1 else ' counts'}" in words(axes)


def test_the_trace_of_a_speed_is_this_picture(of_pairs) -> None:
    record = of_pairs(WORK, durations(WORK))
    for axes in (plot_trace(record), plot_trace(record, "speed"), plot_work(record, "speed")):
        assert len(points(axes, "counted")) == N
    figure = plot_trace(record).figure
    assert figure.get_size_inches().tolist() == [8.0, 4.0]


def test_given_axes_are_drawn_into(of_pairs) -> None:
    mine = Figure(layout="constrained").add_subplot()
    assert plot_work(of_pairs(WORK, durations(WORK)), axes=mine) is mine
    assert named(mine, "line")


def crowded(of_pairs: Callable[..., RunRecord], case: str) -> RunRecord:
    took = durations(WORK)
    if case == "flat":
        return of_pairs(WORK, took, speed=None, notices=(NO_SPEED,))
    if case == "negative":
        return of_pairs(WORK + 6e6, durations(WORK + 6e6, -0.25))
    if case == "huge":
        return of_pairs(WORK * 1e250, took, unit="/s")
    if case == "log":
        work = 10.0 ** np.linspace(0.0, 9.0, N)[np.argsort(WORK)]
        return of_pairs(work, 0.1 + work / 1e8 + took / 1e4, unit="lines/s")
    took[[3, 10]] = 50.0, 0.01
    return of_pairs(WORK, took, outliers=(3, 10, 11, 12, 13))


@pytest.mark.slow
@pytest.mark.parametrize("case", ["flat", "negative", "huge", "log", "outlying"])
def test_no_words_overlap_or_leave_the_picture(misplaced, of_pairs, case: str) -> None:
    axes = drawn(plot_work(crowded(of_pairs, case)))
    texts = [*axes.texts, axes.xaxis.label, axes.yaxis.label]
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        places = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
        texts += [label for place, label in places if low <= place <= high]
    assert misplaced(axes.figure, texts) == []
