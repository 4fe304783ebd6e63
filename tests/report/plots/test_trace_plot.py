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

import benchrigor as br
from benchrigor.model import ChangePoints, Notice, Phase, RunRecord, StablePhase
from benchrigor.report import plot_trace
from benchrigor.session import Engine
from benchrigor.stats import estimate_mean, trimmed


def told(*rounds: object, restarted: bool = False, unit: str = "s") -> RunRecord:
    """Return the record of a session that was told these rounds."""
    options = br.Options(target=1e-9, rounds="restarted" if restarted else "continuous")
    engine = Engine(options, (br.Metric(name="time", unit=unit),), name="a $ign", recorded=True)
    for values in rounds:
        plan = engine.ask()
        assert plan is not None
        engine.tell(br.Round(plan=plan, elapsed_ns=1, unit_readings={"time": values}))
    return engine.result()


def pictured(
    values: object,
    phases: StablePhase | None = None,
    estimate: br.Estimate | None = None,
    *,
    unit: str = "s",
    title: str = "a $ign",
) -> Axes:
    """Draw a run of these readings; of phases that are given, with the number that is given."""
    record = replace(told(values, unit=unit), name=title)
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


def named(axes: Axes, label: str) -> list:
    artists = [*axes.collections, *axes.lines, *axes.patches]
    return [each for each in artists if each.get_label() == label]


def words(axes: Axes) -> str:
    return " ".join(text.get_text() for text in axes.texts if text.get_text())


def spans(axes: Axes, label: str) -> list[tuple[float, float]]:
    paths = [path for each in named(axes, label) for path in each.get_paths()]
    return sorted((path.get_extents().x0, path.get_extents().x1) for path in paths)


def uprights(axes: Axes, label: str) -> list[float]:
    return [segment[0][0] for each in named(axes, label) for segment in each.get_segments()]


