"""What maps say: their pages and plans, and all that is refused of files, factors and answers."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from typing import Any

import click.testing
from tests.simulations.known_maps import FS, THREADS, known, surface_of
from tests.texts.rendering import run

from benchrigor.report.fact import Depth, page_of_facts
from benchrigor.storage import Journal
from benchrigor.workbench import Factor, SurfaceMap
from benchrigor.workbench.designs import MapSample, Measured
from benchrigor.workbench.maps.map_report import facts_of_map, progress_line
from benchrigor.workbench.surface import Surface

GOOD = """\
budget = "2h"

[factors.threads]
levels = [1, 2, 4, 8]
scale = "log2"
change = "30s"

[factors.size]
levels = ["small", "large one"]
workload = true

[design]
samples = 8
target = "5%"

[server]
configure = "make THREADS={threads}"
start = [
    "my-server",        # [not a table]
    "--threads={threads}",
]
ready = "http://127.0.0.1:8000/"
warm_up = "my-client --once {size}"
timeouts = {ready = "20s", stop = "5s"}

[response.peak]
url = "http://127.0.0.1:8000/{size}"
headers = {Size = "{size}"}
p95 = "{threads}00ms"
mean = {size = {small = "10ms", "large one" = "40ms"}}
limits = {p99 = "500ms"}
accuracy = "4%"
max_load = 2000
prepare = "sync {size}"
timeout = "3s"
"""
COMMAND = """\
[factors.threads]
levels = [1, 2]
[response]
command = "my-program --threads {threads}"
"""
FACTOR = "[factors.size]\nlevels = [1, 2, 4, 8]\n"
RESPONSE = '[response]\nfunction = "answers:rate"\ndirection = "higher"\n'
HOSTS = '[hosts]\nnames = ["elm", "oak"]\n'
PEAK = """[factors.size]
levels = [1, 2]
[response.peak]
url = "http://{host}:8000/{size}"
mean = "9s"
"""
TOLD = (1.0, 0.9, 1.1)
DISKS, FILES = Factor("disks", [1, 2, 3, 4]), Factor("fs", ["a", "b"])
CACHES = Factor("caches", [1, 2, 3, 4])
PRECISE = {(1, 1), (1, 2), (1, 4), (3, 3), (3, 4), (4, 2), (4, 4)}  # (disks, caches)
FULL = f'{FACTOR}[design]\nkind = "full"\n{RESPONSE}'
ANSWERS = """
from benchrigor.errors import WorkloadFailed

def rate(size):
    return 100.0 * size

def fail(size):
    raise RuntimeError(f"no {size}")

def negative(size):
    return -1.0

def word(size):
    return "fast"

def beyond(size):
    return 5, 6, 7
