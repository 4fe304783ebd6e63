import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import benchrigor as br
from benchrigor.model import ChangePoints, Delays, Notice, Phase, RunRecord, StablePhase
from benchrigor.model.analysis import PhaseLabel, PhaseReason
from benchrigor.report import plot_trace, render
from benchrigor.session import Engine
from benchrigor.session.replays.recorded_run import record_of_readings
from benchrigor.stats import estimate_mean, trimmed


def told(*rounds: object, restarted: bool = False, unit: str = "s") -> RunRecord:
    """Return the record of a session that was told these rounds."""
    options = br.Options(target=1e-9, rounds="restarted" if restarted else "continuous")
    engine = Engine(options, (br.Metric(name="time", unit=unit),), name="a $ign")
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


@pytest.mark.slow
def test_rejected_phases_are_shaded_from_their_first_reading_to_their_last() -> None:
    record = record_of_readings(
        [THREE], br.Options(), br.Metric(name="time", unit="s"), name="file"
    )
    phases = record.analyses[0].phases[0].phases
    axes = drawn(plot_trace(record))
    assert [phase.label for phase in phases] == ["warm-up", "stable", "cool-down"]
    for phase in (phases[0], phases[2]):
        assert spans(axes, phase.label) == [(phase.start - 0.5, phase.stop - 0.5)]
        assert str(phase.label) in words(axes)
    assert spans(axes, "other") == []


def phases_of(
    labels: str, borders: tuple[int, ...], raw: tuple[int, ...] = (), median: float = 1.0
) -> StablePhase:
    """Compose phases by hand; labels are given by their first letters."""
    known = {str(label)[0]: label for label in PhaseLabel}
    phases = tuple(
        Phase(start=start, stop=stop, label=known[letter], median=median)
        for (start, stop), letter in zip(pairwise(borders), labels, strict=True)
    )
    stable = next(phase for phase in phases if phase.label == "stable")
    return StablePhase(
        start=stable.start,
        stop=stable.stop,
        reason=PhaseReason.STABLE,
        phases=phases,
        change_points=ChangePoints(indices=raw, n=borders[-1], level=0.01, inflation=1.0),
    )


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


@pytest.mark.parametrize(
    ("labels", "borders", "raw", "said"),
    [
        ("ws", (0, 50, 400), (50,), "1 change point"),
        ("ws", (0, 50, 400), (50, 120), "2 change points,\n1 immaterial (dotted)"),
        ("ws", (0, 50, 400), (50, 120, 200), "3 change points,\n2 immaterial (dotted)"),
        ("s", (0, 400), (120,), "1 immaterial\nchange point (dotted)"),
        ("s", (0, 400), (120, 200), "2 immaterial\nchange points (dotted)"),
    ],
)
def test_change_points_are_counted_in_words_that_read_well(
    labels: str, borders: tuple[int, ...], raw: tuple[int, ...], said: str
) -> None:
    axes = pictured(np.ones(400), phases_of(labels, borders, raw))
    assert [each.get_text() for each in axes.texts if "change" in each.get_text()] == [said]


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
    return StablePhase(
        start=None,
        stop=None,
        reason=PhaseReason.TREND,
        phases=tuple(
            Phase(start=start, stop=stop, label=PhaseLabel.OTHER, median=1.0)
            for start, stop in pairwise(borders)
        ),
        change_points=ChangePoints(
            indices=tuple(range(n // 10, n, n // 10)), n=n, level=0.01, inflation=1.0
        ),
        notices=(notice,),
    )


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


def test_a_margin_is_counted_where_all_phases_are_measured() -> None:
    levels = np.repeat([1.0, 1.2, 1.0], [700, 600, 700])
    record = told(levels * np.random.default_rng(1).normal(1.0, 0.01, 2_000))
    analysis = record.analyses[0]
    assert (analysis.phases[0].reason, analysis.n_kept) == (PhaseReason.CHANGING_PACE, 1_990)


def test_readings_left_out_for_delay_are_told_as_in_the_report() -> None:
    values = np.random.default_rng(2).normal(1.0, 0.01, 400)
    delays = Delays(
        stops=np.arange(1, 401),
        seconds={"run queue": 0.3 * (np.arange(400) % 8 == 3)},
        duration_s=values,
    )
    engine = Engine(br.Options(target=None, max_rounds=1), seed=1)
    plan = engine.ask()
    assert plan is not None
    engine.tell(
        br.Round(plan=plan, elapsed_ns=10**12, unit_readings={"time": values}, delays=delays)
    )
    record = engine.result()
    sentence = "50 of 400 readings left out for delay"
    assert sentence in " ".join(render(record).split())
    assert sentence in " ".join(words(drawn(plot_trace(record))).split())


def test_readings_that_do_not_count_are_paler_and_all_are_there() -> None:
    axes = drawn(plot_trace(told(THREE)))
    (pale,), (dark,) = named(axes, "left out"), named(axes, "kept")
    assert pale.get_color() != dark.get_color()
    at = np.concatenate([pale.get_xdata(), dark.get_xdata()])
    values = np.concatenate([pale.get_ydata(), dark.get_ydata()])
    np.testing.assert_array_equal(values[np.argsort(at)], THREE)


def test_without_a_stable_phase_the_picture_says_why_and_shows_no_number() -> None:
    record = told(steps((1e-3, 200), (2e-3, 200), (3e-3, 200), (4e-3, 200)))
    assert record.estimate() is None
    axes = drawn(plot_trace(record))
    assert spans(axes, "other") == [(-0.5, 799.5)]
    assert named(axes, "number") == named(axes, "interval") == []
    said = " ".join(words(axes).split())
    assert f"No number. {record.notices[0].sentence}" in said


@pytest.mark.slow
@pytest.mark.parametrize(("sign", "words_said"), [(1.0, "up to 1 V"), (-1.0, "down to -1 V")])
def test_outliers_do_not_squash_the_picture_and_are_counted_at_its_edge(
    sign: float, words_said: str
) -> None:
    values = steps((1e-3, 600))
    values[[50, 300, 400]] = 1.0
    axes = drawn(pictured(sign * values, unit="V"))
    low, high = axes.get_ylim()
    assert high - low < 2e-3
    (marks,) = named(axes, "beyond")
    assert marks.get_xdata().tolist() == [50, 300, 400]
    assert f"3 beyond,\n{words_said}" in words(axes)


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 20_000])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_fortieth_of_far_readings_does_not_flatten_the_others(n: int, sign: float) -> None:
    values = steps((1e-3, n))
    far = np.random.default_rng(2).choice(n, n // 40, replace=False)
    values[far] *= 30.0
    axes = drawn(pictured(sign * values, phases_of("s", (0, n)), unit="V"))
    low, high = axes.get_ylim()
    others = np.delete(sign * values, far)
    assert low < others.min() < others.max() < high
    assert high - low < 2.0 * np.ptp(others)
    assert f"{n // 40} beyond" in words(axes)


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
@pytest.mark.parametrize("n", [4001, 10_007, 100_000])
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
        (-steps((3.0, 50), (1.0, 400)), "dB", "time (dB)"),
    ],
    ids=["single", "two", "constant", "zero", "negative"],
)
def test_odd_series_are_drawn_with_their_unit(values, unit: str, label: str, tmp_path) -> None:
    axes = plot_trace(told(values, unit=unit))
    axes.figure.savefig(tmp_path / "trace.png")
    low, high = axes.get_ylim()
    assert low < min(values)
    assert high > max(values)
    assert axes.get_ylabel() == label


