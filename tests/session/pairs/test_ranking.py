"""Runs that were measured in turn or apart, ranked and compared round by round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from shared_cases import analysed_again
from simulated.paced import told
from tests.session.pairs.turns import comparing, take
from tests.session.telling import codes, engine_of

import benchrigor as br
from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Delays, Notice, Round, RoundPlan
from benchrigor.session import compare_runs
from benchrigor.session.pairs.ranking import compare_with, rank_in_turn
from benchrigor.testing import SyntheticWorkload


def rounds_of(times: Sequence[float] | np.ndarray, *, lost: float = 0.0) -> tuple[Round, ...]:
    """Return rounds of commands that took so long, of which others took a share."""
    return tuple(
        Round(
            plan=RoundPlan(index=index),
            elapsed_ns=10**6,
            readings={"time": float(wall_s)},
            delays=Delays(stops=[1], seconds={"run queue": [lost * wall_s]}, duration_s=[wall_s]),
        )
        for index, wall_s in enumerate(times)
    )


def run_of(times: Sequence[float] | np.ndarray, *, lost: float = 0.0) -> br.RunRecord:
    options = br.Options(target=None, rounds="restarted", budget_s=1e9)
    engine = engine_of(options, seed=1, subject={"kind": "command"})
    for finished in rounds_of(times, lost=lost):
        engine.tell(finished, asked=False)
    return engine.result()


def in_turn(levels: dict[str, float], *, seed: int, n: int = 60) -> dict[str, br.RunRecord]:
    """Return runs beside others, which slow all commands of a round alike."""
    rng = np.random.default_rng(seed)
    busy = 1.0 + rng.exponential(0.5, n)
    return {name: run_of(mean * busy * rng.normal(1.0, 0.01, n)) for name, mean in levels.items()}


def test_what_all_rounds_have_in_common_cancels_in_a_ranking() -> None:
    records = in_turn({"slow": 0.110, "fast": 0.100, "middle": 0.105}, seed=1)
    apart = [each.estimate() for each in records.values()]
    assert max(each.low for each in apart) < min(each.high for each in apart)
    ranking = rank_in_turn(records)
    assert [each.name for each in ranking.places] == ["fast", "middle", "slow"]
    assert [each.place for each in ranking.places] == [1, 2, 3]
    ratio = ranking.against_first["slow"].ratio
    assert ratio is not None
    assert ratio.low < 1.1 < ratio.high < 1.12


def test_a_ranking_is_what_two_processes_measured_in_turn_come_to() -> None:
    records = in_turn({"old": 0.100, "new": 0.103}, seed=2)
    engine = comparing(rounds="restarted", margin=0.02)
    take(engine, [*zip(*(each.rounds for each in records.values()), strict=True)])
    wanted, found = engine.result(), compare_with("old", records, margin=0.02)["new"]
    assert found.ratio == wanted.ratio
    assert (found.verdict, found.p_value) == (wanted.verdict, wanted.p_value)
    assert found.readings_in == "s"
    assert found.ratio == rank_in_turn(records).against_first["new"].ratio


def test_figures_are_means_of_the_times_measured_in_the_rounds_that_all_have() -> None:
    whole = in_turn({"one": 0.1, "two": 0.2}, seed=3, n=40)
    more = run_of([*(each.readings["time"] for each in whole["one"].rounds), *[0.5] * 40])
    for name, record in (("more", more), ("as many", whole["one"])):
        ranking = rank_in_turn({"one": record, "two": whole["two"]})
        assert [each.estimate.value for each in ranking.places] == pytest.approx(
            [np.mean([each.readings["time"] for each in whole[key].rounds]) for key in whole]
        ), name


def test_too_few_rounds_rank_nothing() -> None:
    few = {"one": run_of([0.1]), "two": run_of([0.2])}
    assert rank_in_turn(few).places == ()
    with pytest.raises(NotEstimable):
        compare_with("one", few)
    whole = in_turn({"first": 0.1, "second": 0.2}, seed=5)
    (place,) = rank_in_turn(few | {"first": whole["first"]}).places
    assert (place.place, place.estimate) == (1, whole["first"].estimate())
    assert rank_in_turn(whole | few).places == rank_in_turn(whole).places


def test_times_that_all_move_alike_are_ranked_all_the_same() -> None:
    rising = np.linspace(0.1, 0.3, 40)
    rng = np.random.default_rng(6)
    records = {
        name: run_of(level * rising * rng.normal(1.0, 0.01, 40))
        for name, level in {"slow": 1.1, "fast": 1.0}.items()
    }
    assert records["slow"].estimate() is None
    assert [each.place for each in rank_in_turn(records).places] == [1, 2]


def test_it_is_told_what_other_work_took_of_each() -> None:
    quiet, busy = run_of([0.1] * 9 + [0.11]), run_of([0.1] * 9 + [0.12], lost=0.4)
    notices = rank_in_turn({"quiet": quiet, "busy": busy}).notices
    (notice,) = (each for each in notices if each.code is Code.DISTURBED)
    shares = [notice.evidence[name] for name in ("least_percent", "most_percent")]
    assert shares == pytest.approx([0.0, 40.0])


def test_a_stop_is_told_apart_from_other_work() -> None:
    quiet, paused = run_of([0.1] * 9 + [0.11]), run_of([0.1] * 9 + [0.12])
    light = paused.interference
    assert light is not None
    stopped = replace(light, measured_percent=40.0, delays={"stopped": 40.0})
    ranking = rank_in_turn({"quiet": quiet, "paused": replace(paused, interference=stopped)})
    codes = {each.code for each in ranking.notices}
    assert Code.STOPPED in codes
    assert Code.DISTURBED not in codes


def test_what_the_rounds_of_a_side_say_is_said_of_the_ranking() -> None:
    left = Notice.of(Code.LEFT_RUNNING, name_="It")
    records = in_turn({"first": 0.1, "second": 0.2}, seed=5)
    rounds = tuple(replace(each, notices=(left,)) for each in records["second"].rounds)
    records["second"] = replace(records["second"], rounds=rounds)
    (notice,) = rank_in_turn(records).notices
    assert (notice.code, notice.sentence) == (left.code, f"second: {left.sentence}")


def run(mean: float, seed: int, **given: object) -> br.RunRecord:
    options = br.Options(rounds="restarted", max_rounds=20, **given)  # type: ignore[arg-type]
    session = br.Session(options, name=f"run {seed}", seed=seed)
    return session.run(SyntheticWorkload(mean=mean, restarted=True, between_cv=0.01, seed=seed))


OLD, NEW = run(1.0, 1), run(1.1, 2)


@pytest.mark.parametrize(
    ("where", "version"), [({"python": "CPython 3.0.0"}, 1), ({"host": "elsewhere"}, 1), ({}, 2)]
)
def test_the_same_readings_beside_a_faster_reference_are_no_change(where, version, tmp_path):
    """As of another interpreter: another full pace, which tells nothing of the readings."""
    record = told(1, store=tmp_path / "runs.sqlite")
    rounds = []
    for each in record.rounds:
        faster = {kind: 0.6 * s for kind, s in each.references.seconds.items()}
        references = replace(each.references, seconds=faster, version=version)
        rounds.append(replace(each, references=references))
    where = replace(record.provenance, **where)
    other = analysed_again(replace(record, provenance=where, rounds=tuple(rounds)))
    comparison = compare_runs(record, other)
    assert comparison.ratio.value == pytest.approx(1.0)
    assert Code.AT_FULL_PACE not in codes(comparison)
    assert Code.NO_COMMON_PACE in codes(comparison)
