"""One hostile name goes through every report, error, plot and verb: no control character comes out.

The reports, errors and plots are listed from the code, so that new ones are tested too.
"""

import ast
import copy
import enum
import importlib
import inspect
import json
import pickle
import pkgutil
import re
import shlex
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import click
import click.testing
import numpy as np
import numpy.typing as npt
import pytest

import benchrigor
import benchrigor as br
from benchrigor import errors, model, report
from benchrigor.cli import main
from benchrigor.model import (
    Delays,
    Interference,
    Metric,
    Observed,
    Options,
    References,
    Round,
    RunRecord,
    SegmentProfile,
    StablePhase,
)
from benchrigor.stats import find_stable_phase, profile_interference
from benchrigor.storage import Journal

# Colours, a forged line, returns, C1, the direction of text, separators and a lone surrogate.
NAME = "µ\x1b[31m\nFORGED\r\t\x07\x7f\x9b\u202e\u2066\u200f\u2028\u2029\udcff"
_CONTROLS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def assert_harmless(text: str) -> None:
    """Assert that a terminal may show a text, and that no line of it is forged."""
    assert not _CONTROLS.search(text), ascii(text)
    assert not re.search(r"^\s*FORGED", text, re.MULTILINE), ascii(text)


def made(kind: Any, given: Mapping[Any, Any]) -> Any:
    """Make a value of a type; ``given`` has values of types, and of parameters by name."""
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
    if isinstance(kind, type) and issubclass(kind, dict):  # of records by name
        return kind({NAME: record()})
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
ROOMS = ["instrument", "model", "queues", "report", "stats", "testing", "workbench", "workloads"]
GIVEN = {"Pick", "Stage", "SyntheticStage", "SyntheticWorkload"}
STORED = {"Pick"}  # a format that is read again, shown with repr
NOT_OF_TEXT = {"InvalidInput", "Monitor", "Reported"}  # of which others show the text


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
    metric = Metric(name="speed", unit=f"{NAME}/s", direction="higher")  # type: ignore[arg-type]
    session = br.Session(Options(work=(10, 1000), max_rounds=12), (metric,), name=NAME, seed=1)
    while (plan := session.ask()) is not None:
        seconds = 0.5 + (plan.work or 0.0) / 500
        session.tell(br.Round(plan=plan, elapsed_ns=int(1e9 * seconds), readings={"time": seconds}))
    return session.result()


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
        "Factor.levels": [1.0, 2.0],
        "Factor.name": "load",
        "Factor.scale": None,
        "PipelineStage.variation": None,
        "plot_work.record": worked(),
        "scheduled": 2,
        "sent": 2,
        "starts": np.array([0]),
        "stops": np.array([1]),
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
        and ("__str__" in vars(kind) or "_page" in vars(kind))
        and getattr(sys.modules[kind.__module__], kind.__name__, None)
        is kind  # else slots replaced it
    )


def reports() -> list[str]:
    functions = {name: getattr(report, name) for name in dir(report)}
    return [
        name
        for name, each in functions.items()
        if "str" in str(inspect.signature(each).return_annotation)
    ]


def plots() -> list[str]:
    return [name for name in dir(report) if name.startswith("plot_")]


def texts_of(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Sequence):
        for each in value:
            yield from texts_of(each)


def test_control_characters_become_visible_and_other_characters_stay() -> None:
    def shown(text: str) -> str:
        return str(errors.WorkloadFailed(text))

    assert shown("µ → 漢字 é \x1b[0m") == "µ → 漢字 é \\x1b[0m"
    assert shown("b\tc\x9b\u202e\u2028\udcff") == "b\\tc\\x9b\\u202e\\u2028\\udcff"
    assert shown(shown(NAME)) == shown(NAME)


def test_a_printed_object_is_harmless() -> None:
    kinds = [kind for kind in shown_classes() if not issubclass(kind, enum.Enum | Exception)]
    assert len(kinds) > 20
    for kind in kinds:
        if kind.__name__ not in STORED | NOT_OF_TEXT:
            assert_harmless(str(made(kind, given())))


