"""One hostile name goes through every report, error, plot and verb: no control character comes out.

The reports, errors and plots are listed from the code, so that new ones are tested too.
"""

import ast
import enum
import importlib
import inspect
import pkgutil
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import benchrigor
import benchrigor as br
from benchrigor import errors, model, report
from benchrigor.control_characters import escaped, page
from benchrigor.model import Delays, Interference, Metric, Observed, Options, RunRecord, SegmentProfile, StablePhase
from benchrigor.session.replays.recorded_run import record_of_pairs
from benchrigor.stats import find_stable_phase, profile_interference

# Colours, a forged line, returns, C1, the direction of text, separators and a lone surrogate.
NAME = "µ\x1b[31m\nFORGED\r\t\x07\x7f\x9b\u202e\u2066\u200f\u2028\u2029\udcff"
_CONTROLS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def assert_harmless(text: str) -> None:
    """Assert that a terminal may show a text, and that no line of it is forged."""
    assert not _CONTROLS.search(text), ascii(text)
    assert not re.search(r"^\W*FORGED", text, re.MULTILINE), ascii(text)


def made(kind: Any, given: Mapping[Any, Any]) -> Any:
    """Make a value of a type, with hostile texts; ``given`` has values of types, and of parameters by name."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if kind in given:
        return given[kind]
    if origin in (typing.Union, types.UnionType):
        return made(next(each for each in parts if each is not types.NoneType), given)
    if origin is typing.Literal:
        return parts[0]
    if origin is tuple:
        return tuple(made(each, given) for each in parts if each is not Ellipsis)
    if origin is np.ndarray:
        return np.array([1.0, 2.0])
    if origin and issubclass(origin, Mapping):
        return {made(parts[0], given): made(parts[1], given)}
    if origin and issubclass(origin, Iterable | Sequence):
        return (made(parts[0], given),)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return next(iter(kind))
    plain = {str: NAME, int: 1, float: 0.5, bool: True, object: NAME, Any: NAME}
    return plain[kind] if kind in plain else called(kind, given)


def called(function: Callable[..., Any], given: Mapping[Any, Any]) -> Any:
    """Call a function, or make a dataclass, with hostile values of its parameters' types."""
    hints = typing.get_type_hints(function, localns={**vars(model), "Axes": object, "npt": npt})
    values = {}
    for name in inspect.signature(function).parameters:
        own = f"{function.__qualname__}.{name}"
        chosen = next((key for key in (own, name) if key in given), None)
        values[name] = given[chosen] if chosen else made(hints[name], given)
    return function(**values)


ROOT = Path(benchrigor.__file__).parent
STORED = {"Pick"}  # a format that is read again, shown with repr
NOT_OF_TEXT = {"InvalidInput", "Monitor"}  # the first has a test below, the other a report


@cache
def record() -> RunRecord:
    session = br.Session(
        Options(budget_readings=300),
        (Metric(name=NAME, unit=NAME, direction="lower"),),  # type: ignore[arg-type]
        name=NAME,
        seed=1,
    )
    rng = np.random.default_rng(1)
    while (plan := session.ask()) is not None:
        readings = {NAME: rng.normal(10.0, 1.0, plan.readings)}
        session.tell(br.Round(plan=plan, elapsed_ns=10**9, unit_readings=readings))
    return session.result()


@cache
def worked() -> RunRecord:
    amounts = np.linspace(1.0, 2.0, 12)
    options, metric = Options(), Metric(name="speed", unit=f"{NAME}/s", direction="higher")  # type: ignore[arg-type]
    return record_of_pairs(amounts, 0.5 + amounts, options, metric, name=NAME)


@cache
def profile() -> SegmentProfile:
    seconds = np.random.default_rng(1).normal(0.01, 0.001, 200)
    return SegmentProfile(program=NAME, duration_s=seconds, nominal={"label": [NAME] * 200})


