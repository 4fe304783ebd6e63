"""Choices among configurations on several hosts: laws, known answers, and how often they err."""

import math

import numpy as np
import pytest
from scipy import stats

import benchrigor as br
from benchrigor.errors import InvalidInput, PlanMismatch
from benchrigor.model import Code
from benchrigor.workbench import BestChoice
from benchrigor.workbench.planning.best_choice import mean_over_hosts, predict_ratio, swap_chance

HOSTS = ["ash", "elm", "fir", "oak"]
POINTS = [{"threads": threads} for threads in (4, 8, 16)]
PACES = dict(zip(HOSTS, (1.0, 1.3, 0.8, 1.1), strict=True))


def measured(logs, *, points=POINTS, noise=0.0, seed=7, cost_s=0.0, scale=1.0, **options):
    """Carry a choice out on hosts whose logarithms are known; return it and its turns."""
    rng = np.random.default_rng(seed)
    choice = BestChoice(points, [*logs], **options)
    turns = []
    while (turn := choice.ask()) is not None:
        turns.append(turn)
        own = dict(zip((point["threads"] for point in POINTS), logs[turn.host], strict=False))
        found = [
            scale * math.exp(own[point["threads"]] + noise * rng.normal()) for point in turn.points
        ]
        choice.tell(turn, [(x, 0.98 * x, 1.02 * x) for x in found], cost_s=cost_s)
    return choice.result(), turns


def logs_of(*means, effect=0.0, hosts=HOSTS, seed=3):
    """Return the logarithm of each configuration on each host, which differ by an effect."""
    rng = np.random.default_rng(seed)
    return {
        host: (math.log(PACES.get(host, 1.0)) + np.array(means) + effect * rng.normal(size=3))
        for host in hosts
    }


def test_the_best_is_found_whatever_the_pace_of_hosts():
    found, turns = measured(logs_of(0.0, 0.05, 0.2, effect=0.005))
    assert (found.point, found.verdict) == (POINTS[2], "best")
    assert len(turns) == 4
    assert found.rivals == ()
    assert found.notices == ()


def test_in_each_turn_one_host_measures_all_in_random_order():
    _, turns = measured(logs_of(0.0, 0.0, 0.0, effect=0.05))
    assert [turn.host for turn in turns] == HOSTS * 2
    assert all(sorted(p["threads"] for p in turn.points) == [4, 8, 16] for turn in turns)
    assert len({tuple(p["threads"] for p in turn.points) for turn in turns}) > 3


def test_what_is_beaten_is_not_measured_again():
    _, turns = measured(logs_of(-1.0, 0.0, 0.01, effect=0.02))
    assert [len(turn.points) for turn in turns] == [3] * 4 + [2] * 4
    assert all({"threads": 4} not in turn.points for turn in turns[4:])


def test_equal_ones_are_equivalent():
    found, _ = measured(logs_of(0.0, 0.001, 0.0))
    assert found.verdict == "best"  # without noise a thousandth is known
    found, _ = measured(logs_of(0.0, 0.001, 0.0, effect=0.001))
    assert found.verdict == "equivalent"
    assert len(found.rivals) == 2
    found, _ = measured(logs_of(0.0, 0.0, 0.0))
    assert found.verdict == "equivalent"


def test_a_choice_that_is_open_tells_which_one_leads():
    found, turns = measured(logs_of(0.0, 0.03, 0.01, effect=0.05, seed=1))
    means = np.mean([*logs_of(0.0, 0.03, 0.01, effect=0.05, seed=1).values()], axis=0)
    assert (found.verdict, found.point) == ("undecided", POINTS[int(means.argmax())])
    assert len(turns) == 16


def test_it_ends_with_its_budget():
    logs = logs_of(0.0, 0.03, 0.01)
    _, turns = measured(logs, noise=0.3, budget_s=95.0, cost_s=10.0)
    assert len(turns) == 9
    _, turns = measured(logs, noise=0.3, budget_s=400.0, cost_s=10.0)
    assert len(turns) == 40
    _, turns = measured(logs, noise=0.3, budget_s=400.0)
    assert len(turns) == 16  # turns that cost nothing


def test_the_budget_may_end_with_a_verdict():
    found, turns = measured(logs_of(0.0, 0.01, 0.3), budget_s=60.0, cost_s=10.0)
    assert (found.verdict, len(turns)) == ("best", 4)
    hosts = [f"host {number}" for number in range(8)]
    logs = logs_of(0.0, 0.01, 0.3, effect=0.002, hosts=hosts)
    found, turns = measured(logs, budget_s=55.0, cost_s=10.0)
    assert (found.verdict, len(turns)) == ("best", 5)


# --- laws