def public_data() -> dict[str, type]:
    """Return the dataclasses that the lobbies list, and those that their functions return."""
    lobbies = [benchrigor, *(importlib.import_module(f"benchrigor.{room}") for room in ROOMS)]
    items = {name: getattr(lobby, name) for lobby in lobbies for name in dir(lobby)}
    public = dict[str, type]()
    for name, item in items.items():
        if is_dataclass(item):
            public[name] = typing.cast("type", item)
        members = vars(item) if inspect.isclass(item) else {name: item}
        for each in (member for name, member in members.items() if name[0] != "_"):
            function = each.fget if isinstance(each, property) else each
            if inspect.isfunction(function) and function.__module__.startswith("benchrigor"):
                own = function.__globals__
                names = re.findall(r"\w+", str(function.__annotations__.get("return")))
                public |= {part: own[part] for part in names if is_dataclass(own.get(part))}
    return {name: kind for name, kind in public.items() if name not in GIVEN}


PUBLIC_DATA = public_data()


@pytest.mark.parametrize("name", PUBLIC_DATA)
def test_the_repr_of_a_public_result_is_one_short_line(name: str) -> None:
    kind = PUBLIC_DATA[name]
    for text in ("load", NAME, NAME * 9):
        measured: dict[str, Any] = {"stops": np.ones(1), "seconds": {text: np.ones(1)}}
        values = {
            **given(),
            str: text,
            Round: record().rounds[0],
            Delays: Delays(**measured),
            References: References(**measured),
        }
        del values["metric"]
        shown = repr(made(kind, values))
        assert_harmless(shown)
        assert 0 < len(shown) <= 100
        assert "\n" not in shown
        assert " object at 0x" not in shown


def test_the_repr_of_a_record_holds_its_number_behind_a_long_name() -> None:
    long = replace(record(), name="a long command line " * 20)
    (analysis,) = long.analyses
    estimate = analysis.estimate
    assert estimate is not None
    assert f"{estimate.value:.2f}" in repr(long)
    named = replace(long, name="sort")
    assert repr(named)[:99] == str(named)[:99]
    metric = replace(analysis.metric, name="time", unit="s")
    assert repr(replace(analysis, metric=metric)) == f"time in s: {estimate!r}"
    assert pickle.loads(pickle.dumps(estimate)) == copy.copy(estimate) == estimate  # noqa: S301


def test_the_log_is_harmless(caplog: pytest.LogCaptureFixture) -> None:
    record.cache_clear()
    with caplog.at_level("INFO", logger="benchrigor.session"):
        record()
    lines = [each.getMessage() for each in caplog.records]
    assert any("x1b" in line for line in lines)
    for line in lines:
        assert_harmless(line)


def test_what_a_stream_cannot_encode_is_escaped() -> None:
    readings = "".join(f"{100 + nth % 7 / 100}\n" for nth in range(90))
    runner = click.testing.CliRunner(charset="ascii")
    ran = runner.invoke(main, ["analyze", "-"], input=readings)
    assert ran.exit_code in (0, 3)
    assert "\\xb1" in ran.output


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
    written = [
        each.get_text() for each in axes.figure.findobj(lambda each: hasattr(each, "get_text"))
    ]
    assert any("x1b" in each for each in written)
    for text in written:
        assert_harmless(text)


@pytest.mark.parametrize(
    "kind",
    [
        each
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, Exception)
    ],
    ids=lambda kind: kind.__name__,
)
def test_an_error_is_harmless(kind: type[Exception]) -> None:
    named = {"package": NAME, "extra": NAME} if kind is errors.MissingExtra else {}
    assert_harmless(str(kind(NAME, **named)))
    if issubclass(kind, errors.InvalidInput):
        assert_harmless(str(kind([NAME, NAME])))


JOIN = "'\\n'.join"
ELSEWHERE = [
    ("cli/exits.py", JOIN),  # a traceback
    *[("cli/measuring_verbs.py", JOIN)] * 2,  # source text
    ("cli/output.py", "click.echo"),
    ("cli/verbs.py", "click.echo"),  # without room for what reports errors
    ("report/figures.py", JOIN),  # rows of Markdown, of harmless cells
    ("safe_text.py", JOIN),
    ("workbench/picture.py", JOIN),  # lines of pages
    ("workloads/named_functions.py", JOIN),  # what is hashed
]


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
    assert elsewhere == [f"{place}: {call}" for place, call in ELSEWHERE]


