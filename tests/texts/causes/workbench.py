"""What searches for a peak and choices say: results, pages, and all that is refused."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import click.testing
from tests.texts.rendering import run

import benchrigor as br
from benchrigor.storage import Journal
from benchrigor.workbench import BestChoice, PeakRun, PeakSearch

MEAN, JOINT = {"metric": "mean", "at_most": 0.04}, "response<1s and first-byte<0.5s"
HOSTS, POINTS = ["ash", "elm", "fir", "oak"], [{"threads": threads} for threads in (4, 8, 16)]
TOLD = (1.0, 0.9, 1.1)


class Offers:
    """A load generator that answers as a function does."""

    def __init__(self, answer: Callable[[float], dict[str, Any]]) -> None:
        self._answer = answer

    def offer(self, trial: br.LoadTrial) -> br.LoadResult:
        """Return the answer."""
        return br.LoadResult(**self._answer(trial.load))


def searched(answer: Callable[[float], dict[str, Any]], **options: Any) -> br.PeakRate:
    """Search for the peak of what answers so."""
    search = PeakSearch(**{"threshold_s": 0.04, "setup_s": 20.0, **options})
    return PeakRun(search, name="a queue").carry_out(Offers(answer))


def outcome(answer: Callable[[float], dict[str, Any]], **options: Any) -> object:
    """Return the result of a search, and the texts about it."""
    found = searched(answer, **options)
    return found, found.notices


def stored(
    verb: str, answer: Callable[[float], dict[str, Any]], *limits: dict[str, Any], **options: Any
) -> click.testing.Result:
    """Show or explain a stored search."""
    kept = {"limits": [*limits] or [MEAN], "policy": "binsearch", **options}
    search = PeakSearch(**{**kept, "limits": [br.Limit(**limit) for limit in kept["limits"]]})
    found = PeakRun(
        search,
        name="peak of a queue",
        options=kept,
        store=Journal("runs.sqlite"),
        now_ns=lambda: 0,
    )
    found.carry_out(Offers(answer))
    return run(verb, found.campaign.run_id)


def told(values: dict[str, Any], **options: Any) -> None:
    """Pass a search a result that it refuses."""
    search = PeakSearch(**{"threshold_s": 0.04, "seed_load": 100.0, **options})
    trial = search.ask()
    assert trial is not None
    search.tell(trial, br.LoadResult(**values))
    search.tell(trial, br.LoadResult(**values))


def waiting_s(load: float, rate: float = 200.0) -> float:
    """Return the mean response of a server with this rate, one request after the other."""
    return 1.0 / (rate - load) if load < rate - 1.0 else 5.0


def queue(load: float) -> dict[str, Any]:
    """Answer as what serves 200 a second."""
    spent_s = {"run": 30.0}
    return {"mean_response_s": waiting_s(load), "sent": round(30.0 * load), "spent_s": spent_s}


def changing(mean_s: Callable[[float, int], float], **options: Any) -> object:
    """Return the result for a server that responds by the load and the trial."""
    trials = count()
    return outcome(lambda load: {"mean_response_s": mean_s(load, next(trials))}, **options)


def late(_: float) -> dict[str, Any]:
    """Answer as a generator that sends too late."""
    return {"mean_response_s": 0.01, "lag_p99_s": 0.005}


def chosen(answer: Callable[[str, int], tuple[Any, Any]], **options: Any) -> object:
    """Choose by (value, bound) of a host and threads; return the texts about it."""
    choice = BestChoice(options.pop("points", POINTS), options.pop("hosts", HOSTS), **options)
    while (turn := choice.ask()) is not None:
        found = [answer(turn.host, point["threads"]) for point in turn.points]
        values = [None if x is None else (x, 0.999 * x, 1.001 * x) for x, _ in found]
        choice.tell(turn, values, better_than=[bound for _, bound in found], cost_s=1.0)
    return choice.result().notices


def turned(*answers: Any, twice: bool = False, turn: Any = None, **options: Any) -> None:
    """Pass a choice wrong answers."""
    choice = BestChoice(POINTS, HOSTS)
    asked = choice.ask()
    if twice:
        choice.tell(asked, [*answers])
    choice.tell(turn or asked, [*answers], **options)


SEARCHES = [
    {"threshold_s": None},
    {"threshold_s": 0.0},
    {"threshold_s": math.nan},
    {"limits": [br.Limit(metric="mean", at_most=2)]},
    {"limits": ["p99"]},
    {"min_load": 9, "max_load": 3},
    {"seed_load": math.inf, "min_load": "many", "accuracy": 0, "budget_s": -5, "policy": "best"},
    {"policy": "linear", "whole": True},
    {"whole": True, "min_load": 1.5, "max_load": 10.5},
    {"threshold_s": 0, "min_load": 9, "max_load": 3, "confidence": 0},
]
RESULTS = [
    {"mean_response_s": -1},
    {"mean_response_s": math.nan},
    {"sent": 3, "failed": 4},
    {"sent": 3, "failed": 2, "completed": 2},
    {"scheduled": 3, "sent": 4},
    {"sent": 3, "completed": 4},
    {"scheduled": 3, "completed": 4},
    {"sent": 3, "failed": 2, "within_limits": 2},
    {"metrics": [1]},
    {"metrics": {"p99": "x"}},
    {"sent": 1.5},
]
TRIALS = [{"load": 0}, {"load": math.nan}, {"load": -5.0}, {"duration_s": 0.0}, {"id": -1}]
CHOICES: list[tuple[Any, Any]] = [
    (POINTS[:1], HOSTS),
    ([], HOSTS),
    (None, HOSTS),
    (POINTS, []),
    (POINTS, "ash"),
]
# Lines of the command line that allow no measurement.
REFUSED = """
peak --url http://x/
peak ./load.sh {load} --p95 50ms
peak m:f --p95 50ms
peak --p95 50ms m:f --budget 5
peak --mean 40ms
peak --mean 40ms --url http://x/ m:f
peak --mean soon --url http://x/
peak --mean 0s --url http://x/
peak --mean 100 --url http://x/
peak --p95 100 --url http://x/
peak --limit p99=100 --url http://x/
peak --limit mean=0.1 --url http://x/
peak --failed 2 --url http://x/
peak --limit p99 --url http://x/
peak --mean 1s --limit mean=2s --url http://x/
peak --mean 1s --url ftp://x/
peak --mean 1s --url http://x/ --min-load 9 --max-load 3
peak --mean 1s --url http://x/ --header x --min-load 9 --max-load 3 --confidence 0
peak --mean 1s --url http://x/ --seed-load nan
peak --mean 1s --url http://x/ --header a
peak --mean 1s --url http://x/ --body @none
peak --mean 1s --load users --url http://x/
peak --mean 1s no_such_module:f
peak --mean 1s -- hey -c {load}
peak --mean 1s --timeout 3s -- wrk2 -R{load}
peak --limit queue=5 --url http://x/
peak --mean 1s --method PUT m:f
peak --p95 1s -- wrk2 -R{load}
peak --mean 20s --timeout 10s --url http://x/
peak --mean 1s --url http://x/ --processes 0 --dry-run
peak --mean 1s --url http://x/ --budget 20s --trial-time 30s
peak --mean 40ms --plan --budget 5s --trial-time 1s --read mean:ms=column:1 -- x {load}
peak --limit depth=40ms --read depth=column:1 -- x {load}
peak --slo 'response<1s: 99%' --read mean:ms=column:1 -- x {load}
peak --url http://x/ --slo 'p95<1: 99%' --slo 'response<1s'
peak --url http://x/ --slo 'p95<1: 99%' --slo 'x<1s: 9%'
peak --url http://x/ --slo 'response<1s: 9%' --slo 'response<1s: 8%'
peak --url http://x/ --slo ''
peak --url http://x/ --slo 'response<2s: much'
peak --url http://x/ --slo 'response<2s: 100%'
peak --url http://x/ --slo 'response<2s: 0%'
peak --url http://x/ --slo 'response<2s: 99'
peak --url http://x/ --slo 'response<=2s: 99%'
peak --url http://x/ --slo 'mean<2s: 99%'
peak --url http://x/ --slo 'response<2 and first-byte<-1s and gap<1s and first-byte<1s: 1'
peak --mean 9s --url http://x/ --host elm --host elm --host -oProxyCommand=x --prefix 'ssh elm'
peak --mean 9s --url http://x/ --host elm --prefix 'ssh '\\''{host}'
peak --mean 9s --url http://x/ --prefix 'ssh {host}'
peak --mean 9s --url http://x/ --scheduler tcp://a:1 --prefix 'ssh {host}'
peak --mean 9s --url http://x/ --host elm --processes 2
peak --mean 9s --host elm m:f
peak --mean 9s --host elm -- true
""".strip().splitlines()
REQUESTS = [
    "url = 1",
    "[[request]]\nurl = 'http://x/'\nspeed = 3",
    "[[request]]\nurl = 3",
    "[[",
]

CAUSES: dict[str, Callable[[], object]] = {
    "a stored peak": lambda: stored("show", queue),
    "a stored peak, explained": lambda: stored("explain", queue),
    "further limits": lambda: stored(
        "explain",
        lambda load: {**queue(load), "failed": round(0.1 * load), "metrics": {"p99": load / 2000}},
        {"metric": "p99", "at_most": 0.1},
        {"metric": "failed", "at_most": 0.5},
    ),
    "limits of good requests": lambda: stored(
        "explain",
        lambda load: {"metrics": {JOINT: load / 1e5}, "sent": 9},
        {"metric": JOINT, "at_most": 0.01},
    ),
    "a peak between loads tried": lambda: searched(queue, policy="binsearch"),
    "what never saturates": lambda: searched(lambda _: {"mean_response_s": 0.01}, max_load=400),
    "always saturated": lambda: outcome(lambda load: {"mean_response_s": 1.0 + load / 1e4}),
    "a search that has only begun": lambda: PeakSearch(threshold_s=0.04).result(),
    "loads that cannot be offered": lambda: (
        searched(
            lambda load: (
                {"mean_response_s": 0.01, "scheduled": 9999, "sent": round(9999 * 100 / load)}
                if load > 300.0
                else {"mean_response_s": 0.01}
            )
        ).notices
    ),
    "no load on time": lambda: [outcome(late), outcome(late, policy="linear")],
    "a budget without a load on time": lambda: [
        outcome(late, budget_s=budget_s, trial_s=10.0) for budget_s in (100.0, 40.0)
    ],
    "a limit without a value": lambda: (
        searched(queue, p95_threshold_s=0.2, policy="binsearch").notices
    ),
    "a server that is slow with little to do": lambda: changing(
        lambda load, _: waiting_s(load) + 0.05 * (load < 60.0), accuracy=0.2
    ),
    "a server that is good at one time and bad at another": lambda: changing(
        lambda load, trial: 1.0 if load > 80.0 and trial // 2 % 2 else waiting_s(load)
    ),
    "a server that becomes slower": lambda: changing(
        lambda load, trial: waiting_s(load, 200.0 * math.exp(-trial / 20.0))
    ),
    "a server that becomes slower little by little": lambda: changing(
        lambda load, trial: waiting_s(load, 200.0 * math.exp(-trial / 40.0))
    ),
    "a trial passed twice": lambda: told({"mean_response_s": 0.01}),
    "a trial of somebody else": lambda: PeakSearch(threshold_s=0.04).tell(
        br.LoadTrial(id=7, load=3.0, duration_s=1.0), br.LoadResult(mean_response_s=0.01)
    ),
    "a result without the limited value": lambda: told(
        {"mean_response_s": 0.01}, threshold_s=None, p95_threshold_s=1
    ),
    "far more requests than a rate": lambda: told({"mean_response_s": 0.01, "sent": 833_071}),
    "requests in no time": lambda: told(
        {"mean_response_s": 0.01, "sent": 1000, "spent_s": {"run": 0.0}}
    ),
    "good requests of no known time": lambda: br.Limit(metric="response<1s and gap<1s", at_most=1),
    "hosts on which configurations swap": lambda: chosen(
        lambda host, threads: (
            math.exp({4: -2.0, 8: 0.3 * (host == "fir"), 16: 0.1 * (host != "fir")}[threads]),
            None,
        )
    ),
    "few hosts": lambda: chosen(lambda _, threads: (1.0 * threads, None), hosts=HOSTS[:2]),
    "one host": lambda: chosen(lambda _, threads: (1.0 * threads, None), hosts=HOSTS[:1]),
    "hosts that cannot decide": lambda: chosen(
        lambda host, threads: (1.0 + 0.05 * (threads == 4) * (host in {"ash", "fir"}), None),
        points=POINTS[:2],
        budget_s=10_000.0,
    ),
    "a configuration that failed on a host": lambda: chosen(
        lambda host, threads: (None if (host, threads) == ("elm", 16) else 1.0 * threads, None)
    ),
    "a configuration that was not brought to its limits": lambda: chosen(
        lambda host, threads: (
            (None, 9.0) if (host, threads) == ("elm", 4) else (1.0 * threads, None)
        )
    ),
    "nothing works": lambda: chosen(lambda *_: (None, None)),
    "all is only bounded": lambda: chosen(lambda *_: (None, 9.0)),
    "all that is wrong with a choice": lambda: BestChoice(
        [{"a": 1}, {"a": 1.0}, "a", {}],  # type: ignore[list-item]
        ["ash", "ash", "", 3],  # type: ignore[list-item]
        margin=-1.0,
        confidence=1.0,
        budget_s=math.inf,
        direction="up",  # type: ignore[arg-type]
        seed=-1,
    ),
    "a turn passed twice": lambda: turned(TOLD, TOLD, TOLD, twice=True),
    "a turn that was never asked for": lambda: turned(TOLD, TOLD, TOLD, turn="turn"),
    "too few answers of a turn": lambda: turned(TOLD, TOLD, cost_s=-1),
    "no answers of a turn": turned,
    "answers that are not valid": lambda: turned((-1.0, -2.0, 1.0), (math.inf, 1.0, math.inf), 3.0),
    "answers that are not above 0": lambda: turned((math.nan, 1.0, 2.0), (1.0, 0.0, 2.0), TOLD),
    "bad bounds": lambda: turned(TOLD, None, None, better_than=[1.0, "much", math.nan]),
}
CAUSES |= {f"PeakSearch, {wrong}": partial(searched, queue, **wrong) for wrong in SEARCHES}
CAUSES |= {f"LoadResult, {wrong}": partial(br.LoadResult, **wrong) for wrong in RESULTS}
CAUSES |= {
    f"LoadTrial, {trial}": partial(
        br.LoadTrial, **{"id": 0, "load": 1.0, "duration_s": 1.0, **trial}
    )
    for trial in TRIALS
}
CAUSES |= {
    f"BestChoice, case {number}": partial(BestChoice, *wrong)
    for number, wrong in zip(count(1), CHOICES, strict=False)
}
CAUSES |= {line: partial(run, *shlex.split(line)) for line in REFUSED}
CAUSES |= {
    f"--requests with {text!r}": partial(
        run, "peak", "--mean", "1s", "--requests", "mix.toml", files={"mix.toml": text}
    )
    for text in REQUESTS
}
