"""Choices among configurations on several hosts: laws, known answers, and how often they err."""

import math

import numpy as np
import pytest
from known_maps import known
from scipy import stats

from benchrigor.errors import InvalidInput, PlanMismatch
from benchrigor.model import Code
from benchrigor.workbench import BestChoice

HOSTS = ["ash", "elm", "fir", "oak"]
POINTS = [{"threads": threads} for threads in (4, 8, 16)]
PACES = dict(zip(HOSTS, (1.0, 1.3, 0.8, 1.1), strict=True))
RIGHT = [(1.0, 0.9, 1.1)] * 3


def chosen(answer, *, points=POINTS, hosts=HOSTS, cost_s=0.0, error=0.01, **options):
    """Choose by what a turn finds of the point of an index: a value, None, or {"bound": it}."""
    choice, turns = BestChoice(points, [*hosts], **options), []
    while (turn := choice.ask()) is not None:
        turns.append(turn)
        found = [answer(turn, POINTS.index(point)) for point in turn.points]
        values = [known(x, error) if isinstance(x, float) else None for x in found]
        bounds = [x["bound"] if isinstance(x, dict) else None for x in found]
        choice.tell(turn, values, better_than=bounds, cost_s=cost_s)
    return choice.result(), turns


def measured(logs, *, noise=0.0, seed=7, scale=1.0, **options):
    """Choose on hosts whose logarithms are known."""
    rng = np.random.default_rng(seed)

    def answer(turn, index):
        return scale * math.exp(logs[turn.host][index] + noise * rng.normal())

    return chosen(answer, hosts=[*logs], **options)


def logs_of(*means, effect=0.0, hosts=HOSTS, seed=3):
    """Return the logarithm of each configuration on each host, which differ by an effect."""
    rng = np.random.default_rng(seed)
    return {
        host: (math.log(PACES.get(host, 1.0)) + np.array(means) + effect * rng.normal(size=3))
        for host in hosts
    }


def codes(found):
    return [each.code for each in found.notices]


def test_the_best_is_found_whatever_the_pace_of_hosts():
    found, turns = measured(logs_of(0.0, 0.05, 0.2, effect=0.005))
    assert (found.point, found.verdict, len(turns)) == (POINTS[2], "best", 4)
    assert (found.rivals, found.notices) == ((), ())


def test_in_each_turn_one_host_measures_all_in_random_order():
    """What is beaten is not measured again."""
    _, turns = measured(logs_of(0.0, 0.0, 0.0, effect=0.05))
    assert [turn.host for turn in turns] == HOSTS * 2
    assert all(sorted(p["threads"] for p in turn.points) == [4, 8, 16] for turn in turns)
    assert len({tuple(p["threads"] for p in turn.points) for turn in turns}) > 3
    _, turns = measured(logs_of(-1.0, 0.0, 0.01, effect=0.02))
    assert [len(turn.points) for turn in turns] == [3] * 4 + [2] * 4
    assert all({"threads": 4} not in turn.points for turn in turns[4:])


@pytest.mark.parametrize(
    ("means", "effect", "verdict", "rivals"),
    [
        ((0.0, 0.001, 0.0), 0.0, "best", 0),  # without noise a thousandth is known
        ((0.0, 0.001, 0.0), 0.001, "equivalent", 2),
        ((0.0, 0.0, 0.0), 0.0, "equivalent", 2),
    ],
)
def test_equal_ones_are_equivalent(means, effect, verdict, rivals):
    found, _ = measured(logs_of(*means, effect=effect))
    assert (found.verdict, len(found.rivals)) == (verdict, rivals)


def test_a_choice_that_is_open_tells_which_one_leads():
    logs = logs_of(0.0, 0.03, 0.01, effect=0.05, seed=1)
    found, turns = measured(logs)
    means = np.mean([*logs.values()], axis=0)
    assert (found.verdict, found.point) == ("undecided", POINTS[int(means.argmax())])
    assert len(turns) == 16


def test_it_ends_with_its_budget_maybe_with_a_verdict():
    logs = logs_of(0.0, 0.03, 0.01)
    for budget_s, cost_s, turns in ((95.0, 10.0, 9), (400.0, 10.0, 40), (400.0, 0.0, 16)):
        found, asked = measured(logs, noise=0.3, budget_s=budget_s, cost_s=cost_s)
        assert len(asked) == turns
    found, asked = measured(logs_of(0.0, 0.01, 0.3), budget_s=60.0, cost_s=10.0)
    assert (found.verdict, len(asked)) == ("best", 4)
    logs = logs_of(0.0, 0.01, 0.3, effect=0.002, hosts=[f"host {n}" for n in range(8)])
    found, asked = measured(logs, budget_s=55.0, cost_s=10.0)
    assert (found.verdict, len(asked)) == ("best", 5)


# --- laws


