"""The picture of readings, by its artists; its words stand in a page of texts."""

import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from tests.report.recorded import drawn, misplaced, named, ticks, told

import benchrigor as br
from benchrigor.model import ChangePoints, Phase, StablePhase
from benchrigor.report import plot_trace
from benchrigor.stats import estimate_mean, trimmed


def of(unit: str) -> tuple[br.Metric]:
    return (br.Metric(name="time", unit=unit),)


def pictured(
    values: object,
    phases: StablePhase | None = None,
    estimate: br.Estimate | None = None,
    *,
    unit: str = "s",
    title: str = "a $ign",
) -> Axes:
    """Draw a run of these readings; of phases that are given, with the number that is given."""
    record = told(values, metrics=of(unit), name=title)
    if phases is not None:
        analysis = replace(
            record.analyses[0], phases=(phases,), estimate=estimate, notices=phases.notices
        )
        record = replace(record, analyses=(analysis,))
    return plot_trace(record)


def steps(*levels: tuple[float, int], seed: int = 1) -> np.ndarray:
    means = np.concatenate([np.full(n, level) for level, n in levels])
    return means * np.random.default_rng(seed).normal(1.0, 0.05, means.size)


THREE = steps((5e-3, 100), (2e-3, 800), (2.2e-3, 100))


def words(axes: Axes) -> str:
    return " ".join(text.get_text() for text in axes.texts if text.get_text())


def spans(axes: Axes, label: str) -> list[tuple[float, float]]:
    paths = [path for each in named(axes, label) for path in each.get_paths()]
    return sorted((path.get_extents().x0, path.get_extents().x1) for path in paths)


def uprights(axes: Axes, label: str) -> list[float]:
    return [segment[0][0] for each in named(axes, label) for segment in each.get_segments()]


LABELS = ("warm-up", "stable", "cool-down", "other")


def test_rejected_phases_are_shaded_from_their_first_reading_to_their_last() -> None:
    record = told(THREE)
    phases = record.analyses[0].phases[0].phases
    axes = drawn(plot_trace(record))
    assert [phase.label for phase in phases] == [*LABELS[:3]]
    for phase in (phases[0], phases[2]):
        assert spans(axes, phase.label) == [(phase.start - 0.5, phase.stop - 0.5)]
        assert str(phase.label) in words(axes)
    assert spans(axes, "other") == []


def phases_of(labels: str, borders: tuple[int, ...], raw: tuple[int, ...] = ()) -> StablePhase:
    """Compose phases by hand; labels are given by their first letters."""
    known: dict[str, Any] = {label[0]: label for label in LABELS}
    phases = tuple(
        Phase(start=start, stop=stop, label=known[letter], median=1.0)
        for (start, stop), letter in zip(pairwise(borders), labels, strict=True)
    )
    stable = next(phase for phase in phases if phase.label == "stable")
    reason: Any = "stable"
    return StablePhase(
        start=stable.start,
        stop=stable.stop,
        reason=reason,
        phases=phases,
        change_points=ChangePoints(indices=raw, n=borders[-1], level=0.01, inflation=1.0),
    )


def test_change_points_are_lines_and_those_of_immaterial_steps_are_told_apart() -> None:
    found = phases_of("ws", (0, 50, 400), raw=(50, 120, 200))
    axes = drawn(pictured(np.ones(400), found))
    assert uprights(axes, "change point") == [49.5]
    immaterial = "immaterial change point"
    assert uprights(axes, immaterial) == [119.5, 199.5]
    (solid,), (dotted,) = named(axes, "change point"), named(axes, immaterial)
    assert solid.get_linestyle() != dotted.get_linestyle()
    (counted,) = (each.get_text() for each in axes.texts if "change" in each.get_text())
    assert re.findall(r"\d+", counted) == ["3", "2"]


def test_a_picture_has_the_name_of_the_run() -> None:
    assert words(pictured(np.ones(20), title="a $ign.csv")).endswith(" a $ign.csv")
    long = pictured(np.ones(20), title="x" * 500).texts[-1].get_text()
    assert long.startswith("x" * 40)
    assert long.endswith("x…")


FAR = steps((1e-3, 1000))
FAR[[50, 300, 400]], FAR[[60, 700]] = 1.0, -1.0


RISING = steps(*((level * 1e-3, 100) for level in range(1, 11)))


