"""The picture of rounds of various work, by its artists; its words stand in a page of texts."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from simulated.estimates import estimated
from tests.report.recorded import drawn, misplaced, named, ticks
from tests.texts.causes.report_work import NO_SPEED, ran

import benchrigor as br
from benchrigor.report import plot_trace, plot_work
from benchrigor.stats import fit_wps

SPEED, OVERHEAD_S = 23.4e6, 0.3
N = 40


def durations(work: np.ndarray, overhead: float = OVERHEAD_S) -> np.ndarray:
    noise = np.random.default_rng(1).normal(1.0, 0.02, work.size)
    return overhead + work / SPEED * noise


WORK = 2e6 + 1.5e6 * np.random.default_rng(2).permutation(N)
SHORT = np.geomspace(1e3, 1e6, 8)


def of_pairs(
    work: np.ndarray,
    duration_s: np.ndarray,
    *,
    left_out: tuple[int, ...] = (),
    notices: tuple[br.Notice, ...] = (),
    unit: str = "B/s",
    **changes: object,
) -> br.RunRecord:
    """Return a run of these rounds, of whose line some is changed."""
    rounds = tuple(
        br.Round(
            plan=br.RoundPlan(index=index, work=float(amount)),
            elapsed_ns=round(1e9 * seconds),
            readings={"time": float(seconds)},
        )
        for index, (amount, seconds) in enumerate(zip(work, duration_s, strict=True))
    )
    kept = [index for index in range(len(rounds)) if index not in left_out]
    fit = None
    if len(kept) > 2:
        fit = replace(fit_wps(np.asarray(work)[kept], np.asarray(duration_s)[kept]), **changes)
    record = ran(2, unit)
    analysis = replace(
        record.analyses[0],
        n=len(rounds),
        n_kept=len(kept),
        estimate=None if fit is None else fit.speed,
        wps=fit,
        left_out=left_out,
        notices=notices,
    )
    return replace(record, rounds=rounds, analyses=(analysis,))


def points(axes: Axes, label: str) -> list[tuple[float, float]]:
    (found,) = named(axes, label)
    return list(zip(found.get_xdata(), found.get_ydata(), strict=True))


def ticked(axis) -> list[str]:
    return [label.get_text() for label in ticks(axis)]


def test_rounds_that_count_are_solid_and_the_others_hollow() -> None:
    work = np.concatenate([SHORT, WORK])
    took = durations(work)
    axes = drawn(plot_work(of_pairs(work, took, left_out=tuple(range(8)))))
    assert points(axes, "counted") == list(zip(WORK, took[8:], strict=True))
    assert points(axes, "left out") == list(zip(SHORT, took[:8], strict=True))
    (hollow,), (solid,) = named(axes, "left out"), named(axes, "counted")
    assert hollow.get_markerfacecolor() == "none"
    assert solid.get_markerfacecolor() != "none"


def reach_at(axes: Axes, across: float) -> np.ndarray:
    """Return where the band lies."""
    corners = named(axes, "interval")[0].get_paths()[0].vertices
    return corners[corners[:, 0] == across, 1]


def test_the_line_is_the_fit_and_its_band_the_interval_at_both_ends() -> None:
    record = of_pairs(WORK, durations(WORK))
    fit = record.analyses[0].wps
    axes = drawn(plot_work(record))
    across, line = map(np.array, zip(*points(axes, "line"), strict=True))
    np.testing.assert_allclose(line, fit.overhead.value + fit.slope.value * across)
    assert (across[0], across[-1]) == (0.0, axes.get_xlim()[1])
    near, there = reach_at(axes, 0.0), reach_at(axes, across[-1])
    assert (near.min(), near.max()) == pytest.approx((fit.overhead.low, fit.overhead.high))
    mirrored = fit_wps(across[-1] - WORK, durations(WORK)).overhead
    assert np.ptp(there) == pytest.approx(2.0 * mirrored.half_width, rel=0.2)


def test_the_band_never_closes() -> None:
    wide = {"overhead": estimated(0.3, 0.2, 0.4), "slope": estimated(1 / SPEED, 0.0, 2 / SPEED)}
    axes = plot_work(of_pairs(WORK, durations(WORK), **wide))
    places = {x for x, _ in points(axes, "line")}
    assert min(np.ptp(reach_at(axes, place)) for place in places) > 0.05


@pytest.mark.parametrize("overhead", [5.0, -0.2])
def test_the_overhead_is_marked_on_the_axis_with_its_interval(overhead: float) -> None:
    work = WORK + 6e6
    record = of_pairs(work, durations(work, overhead))
    found = record.analyses[0].wps.overhead
    axes = drawn(plot_work(record))
    reach = "interval of the overhead"
    assert points(axes, "overhead") == [(0.0, found.value)]
    assert points(axes, reach) == [(0.0, found.low), (0.0, found.high)]
    low, high = axes.get_ylim()
    assert low < found.low < found.high < high


def test_names_of_outlying_rounds_stay_inside_and_apart() -> None:
    order = np.argsort(WORK)
    rounds = (*order[:1], *order[20:23], *order[-1:])
    axes = drawn(plot_work(of_pairs(WORK, durations(WORK), outliers=tuple(map(int, rounds)))))
    assert len(points(axes, "outlying")) == 5
    assert named(axes, "beyond") == []
    names = [each for each in axes.texts if each.get_text().startswith("round ")]
    assert [(each.get_text(), each.get_ha()) for each in names] == [
        (f"round {order[0]}", "left"),
        (f"round {order[20]}", "right"),
        (f"round {order[-1]}", "right"),
    ]


def test_rounds_far_above_do_not_squash_the_others() -> None:
    took, far = durations(WORK), [17, 20]
    took[far] = 60.0
    axes = drawn(plot_work(of_pairs(WORK, took, outliers=tuple(far))))
    assert axes.get_ylim()[1] < 2.0 * np.delete(took, far).max()
    (marks,) = named(axes, "beyond")
    assert marks.get_xdata().tolist() == WORK[far].tolist()


def test_axes_are_named_in_sensible_units() -> None:
    took = durations(WORK)
    for unit, scale, name in (
        ("B/s", 1e-4, "work (kB)"),
        ("/s", 1e-6, "work"),
        ("lines/s", 1e-3, "work (lines)"),
        ("lines/s", 1e200, "work (1e207 lines)"),
    ):
        axes = drawn(plot_work(of_pairs(WORK * scale, took, unit=unit)))
        assert (axes.get_xlabel(), axes.get_ylabel()) == (name, "duration (s)")
    short = drawn(plot_work(of_pairs(WORK, took / 100.0)))
    assert (ticked(short.yaxis)[:2], short.get_ylabel()) == (["0", "5"], "duration (ms)")
    assert ticked(short.xaxis) == ["0", "10", "20", "30", "40", "50", "60"]


@pytest.mark.parametrize(("decades", "scale"), [(2.9, "linear"), (3.1, "log")])
def test_amounts_over_more_than_three_decades_are_on_logarithmic_axes(
    decades: float, scale: str
) -> None:
    work = 10.0 ** (3.0 + decades * np.linspace(0.0, 1.0, N))[np.argsort(WORK)]
    took = (0.05 + work / 1e5) * np.random.default_rng(3).normal(1.0, 0.02, N)
    axes = drawn(plot_work(of_pairs(work, took)))
    assert (axes.get_xscale(), axes.get_yscale()) == (scale, scale)
    low, high = axes.get_ylim()
    assert low < took.min() < took.max() < high
    work = np.concatenate([2.0 ** np.arange(-20, 21), WORK])
    record = of_pairs(work, durations(work), left_out=tuple(range(41)))
    assert plot_work(record).get_xscale() == "linear"


def test_logarithmic_ticks_are_powers_in_their_own_unit() -> None:
    work = 10.0 ** np.linspace(3.0, 9.0, N)[np.argsort(WORK)]
    took = (0.02 + work / 1e8) * np.random.default_rng(3).normal(1.0, 0.02, N)
    axes = drawn(plot_work(of_pairs(work, took)))
    assert ticked(axes.xaxis) == ["1 kB", "10 kB", "100 kB", "1 MB", "10 MB", "100 MB", "1 GB"]
    assert ticked(axes.yaxis) == ["100 ms", "1 s", "10 s"]
    lines = drawn(plot_work(of_pairs(work, took, unit="lines/s")))
    assert lines.get_xlabel() == "work (lines)"
    assert ticked(lines.xaxis)[-5:] == ["100,000", "1e6", "1e7", "1e8", "1e9"]


def test_without_a_speed_the_line_is_pale() -> None:
    refused = of_pairs(WORK, durations(WORK), speed=None, notices=(NO_SPEED,))
    pale, known = plot_work(refused), plot_work(of_pairs(WORK, durations(WORK)))
    assert named(pale, "line")[0].get_color() != named(known, "line")[0].get_color()


@pytest.mark.parametrize("n", [1, 2])
def test_too_few_rounds_are_drawn_without_a_line(n: int) -> None:
    axes = drawn(plot_work(of_pairs(WORK[:n], durations(WORK[:n]), notices=(NO_SPEED,))))
    assert len(points(axes, "counted")) == n
    assert named(axes, "line") == named(axes, "interval") == named(axes, "overhead") == []


def test_the_trace_of_a_speed_is_this_picture_in_given_axes_or_its_own() -> None:
    record = of_pairs(WORK, durations(WORK))
    for axes in (plot_trace(record), plot_trace(record, "speed"), plot_work(record, "speed")):
        assert len(points(axes, "counted")) == N
        assert axes.figure.get_size_inches().tolist() == [8.0, 4.0]
    mine = Figure(layout="constrained").add_subplot()
    assert plot_work(record, axes=mine) is mine
    assert named(mine, "line")


TOOK, POWERS = durations(WORK), 10.0 ** np.linspace(0.0, 9.0, N)[np.argsort(WORK)]
FAR = np.where(np.arange(N) == 3, 50.0, np.where(np.arange(N) == 10, 0.01, TOOK))
CROWDED = {
    "flat": lambda: of_pairs(WORK, TOOK, speed=None, notices=(NO_SPEED,)),
    "negative": lambda: of_pairs(WORK + 6e6, durations(WORK + 6e6, -0.25)),
    "huge": lambda: of_pairs(WORK * 1e250, TOOK, unit="/s"),
    "log": lambda: of_pairs(POWERS, 0.1 + POWERS / 1e8 + TOOK / 1e4, unit="lines/s"),
    "outlying": lambda: of_pairs(WORK, FAR, outliers=(3, 10, 11, 12, 13)),
}


@pytest.mark.parametrize("case", CROWDED)
def test_no_words_overlap_or_leave_the_picture(case: str) -> None:
    assert misplaced(drawn(plot_work(CROWDED[case]()))) == []