@pytest.mark.parametrize("effect", [0.0, 0.01, 0.05])
def test_neither_order_nor_seed_nor_unit_matter_and_lower_is_better_is_the_mirror(effect):
    logs = logs_of(0.0, 0.05, 0.15, effect=effect)
    found, _ = measured(logs)
    turned, _ = measured(dict(reversed(logs.items())), points=POINTS[::-1], seed=9)
    mirror, _ = measured({host: -own for host, own in logs.items()}, direction="lower")
    small, _ = measured(logs, scale=1e-100)
    for other in (turned, mirror, small):
        assert (other.point, other.verdict) == (found.point, found.verdict)
        assert {*codes(other)} == {*codes(found)}
    assert turned.prediction.low == pytest.approx(found.prediction.low)
    assert small.prediction.high == pytest.approx(found.prediction.high)
    assert mirror.prediction.value == pytest.approx(1.0 / found.prediction.value)
    assert mirror.prediction.low == pytest.approx(1.0 / found.prediction.high)


# --- known answers


@pytest.mark.parametrize(("hosts", "freedom"), [(4, 3), (2, 2), (1, 3)])
def test_the_bound_of_a_look_is_that_of_a_t_test(hosts, freedom):
    """Four hosts are a sample; fewer are strata, whose turns have a pooled variance."""
    names, turns = HOSTS[:hosts], 4 // hosts
    offs = np.random.default_rng(5).normal(0.0, 0.05, (hosts, turns))
    pooled = np.sqrt(offs.var(axis=1).sum() * turns / freedom) if hosts < 4 else offs.std(ddof=1)
    tail = 0.05 / 2 / 2  # the first look, of two configurations
    bound = offs.mean() - stats.t.ppf(1.0 - tail, freedom) * pooled / math.sqrt(4)
    for shift, verdict in ((1e-6, "best"), (-1e-6, "equivalent"), (-0.02 - 1e-6, "undecided")):
        choice, left = (
            BestChoice(POINTS[:2], names),
            {n: [*o] for n, o in zip(names, offs, strict=True)},
        )
        for turn in [choice.ask() for _ in range(4)]:
            moved = math.exp(left[turn.host].pop() + shift - bound)
            values = [moved if point == POINTS[1] else 1.0 for point in turn.points]
            choice.tell(turn, [(x, x, x) for x in values])
        found = choice.result()
        assert found.verdict == verdict
        assert verdict == "undecided" or found.point == POINTS[1]


def test_the_prediction_is_that_of_one_more_value():
    logs = [0.01, 0.03, -0.02, 0.05]
    found, _ = measured(dict(zip(HOSTS, ([0.0, x] for x in logs), strict=True)), points=POINTS[:2])
    reach = stats.t.ppf(0.975, 3) * np.std(logs, ddof=1) * math.sqrt(1.25)
    ends = np.exp(np.mean(logs) + reach * np.array([-1.0, 1.0]))
    assert [found.prediction.low, found.prediction.high] == pytest.approx(ends)


@pytest.mark.parametrize(("hosts", "critical"), [(2, 2.71), (3, 4.23), (4, 5.43), (5, 6.50)])
def test_the_critical_values_of_swaps_are_those_published(hosts, critical):
    """Gail & Simon (1985), their table of the critical values at 0.05."""
    for times, is_told in ((0.99, False), (1.01, True)):
        swap = math.sqrt(2.0) * 0.01 * math.sqrt(times * critical)
        logs = {f"host {n}": [0.0, -swap if n == 0 else 0.2] for n in range(hosts)}
        found, turns = measured(logs, points=POINTS[:2], budget_s=float(hosts), cost_s=1.0)
        assert len(turns) == hosts
        assert (Code.HOSTS_DISAGREE in codes(found)) == is_told


# --- hosts


def test_configurations_that_swap_are_named_and_noise_is_no_disagreement():
    logs = logs_of(-2.0, 0.0, 0.1)
    logs["fir"] = np.array([-2.0, 0.3, 0.0])
    found, _ = measured(logs)
    assert codes(found) == [Code.FEW_HOSTS, Code.HOSTS_DISAGREE]
    found, _ = measured(logs_of(0.0, 0.0, 0.0), noise=0.01)
    assert Code.HOSTS_DISAGREE not in codes(found)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_hosts_are_all_that_the_choice_is_for(count):
    found, turns = measured(logs_of(0.0, 0.02, 0.3, hosts=HOSTS[:count]), noise=0.01)
    assert (found.point, found.verdict) == (POINTS[2], "best")
    assert codes(found) == [Code.FEW_HOSTS]
    assert len(turns) == max(4, 2 * count)
    assert (found.prediction is None) == (count == 1)


def nearly(bound, where, means=(0.0, 0.1, 0.2)):
    """Return what answers, except where nothing does, or only a bound is known."""

    def answer(turn, index):
        return bound if where(turn, index) else PACES[turn.host] * math.exp(means[index])

    return answer


BOUND = {"bound": 9.0}