def given() -> dict[Any, Any]:
    """Values that hold texts and must fit together."""
    known = called(Observed, {})
    return {
        Delays: None,
        Options: Options(),
        RunRecord: record(),
        SegmentProfile: profile(),
        Interference: profile_interference(profile()),
        StablePhase: find_stable_phase(np.ones(40)),
        "axes": None,
        "averaging": "auto",
        "batch_above": 0.5,
        "evidence": {},
        "failed": 0,
        "metric": NAME,
        "observed": {"baseline": known, "candidate": known, NAME: known},
        "PipelineStage.variation": None,
        "plot_work.record": worked(),
        "scheduled": 2,
        "sent": 2,
        "starts": np.array([0]),
        "stops": np.array([1]),
        "plot_phases.values": np.ones(40),
        "plot_work.metric": "speed",
        "width": 79,
    }


@cache
def shown_classes() -> tuple[type, ...]:
    for module in pkgutil.walk_packages(benchrigor.__path__, "benchrigor."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    pending, classes = [object], dict[type, None]()
    while pending:
        for kind in type.__subclasses__(pending.pop()):
            if kind not in classes:
                classes[kind] = None
                pending.append(kind)
    return tuple(
        kind
        for kind in classes
        if str(kind.__module__).startswith("benchrigor")
        and "__str__" in vars(kind)
        and getattr(sys.modules[kind.__module__], kind.__name__, None) is kind  # else slots replaced it
    )


def reports() -> list[str]:
    functions = {name: each for name, each in vars(report).items() if inspect.isfunction(each)}
    return [name for name, each in functions.items() if "str" in str(inspect.signature(each).return_annotation)]


def plots() -> list[str]:
    return [name for name in vars(report) if name.startswith("plot_")]


def texts_of(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Sequence):
        for each in value:
            yield from texts_of(each)


def test_control_characters_become_visible_and_other_characters_stay() -> None:
    assert escaped("µ → 漢字 é \x1b[0m") == "µ → 漢字 é \\x1b[0m"
    assert escaped("a\nb\tc\x9b\u202e\u2028\udcff") == "a\\nb\\tc\\x9b\\u202e\\u2028\\udcff"
    assert escaped(escaped(NAME)) == escaped(NAME)
    assert page(["a\nb", "c"]) == "a\\nb\nc"


def test_a_printed_object_is_harmless() -> None:
    kinds = [kind for kind in shown_classes() if not issubclass(kind, enum.Enum | Exception)]
    assert len(kinds) > 20
    for kind in kinds:
        if kind.__name__ not in STORED | NOT_OF_TEXT:
            shown = record() if kind is RunRecord else called(kind, given())
            assert_harmless(str(shown))


@pytest.mark.parametrize("name", reports())
def test_a_report_is_harmless(name: str) -> None:
    texts = [*texts_of(called(getattr(report, name), given()))]
    assert texts
    for text in texts:
        assert_harmless(text)


@pytest.mark.parametrize("name", plots())
def test_a_plot_is_harmless(name: str) -> None:
    axes = called(getattr(report, name), given())
    axes.figure.canvas.draw()
    written = [each.get_text() for each in axes.figure.findobj(lambda each: hasattr(each, "get_text"))]
    assert any("x1b" in each for each in written)
    for text in written:
        assert_harmless(text)


@pytest.mark.parametrize(
    "kind",
    [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)],
    ids=lambda kind: kind.__name__,
)
def test_an_error_is_harmless(kind: type[Exception]) -> None:
    named = {"package": NAME, "extra": NAME} if kind is errors.MissingExtra else {}
    assert_harmless(str(kind(NAME, **named)))
    if issubclass(kind, errors.InvalidInput):
        assert_harmless(str(kind([NAME, NAME])))


def test_lines_are_joined_and_printed_in_one_place() -> None:
    """A text that is joined or printed elsewhere would not be escaped."""
    elsewhere = []
    for path in sorted(ROOT.rglob("*.py")):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                call = ast.unparse(node.func)
                if call in {"click.echo", "click.secho", "'\\n'.join"}:
                    elsewhere.append(f"{name}: {call}")
    assert elsewhere == [
        "cli/output.py: click.echo",
        "cli/sources.py: '\\n'.join",  # the lines of a file, without the first
        "cli/timeit_verb.py: '\\n'.join",  # source text
        "cli/timeit_verb.py: '\\n'.join",
        "control_characters.py: '\\n'.join",
        "workloads/timing.py: '\\n'.join",  # what is hashed
    ]
