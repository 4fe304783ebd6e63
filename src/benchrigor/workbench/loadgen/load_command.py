"""Runs another load generator: a command that offers a load for some seconds, and prints.

The output of the known ones is a table (`OPEN_LOOP`): data, no code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from subprocess import PIPE
from typing import Any

from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model.checks import refuse
from benchrigor.units import seconds_of, show_duration
from benchrigor.workbench.data import FAILED, Limit, LoadResult, LoadTrial, scale_of
from benchrigor.workloads.processes.command_line import CommandLine
from benchrigor.workloads.processes.picking import Pick, read_picks, wrong_picks
from benchrigor.workloads.processes.running import shown

_LOAD, _SECONDS = "{load}", "{seconds}"
_LEAST_ELAPSED, _MOST_ELAPSED = 0.8, 1.5  # times the requested duration
_WAITING_S = 30.0  # for the last answers
_OVERTIME, _STARTING_S = 3.0, 60.0  # until a command is killed: times its duration, and seconds


class LoadCommand:
    """Runs a load generator for a trial.

    Parameters
    ----------
    argv
        Program and arguments; ``{load}`` and ``{seconds}`` are replaced in them.
    picks
        The places of values in its output: "mean", "p95" and other quantiles (times, in their
        unit), "failed" (a share), or any limited metric. They are built in for wrk2, vegeta, k6,
        oha, h2load and fortio.
    limits
        The limits of the server: a generator that does not report their metrics is refused.
    is_rate
        Whether the load is a rate. Generators that wait for answers cannot offer one: refused.
    cwd
        The folder in which it runs; None for the current one.

    Raises
    ------
    InvalidInput
        When no argument holds ``{load}``, the generator cannot offer a rate, is unknown without
        ``picks``, or does not report a limited metric.
    """

    def __init__(
        self,
        argv: Sequence[str],
        picks: Sequence[Pick] = (),
        *,
        limits: Sequence[Limit] = (),
        is_rate: bool = True,
        cwd: str | None = None,
    ) -> None:
        self._cwd = cwd
        self._argv, self._picks, self._is_rate = list(argv), list(picks), is_rate
        words = re.findall(r"[\w.-]+", re.sub(r"\S+://\S+", "", " ".join(argv)))
        closed = next((known for known in words if known in CLOSED_LOOP), None)
        if closed == "wrk" and re.search(r"(^| )(-R|--rate)", " ".join(argv)):
            closed, words = None, [*words, "wrk2"]  # its program has the name of its parent
        self._tool = next((OPEN_LOOP[known] for known in words if known in OPEN_LOOP), None)
        refuse(wrong_picks(picks))
        if not any(_LOAD in word for word in argv):
            raise InvalidInput(
                f"no argument of {shown(argv)} holds {_LOAD}: put it where the load belongs"
            )
        if is_rate and closed is not None and self._tool is None:
            raise InvalidInput(
                f"{closed} offers no rate: it waits for answers before it sends again, and a slow "
                "server slows it down. Let {load} be its connections (--load connections), or use "
                f"--url, or one of {', '.join(OPEN_LOOP)}"
            )
        if self._tool is None and not picks:
            raise InvalidInput(
                f"what {shown(argv)} prints is not known: say where its values stand, such as "
                r"--read 'p95:ms=regex:p95 (\S+)'"
            )
        known = [pick.metric for pick in picks] + list(self._tool.metrics if self._tool else ())
        unknown = ", ".join(limit.metric for limit in limits if limit.metric not in known)
        if unknown:
            raise InvalidInput(
                f"what {shown(argv)} prints has no {unknown}, expected limits of "
                f"{', '.join(dict.fromkeys(known))}; or --read, to say where it stands"
            )

    def check(self) -> None:
        """Do nothing: only a trial shows whether the command works."""

    def close(self) -> None:
        """Do nothing: a trial leaves no process running."""

    def offer(self, trial: LoadTrial) -> LoadResult:
        """Run the command for a trial.

        WorkloadFailed when it cannot be started, fails, or does not print a picked value.
        """
        trial = replace(trial, duration_s=float(max(round(trial.duration_s), 1)))
        places = {_LOAD: f"{trial.load:.10g}", _SECONDS: f"{trial.duration_s:.0f}"}
        argv = self._argv
        for place, value in places.items():
            argv = [word.replace(place, value) for word in argv]
        line = CommandLine(argv, cwd=self._cwd)
        timeout_s = _OVERTIME * trial.duration_s + _STARTING_S
        with line.start(argv, stdout=PIPE, timeout_s=timeout_s) as running:
            ended = running.wait()
            if ended.failure:
                raise ended.error()
            values = self._read_picks(running.printed, argv)
            text = running.printed.read().decode(errors="replace")
            fields = {} if self._tool is None else _read(self._tool, text)
        found = {**fields.pop("metrics", {}), **values}
        if not found:
            raise WorkloadFailed(
                f"{shown(argv)} printed none of the values that it usually does, expected its "
                f"report as of {self._tool.example if self._tool else ''}"
            )
        if self._tool is not None and not self._picks and FAILED not in found:
            raise WorkloadFailed(f"{shown(argv)} reports no request, expected at least one answer")
        elapsed_s = fields.pop("elapsed_s", None)
        lasted_s = ended.elapsed_ns / 1e9
        is_timed = any(_SECONDS in word for word in self._argv)
        wrong = [_wrong_duration(elapsed_s, lasted_s if is_timed else None, trial)]
        if self._is_rate:
            wrong.append(trial.too_many(fields.get("sent", fields.get("completed", 0))))
        if any(wrong):
            raise WorkloadFailed(f"{shown(argv)}: {'; '.join(filter(None, wrong))}")
        if self._is_rate and "sent" in fields:  # requests that it held back were not sent
            planned = round(trial.load * trial.duration_s)
            fields["scheduled"] = max(fields.get("scheduled", 0), planned)
        return LoadResult(
            mean_response_s=found.pop("mean", None),
            p95_response_s=found.pop("p95", None),
            metrics=found,
            spent_s={"run": elapsed_s or lasted_s},
            **fields,
        )

    def _read_picks(self, stdout: Any, argv: Sequence[str]) -> dict[str, float]:
        """Return the values of the user's picks, times in seconds and shares as such."""
        found = read_picks(stdout, self._picks, name=shown(argv)).found if self._picks else {}
        return {pick.metric: found[pick.metric][-1] * scale_of(pick.unit) for pick in self._picks}


