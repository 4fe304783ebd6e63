"""What people read about segments of programs: their light, groups and composite."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click.testing
import numpy as np
from tests.interference.made_profiles import profile
from tests.texts.rendering import of_code, run, tried

import benchrigor as br
from benchrigor.interference import (
    Segments,
    merge_processes,
    plot_interference,
    render_interference,
    segments,
)
from benchrigor.model import Code, Interference, Notice, SegmentProfile
from benchrigor.report import explain, render
from benchrigor.stats import composite_profile, profile_interference, quantise

NOTE = Notice.of(Code.NO_REFERENCE)
UNMEASURED = Notice.of(Code.DELAY_NOT_MEASURED, "nowhere")
WARNING = Notice.of(Code.MANY_FLAGGED, flagged_percent=31.0, limit_=0.25)
FOUND = profile_interference(profile(hit=0.1))
UNKNOWN = type(FOUND.light)("unknown")


def shown(*words: str, **profiles: SegmentProfile) -> click.testing.Result:
    for name, recorded in profiles.items():
        recorded.save(f"{name}.csv")
    return run("interference", *words)


def rows_of(*wanted: tuple[str, Interference]) -> Iterator[str]:
    """Yield a row of the page of each."""
    for name, found in wanted:
        page = render_interference(found, pressure={("io", "some"): 0.2}).splitlines()
        at = next(index for index, line in enumerate(page) if line.startswith(f"  {name}"))
        yield from (page[at], *(line for line in page[at + 1 :][:1] if line[2:6] == "    "))


def in_groups(**columns: Any) -> str:
    """Return the table of groups of segments with these features."""
    given = {"duration_s": np.ones(80), "computation": {}, "nominal": {}, **columns}
    text = render_interference(profile_interference(SegmentProfile(**given)))
    return text[text.index("  group") :].partition("\n\n")[0]


def of_many_processes() -> str:
    kind = np.arange(200) % 2
    parts = (
        process(
            index,
            duration_s=0.01 * (1.0 + kind) + 1e-5 * np.arange(200),
            nominal={"sent_bytes": kind * 4096 * (1 + index % 2), "sends": 8 + kind * index},
            processes=32,
        )
        for index in range(32)
    )
    return render_interference(profile_interference(merge_processes(parts)), whole=False)


def without_red_rounds() -> Iterator[str]:
    plans = [br.RoundPlan(index=index) for index in range(43)]
    rounds = tuple(br.Round(plan=plan, elapsed_ns=10**9, readings={"time": 1.0}) for plan in plans)
    session = br.Session(br.Options(max_rounds=43), [br.Metric(name="time", unit="s")])
    record = replace(session.result(), rounds=rounds, red_rounds=tuple(range(41)))
    page = render(replace(record, interference=replace(FOUND, known_percent=93.0)))
    yield from (line for line in page.splitlines() if "rounds" in line or "light" in line)
    yield explain(record).partition(" 1. ")[2].partition(" 2. ")[0]


def misuse(*calls: Any) -> Iterator[object]:
    for call in calls:
        with segments() as recorder:
            yield from tried(partial(call, recorder), ())


def cut_in_segment(run: Segments) -> None:
    with run.segment():
        run.cut()


def paused(run: Segments) -> None:
    with run.paused():
        run.cut()


async def later() -> None: ...


def process(index: int, **given: Any) -> SegmentProfile:
    return SegmentProfile(
        **{"duration_s": [1.0] * 3, "run": "a", "process": index, "processes": 3, **given}
    )


WORDS = (
    *("nowhere.csv", "folder", "text.txt", "bytes.png", "empty.csv"),
    *(f"run.csv --reference {name}" for name in ("nowhere.csv", "text.txt", "strange.csv")),
    *("rank.csv again.csv", "rank.csv short.csv", "run.csv run.csv run.csv --composite"),
    *("run.csv rank.csv --plot p.png", "run.csv --composite --plot p.png", "run.csv --plot p.gif"),
    *("run.csv --composite --reference rank.csv", "run.csv --composite"),
    "run.csv cool.csv other.csv strange.csv --composite",
)


def refused() -> Iterator[str]:
    """What files and options of the verb are refused with."""
    Path("folder").mkdir()
    Path("bytes.png").write_bytes(b"\x89PNG\xff\xfe")
    for name, text in {"text.txt": "1\n2\n", "empty.csv": ""}.items():
        Path(name).write_text(text, encoding="utf-8")
    profiles = {
        "run": profile(),
        "rank": profile(run="7f3a"),
        "again": profile(run="7f3a"),
        "short": process(1, run="7f3a", program="heat", processes=2),
        "strange": SegmentProfile(duration_s=[1.0] * 9, computation={"flops": [1.0] * 9}),
        "cool": profile(2, program="cool"),
        "other": profile(3),
    }
    for words in WORDS:
        result = shown(*words.split(), **profiles)
        yield f"{result.exit_code}: {result.stderr.strip()}"


CAUSES = {
    "a run": lambda: shown("run.csv", run=profile(hit=0.1)),
    "a run, in detail": lambda: shown("run.csv", "--details", run=profile(hit=0.1)),
    "rows of runs": lambda: rows_of(
        *(("light", profile_interference(profile(hit=share))) for share in (0.0, 0.03)),
        ("light", replace(FOUND, notices=(WARNING, NOTE))),
        ("light", replace(FOUND, light=UNKNOWN, notices=(UNMEASURED, NOTE, NOTE))),
        *(("     ", replace(FOUND, probability_high=chance)) for chance in (0.9999, 1e-4)),
        *(
            ("continuous", replace(FOUND, continuous_percent=percent))
            for percent in (2.13, -0.04, -3.0)
        ),
        ("pressure", FOUND),
        ("computation", profile_interference(profile(computation={}))),
        ("computation", profile_interference(profile(computation={"cpu_s": np.arange(600)}))),
    ),
    "a run without measured delay": lambda: shown("run.csv", run=profile(delayed=False)),
    "a run of too few segments": lambda: shown("run.csv", run=process(0)),
    "a reference that does not match": lambda: shown(
        *("run.csv", "--reference", "calm.csv"),
        run=profile(),
        calm=profile(computation={"instructions": [7e8] * 600}),
    ),
    "above the picture of a run": lambda: (
        text.get_text()
        for wrong in (profile(hit=0.1), profile(delayed=False), process(0))
        for text in plot_interference(wrong, profile_interference(wrong)).texts
    ),
    "groups by their features": lambda: (
        in_groups(
            nominal={"label": ["solve", "write"] * 40, "writes": [0, 4] * 40, "reads": [1] * 80}
        ),
        in_groups(
            computation={"cpu_s": [0.002, 0.05, 0.002, 0.05] * 20},
            nominal={"label": ["", "", "x", "x"] * 20},
        ),
        in_groups(nominal={"writes": [2.0, 0.0] * 40}),
        in_groups(),
    ),
    "more groups than are shown": lambda: in_groups(
        nominal={
            "label": [f"{'a rather long label ' * (index % 4)}{index % 16}" for index in range(80)]
        }
    ),
    "groups of many processes": of_many_processes,
    "several runs": lambda: shown(
        *(f"{name}.csv" for name in ("rank0", "rank1", "other", "rank2")),
        **{f"rank{k}": profile(k, run="7f3a", process=k, processes=4) for k in range(3)},
        other=profile(9),
    ),
    "a composite": lambda: shown(
        *(f"day{day}.csv" for day in range(4)),
        "--composite",
        **{f"day{day}": profile(day, hit=0.1) for day in range(4)},
    ),
    "a composite with a run that is not good": lambda: of_code(
        "doubtful-runs",
        composite_profile([*map(profile, range(3)), profile(3, hit=0.6)]).notices,
    ),
    "runs that cannot be worked with": refused,
    "rounds that were left out": without_red_rounds,
    "profiles of no composite": lambda: tried(
        composite_profile,
        *({"profiles": wrong} for wrong in (3, ["x"])),
        {"profiles": [process(0)] * 3, "confidence": 95},
        {"profiles": [process(0, run=""), process(0, duration_s=[0.0]), process(1)]},
        {"profiles": [SegmentProfile(duration_s=[1.0] * n) for n in (6, 8, 6)]},
    ),
    "processes of no run": lambda: tried(
        merge_processes,
        ([],),
        (3,),
        ([process(0), "x"],),
        ([process(0, nominal={"x": [1, 2, 3]}), process(1, run="b"), process(0, duration_s=[1])],),
    ),
    "values that are not valid": lambda: tried(
        quantise, ([1.0], 1), ([1.0], "many"), ([1.0, "1"],), ([1.0, 1e200],)
    ),
    "segments that cannot be": lambda: misuse(
        cut_in_segment,
        paused,
        lambda run: run.cut(3),
        lambda run: run.cut("\ud800", work=True),
        lambda run: run.cut(work=1e151),
        lambda run: run.cut(work=10**400),
        lambda run: run.count("x", "1"),
        lambda run: run.count(""),
        lambda run: run.count("reads"),
        lambda run: run.each(5),
        lambda run: run.each(later),
        lambda run: run.__enter__(),
        lambda _: segments().__enter__(),
        lambda _: segments().cut(),
        lambda _: segments().profile,
    ),
    "recorders that cannot be": lambda: tried(
        segments,
        *({"path": place} for place in (5, ".", "a\0b")),
        {"path": "no/run.csv", "program": "\ud800", "process": 2, "processes": 2},
    ),
}
