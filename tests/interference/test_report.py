"""The text of an interference, and of a composite."""

from dataclasses import replace

import numpy as np
import pytest
from simulated.estimates import within

import benchrigor as br
from benchrigor.interference import merge_processes, render_interference
from benchrigor.interference.report import describe_groups, render_composite
from benchrigor.model import Analysis, Code, Interference, Notice, SegmentProfile
from benchrigor.model.analysis import Kind
from benchrigor.model.interference import Composite, CompositeGroup, Light, SegmentGroup
from benchrigor.report import explain, render
from benchrigor.stats import profile_interference


def group(label: str = "solve", excess_s: float = 0.5, **given: object) -> SegmentGroup:
    nominal = {"label": label, "writes": 0, **given}
    return SegmentGroup(
        n=1200,
        computation={"instructions": (1.0e6, 1.1e6)},
        nominal=nominal,  # type: ignore[arg-type]
        median_s=0.004,
        mad_s=0.0001,
        threshold_s=0.0044,
        duration_s=5.0,
        flagged=28,
        excess_s=excess_s,
    )


WARNING = Notice.warning(Code.MANY_FLAGGED, "31% of the segments took longer than usual.")
NOTE = Notice.note(Code.NO_REFERENCE, "No reference.")
YELLOW = Interference(
    percent=3.1,
    measured_percent=8.1,
    light=Light.YELLOW,
    probability_high=0.4956,
    unclustered_percent=0.8,
    continuous_percent=None,
    above_median_percent=3.9,
    flagged_percent=1.4,
    n=2400,
    duration_s=12.4,
    delays={"run queue": 7.9, "steal": 0.3},
    groups=(group(), group("write", 0.25, writes=4)),
)


COMPOSITE = Composite(
    duration=within(11.3, 0.01),
    groups=tuple(
        CompositeGroup(n=9, computation={}, nominal={"label": label}, duration=duration)
        for label, duration in (("solve", within(0.004, 0.01)), ("write", None))
    ),
    runs=(YELLOW, replace(YELLOW, light=Light.GREEN), YELLOW),
    notices=(WARNING,),
)
MANY = replace(
    YELLOW,
    continuous_percent=-0.04,
    groups=tuple(group(f"{'a rather long label ' * (index % 4)}{index}") for index in range(14)),
    notices=(WARNING, NOTE),
)


def row(text: str, label: str) -> str:
    """Return the text of a labelled row, its continuation lines included."""
    lines = iter(text.splitlines())
    start = next(line for line in lines if line.startswith(f"  {label}"))
    found = [start.removeprefix(f"  {label}").strip()]
    for line in lines:
        if not line.startswith(" " * 5):
            break
        found.append(line.strip())
    return " ".join(found)


