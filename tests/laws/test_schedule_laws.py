"""Laws of `protocols.Schedule`: fair, repeatable, and blind to which subject is faster."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.session.pairs.turns import both, comparing

from benchrigor.model import Headway, Options, Turn
from benchrigor.protocols import Schedule
from benchrigor.session.engine import Engine, Taken
from benchrigor.session.pairs.ratio import Ratio
from benchrigor.session.schedules import Alone, Blocks, Race, Rotation

NAMES, COPY = tuple("abcdefg"), "a copy of a"  # which some turns have besides
NEW = Headway(elapsed_s=1.0, readings=10, last_readings=10, last_s=0.1, to_next_check=400)


def alone(seed: int) -> Schedule:
    return Alone(Options(), seed, lambda _: None, None)


def blocks(seed: int, *, rounds: str = "auto") -> Schedule:
    return Blocks(NAMES[:2], Options(rounds=rounds), seed)


def processes(seed: int) -> Schedule:
    return blocks(seed, rounds="restarted")


def rotation(seed: int) -> Schedule:
    return Rotation(NAMES, seed)


def race(seed: int) -> Schedule:
    return Race((*NAMES[:2], COPY), seed)


MADE = {"alone": (alone, 1), "blocks": (blocks, 1), "processes": (processes, 1)} | {
    "rotation": (rotation, len(NAMES)),
    "race": (race, len(NAMES)),
}
schedules = pytest.mark.parametrize("name", MADE)


def turns_of(name: str, seed: int, number: int) -> list[Turn]:
    """Return the first turns of a schedule of goals, by each of which as much was spent."""
    make, goals = MADE[name]
    schedule, taken = make(seed), list[Turn]()
    while len(taken) < number:
        headway = Headway(
            turns=len(taken), readings=40 * len(taken), elapsed_s=0.01 * len(taken), last_s=0.01,
            last_readings=40, to_next_check=60,
        )  # fmt: skip
        turn = schedule.next(dict.fromkeys(NAMES[:goals], headway))
        assert turn is not None
        taken.append(turn)
    return taken


@schedules
@given(seed=st.integers(0, 2**32 - 1))
def test_equal_states_lead_to_equal_turns(name: str, seed: int) -> None:
    assert turns_of(name, seed, 5) == turns_of(name, seed, 5)


@schedules
@given(seed=st.integers(0, 2**32 - 1))
def test_all_have_as_many_turns(name: str, seed: int) -> None:
    turns = turns_of(name, seed, 4 * len(NAMES))
    numbers = Counter(subject for turn in turns for subject in turn.order if subject != COPY)
    assert len({*numbers.values()}) == 1
    assert [turn.plan.index for turn in turns] == [*range(len(turns))]


@pytest.mark.parametrize("make", [blocks, processes])
@given(seed=st.integers(0, 2**32 - 1))
def test_a_drift_falls_on_both_sides_of_a_block_alike(
    make: Callable[[int], Schedule], seed: int
) -> None:
    turn = make(seed).next({"ratio": NEW})
    assert turn is not None
    blocks = np.array(turn.order).reshape(-1, 4)
    for block in blocks:
        assert block[0] == block[3] != block[1] == block[2]
    assert abs(2 * int((blocks[:, 0] == "a").sum()) - len(blocks)) <= 1


@given(seed=st.integers(0, 2**32 - 1), left=st.sets(st.sampled_from(NAMES), min_size=2))
def test_half_a_rotation_lies_between_two_turns_of_a_subject(seed: int, left: set[str]) -> None:
    schedule, order = Rotation(NAMES, seed), list[str]()
    while len(order) < 5 * len(NAMES):
        turn = schedule.next(dict.fromkeys(NAMES, NEW))
        assert turn is not None
        order += turn.order
    last = {name: len(order) - 1 - order[::-1].index(name) for name in NAMES}
    assert max(last.values()) - min(last.values()) < len(NAMES)
    gaps = [b - a for name in NAMES for a, b in pairwise(np.flatnonzero(np.array(order) == name))]
    assert min(gaps) > len(NAMES) // 2
    rest = [schedule.next(dict.fromkeys(left, NEW)) for _ in range(3 * len(left))]
    assert {subject for turn in rest if turn is not None for subject in turn.order} == left
    assert schedule.next({}) is None


@pytest.mark.parametrize("rounds", ["auto", "restarted"])
def test_no_schedule_sees_who_is_faster(rounds: str) -> None:
    def turns(engine: Engine[Ratio], slower: float) -> list[Turn]:
        rng, taken = np.random.default_rng(1), list[Turn]()
        while len(taken) < 20 and (turn := engine.ask()) is not None:
            plan = turn.plan
            old, new = rng.normal(1.0, 0.1, (2, plan.readings))
            new *= slower * old.sum() / new.sum()
            share = 1e-4 * plan.readings / (old.sum() + new.sum())  # as much time, whoever takes it
            rounds = [both(plan, share * old, share * new)]
            elapsed_ns = round(1e5 * plan.readings)
            engine.tell(Taken(plan=plan, rounds=rounds, elapsed_ns=elapsed_ns))
            taken.append(turn)
        return taken

    even, faster, slower = (
        turns(comparing(rounds=rounds, target=1e-9, seed=7), ratio) for ratio in (1.0, 0.5, 3.0)
    )
    assert faster == even == slower