@pytest.mark.parametrize("effect", [0.0, 0.01, 0.05])
def test_neither_the_order_of_points_nor_of_hosts_nor_the_seed_matters(effect):
    logs = logs_of(0.0, 0.05, 0.15, effect=effect)
    found, _ = measured(logs)
    turned, _ = measured(dict(reversed(logs.items())), points=POINTS[::-1], seed=9)
    assert (turned.point, turned.verdict) == (found.point, found.verdict)
    assert turned.prediction.low == pytest.approx(found.prediction.low)
    assert {each.code for each in turned.notices} == {each.code for each in found.notices}


@pytest.mark.parametrize("effect", [0.0, 0.01, 0.05])
def test_lower_is_better_is_the_mirror(effect):
    logs = logs_of(0.0, 0.05, 0.15, effect=effect)
    found, _ = measured(logs)
    mirror, _ = measured({host: -own for host, own in logs.items()}, direction="lower")
    assert (mirror.point, mirror.verdict) == (found.point, found.verdict)
    assert mirror.prediction.value == pytest.approx(1.0 / found.prediction.value)
    assert mirror.prediction.low == pytest.approx(1.0 / found.prediction.high)


@pytest.mark.parametrize("scale", [1e-100, 1e-3, 1e100])
def test_the_unit_does_not_matter(scale):
    logs = logs_of(0.0, 0.05, 0.15, effect=0.02)
    found, turns = measured(logs, noise=0.02)
    scaled, again = measured(logs, noise=0.02, scale=scale)
    assert (scaled.point, scaled.verdict, again) == (found.point, found.verdict, turns)
    assert scaled.prediction.high == pytest.approx(found.prediction.high)


# --- known answers


def test_the_bound_of_a_look_is_that_of_a_t_test():
    logs = logs_of(0.0, 0.0, 0.0, effect=0.05)
    differences = np.array([own[1] - own[0] for own in logs.values()])
    tail = 0.05 / 2 / 2  # the first look, of two configurations
    bound = differences.mean() - stats.t.ppf(1.0 - tail, 3) * stats.sem(differences)
    for shift, verdict in ((1e-6, "best"), (-1e-6, "equivalent"), (-0.02 - 1e-6, "undecided")):
        moved = {host: np.add(own, [0.0, shift - bound, 0.0]) for host, own in logs.items()}
        choice = BestChoice(POINTS[:2], HOSTS)
        for _ in HOSTS:
            turn = choice.ask()
            values = [math.exp(moved[turn.host][POINTS.index(point)]) for point in turn.points]
            choice.tell(turn, [(x, x, x) for x in values])
        found = choice.result()
        assert found.verdict == verdict
        if verdict != "undecided":
            assert found.point == POINTS[1]


def test_the_mean_over_hosts_is_that_of_a_t_test():
    values = np.random.default_rng(5).normal(0.01, 0.05, 6)
    mean, error = mean_over_hosts(values[:, None])
    assert mean / error.value == pytest.approx(stats.ttest_1samp(values, 0.0).statistic)
    assert error.degrees_of_freedom == 5
    mean, error = mean_over_hosts([values])  # turns of one host
    assert mean / error.value == pytest.approx(stats.ttest_1samp(values, 0.0).statistic)
    assert error.degrees_of_freedom == 5
    assert mean_over_hosts([values[:1], values[1:2]])[1] is None


def test_the_mean_over_two_hosts_has_the_error_of_a_pooled_t_test():
    one, two = np.random.default_rng(6).normal(0.01, 0.05, (2, 5))
    _, error = mean_over_hosts([one, two])
    pooled = stats.ttest_ind(one, two)
    assert 2.0 * error.value == pytest.approx((one.mean() - two.mean()) / pooled.statistic)
    assert error.degrees_of_freedom == pooled.df


def test_turns_of_one_host_are_averaged_first():
    turns = [np.array([0.1, 0.3]), np.array([0.2]), np.array([0.0]), np.array([0.4])]
    assert mean_over_hosts(turns) == mean_over_hosts([np.array([np.mean(x)]) for x in turns])


def test_the_prediction_is_that_of_one_more_value():
    logs = [0.01, 0.03, -0.02, 0.05]
    found = predict_ratio(logs, 0.9)
    reach = stats.t.ppf(0.95, 3) * np.std(logs, ddof=1) * math.sqrt(1.25)
    assert found.high == pytest.approx(math.exp(np.mean(logs) + reach))
    assert found.low == pytest.approx(math.exp(np.mean(logs) - reach))
    assert predict_ratio(logs[:1], 0.9) is None