@pytest.mark.parametrize(
    ("values", "phases"),
    [
        (RISING, None),
        (FAR, phases_of("wsc", (0, 100, 800, 1000), (30, 100, 800))),
        (-1e12 * FAR, phases_of("wosoc", (0, 40, 50, 900, 930, 1000), (40, 50, 900, 930))),
        (1e9 + np.arange(1000.0), phases_of("osococ", (0, 5, 700, 720, 740, 750, 1000), (900,))),
        (np.repeat(THREE, 10), phases_of("ws", (0, 10, 10_000), (10, 5000))),
    ],
    ids=["refused", "far", "huge", "crowded", "many"],
)
@pytest.mark.parametrize("unit", ["B/s", ""])
def test_no_words_overlap_or_leave_the_picture(values, phases: Any, unit: str) -> None:
    number = estimate_mean(np.asarray(values), trim=False) if phases else None
    axes = drawn(pictured(values, phases, estimate=number, unit=unit, title="W" * 500))
    assert bool(named(axes, "number")) is (number is not None)
    assert misplaced(axes) == []


def test_the_interval_is_drawn_over_the_readings_that_it_stands_on() -> None:
    record = told(THREE)
    found, stable = record.estimate(), record.analyses[0].phases[0]
    assert found is not None
    kept = trimmed(np.arange(1000.0), stable)
    axes = drawn(plot_trace(record))
    (band,), (line,) = named(axes, "interval"), named(axes, "number")
    box = band.get_paths()[0].get_extents()
    assert (box.y0, box.y1) == pytest.approx((found.low, found.high))
    assert (box.x0, box.x1) == (kept[0] - 0.5, kept[-1] + 0.5)
    assert line.get_segments()[0].tolist() == [[box.x0, found.value], [box.x1, found.value]]


def test_readings_that_do_not_count_are_paler_and_all_are_there() -> None:
    axes = drawn(plot_trace(told(THREE)))
    (pale,), (dark,) = named(axes, "left out"), named(axes, "kept")
    assert pale.get_color() != dark.get_color()
    at = np.concatenate([pale.get_xdata(), dark.get_xdata()])
    values = np.concatenate([pale.get_ydata(), dark.get_ydata()])
    np.testing.assert_array_equal(values[np.argsort(at)], THREE)
    low, high = axes.get_ylim()
    assert low < THREE.min() < THREE.max() < high
    assert named(axes, "beyond") == []


def test_without_a_stable_phase_no_number_is_shown() -> None:
    record = told(steps((1e-3, 200), (2e-3, 200), (3e-3, 200), (4e-3, 200)))
    axes = drawn(plot_trace(record))
    assert spans(axes, "other") == [(-0.5, 799.5)]
    assert named(axes, "number") == named(axes, "interval") == []
    assert record.notices[0].sentence in " ".join(words(axes).split())


