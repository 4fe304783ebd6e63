"""The output of load generators, and which of them offer a rate: data, no code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchrigor.workbench.data import FAILED


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
