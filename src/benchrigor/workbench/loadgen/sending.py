"""Requests, and their sending at given times, independent of earlier ones.

Response times count from the scheduled moment of a request: they include the time that the sender
was late or held it back (no "coordinated omission").
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import Any, Protocol
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from benchrigor.errors import MissingExtra
from benchrigor.model.checks import refuse, wrong_number, wrong_values
from benchrigor.model.series import Floats
from benchrigor.model.toml_tables import as_it_is
from benchrigor.safe_text import hide_secrets
from benchrigor.workbench.data import CHUNK_GAP, FIRST_BYTE, RESPONSE
from benchrigor.workloads.processes.own_signals import measuring
from benchrigor.workloads.processes.time_limits import CallOverran

# An event loop wakes at the next whole millisecond: wake it earlier, and then poll the clock.
_EARLY_S = 0.0005
_LEAD_S = 0.01  # until the first time
_MOST_KINDS, _OTHERS = 10, "failed otherwise"  # of failures with a count of their own
_LEAST_GIVEN_UP = 50  # requests waiting, also at a low load
# By the rate of answers fewer are enough, from a tenth of the trial and a quarter of the time on
# for which they may wait: a stall as long as that breaks the limits, too.
_LEAST_LEFT, _TENTH, _QUARTER = 20, 0.1, 0.25

Send = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The times of the parts of an answer; a request returns it to make them available to limits.

    Parameters
    ----------
    first_byte_at_s
        When the first byte of the body came (or the head, without a body), by `time.monotonic`.
    chunk_gap_s
        Longest time between two successive parts, in seconds; 0 for a single one.

    Examples
    --------
    >>> async def request() -> Answer:
    ...     return Answer(first_byte_at_s=time.monotonic())
    """

    first_byte_at_s: float
    chunk_gap_s: float = 0.0


class Requests(Protocol):
    """Requests to send, such as `HttpRequests`; a coroutine function is enough, too."""

    def opened(self) -> AbstractAsyncContextManager[Send]:
        """Open the shared resources of requests, such as a pool of connections."""


class RequestFailed(Exception):
    """A request had an unexpected answer; equal failures have equal texts."""


class _LoopLeft(SystemExit):
    """Ends the event loop at once: other exceptions would only end their own request."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sent:
    """The results of requests, as arrays in the order of their times, shape (n,).

    Parameters
    ----------
    at_s
        Their scheduled times, in seconds from the start.
    lag_s
        How much later they were sent.
    response_s
        Seconds from the scheduled time to the answer; for failed requests, the lag and the timeout.
    first_byte_s, chunk_gap_s
        Seconds from the scheduled time to the first byte, and the longest between two parts of the
        answer; equal to ``response_s`` for failed requests, NaN if requests return no `Answer`.
    failed
        Which requests failed.
    failures
        The number of failures by kind.
    cpu_s, elapsed_s
        Processor time and wall time of sending.
    gave_up
        Whether sending ended early, as too many were waiting: their times count until then.
    left
        The number that were waiting then.
    """

    at_s: Floats
    lag_s: Floats
    response_s: Floats
    first_byte_s: Floats
    chunk_gap_s: Floats
    failed: npt.NDArray[np.bool_]
    failures: Counter[str]
    cpu_s: float
    elapsed_s: float
    gave_up: bool
    left: int = 0

    @property
    def backlog_s(self) -> float:
        """The time in which the server answers the rest, at its rate of answers."""
        return self.left * self.elapsed_s / max(self.at_s.size - self.left, 1)

    @property
    def times(self) -> Mapping[str, Floats]:
        """The times of requests, under the names in conditions."""
        return {
            RESPONSE: self.response_s,
            FIRST_BYTE: self.first_byte_s,
            CHUNK_GAP: self.chunk_gap_s,
        }


TIMES = ("lag_s", "response_s", "first_byte_s", "chunk_gap_s")
ARRAYS = ("at_s", *TIMES, "failed")


def merge(parts: Sequence[Sent]) -> Sent:
    """Merge the results of several processes, in the order of times."""
    together = {name: np.concatenate([getattr(part, name) for part in parts]) for name in ARRAYS}
    order = np.argsort(together["at_s"], kind="stable")
    return Sent(
        **{name: column[order] for name, column in together.items()},
        failures=sum((part.failures for part in parts), Counter()),
        cpu_s=sum(part.cpu_s for part in parts),
        elapsed_s=max(part.elapsed_s for part in parts),
        gave_up=any(part.gave_up for part in parts),
        left=sum(part.left for part in parts),
    )


def send_requests(
    requests: Requests | Send,
    at_s: Floats,
    *,
    start_s: float | None = None,
    timeout_s: float,
    most_waiting: int = 1,
    give_up_s: float = np.inf,
) -> Sent:
    """Send requests at their times, in an event loop of its own, and wait for the answers.

    The times begin at ``start_s`` by `time.monotonic`, which all processes share; None for as soon
    as the shared resources are open. Up to ``most_waiting`` requests are under way; others are held
    back, and late. Sending ends when more requests wait than arrive, or are answered, within
    ``give_up_s``: by Little's law they would take that long on average.
    """
    sender = _Sender(at_s, timeout_s, most_waiting, give_up_s)
    try:
        with measuring(), asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(sender.run(requests, start_s))
    except _LoopLeft as error:
        raise CallOverran from error


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the faster factory of event loops, of uvloop, if installed; else None."""
    try:
        found: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    except ImportError:
        return None
    return found