def test_the_critical_values_of_swaps_are_those_published():
    """Gail & Simon (1985), their table of the critical values at 0.05."""
    for hosts, critical in ((2, 2.71), (3, 4.23), (4, 5.43), (5, 6.50)):
        differences = [math.sqrt(critical), *[-10.0] * (hosts - 1)]
        assert swap_chance(differences, [1.0] * hosts) == pytest.approx(0.05, abs=0.0005)


# --- hosts


def test_configurations_that_swap_are_named():
    logs = logs_of(-2.0, 0.0, 0.1)
    logs["fir"] = np.array([-2.0, 0.3, 0.0])
    found, _ = measured(logs)
    futile, notice = found.notices
    assert (futile.code, notice.code) == (Code.FEW_HOSTS, Code.HOSTS_DISAGREE)


def test_noise_is_no_disagreement():
    found, _ = measured(logs_of(0.0, 0.0, 0.0), noise=0.01)
    assert Code.HOSTS_DISAGREE not in {each.code for each in found.notices}


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_hosts_are_all_that_the_choice_is_for(count):
    logs = logs_of(0.0, 0.02, 0.3, hosts=HOSTS[:count])
    found, turns = measured(logs, noise=0.01)
    assert (found.point, found.verdict) == (POINTS[2], "best")
    assert [each.code for each in found.notices] == [Code.FEW_HOSTS]
    assert len(turns) == max(4, 2 * count)
    assert (found.prediction is None) == (count == 1)


def test_a_configuration_without_an_answer_leaves_the_race():
    choice = BestChoice(POINTS, HOSTS)
    while (turn := choice.ask()) is not None:
        values = [
            None if turn.host == "elm" and point == POINTS[2] else float(point["threads"])
            for point in turn.points
        ]
        choice.tell(turn, [x if x is None else (x, x, x) for x in values])
    found = choice.result()
    assert (found.point, found.verdict) == (POINTS[1], "best")
    (notice,) = found.notices
    assert notice.code is Code.SAMPLES_WITHOUT_NUMBER


def test_where_nothing_works_there_is_no_choice():
    choice = BestChoice(POINTS, HOSTS)
    assert choice.result().point is None
    choice.tell(choice.ask(), [None] * 3)
    assert choice.ask() is None
    found = choice.result()
    assert (found.point, found.verdict, found.prediction) == (None, "undecided", None)
    assert Code.NO_DATA in {each.code for each in found.notices}


def bounded(where, *, means=(0.0, 0.1, 0.2), **options):
    """Carry out a choice in which a point is only better than 9 where `where` says so."""
    choice, turns = BestChoice(POINTS, HOSTS, **options), []
    while (turn := choice.ask()) is not None:
        turns.append(turn)
        found = [
            None
            if where(turn, point)
            else (PACES[turn.host] * math.exp(means[POINTS.index(point)]),) * 3
            for point in turn.points
        ]
        choice.tell(turn, found, better_than=[None if x else 9.0 for x in found])
    return choice.result(), turns


def test_what_is_only_bounded_is_no_value_and_cannot_lose():
    """Where it has values it looks worst: that it was better on a host is known all the same."""
    found, _ = bounded(lambda turn, point: turn.host == "elm" and point == POINTS[0])
    assert (found.point, found.verdict) == (POINTS[2], "undecided")
    assert found.rivals == (POINTS[0],)
    assert found.notices[0].code is Code.SAMPLES_WITHOUT_NUMBER


def test_what_is_only_bounded_on_a_host_may_still_win():
    found, _ = bounded(lambda turn, point: turn.id == 0 and point == POINTS[2])
    assert (found.point, found.verdict) == (POINTS[2], "best")


@pytest.mark.parametrize("points", [POINTS[2:], POINTS[1:]])
def test_a_choice_that_bounds_leave_open_spends_no_more(points):
    """One without any value cannot win, of two neither can lose: more turns decide nothing."""
    found, turns = bounded(lambda _, point: point in points)
    assert found.verdict == "undecided"
    assert found.point not in points
    assert len(turns) <= 4


def test_where_all_is_only_bounded_there_is_no_choice():
    found, _ = bounded(lambda *_: True)
    assert found.point is None
    assert Code.NO_DATA in {each.code for each in found.notices}


def test_turns_may_be_asked_for_before_others_are_told():
    choice = BestChoice(POINTS, HOSTS)
    turns = [choice.ask() for _ in HOSTS]
    assert {turn.host for turn in turns} == {*HOSTS}
    assert choice.ask() is None  # what comes next depends on them
    for turn in reversed(turns):
        choice.tell(turn, [(1.0, 0.9, 1.1)] * 3)
    assert choice.result().verdict == "equivalent"
    assert choice.ask() is None


# --- bad input