@pytest.mark.parametrize(
    "text",
    [
        render_interference(YELLOW, name="heat"),
        render_interference(MANY),
        render_composite(COMPOSITE, name="heat"),
        render_composite(COMPOSITE, runs=["a", "a rather long name of a run", "c"]),
    ],
    ids=["run", "many groups", "composite", "named runs"],
)
def test_texts_fit_a_terminal_of_80_columns(text: str) -> None:
    assert max(map(len, text.splitlines())) <= 79
    assert not any(line != line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize(
    ("light", "advice"),
    [
        (Light.GREEN, "good for performance analysis"),
        (Light.YELLOW, "good for a rough picture; another run may be worth it"),
        (Light.RED, "run it again"),
    ],
    ids=str,
)
def test_the_light_comes_first_with_what_to_do(light: Light, advice: str) -> None:
    text = render_interference(replace(YELLOW, light=light))
    assert row(text, "light").startswith(f"● {light}: 11.2% of 12.4 s lost, {advice} ")
    assert "doubtful" not in text


@pytest.mark.parametrize(
    ("high", "shown"), [(0.4956, "0.50"), (0.9999, ">0.99"), (1e-4, "<0.01")], ids=str
)
def test_the_light_has_a_probability_that_is_never_certain(high: float, shown: str) -> None:
    text = render_interference(replace(YELLOW, probability_high=high))
    wanted = f"probability of high interference {shown}; yellow is 0.21 to 0.79"
    assert wanted in " ".join(text.split())


def test_warnings_are_counted_next_to_the_light_and_notes_are_not() -> None:
    assert "doubtful: 1 warning below" in row(render_interference(MANY), "light")
    assert "doubtful" not in render_interference(replace(YELLOW, notices=(NOTE,)))


def test_measured_and_estimated_have_a_row_each() -> None:
    text = render_interference(YELLOW)
    assert row(text, "measured") == "8.1% delay: run queue 7.9%, steal 0.3%"
    assert row(text, "estimated").startswith("3.1% instantaneous: 1.4% of 2,400 segments")


def test_delay_that_was_not_measured_is_not_zero() -> None:
    found = replace(YELLOW, delays={}, measured_percent=0.0)
    shown = row(render_interference(found), "measured")
    assert shown == "no delay was measured, and none is in the light"
    measured = replace(YELLOW, delays={"run queue": 0.0}, measured_percent=0.0)
    assert row(render_interference(measured), "measured") == "0.0% delay: run queue 0.0%"


@pytest.mark.parametrize(
    ("percent", "shown"),
    [
        (None, "unknown without a reference"),
        (2.13, "+2.1% against the reference, and not in the light"),
        (-0.04, "+0.0% against the reference, and not in the light"),
        (-3.0, "-3.0% against the reference, and not in the light"),
    ],
    ids=["unknown", "slower", "nothing", "faster"],
)
def test_the_continuous_part_is_no_part_of_the_light(percent: float | None, shown: str) -> None:
    found = replace(YELLOW, continuous_percent=percent)
    assert row(render_interference(found), "continuous") == shown


def test_without_groups_nothing_is_estimated() -> None:
    alone = replace(YELLOW, percent=0.0, unclustered_percent=100.0, flagged_percent=0.0, groups=())
    shown = row(render_interference(alone), "estimated")
    assert shown == "nothing could be estimated of 2,400 segments"


def test_a_reference_that_does_not_match_is_no_missing_one() -> None:
    differs = replace(NOTE, code=Code.REFERENCE_DIFFERS)
    shown = row(render_interference(replace(YELLOW, notices=(differs,))), "continuous")
    assert shown == "unknown: the reference does not match"


def test_rounds_that_were_left_out_are_counted_apart(record) -> None:
    rounds = tuple(
        br.Round(plan=br.RoundPlan(index=index, seed=1), elapsed_ns=10**9, readings={"time": 1.0})
        for index in range(43)
    )
    whole = replace(record, rounds=rounds)
    dropped = replace(whole, red_rounds=tuple(range(41)))
    assert row(render(whole), "rounds") == "43 in 43 s, still running"
    assert row(render(dropped), "rounds") == "43 in 43 s, 41 red left out, still running"
    assert "9 readings were taken in 43 rounds." in explain(whole)
    text = " ".join(explain(dropped).split())
    assert "taken in 2 rounds; 41 more, with too much interference, are left out." in text


def test_groups_are_described_by_nominal_features_that_differ() -> None:
    lines = render_interference(YELLOW).splitlines()
    assert [line.split() for line in lines if line.startswith(("  solve", "  write"))] == [
        ["solve", "1,200", "4", "ms", "4.4", "ms", "28", "500", "ms"],
        ["write,", "writes", "4", "1,200", "4", "ms", "4.4", "ms", "28", "250", "ms"],
    ]


def test_groups_with_equal_nominal_features_are_described_by_computation() -> None:
    small, large = group(), replace(group(), computation={"cpu_s": (0.002, 0.002)})
    assert describe_groups([small, large, group("write")]) == [
        "solve, instructions 1,000,000–1,100,000",
        "solve, cpu 2 ms",
        "write",
    ]
    assert describe_groups([group("", writes=2.0), group("", writes=0.0)]) == [
        "writes 2",
        "nothing else",
    ]
    assert describe_groups([group(""), group("x")]) == ["no label", "x"]
    assert describe_groups([]) == []


def test_ten_groups_are_shown_and_the_others_counted() -> None:
    lines = render_interference(MANY).splitlines()
    assert sum(line.endswith("  28  500 ms") for line in lines) == 10
    assert "  … and 4 more, with 2 s of excess" in lines


def test_every_notice_is_shown_with_its_code() -> None:
    text = render_interference(MANY)
    assert "  ! 31% of the segments took longer than usual. [many-flagged-segments]" in text
    assert "  · No reference. [no-reference]" in text
    assert "[many-flagged-segments]" in render_composite(COMPOSITE)


def test_a_page_has_the_rows_and_warnings_that_a_reader_needs_without_codes() -> None:
    text = render_interference(MANY, whole=False)
    assert "  ! 31% of the segments took longer than usual." in text
    assert "No reference." not in text
    assert "  unclustered" not in text
    assert "[many-flagged-segments]" not in render_composite(COMPOSITE, whole=False)


def test_a_composite_shows_its_duration_its_runs_and_its_groups() -> None:
    text = render_composite(COMPOSITE, name="heat", runs=["a.csv", "b.csv", "c.csv"])
    lines = text.splitlines()
    assert lines[0] == "heat"
    assert row(text, "duration").startswith("11.30 s [11.19, 11.41] 95% without instantaneous")
    assert row(text, "runs") == "3: 1 green, 2 yellow"
    (second,) = (line for line in lines if line.startswith("  b.csv"))
    assert second.split() == ["b.csv", "●", "green", "11.2%", "8.1%", "3.1%", "12.4", "s"]
    assert any(line.startswith("  solve") and "4.000 ms [3.960" in line for line in lines)
    assert any(line.startswith("  write") and line.endswith("too few runs") for line in lines)


@pytest.fixture
def record() -> br.RunRecord:
    """A session's run that lost something."""
    metric = br.Metric(name="time", unit="s")
    found = Analysis(metric=metric, kind=Kind.READINGS, n=9, n_kept=9, estimate=within(1.0, 0.01))
    return br.RunRecord(
        name="job",
        options=br.Options(),
        metrics=(metric,),
        seed=1,
        rounds=(),
        analyses=(found,),
        interference=replace(YELLOW, notices=(WARNING, NOTE)),
    )


def test_the_report_of_a_session_shows_the_light(record) -> None:
    text = render(record)
    assert row(text, "light") == "● yellow: 11.2% of 12.4 s lost"
    assert "[many-flagged-segments]" not in text
    partly = replace(record.interference, known_percent=93.0)
    shown = row(render(replace(record, interference=partly)), "light")
    assert shown.endswith("lost; delay is known for 93% of the time")
    assert "light" not in render(replace(record, interference=None))


def test_an_explanation_shows_where_the_light_comes_from(record) -> None:
    measured = replace(record.interference, percent=0.0)
    text = " ".join(explain(replace(record, interference=measured)).split())
    shown = "Yellow: 8.1% of 12.4 s lost by measured delay (run queue, steal): green below 7.5%"
    assert shown in text
    assert "green below" not in explain(replace(record, interference=None))


def test_what_the_processes_of_a_group_did_is_shown_as_it_was() -> None:
    kind = np.arange(200) % 2
    merged = merge_processes(
        SegmentProfile(
            duration_s=0.01 * (1.0 + kind) + 1e-5 * np.arange(200),
            nominal={
                "sent_bytes": np.where(kind == 1, 4096 * (1 + index % 2), 0),
                "received_bytes": np.where(kind == 1, 64 + index, 8),
            },
            process=index,
            processes=32,
        )
        for index in range(32)
    )
    text = render_interference(profile_interference(merged))
    assert max(map(len, text.splitlines())) <= 79
    assert "received bytes 64 | 65 | 66 |" in text
    assert "sent bytes 4,096 | 8,192 | 4,096" in text
    assert "  received bytes 8  " in text  # and nothing sent, which goes without saying


def test_the_pressure_has_a_row_where_it_is_known() -> None:
    pressure = {("io", "some"): 0.2}
    shown = row(render_interference(YELLOW, pressure=pressure), "pressure")
    assert shown == "some task waited, of the time: 20% for disks"
    assert "pressure" not in render_interference(YELLOW)


@pytest.mark.parametrize(
    ("feature", "said"),
    [
        ("cpu_s", "cpu_s; slowdowns that cost processor time are hidden"),
        ("instructions", "instructions"),
        ("floating_point", "floating_point"),
        (None, "not recorded: segments of equal labels count as equal work"),
    ],
)
def test_the_feature_that_compares_segments_is_named_with_what_it_hides(
    feature: str | None, said: str
) -> None:
    computation = {} if feature is None else {feature: (1.0, 1.1)}
    shown = replace(YELLOW, groups=(replace(group(), computation=computation),))
    page = render_interference(shown, whole=False)
    (line,) = (x for x in page.splitlines() if "  computation" in x)
    assert line.split(None, 1)[1].startswith(said[:50])
    assert feature in {"cpu_s", None} or line.endswith(str(feature))


def test_a_composite_names_the_feature_too_and_time_hides_beside_work() -> None:
    computation = {"cpu_s": (0.1, 0.2), "work": (1.0, 1.1)}
    groups = tuple(replace(each, computation=computation) for each in COMPOSITE.groups)
    shown = row(render_composite(replace(COMPOSITE, groups=groups)), "computation")
    assert shown.startswith("cpu_s, work; slowdowns that cost processor time are hidden")