@pytest.mark.parametrize(("n", "sign"), [(600, 1.0), (100, -1.0), (20_000, 1.0)])
def test_a_fortieth_of_far_readings_does_not_flatten_the_others(n: int, sign: float) -> None:
    values = steps((1e-3, n))
    far = np.sort(np.random.default_rng(2).choice(n, n // 40, replace=False))
    values[far] *= 30.0
    axes = drawn(pictured(sign * values, phases_of("s", (0, n)), unit="V"))
    low, high = axes.get_ylim()
    others = np.delete(sign * values, far)
    assert low < others.min() < others.max() < high
    assert high - low < 2.0 * np.ptp(others)
    assert f"{n // 40} beyond" in words(axes)
    if n < 1_000:
        (marks,) = named(axes, "beyond")
        assert marks.get_xdata().tolist() == far.tolist()


def test_a_number_that_far_readings_pull_away_is_in_the_picture_or_shown_where_it_is() -> None:
    values = steps((1e-3, 800))
    values[np.random.default_rng(2).choice(800, 9, replace=False)] *= 30.0
    found = told(values).estimate()
    assert found is not None
    low, high = plot_trace(told(values)).get_ylim()
    assert low < found.value < high
    for sign, arrow in ((1.0, "↑"), (-1.0, "↓")):
        away = replace(found, value=sign, low=sign - 0.1, high=sign + 0.1)
        axes = pictured(sign * values, phases_of("s", (0, 800)), estimate=away, unit="V")
        assert max(map(abs, axes.get_ylim())) < 2e-3
        assert f"{arrow} mean {sign:.2f} V" in words(axes)


@pytest.mark.parametrize("n", [4001, 100_000])
def test_very_many_readings_become_columns_that_keep_their_extremes(n: int) -> None:
    values = np.random.default_rng(1).lognormal(0.0, 0.3, n)
    axes = drawn(pictured(values, phases_of("s", (0, n)), estimate_mean(values)))
    assert named(axes, "kept") == []
    (whole,), (half,), (middle,) = (
        named(axes, f"{label}, kept") for label in ("range", "middle half", "median")
    )
    most, edges, least = whole.get_data()
    high, _, low = half.get_data()
    assert edges[0] == -0.5
    assert edges[-1] == n - 0.5
    assert most.size <= 1000
    for column, (start, stop) in enumerate(pairwise(edges)):
        part = values[int(start + 0.5) : int(stop + 0.5)]
        assert (least[column], most[column]) == (part.min(), part.max())
        assert low[column] <= middle.get_data()[0][column] <= high[column]


def test_restarted_rounds_stand_in_a_row_each_with_its_own_phases() -> None:
    record = told(
        *(steps((2e-3, 40 + 10 * index), (1e-3, 300), seed=index) for index in range(3)),
        rounds="restarted",
    )
    axes = drawn(plot_trace(record))
    offsets = [0, 340, 690]
    wanted = [
        (offset + phase.start - 0.5, offset + phase.stop - 0.5)
        for offset, found in zip(offsets, record.analyses[0].phases, strict=True)
        for phase in found.phases
        if phase.label == "warm-up"
    ]
    assert len(wanted) == 3
    assert spans(axes, "warm-up") == wanted
    assert uprights(axes, "round") == [339.5, 689.5]
    assert len(named(axes, "interval")[0].get_paths()) == 3


def near(middle: float, spread: float) -> np.ndarray:
    return middle + spread * np.random.default_rng(1).standard_normal(500)


AXES = {  # readings, their unit, the label, and the unit of the ticks in it
    "single": ([0.00123], "s", "time (ms)", 1e-3),
    "constant": (np.full(300, 5e-6), "s", "time (µs)", 1e-6),
    "zero": (np.zeros(50), "", "time", 1.0),
    "no time": (np.zeros(50), "s", "time (ns)", 1e-9),
    "mostly zero": (np.where(np.arange(400) % 4 < 3, 0.0, 2e-3), "s", "time (µs)", 1e-6),
    "negative": (-steps((3.0, 50), (1.0, 400)), "dB", "time (dB)", 1.0),
    "quarters": (np.linspace(0.06, 1.94, 50), "", "time", 1.0),
    "tiny": (np.linspace(1.2e-12, 2.8e-12, 50), "", "time", 1.0),
    "nearly alike": (near(1e9, 0.1), "s", "time minus 1,000,000,000 s (ms)", 1e-3),
    "nearly alike, negative": (near(-1e9, 0.1), "", "time minus -1,000,000,000", 1.0),
    "nearly alike, of 1": (near(1.0, 1e-7), "s", "time minus 1,000 ms (ns)", 1e-9),
}


@pytest.mark.parametrize(("values", "unit", "label", "scale"), AXES.values(), ids=AXES)
def test_axes_have_a_sensible_unit_and_ticks_the_digits_that_they_need(
    values, unit: str, label: str, scale: float
) -> None:
    axes = drawn(plot_trace(told(values, metrics=of(unit))))
    assert axes.get_ylabel() == label
    low, high = axes.get_ylim()
    assert low < min(values) <= max(values) < high
    texts = [each.get_text() for each in ticks(axes.yaxis)]
    assert len(set(texts)) == len(texts) > 2
    read = np.array([float(each.replace(",", "")) for each in texts])
    places = np.array([each for each in axes.get_yticks() if low <= each <= high])
    assert np.diff(read) == pytest.approx(np.diff(places) / scale, rel=1e-5)


def test_drawing_touches_no_state_of_pyplot() -> None:
    code = """
import io, sys
import benchrigor as br
assert "matplotlib" not in sys.modules
record = br.measure(dict, budget_s=0.05)
br.report.plot_trace(record).figure.savefig(io.BytesIO())
print("matplotlib.pyplot" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_matplotlib_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(br.errors.MissingExtra, match=r"benchrigor\[report\]") as caught:
        plot_trace(told(THREE))
    assert isinstance(caught.value, ImportError)