"""
SERVED = """[server]
configure = "sh -c 'echo the disk is full; exit 7' {size}"
clean = "true"
"""


def mapped(text: str, *words: str) -> click.testing.Result:
    """Measure the map of a file."""
    sys.modules.pop("answers", None)  # of somebody else
    return run("map", "map.toml", *words, files={"map.toml": text, "answers.py": ANSWERS})


def changed(old: str, new: str) -> click.testing.Result:
    """Measure the map of a good file, with one change."""
    return mapped(GOOD.replace(old, new, 1))


def shown(text: str, *words: str) -> str:
    """Measure a map, or call the command line with its run; return the texts, without times.

    It stands on long lines: where a line breaks depends on the times.
    """
    os.environ["COLUMNS"] = "999"
    found = mapped(text)
    if words:
        run_id = Journal("runs.sqlite").runs()[0]["run_id"]
        found = run(*(word.replace("ID", run_id) for word in words))
        found.stderr_bytes = (found.stderr_bytes or b"").replace(run_id.encode(), b"RUN_ID")
    said = f"exit code {found.exit_code}\n{found.stdout}\n{found.stderr}"
    return re.sub(r" {2,}", "  ", re.sub(r"\b\d[\d.,]* [nµm]?s\b", "TIME", said))


def pass_answer(answer: object, **options: Any) -> None:
    """Pass a map an answer that it refuses."""
    search = SurfaceMap([Factor("disks", levels=[1, 2])], **options)
    sample = search.ask()
    search.tell(sample, answer)
    search.tell(sample, answer)


def map_few_answers(
    answer: Callable[[dict[str, Any]], object],
    *,
    beside: Factor = FILES,
    hosts: Sequence[str | None] = (None,),
    **options: Any,
) -> object:
    """Return the texts about a map of few answers, of hosts in turn."""
    search, host = SurfaceMap([DISKS, beside], **options), cycle(hosts)
    while (sample := search.ask()) is not None:
        search.tell(sample, answer(sample.point), host=next(host))
    return search.result().notices


def mostly_vague(point: dict[str, Any]) -> tuple[float, float, float]:
    """Answer vaguely, but for a few points through which no quadratic goes."""
    at = point["disks"], point["caches"]
    value, error = 10.0 + (at == (4, 4)), 0.001 if at in PRECISE else 0.9
    return value, value * (1.0 - error), value * (1.0 + error)


def mapped_peaks(lost: dict[int, Any] | None = None, **options: Any) -> Surface:
    """Return a map of known peaks, by a model with the same digits on all processors."""
    return surface_of([THREADS, FS], lost, model="quadratic", **options)


SAMPLE = MapSample(id=4, point={"fs": "x\x1b[3m\nfs", "disks": 2})
OUTSIDE = {"at_most": 5.0, "reason": "p95"}
LOST = {
    0: OUTSIDE,
    1: OUTSIDE,
    5: {"at_least": 5000.0},
    10: {"reason": "exit code 1, \x1b[31mno space"},
}
UNITS = {"peak": "1/s", "goodput": "1/s"}
CHANGED = [
    ('"2h"', "7200"),
    ('"2h"', '"2x"'),
    ("budget", "bugdet"),
    ("[1, 2, 4, 8]", "4"),
    ("[1, 2, 4, 8]", "[4]"),
    ("[1, 2, 4, 8]", "[0, 4]"),
    ("levels = [1, 2, 4, 8]", ""),
    ('"log2"', "2"),
    ('"log2"', '"log3"'),
    ("samples", "sample"),
    ("samples = 8", 'kind = "d-optimal"'),
    ("samples = 8", 'kind="d-optimal"\nsamples = 3'),
    ('"make THREADS={threads}"', "3"),
    ('"make THREADS={threads}"', '"make \'x"'),
    ("THREADS={threads}", "{size}"),
    ("THREADS={threads}", "{cores}"),
    ("ready = ", "port = "),
    ('"20s"', "20"),
    ('"20s"', '"-20s"'),
    ("stop = ", "nap = "),
    ("url = ", "command = "),
    ('"http://127.0.0.1:8000/{size}"', '"x{size}"'),
    ("p95 =", "p95x ="),
    ('"{threads}00ms"', "200"),
    ('"{threads}00ms"', '"200"'),
    ('"{threads}00ms"', '"{threads}{size}"'),
    ("small =", "tiny ="),
    ("{size = {", "{depth = {"),
    ('8000/"\nwarm', '80{threads}000/"\nwarm'),
    ('8000/"\nwarm', '{cores}"\nwarm'),
    ('8000/{size}"', '{size}/"'),
    ('8000/{size}"', '{threads}8000/"'),
    ('"500ms"', "500"),
    ("max_load = 2000", "max_load = 0.5"),
]
WRONG = {
    "an empty file": "",
    "many problems, each at its line": GOOD.replace('"2h"', "2")
    .replace("[1, 2, 4, 8]", "8")
    .replace('"20s"', "20")
    .replace('"4%"', '"400%"')
    .replace("samples = 8", "samples = 8.5\nkind = 'box'")
    .replace("true", "'yes'")
    .replace("2000", "'many'"),
    "a secret of a command": COMMAND.replace("my-program", "my-program --password=hunter2 {x}"),
    "no tables": "factors = 3\nresponse = 4",
    "no factors": "[factors]\n[response]",
    "two responses": COMMAND + "function = 'a:b'",
    "an unused factor": COMMAND.replace("threads}", "}"),
    "a variable of the shell": COMMAND.replace("{threads}", "${threads}"),
    "a place to read that is not valid": COMMAND + "read = 'x'",
    "no direction": COMMAND + "read = 'x=regex:(.+)'",
    "no direction of one of two": COMMAND + "read = ['score=json:a', 'p99:ms=json:b']",
    "two of a name": COMMAND + "read = ['a:ms=json:a', 'a:ms=json:b']",
    "a direction of none": COMMAND + "read = 'a:ms=json:a'\ndirection = {b = 'lower'}",
    "a direction that is not valid": COMMAND + "read = 'a:ms=json:a'\ndirection = {a = 'up'}",
    "a number for a direction": COMMAND + "direction = 7",
    "a misspelt direction": COMMAND + "read = 'score=json:a'\ndirection = 'highr'",
    "a start without a sign": COMMAND + "[server]\nstart = 'x'",
    "a port that is not valid": COMMAND + "[server]\nport = true\nstart = 'x'",
    "all that is wrong with a server": COMMAND
    + "[server]\nstart = 'x'\nready = 'x'\nport = 0\nstop = []\ntimeouts = {stop = '-1s'}",
    "a function without a module": FACTOR + "[response]\nfunction = 'f'",
    "a function that is not there": FULL.replace(":rate", ":raet"),
    "a peak without a limit": FACTOR + "[response.peak]\nurl='http://x/{size}'",
    "a factor that is a number": "[factors]\na = 3\n[response]\nfunction = 'a:b'",
    "not TOML": "a = ",
    "a name given twice": "a = 1\na = 2",
    "a budget shorter than a sample": 'budget = "2s"\n' + COMMAND,
    "a budget shorter than a trial": PEAK.replace("{host}", "x")
    + 'budget = "9s"\ntrial_time = "10s"',
    "all that is wrong with hosts": f"{FACTOR}{RESPONSE}[hosts]\n"
    + """names = ["elm", "elm", "-oProxyCommand=x", 7]