def _read(tool: Tool, text: str) -> dict[str, Any]:
    """Return fields of a result from the output of a known generator."""
    times = {
        name: seconds_of(found[1])
        for name, pattern in tool.times.items()
        if (found := re.search(pattern, text))
    }
    counts = {
        name: sum(float(group) for found in re.findall(pattern, text) for group in _groups(found))
        for name, pattern in tool.counts.items()
        if re.search(pattern, text)
    }
    n = int(counts.get("sent", counts.get("completed", 0)))
    fields: dict[str, Any] = {"metrics": times}
    if tool.elapsed and (found := re.search(tool.elapsed, text)):
        fields["elapsed_s"] = seconds_of(found[1])
    elif counts.get("rate"):
        fields["elapsed_s"] = n / counts["rate"]
    if not n:
        return fields
    share = min(counts.get("failed", n * (1.0 - counts.get("success", 100.0) / 100.0)) / n, 1.0)
    n = int(counts.get("begun", n))
    failed = round(share * n)
    fields |= {"metrics": {**times, FAILED: share}, "completed": n - failed}
    if "sent" in counts:
        fields |= {"sent": n, "failed": failed, "scheduled": n + int(counts.get("dropped", 0))}
    return fields


def _wrong_duration(elapsed_s: float | None, lasted_s: float | None, trial: LoadTrial) -> str:
    """Return the problem if a generator did not send for the requested duration; else "".

    It says that it sent for ``elapsed_s``, and its process ended after ``lasted_s``.
    """
    asked_s = trial.duration_s
    least_s = _LEAST_ELAPSED * (asked_s - 1.0 / trial.load)  # the last request may come that early
    most_s = _MOST_ELAPSED * asked_s + _WAITING_S
    if elapsed_s is not None and not least_s <= elapsed_s <= most_s:
        return (
            f"it sent for {show_duration(elapsed_s)}, expected about {show_duration(asked_s)}: "
            f"check the unit of {_SECONDS} in its arguments, which are seconds"
        )
    if lasted_s is not None and lasted_s < least_s:
        return (
            f"it ended after {show_duration(lasted_s)}, expected about "
            f"{show_duration(asked_s)} of sending: check its use of {_SECONDS}"
        )
    return ""


def _groups(found: str | tuple[str, ...]) -> list[str]:
    return [group for group in ([found] if isinstance(found, str) else found) if group]