class _Sender:
    def __init__(self, at_s: Floats, timeout_s: float, most_waiting: int, give_up_s: float) -> None:
        n = at_s.size
        self._at_s = at_s
        self._timeout_s = timeout_s
        rate = n / at_s[-1] if n and at_s[-1] > 0.0 else 0.0
        self._give_up_s, self._give_up_at = give_up_s, max(rate * give_up_s, _LEAST_GIVEN_UP)
        self._hopeful_s = max(_TENTH * at_s[-1] if n else 0.0, _QUARTER * give_up_s)
        self._ended = 0  # requests
        self._slots = asyncio.Semaphore(most_waiting)
        self._s = {name: np.full(n, np.nan) for name in TIMES}
        self._failed = np.zeros(n, dtype=np.bool_)
        self._failures: Counter[str] = Counter()
        self._waiting: set[asyncio.Task[None]] = set()

    async def run(self, requests: Requests | Send, start_s: float | None) -> Sent:
        opened: Any = nullcontext(requests)
        if hasattr(requests, "opened"):
            opened = requests.opened()
        async with opened as send:
            used_s, begun_s = time.process_time(), time.monotonic()
            start_s = begun_s + _LEAD_S if start_s is None else start_s
            gave_up, left = not await self._send_all(send, start_s), 0
            if gave_up:
                left = len(self._waiting)
                for waiting in self._waiting:
                    waiting.cancel()
            await asyncio.gather(*self._waiting, return_exceptions=True)
        n = int(np.isfinite(self._s["response_s"]).sum())  # all, or those before it gave up
        return Sent(
            at_s=self._at_s[:n],
            **{name: times[:n] for name, times in self._s.items()},
            failed=self._failed[:n],
            failures=self._failures,
            cpu_s=time.process_time() - used_s,
            elapsed_s=time.monotonic() - start_s,
            gave_up=gave_up,
            left=left,
        )

    async def _send_all(self, send: Send, start_s: float) -> bool:
        """Send requests at their times; return whether all were sent."""
        for index, after_s in enumerate(self._at_s.tolist()):
            at_s = start_s + after_s
            left_s = at_s - time.monotonic()
            if left_s > 2.0 * _EARLY_S:
                await asyncio.sleep(left_s - _EARLY_S)
            await asyncio.sleep(0)  # take answers in between, also if requests are dense
            while time.monotonic() < at_s:
                await asyncio.sleep(0)
            if self._is_hopeless(after_s):
                return False
            await self._slots.acquire()
            task = asyncio.create_task(self._request(send, index, at_s))
            self._waiting.add(task)
            task.add_done_callback(self._end)
        return True

    def _is_hopeless(self, elapsed_s: float) -> bool:
        """Return whether requests wait for too long, by the rate of arrivals or of answers."""
        waiting = len(self._waiting)
        if waiting >= self._give_up_at or elapsed_s < self._hopeful_s or waiting < _LEAST_LEFT:
            return waiting >= self._give_up_at
        return waiting * elapsed_s >= max(self._ended, 1) * self._give_up_s

    def _end(self, task: asyncio.Task[None]) -> None:
        self._ended += 1
        self._waiting.discard(task)
        if not task.cancelled():
            task.exception()  # else asyncio logs an exception that was never retrieved

    async def _request(self, send: Send, index: int, at_s: float) -> None:
        begun_s = time.monotonic()
        self._s["lag_s"][index] = lag_s = max(begun_s - at_s, 0.0)
        failure, answer = "", None
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await send()
        except TimeoutError:
            failure = f"no answer within {self._timeout_s:g} s"
        except KeyboardInterrupt:
            raise
        except CallOverran as error:  # raised in a request that blocks the loop
            raise _LoopLeft from error
        except BaseException as error:  # any exception of a request is its failure
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                self._leave(index, time.monotonic() - at_s)
                raise
            failure = _describe(error)
        finally:
            self._slots.release()
        if failure:
            if failure not in self._failures and len(self._failures) >= _MOST_KINDS:
                failure = _OTHERS
            self._failed[index] = True
            self._failures[failure] += 1
            self._leave(index, lag_s + self._timeout_s)
        else:
            self._s["response_s"][index] = time.monotonic() - at_s
            if isinstance(answer, Answer):
                self._s["first_byte_s"][index] = answer.first_byte_at_s - at_s
                self._s["chunk_gap_s"][index] = answer.chunk_gap_s

    def _leave(self, index: int, after_s: float) -> None:
        """Count a request without an answer with its waiting time."""
        for name in TIMES[1:]:
            self._s[name][index] = after_s