# A map of a command whose name and whose levels are hostile, and which is not there.
MAP = f"""
[factors.threads]
levels = {json.dumps([NAME, "other"])}
[response]
command = {json.dumps(["no-such-program", NAME, "{threads}"])}
read = {json.dumps(f"{NAME}=regex:(.+)")}
direction = "higher"
"""
# In these lines @ is the hostile name, and a word in capitals a file with it or a stored run.
VERBS_WITH = r"""
gate --old . --new . -- @
gate --old . --new @ -- true
run --budget 0.3 --quiet sh -c true @
run sh -c "printf '%s' '@' >&2; exit 3"
run --read '@=regex:(' true
run job:@
run job:fails
run @
ab "sh -c 'exit 3' '@'" true
ab @ true
ab true --rev @
commands --budget 0.3 "true '@'" true
commands "true '@" true
commands 'true {n}' -L n @,b --budget 0.3
timeit --budget 0.1 "len('@')" int
timeit "raise ValueError('@')"
doctor @
map @
map FILE
map MAP
peak --url http://@/ --p95 1ms
peak --limit @=1 true
peak --requests @ --p95 1ms
peak --p95 50ms -- @
analyze FILE --column 1 --unit @ --explain
analyze FILE --column 1 --unit @
analyze FILE --column @
analyze FILE
analyze TEXT
analyze @
changes FILE --column 1 --unit @
changes FILE --round 0 --column 1
compare FILE OTHER --column 1
compare FILE OTHER FILE --column 1
compare @ FILE
list
list @
show RUN
show @
explain RUN
explain RUN --metric @
convert RUN results@.csv
convert @ a.json
report RUN @ -o results@.html
report RUN FILE -o result.html
export RUN -o results@
export RUN -o FILE
interference PROFILE
interference PROFILE PROFILE --composite
interference RUN
interference TEXT
rate QUEUES
rate QUEUES --end other
rate TEXT
rate @
plan RUN
plan FILE --column 1 --change 2%
plan @
track-record
track-record --name @
track-record --store @
agent --port 0 --host @
agent --thresholds TEXT --port 0
agent --token-file @
watch --once http://127.0.0.1:1/@
watch --once @
resume RUN
resume @
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Files with a hostile name and hostile content, and the number of a stored run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("BENCHRIGOR_STORE", f"runs{NAME}.sqlite")
    encodable = NAME.encode(errors="replace").decode()
    quoted = encodable.replace("\r", "")
    rows = "".join(f'"{quoted}",{10 + number % 3}\n' for number in range(60))
    segments = "".join(f'"{quoted}",{0.01 + 0.0001 * (number % 7)}\n' for number in range(60))
    counts = "".join(f'0.1,{40 + number % 3},0.01,"{quoted}"\n' for number in range(60))
    contents = {
        "FILE": f'"{quoted}","n{quoted}"\n{rows}',
        "OTHER": f'"{quoted}","n{quoted}"\n{rows}',
        "TEXT": quoted,
        "MAP": MAP,
        "PROFILE": f"# program: {encodable!r}\x1b[31m\nlabel,duration_s\n{segments}",
        "QUEUES": f"period_s,items,blocked_s,end\n{counts}",
    }
    for label, text in contents.items():
        Path(f"{label}{NAME}").write_text(text, encoding="utf-8")
    Path("job.py").write_text(f"def fails():\n    raise ValueError({NAME!a})\n")
    with Journal(Path(f"runs{NAME}.sqlite")) as stored:
        run_id = stored.begin(record())
        for each in record().rounds:
            stored.append(run_id, each)
        stored.finish(run_id, record())
    return {"RUN": run_id, **{label: f"{label}{NAME}" for label in contents}}


@pytest.mark.parametrize(
    "words", [[NAME], [f"--{NAME}"], ["run", f"--{NAME}"], ["list", "a", NAME]]
)
def test_an_error_in_the_command_line_is_harmless(words: list[str]) -> None:
    result = click.testing.CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "x1b" in result.output
    assert_harmless(result.output)


@pytest.mark.parametrize("verb", main.list_commands(click.Context(main)))
def test_a_verb_is_harmless(verb: str, files: dict[str, str]) -> None:
    outputs = []
    lines = [line for line in VERBS_WITH.splitlines() if line.partition(" ")[0] == verb]
    for line in lines:
        words = shlex.split(line)
        if verb == "timeit":  # in a program
            words = [word.replace("'@'", ascii(NAME)) for word in words]
        typed = [files.get(word, word.replace("@", NAME)) for word in words]
        result = click.testing.CliRunner().invoke(main, typed)
        assert result.exception is None or isinstance(result.exception, SystemExit), words
        assert_harmless(result.output)
        outputs.append(result.output)
    assert "x1b" in "".join(outputs)