def seen(axes: Axes) -> list:
    """Return the labels of those ticks that lie within the axes, after drawing."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    across = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    up = zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    shown = [text for place, text in across if left <= place <= right]
    return shown + [text for place, text in up if low <= place <= high]


def drawn(axes: Axes) -> Axes:
    axes.figure.draw_without_rendering()
    return axes


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


def phases_of(
    labels: str, borders: tuple[int, ...], raw: tuple[int, ...] = (), median: float = 1.0
) -> StablePhase:
    """Compose phases by hand; labels are given by their first letters."""
    known: dict[str, Any] = {label[0]: label for label in LABELS}
    phases = tuple(
        Phase(start=start, stop=stop, label=known[letter], median=median)
        for (start, stop), letter in zip(pairwise(borders), labels, strict=True)
    )
    stable = next(phase for phase in phases if phase.label == "stable")
    return composed("stable", phases, raw, start=stable.start, stop=stable.stop)


def composed(reason: Any, phases: tuple[Phase, ...], raw: tuple[int, ...], **more: Any) -> Any:
    """Compose phases with change points of these indices."""
    points = ChangePoints(indices=raw, n=phases[-1].stop, level=0.01, inflation=1.0)
    return StablePhase(reason=reason, phases=phases, change_points=points, **more)


def test_adjacent_phases_of_one_label_are_one_shaded_stretch_with_one_label() -> None:
    found = phases_of("wwso", (0, 20, 50, 350, 400), raw=(20, 50, 350))
    axes = drawn(pictured(np.ones(400), found))
    assert spans(axes, "warm-up") == [(-0.5, 49.5)]
    assert spans(axes, "other") == [(349.5, 399.5)]
    assert words(axes).count("warm-up") == 1


def test_change_points_are_lines_and_those_of_immaterial_steps_are_told_apart() -> None:
    found = phases_of("ws", (0, 50, 400), raw=(50, 120, 200))
    axes = drawn(pictured(np.ones(400), found))
    assert uprights(axes, "change point") == [49.5]
    immaterial = "immaterial change point"
    assert uprights(axes, immaterial) == [119.5, 199.5]
    (solid,), (dotted,) = named(axes, "change point"), named(axes, immaterial)
    assert solid.get_linestyle() != dotted.get_linestyle()


@pytest.mark.parametrize(("raw", "counts"), [((50,), ["1"]), ((50, 120, 200), ["3", "2"])])
def test_change_points_are_counted_and_so_are_those_of_immaterial_steps(
    raw: tuple[int, ...], counts: list[str]
) -> None:
    axes = pictured(np.ones(400), phases_of("ws", (0, 50, 400), raw))
    (told_of,) = (each.get_text() for each in axes.texts if "change" in each.get_text())
    assert re.findall(r"\d+", told_of) == counts


def test_a_picture_has_the_name_of_the_run() -> None:
    assert words(pictured(np.ones(20), title="a $ign.csv")).endswith(" a $ign.csv")
    long = pictured(np.ones(20), title="x" * 500).texts[-1].get_text()
    assert long.startswith("x" * 40)
    assert long.endswith("x…")


def refused(n: int) -> StablePhase:
    """Compose phases without a stable one, cut at ten points, and a sentence that is long."""
    sentence = "No stable phase can be told from noise: " + "it holds too few readings " * 6
    notice = Notice.refusal("no-stable-phase", f"{sentence.strip()}.")
    borders = tuple(range(0, n + 1, n // 5))
    other: Any = "other"
    phases = tuple(
        Phase(start=start, stop=stop, label=other, median=1.0) for start, stop in pairwise(borders)
    )
    raw = tuple(range(n // 10, n, n // 10))
    return composed("trend", phases, raw, start=None, stop=None, notices=(notice,))


FAR = steps((1e-3, 1000))
FAR[[50, 300, 400]], FAR[[60, 700]] = 1.0, -1.0


@pytest.mark.parametrize(
    ("values", "phases"),
    [
        (steps((1e-3, 1000)) * np.linspace(1.0, 3.0, 1000), refused(1000)),
        (FAR, phases_of("wsc", (0, 100, 800, 1000), (30, 100, 800))),
        (1e9 + FAR, phases_of("s", (0, 1000), (500,))),
        (-1e12 * FAR, phases_of("wosoc", (0, 40, 50, 900, 930, 1000), (40, 50, 900, 930))),
        (1e9 + np.arange(1000.0), phases_of("osococ", (0, 5, 700, 720, 740, 750, 1000), (900,))),
        (np.repeat(THREE, 10), phases_of("ws", (0, 10, 10_000), (10, 5000))),
    ],
    ids=["refused", "far", "offset", "huge", "crowded", "many"],
)
@pytest.mark.parametrize(
    "unit", ["B/s", *(pytest.param(each, marks=pytest.mark.slow) for each in ("V", ""))]
)
def test_no_words_overlap_or_leave_the_picture(
    misplaced, values, phases: StablePhase, unit: str
) -> None:
    kept = phases.start is not None
    number = estimate_mean(np.asarray(values), trim=False) if kept else None
    axes = drawn(pictured(values, phases, estimate=number, unit=unit, title="W" * 500))
    labels = (*axes.texts, axes.xaxis.label, axes.yaxis.label, *seen(axes))
    assert misplaced(axes.figure, labels) == []


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


def test_without_a_stable_phase_no_number_is_shown() -> None:
    record = told(steps((1e-3, 200), (2e-3, 200), (3e-3, 200), (4e-3, 200)))
    axes = drawn(plot_trace(record))
    assert spans(axes, "other") == [(-0.5, 799.5)]
    assert named(axes, "number") == named(axes, "interval") == []
    assert record.notices[0].sentence in " ".join(words(axes).split())


@pytest.mark.slow
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
    record = told(values)
    found = record.estimate()
    assert found is not None
    low, high = plot_trace(record).get_ylim()
    assert low < found.value < high
    away = replace(found, value=1.0, low=0.9, high=1.1)
    phases = phases_of("s", (0, 800))
    up = pictured(values, phases, estimate=away, unit="V")
    assert up.get_ylim()[1] < 2e-3
    assert "↑ mean 1.00 V" in words(up)
    assert "↓ mean -1.00 V" in words(
        pictured(-values, phases, estimate=replace(away, value=-1.0, low=-1.1, high=-0.9), unit="V")
    )


def test_a_reading_just_outside_the_bulk_is_no_outlier() -> None:
    axes = plot_trace(told(THREE))
    low, high = axes.get_ylim()
    assert low < THREE.min() < THREE.max() < high
    assert named(axes, "beyond") == []


@pytest.mark.slow
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
    assert f"{most.size:,} columns" in axes.get_xlabel()


@pytest.mark.slow
def test_a_million_readings_make_a_small_file(tmp_path) -> None:
    values = np.random.default_rng(1).normal(5.0, 1.0, 1_000_000)
    found = phases_of("s", (0, values.size))
    for suffix, most in (("png", 150_000), ("svg", 400_000)):
        path = tmp_path / f"trace.{suffix}"
        pictured(values, found).figure.savefig(path)
        assert path.stat().st_size < most


def test_restarted_rounds_stand_in_a_row_each_with_its_own_phases() -> None:
    record = told(
        *(steps((2e-3, 40 + 10 * index), (1e-3, 300), seed=index) for index in range(3)),
        restarted=True,
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "unit", "label"),
    [
        ([0.00123], "s", "time (ms)"),
        ([1.0, 1.1], "B/s", "time (B/s)"),
        (np.full(300, 5e-6), "s", "time (µs)"),
        (np.zeros(50), "", "time"),
        (np.zeros(50), "s", "time (ns)"),
        (-steps((3.0, 50), (1.0, 400)), "dB", "time (dB)"),
    ],
    ids=["single", "two", "constant", "zero", "no time", "negative"],
)
def test_odd_series_are_drawn_with_their_unit(values, unit: str, label: str, tmp_path) -> None:
    axes = plot_trace(told(values, unit=unit))
    axes.figure.savefig(tmp_path / "trace.png")
    low, high = axes.get_ylim()
    assert low < min(values)
    assert high > max(values)
    assert axes.get_ylabel() == label


def ticks(axes: Axes) -> list[float]:
    texts = [text.get_text() for text in seen(drawn(axes)) if text in axes.get_yticklabels()]
    assert len(set(texts)) == len(texts) > 2
    return [float(text.replace(",", "")) for text in texts]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("middle", "spread", "unit", "label", "reach"),
    [
        (1e9, 0.1, "s", "time minus 1,000,000,000 s (ms)", 310.0),
        (-1e9, 0.1, "", "time minus -1,000,000,000", 0.31),
        (1.0, 1e-7, "s", "time minus 1,000 ms (ns)", 310.0),
    ],
)
def test_readings_that_are_nearly_alike_are_told_apart_by_their_difference_from_a_base(
    middle: float, spread: float, unit: str, label: str, reach: float
) -> None:
    values = middle + spread * np.random.default_rng(1).standard_normal(500)
    axes = plot_trace(told(values, unit=unit))
    assert axes.get_ylabel() == label
    assert max(map(abs, ticks(axes))) <= reach


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "places"),
    [
        (np.linspace(0.06, 1.94, 50), [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0]),
        (np.linspace(1.2e-12, 2.8e-12, 50), [1.2e-12, 1.4e-12, 2.8e-12]),
        (np.linspace(1.00001e-12, 1.00003e-12, 50), [1.00001e-12, 1.00002e-12, 1.00003e-12]),
    ],
)
def test_ticks_have_all_the_digits_that_their_places_need(values, places: list[float]) -> None:
    axes = plot_trace(told(values, unit=""))
    read = ticks(axes)
    for place in places:
        assert min(abs(each - place) for each in read) < 1e-9 * place or place == 0.0
    low, high = axes.get_ylim()
    assert read == pytest.approx([each for each in axes.get_yticks() if low <= each <= high])


def test_ticks_are_in_the_unit_of_the_label_also_where_they_were_set_by_hand() -> None:
    axes = plot_trace(told(THREE))
    assert axes.get_ylabel() == "time (ms)"
    for places in ([*axes.get_yticks()], [2e-3, 5e-3]):
        axes.set_yticks(places)
        drawn(axes)
        shown = [float(text.get_text()) for text in axes.get_yticklabels()]
        assert shown == pytest.approx([1e3 * place for place in places])


@pytest.mark.slow
def test_a_number_of_zero_does_not_set_the_scale() -> None:
    values = np.where(np.arange(400) % 4 < 3, 0.0, 2e-3)
    axes = pictured(values, phases_of("s", (0, 400), median=0.0), unit="s")
    assert axes.get_ylabel() == "time (µs)"
    assert max(ticks(axes)) == 2000.0


@pytest.mark.slow
def test_columns_that_do_not_count_are_paler_than_those_that_do() -> None:
    axes = drawn(plot_trace(told(steps((2e-3, 3000), (1e-3, 17_000)))))
    for label in ("range", "middle half", "median"):
        (pale,), (dark,) = named(axes, f"{label}, left out"), named(axes, f"{label}, kept")
        colors = [(each.get_facecolor(), each.get_edgecolor()) for each in (pale, dark)]
        assert colors[0] != colors[1]
        shown = [np.isfinite(each.get_data().values) for each in (pale, dark)]
        assert (shown[0] ^ shown[1]).all()
        edges = dark.get_data().edges
        left = named(axes, "number")[0].get_segments()[0][0][0]
        assert edges[shown[1].argmax()] == pytest.approx(left, abs=25)


@pytest.mark.slow
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