scheduler = "tcp://a:1"
prefix = "ssh elm"
generators = 4
""",
    "no hosts": FACTOR + RESPONSE + "[hosts]\ninterchangeable = true",
    "a deadline without a unit": f"{FACTOR}{RESPONSE}{HOSTS}deadline = 7\nlimit = 7",
    "no generators": f"{FACTOR}{RESPONSE}{HOSTS}generators = 0",
    "a margin above 1": f"{FACTOR}{RESPONSE}{HOSTS}[best]\nmargin = 2",
    "a name of a user": f"{FACTOR}{RESPONSE}{HOSTS}user = 'me'",
    "a factor named host": f"{FACTOR}{RESPONSE}{HOSTS}[factors.host]\nlevels = [1, 2]",
    "a host without hosts": FACTOR + '[response]\ncommand = "run {size} {host}"',
    "generators of a function": f"{FACTOR}{RESPONSE}{HOSTS}generators = 1",
    "generators of another server": PEAK.replace("{host}", "elm") + f"{HOSTS}generators = 1",
    "generators and processes": PEAK + f"processes = 2\n{HOSTS}generators = 1",
}
FACTORS: list[tuple[Any, dict[str, Any]]] = [
    ([], {}),
    ([3], {}),
    (["x", "x"], {}),
    ([1, 1.0], {}),
    ([1, 1 + 1e-15], {"scale": "log2"}),
    ([0, 1], {"scale": "log10"}),
    ([1, math.nan], {}),
    ([1, "x"], {"scale": "linear"}),
    ([1, 2], {"scale": "cubic"}),
    ([1, 2], {"change_s": -1}),
    ("ab", {}),
    ([[1, 2], "small"], {"scale": "category"}),
    ([None, "small"], {"scale": "category"}),
]
MAPS: list[dict[str, Any]] = [
    {"design": "random", "samples": 0, "model": "cubic", "target": 2, "budget_s": -1, "seed": 0.5},
    {"design": "d-optimal"},
    {"design": "d-optimal", "samples": 1},
    {"design": "d-optimal", "samples": 3},
    {"direction": "up"},
    {"direction": {"rate": "up"}, "responses": ["rate"]},
    {"direction": {"speed": "lower"}, "responses": ["rate"]},
    {"responses": "peak"},
    {"responses": ["peak", "peak"]},
    {"responses": [7]},
]
ANSWERED: list[Any] = [
    (-1.0, -2.0, 1.0),
    (1.0, 2.0, 3.0),
    (math.inf, 1.0, math.inf),
    (1.0, -1.0, 2.0),
    7.0,
]


def map_text(surface: Surface, name: str, depth: Depth = Depth.PAGE) -> str:
    """Return the page of a map, or its whole report, on a terminal."""
    return page_of_facts(facts_of_map(surface.summary, name, UNITS), depth).at(80)


CAUSES: dict[str, Callable[[], object]] = {
    "a plan": lambda: mapped(
        FULL.replace("levels", 'change = "10min"\nlevels').replace(
            RESPONSE, '[response]\ncommand = "true {size}"\nbudget = "60s"\n'
        ),
        "--dry-run",
    ),
    "a plan without a time": lambda: mapped(FACTOR + RESPONSE, "--dry-run"),
    "a plan of many samples": lambda: mapped(
        FULL.replace("[1, 2, 4, 8]", f"{[*range(1, 37)]}"), "--dry-run"
    ),
    "a plan of an adaptive map": lambda: mapped(
        f"{FACTOR}[design]\nsamples = 5\n{RESPONSE}", "--dry-run"
    ),
    "a map without a model": lambda: shown(FULL.replace(", 4, 8", "")),
    "a map without a model, explained": lambda: shown(FULL.replace(", 4, 8", ""), "explain"),
    "a map that lost samples": lambda: (
        map_text(mapped_peaks(LOST), "a server", depth) for depth in (Depth.PAGE, Depth.DETAILS)
    ),
    "samples that keep no limit": lambda: (
        map_text(mapped_peaks(dict.fromkeys(range(n), OUTSIDE)), "a") for n in (3, 12)
    ),
    # Where levels swap is drawn at random, from a root of a matrix that processors take apart.
    "a map of two responses": lambda: [
        line
        for line in map_text(mapped_peaks(names=("peak", "goodput")), "a server").splitlines()
        if "  swap  " not in line
    ],
    "a map by a Gaussian process": lambda: [
        line for line in map_text(surface_of([THREADS, FS]), "a").splitlines() if "Gaussian" in line
    ],
    "lines of progress": lambda: (
        str(progress_line(Measured(sample=SAMPLE, **fields), 5, n, left_s, "1/s").at(80))
        for fields in (
            {"estimates": {"peak": known(1234.0)}},
            {"at_least": 500.0},
            OUTSIDE,
            {"reason": "killed\x07"},
            {},
        )
        for n, left_s in ((12, 480.0), (None, None))
    ),
    "readings of a map": lambda: shown(FULL.replace(", 4, 8", ""), "compare", "ID", "ID"),
    "rounds of a map": lambda: shown(
        FULL.replace(", 4, 8", ""), "resume", "ID", "--max-rounds", "3"
    ),
    "a server that cannot be configured": lambda: shown(FULL + SERVED),
    "a server that cannot be configured, explained": lambda: shown(FULL + SERVED, "explain"),
    "two factors of a name": lambda: SurfaceMap([Factor("disks", [1, 2]), Factor("disks", [1, 2])]),
    "a sample passed twice": lambda: pass_answer(TOLD),
    "a response that the map does not have": lambda: pass_answer(
        {"latency": TOLD}, responses=["peak"]
    ),
    "points that determine no quadratic": lambda: map_few_answers(
        lambda point: TOLD if point["fs"] == "a" or point["disks"] == 1 else None,
        design="full",
        model="quadratic",
    ),
    "too few samples of two responses": lambda: map_few_answers(
        lambda point: {"peak" if point["disks"] == 1 else "latency": TOLD},
        samples=2,
        responses=["peak", "latency"],
    ),
    "samples without a number": lambda: map_few_answers(lambda _: None, samples=2),
    "too few points to separate hosts": lambda: [
        map_few_answers(lambda _: TOLD, hosts=["elm", "oak"], samples=5),
        map_few_answers(lambda _: TOLD, hosts=["elm", "oak"], design="full", model="quadratic"),
    ],
    "precise samples that are on no quadratic": lambda: map_few_answers(
        mostly_vague, beside=CACHES, design="full", model="quadratic"
    ),
}
CAUSES |= {
    f"a map of a function that answers {name}": partial(shown, FULL.replace("rate", name))
    for name in ("fail", "negative", "word", "beyond")
}
CAUSES |= {f"{old!r} is {new!r}": partial(changed, old, new) for old, new in CHANGED}
CAUSES |= {title: partial(mapped, text) for title, text in WRONG.items()}
CAUSES |= {
    f"Factor, {levels}, {options}": partial(Factor, "a", levels, **options)
    for levels, options in FACTORS
}
CAUSES |= {
    f"SurfaceMap, {options}": partial(SurfaceMap, [Factor("a", levels=[1, 2])], **options)
    for options in MAPS
}
CAUSES |= {f"an answer {answer}": partial(pass_answer, answer) for answer in ANSWERED}
