"""A statement stands in the timed loop itself, as timeit of the standard library has it."""

import dis
import timeit

import pytest
from simulated.rounds import run

from benchrigor.errors import InvalidInput
from benchrigor.testing import FakeClock
from benchrigor.workloads import StatementWorkload
from benchrigor.workloads.statement import _compile


def loop_of(function):
    """Return the instructions of a function's loop, without the name of its variable.

    Before it, a call stands in a loop of its own, once.
    """
    steps = [*dis.get_instructions(function)]
    loops = [place for place, step in enumerate(steps) if step.opname == "FOR_ITER"]
    first = loops["_benchrigor_made" in function.__code__.co_varnames]
    start, stop = steps[first + 2].offset, steps[first].argval

    def shown(step):
        if step.opcode in dis.hasjrel:
            return step.argval - start
        return getattr(step.argval, "co_name", step.argrepr)

    return [(step.opname, shown(step)) for step in steps if start <= step.offset < stop]


@pytest.mark.parametrize(
    ("setup", "statement"),
    [
        ("", "pass"),
        ("x = 1", "x + 1"),
        ("rows = [3, 1, 2]", "[row * 2 for row in rows]"),
        ("", "for i in range(5):\n  str(i)\nx = 'a'.upper()"),
        ("def double(x):\n  return 2 * x", "double(4)"),
    ],
)
def test_what_is_timed_are_the_instructions_that_timeit_times(setup, statement):
    ours, timeits = _compile(statement, setup), timeit.Timer(statement, setup).inner
    assert loop_of(ours) == loop_of(timeits)


@pytest.mark.parametrize("quoted", ["'''a\n  b'''", '"""a\n  b"""', r"'it\'s'", "'# no comment'"])
def test_text_in_quotes_stays_as_it_is(quoted):
    statement = f"for _ in (0,):\n    assert {quoted} == expected"
    setup = f"expected = {quoted}"
    assert run(StatementWorkload(statement, setup=setup, clock=FakeClock(cost_ns=9), inner=2))


@pytest.mark.parametrize("nothing", ["", "  ", "# only a comment", "'only text'"])
def test_a_statement_may_do_nothing(nothing):
    assert run(StatementWorkload(nothing, clock=FakeClock(cost_ns=9), inner=2))


@pytest.mark.parametrize("statement", ["for", "  x = 1\ny = 2"])
def test_what_is_no_python_is_refused(statement):
    for given in ({"statement": statement}, {"statement": "1", "setup": statement}):
        with pytest.raises(InvalidInput):
            StatementWorkload(clock=FakeClock(), **given)