def test_axes_ticks_are_in_the_unit_of_the_label() -> None:
    axes = drawn(plot_trace(told(THREE)))
    ticks = zip(axes.get_yticklabels(), axes.get_yticks(), strict=True)
    assert all(float(text.get_text()) == pytest.approx(1e3 * place) for text, place in ticks)
    assert axes.get_ylabel() == "time (ms)"


def ticks(axes: Axes) -> list[float]:
    texts = [text.get_text() for text in seen(drawn(axes)) if text in axes.get_yticklabels()]
    assert len(set(texts)) == len(texts) > 2
    return [float(text.replace(",", "")) for text in texts]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("middle", "spread", "unit", "label", "reach"),
    [
        (1e9, 0.1, "s", "time minus 1,000,000,000 s (ms)", 310.0),
        (1e9, 0.1, "B/s", "time minus 1,000 MB/s (B/s)", 0.31),
        (-1e9, 0.1, "", "time minus -1,000,000,000", 0.31),
        (1.0, 1e-7, "s", "time minus 1,000 ms (ns)", 310.0),
        (123_456_789_012.0, 0.1, "", "time minus 123,456,789,012", 0.31),
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


@pytest.mark.parametrize("places", [[2e-3], [2e-3, 2e-3], [2e-3, 5e-3]])
def test_ticks_that_were_set_by_hand_are_labelled(places: list[float]) -> None:
    axes = plot_trace(told(THREE))
    axes.set_yticks(places)
    drawn(axes)
    assert [float(text.get_text()) for text in axes.get_yticklabels()] == [1e3 * p for p in places]


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "label"), [("s", "time (ns)"), ("B", "time (B)"), ("", "time")])
def test_readings_of_zero_have_an_axis_of_one_of_the_least_unit(unit: str, label: str) -> None:
    axes = plot_trace(told(np.zeros(50), unit=unit))
    assert axes.get_ylabel() == label
    assert (ticks(axes)[0], ticks(axes)[-1]) == (-1.0, 1.0)


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


def test_given_axes_are_drawn_into() -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plot_trace(told(THREE), axes=left) is left
    assert plot_trace(told(THREE), axes=right) is right


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