# --- what other load generators print


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A load generator that sends at a rate.

    Parameters
    ----------
    example
        An example of its command.
    times
        Patterns by metric; the group is a duration.
    counts
        Patterns by count: "sent", or "completed" if requests waiting at the end are not counted;
        "dropped" (not sent, since too many were waiting), "failed"; several matches are added up.
        "begun" counts iterations if one sends several requests: the rate is theirs. "success" is a
        percentage of the requests sent, "rate" their number per second.
    elapsed
        Pattern of the duration of sending; empty if it only prints its rate.
    """

    example: str
    times: Mapping[str, str]
    counts: Mapping[str, str]
    elapsed: str = ""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics in its output."""
        return *self.times, FAILED


def _percentiles(pattern: str, names: str = "p50 p75 p90 p95 p99 p99.9") -> dict[str, str]:
    """Return the pattern for each percentile that is printed, in the place of P."""
    shares = {"p99.9": r"99\.90?"}
    return {
        name: pattern.replace("P", shares.get(name, name.removeprefix("p")), 1)
        for name in names.split()
    }


_DURATION = r"([\d.]+ ?[a-zµμ]+(?:[\d.]+[a-zµμ]+)*)"

OPEN_LOOP: dict[str, Tool] = {
    "wrk2": Tool(
        example="wrk2 -t2 -c100 -R {load} -d {seconds} --latency URL",
        times={
            "mean": rf"Latency +{_DURATION}",
            **_percentiles(rf"(?m)^ +P(?:\.0+)?% +{_DURATION}", "p50 p75 p90 p99 p99.9"),
        },
        counts={
            "completed": r"(\d+) requests in",
            "failed": r"Non-2xx or 3xx responses: (\d+)|timeout (\d+)",
        },
        elapsed=rf"\d+ requests in {_DURATION}",
    ),
    "vegeta": Tool(
        example="sh -c 'echo GET URL | vegeta attack -rate={load} -duration={seconds}s "
        "| vegeta report'",
        times={
            name: rf"Latencies +\[min, mean, 50, 90, 95, 99, max\] +(?:[^,]+, ){{{place}}}"
            rf"{_DURATION}"
            for place, name in enumerate(["mean", "p50", "p90", "p95", "p99"], 1)
        },
        counts={
            "sent": r"Requests +\[total, rate, throughput\] +(\d+)",
            "success": r"Success +\[ratio\] +([\d.]+)%",
        },
        elapsed=rf"Duration +\[total, attack, wait\] +[^,]+, {_DURATION}",
    ),
    "k6": Tool(
        example="k6 run -e RATE={load} -e DURATION={seconds}s constant_arrival_rate.js",
        times={
            "mean": rf"http_req_duration\.*: avg={_DURATION}",
            **_percentiles(rf"http_req_duration\.*: .*p\(P\)={_DURATION}", "p90 p95 p99"),
        },
        counts={
            "sent": r"http_reqs\.*: (\d+)",
            "rate": r"http_reqs\.*: \d+ +([\d.]+)/s",
            "begun": r"(?m)^ *iterations\.*: (\d+)",
            "dropped": r"dropped_iterations\.*: (\d+)",
            "success": r"checks_succeeded\.*: ([\d.]+)%",
        },
    ),
    "oha": Tool(
        example="oha -q {load} -z {seconds}s --latency-correction --no-tui URL",
        times={
            "mean": rf"Average:\s+{_DURATION}",
            **_percentiles(rf"(?m)^ +P(?:\.0+)?% in {_DURATION}"),
        },
        counts={"completed": r"\[\d+\] (\d+) responses", "success": r"Success rate:\s+([\d.]+)%"},
        elapsed=rf"Total:\s+{_DURATION}",
    ),
    "h2load": Tool(
        example="h2load -c1 -m100 --rps={load} -D {seconds} URL",
        times={"mean": rf"time for request: +\S+ +\S+ +{_DURATION}"},
        counts={
            "sent": r"requests: \d+ total, (\d+) started",
            "failed": r"succeeded, (\d+) failed",
        },
        elapsed=rf"finished in {_DURATION}",
    ),
    "fortio": Tool(
        example="fortio load -qps {load} -t {seconds}s -c 100 -p 50,95,99 URL",
        times={
            "mean": r"Aggregated Function Time : count \d+ avg ([\d.e-]+)",
            **_percentiles(r"# target P% ([\d.e-]+)"),
        },
        counts={
            "sent": r"All done (\d+) calls",
            "success": r"Code 200 : \d+ \(([\d.]+) %\)",
        },
        elapsed=rf"Ended after {_DURATION}",
    ),
}

# They wait for an answer before they send again: a slow server slows them down.
CLOSED_LOOP = frozenset({"wrk", "hey", "ab", "siege", "locust", "bombardier", "autocannon"})