def _is_cancelled() -> bool:
    """Return whether this task itself was cancelled, and not only the one that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _describe(error: BaseException) -> str:
    """Return the kind of a failure, without details of a single request."""
    if isinstance(error, RequestFailed):
        return str(error)
    if isinstance(error, OSError):
        cause = error.strerror or str(error)
        return f"{type(error).__name__}: {cause}" if cause else type(error).__name__
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


A_URL = "http://HOST[:PORT]/PATH, or https://"
_LARGEST_BODY = 2**24
_PIECE = 2**16


def is_url(url: object) -> bool:
    """Return whether it is a URL of http or https, with a host and without a wrong port."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One kind of request.

    Parameters
    ----------
    url
        Its URL, with http:// or https://.
    method, headers, body
        Further parts of the request.
    status
        The expected status; None for any from 200 to 299. Redirects are not followed.
    weight
        Its frequency relative to others.

    Raises
    ------
    InvalidInput
        When the URL or the status is not valid, or the weight is not more than 0.

    Examples
    --------
    >>> HttpRequest(url="http://127.0.0.1:8000/search?q=x", status=200).method
    'GET'
    """

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    status: int | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        is_method = isinstance(self.method, str) and self.method.isalpha()
        is_status = self.status is None or (
            isinstance(self.status, int) and 100 <= self.status <= 599
        )
        are_headers = isinstance(self.headers, Mapping) and all(
            isinstance(text, str) for pair in self.headers.items() for text in pair
        )
        checks = [
            ("url", hide_secrets(self.url), is_url(self.url), A_URL),
            ("method", self.method, is_method, "a word such as GET"),
            ("status", self.status, is_status, "a number from 100 to 599"),
            ("headers", hide_secrets(self.headers), are_headers, "texts by name"),
            ("body", self.body, isinstance(self.body, str), "text"),
        ]
        refuse(wrong_values(checks), wrong_number("weight", self.weight))


# Its table in a file: fields are checked when it is made.
REQUEST = dict.fromkeys((field.name for field in fields(HttpRequest)), as_it_is)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequests:
    """Requests of one or several kinds, over persistent connections.

    A request never waits for a connection: if all are in use another one is opened.

    Parameters
    ----------
    kinds
        One or more.
    seed
        Of their random order.
    """

    kinds: Sequence[HttpRequest]
    seed: int = 1

    def __post_init__(self) -> None:
        refuse([] if self.kinds else ["kinds is empty, expected at least one request"])

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Send]:
        """Open a pool of connections."""
        try:
            import aiohttp  # noqa: PLC0415  # of an extra
        except ImportError as error:
            raise MissingExtra("sending HTTP requests", package="aiohttp", extra="load") from error
        # Processes that send together draw differently.
        rng = random.Random(f"{self.seed} {os.getpid()}")  # noqa: S311  # no secrets
        weights = [request.weight for request in self.kinds]
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=None)  # the sender has one
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:

            async def send() -> Answer:
                (kind,) = rng.choices(self.kinds, weights)
                return await _send(session, kind)

            yield send


async def _send(session: Any, kind: HttpRequest) -> Answer:
    """Send a request, and read its answer as it comes."""
    async with session.request(
        kind.method,
        kind.url,
        headers=kind.headers,
        data=kind.body.encode() or None,
        allow_redirects=False,
    ) as answer:
        size, gap_s = 0, 0.0
        first_s = last_s = time.monotonic()  # the head counts until the body begins
        async for piece in answer.content.iter_chunked(_PIECE):
            now_s = time.monotonic()
            if size:
                gap_s = max(gap_s, now_s - last_s)
            else:
                first_s = now_s
            size, last_s = size + len(piece), now_s
            if size > _LARGEST_BODY:
                raise RequestFailed(f"a body over {_LARGEST_BODY >> 20} MiB")
        status = answer.status
        if status != kind.status and (kind.status is not None or not 200 <= status < 300):
            where = hide_secrets(answer.headers.get("Location", ""))
            led = f" to {where}, which is not followed: give that URL" if where else ""
            raise RequestFailed(f"status {status}{led}")
        return Answer(first_byte_at_s=first_s, chunk_gap_s=gap_s)