@pytest.mark.parametrize(
    ("bound", "where", "point", "verdict", "rivals"),
    [
        # One without an answer on a host leaves the race.
        (None, lambda turn, index: turn.host == "elm" and index == 2, POINTS[1], "best", ()),
        # Where it has values it looks worst: that it was better on a host is known all the same.
        (
            BOUND,
            lambda turn, index: turn.host == "elm" and index == 0,
            POINTS[2],
            "undecided",
            (POINTS[0],),
        ),
        (BOUND, lambda turn, index: turn.id == 0 and index == 2, POINTS[2], "best", ()),
        # One without any value cannot win, of two neither can lose.
        (BOUND, lambda _, index: index == 2, POINTS[1], "undecided", (POINTS[2],)),
        (BOUND, lambda _, index: index > 0, POINTS[0], "undecided", (*POINTS[1:],)),
    ],
)
def test_what_has_no_value_is_out_of_the_race_or_cannot_lose(bound, where, point, verdict, rivals):
    found, turns = chosen(nearly(bound, where))
    assert (found.point, found.verdict, found.rivals) == (point, verdict, rivals)
    assert Code.SAMPLES_WITHOUT_NUMBER in codes(found)
    if where(turns[-1], 2):  # more turns decide nothing
        assert len(turns) <= 4


@pytest.mark.parametrize("bound", [None, BOUND])
def test_where_nothing_works_there_is_no_choice(bound):
    found, turns = chosen(nearly(bound, lambda *_: True))
    assert (found.point, found.verdict, found.prediction) == (None, "undecided", None)
    assert Code.NO_DATA in codes(found)
    assert len(turns) <= 4
    assert BestChoice(POINTS, HOSTS).result().point is None


def test_turns_may_be_asked_for_before_others_are_told():
    """Those that were under way when a process ended are asked again, in any order."""
    choice, again = BestChoice(POINTS, HOSTS), BestChoice(POINTS, HOSTS)
    turns = [choice.ask() for _ in HOSTS]
    assert {turn.host for turn in turns} == {*HOSTS}
    assert choice.ask() is None  # what comes next depends on them
    for turn in reversed(turns):
        choice.tell(turn, RIGHT)
    assert choice.result().verdict == "equivalent"
    assert choice.ask() is None
    for index in (3, 0):
        again.recall(turns[index], RIGHT)
    assert [again.ask(), again.ask(), again.ask()] == [turns[1], turns[2], None]


@pytest.mark.parametrize("bad", [RIGHT[:2], [(-1.0, -2.0, 1.0)] * 3, [], None])
def test_what_is_refused_may_be_told_right_once(bad):
    choice = BestChoice(POINTS, HOSTS)
    turn = choice.ask()
    with pytest.raises(InvalidInput):
        choice.tell(turn, bad)
    choice.tell(turn, RIGHT)
    with pytest.raises(PlanMismatch):
        choice.tell(turn, RIGHT)


def test_it_ends_where_further_turns_on_hosts_that_differ_cannot_decide():
    """Each of two configurations is 5 % ahead on half of the hosts, known to .1 %."""
    ahead = dict(zip(HOSTS, (1.05, 0.95, 1.06, 0.95), strict=True))
    found, turns = chosen(
        lambda turn, index: 100.0 if index else 100.0 * ahead[turn.host],
        points=POINTS[:2],
        error=0.0005,
        budget_s=10_000.0,
        cost_s=1.0,
    )
    assert (len(turns), found.verdict) == (8, "undecided")
    assert codes(found)[0] is Code.FEW_HOSTS


def test_it_ends_too_where_a_configuration_was_once_not_brought_to_its_limits():
    """Nothing can beat it, however many turns follow; and hosts differ too much for it to win."""
    effects = dict(zip(HOSTS, (-0.5, 0.4, -0.3, 0.5), strict=True))

    def answer(turn, index):
        value = 100.0 if index else 100.0 * math.exp(effects[turn.host])
        return {"bound": value} if (turn.id, index) == (0, 0) else value

    found, turns = chosen(answer, points=POINTS[:2], budget_s=1_600.0, cost_s=2.0)
    assert len(turns) <= 16
    assert Code.FEW_HOSTS in codes(found)


# --- how often it errs


@pytest.mark.parametrize("points", [2, 3])
def test_equal_configurations_are_seldom_told_apart(points):
    """Equal on the mean over all hosts; at most the 99.9% point of the binomial of 5 %."""
    runs, wrong = 150, 0
    for run in range(runs):
        logs = logs_of(0.0, 0.0, 0.0, effect=0.05, seed=[11, points, run])
        found, _ = measured(logs, points=POINTS[:points], noise=0.025, seed=[12, points, run])
        wrong += found.verdict == "best"
    assert wrong <= stats.binom.ppf(0.999, runs, 0.05)


def test_predictions_hold_what_a_new_host_finds():
    runs, held = 200, 0
    hosts = [f"host {number}" for number in range(6)]
    for run in range(runs):
        *old, (_, new) = logs_of(-2.0, 0.0, 0.3, effect=0.05, hosts=hosts, seed=[13, run]).items()
        found = measured(dict(old))[0].prediction
        held += found.low <= math.exp(new[2] - new[1]) <= found.high
    low, high = stats.binom.ppf([0.0005, 0.9995], runs, 0.95)
    assert low <= held <= high