@pytest.mark.parametrize("bad", [[(1.0, 0.9, 1.1)] * 2, [(-1.0, -2.0, 1.0)] * 3, [], None])
def test_what_is_refused_may_be_told_right_once(bad):
    choice = BestChoice(POINTS, HOSTS)
    turn, right = choice.ask(), [(1.0, 0.9, 1.1)] * 3
    with pytest.raises(InvalidInput):
        choice.tell(turn, bad)
    choice.tell(turn, right)
    with pytest.raises(PlanMismatch):
        choice.tell(turn, right)


def test_estimates_are_taken_as_well():
    choice = BestChoice(POINTS, HOSTS)
    told = br.Estimate(
        value=2.0, low=1.9, high=2.1, confidence=0.9, n=5, n_effective=5.0, method="told"
    )
    choice.tell(choice.ask(), [told, told, (1.0, 0.9, 1.1)])
    assert choice.result().point is not None


# --- how often it errs


@pytest.mark.slow
@pytest.mark.parametrize("points", [2, 3])
def test_equal_configurations_are_seldom_told_apart(points):
    """Equal on the mean over all hosts; at most the 99.9% point of the binomial of 5 %."""
    runs, wrong = 150, 0
    for run in range(runs):
        logs = logs_of(0.0, 0.0, 0.0, effect=0.05, seed=[11, points, run])
        found, _ = measured(logs, points=POINTS[:points], noise=0.025, seed=[12, points, run])
        wrong += found.verdict == "best"
    assert wrong <= stats.binom.ppf(0.999, runs, 0.05)


@pytest.mark.slow
def test_predictions_hold_what_a_new_host_finds():
    runs, held = 200, 0
    hosts = [f"host {number}" for number in range(6)]
    for run in range(runs):
        *known, further = logs_of(-2.0, 0.0, 0.3, effect=0.05, hosts=hosts, seed=[13, run]).items()
        found, _ = measured(dict(known))
        held += (
            found.prediction.low
            <= math.exp(further[1][2] - further[1][1])
            <= (found.prediction.high)
        )
    low, high = stats.binom.ppf([0.0005, 0.9995], runs, 0.95)
    assert low <= held <= high


def test_turns_that_were_under_way_when_a_process_ended_are_asked_again():
    """Each host has its turn before the first look, whichever ones were finished, in any order."""
    first = BestChoice(POINTS, HOSTS)
    turns = [first.ask() for _ in HOSTS]
    again = BestChoice(POINTS, HOSTS)
    for index in (3, 0):
        again.recall(turns[index], [(1.0, 0.9, 1.1)] * len(POINTS))
    assert [again.ask(), again.ask(), again.ask()] == [turns[1], turns[2], None]


def test_it_ends_where_further_turns_on_hosts_that_differ_cannot_decide():
    """Each of two configurations is 5 % ahead on half of the hosts, known to .1 %."""
    ahead = {"ash": 1.05, "elm": 0.95, "fir": 1.06, "oak": 0.95}
    choice = BestChoice([{"k": 1}, {"k": 2}], [*ahead], budget_s=10_000.0)
    turns = 0
    while (turn := choice.ask()) is not None:
        turns += 1
        rates = [100.0 * (ahead[turn.host] if point["k"] == 1 else 1.0) for point in turn.points]
        choice.tell(turn, [(rate, 0.999 * rate, 1.001 * rate) for rate in rates], cost_s=1.0)
    found = choice.result()
    assert (turns, found.verdict) == (8, "undecided")
    assert found.notices[0].code is Code.FEW_HOSTS


def test_it_ends_too_where_a_configuration_was_once_not_brought_to_its_limits():
    """Nothing can beat it, however many turns follow; and hosts differ too much for it to win."""
    effects = {"ash": -0.5, "elm": 0.4, "fir": -0.3, "oak": 0.5}
    choice = BestChoice([{"k": 1}, {"k": 2}], [*effects], budget_s=1_600.0)
    turns = 0
    while (turn := choice.ask()) is not None:
        turns += 1
        values = [
            100.0 * math.exp(effects[turn.host] if point["k"] == 1 else 0.0)
            for point in turn.points
        ]
        answers = [(value, 0.99 * value, 1.01 * value) for value in values]
        better = [None, None]
        if turns == 1:
            answers[0], better[0] = None, values[0]
        choice.tell(turn, answers, better_than=better, cost_s=2.0)
    assert turns <= 16
    assert Code.FEW_HOSTS in {notice.code for notice in choice.result().notices}


def test_the_same_told_the_same_is_asked():
    one, two = (measured(logs_of(0.0, 0.1, 0.1, effect=0.05), seed=2) for _ in range(2))
    assert one == two
