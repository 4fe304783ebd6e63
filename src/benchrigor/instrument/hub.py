"""A hub: which questions it asks nodes, which answers count, and how it asks all at once.

`NodeBoard` decides and keeps the answers, without I/O; `Hub` carries it out.
"""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from benchrigor.errors import InvalidInput, MissingExtra
from benchrigor.instrument.data import NodeCondition, NodeReport, NodeView
from benchrigor.instrument.nodes import LoopThread, place_of, wrong_token
from benchrigor.machine.alarms import Threshold, tables_of
from benchrigor.model.checks import is_number, refuse, wrong_number
from benchrigor.model.codec import decode
from benchrigor.model.series import LARGEST, short

try:
    import aiohttp
except ImportError:
    raise MissingExtra("a hub", package="aiohttp", extra="agent") from None

_SCHEMES = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to a node: the echo it must send back, and the cursor of its probes."""

    address: str
    echo: str
    cursor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a question: a body, or the failure and the condition that it means.

    Times are of the hub: its monotonic clock when the question was sent and when the answer was
    complete, and its wall clock, in seconds.
    """

    asked: Question
    body: bytes = b""
    failed: str = ""
    condition: NodeCondition = NodeCondition.SILENT
    sent_s: float = 0.0
    received_s: float = 0.0
    wall_s: float = 0.0


@dataclass(slots=True)
class _Node:
    view: NodeView
    echo: str = ""  # of the question that is open
    received_s: float = 0.0
    starts: set[str] = field(default_factory=set)


class NodeBoard:
    """Decides which questions to ask, takes the answers, and keeps the state of all nodes.

    An answer counts if it comes from the address that was asked, with the echo of the open
    question, a rising sequence, and an identity that no other address has. If two addresses have
    one identity, the address counts at which the node says it was reached, else the first. Other
    answers change only the condition of their address.

    Parameters
    ----------
    addresses
        Such as ``http://10.0.0.7:9560``, or ``10.0.0.7:9560``.
    salt
        A text that no other hub has, part of all echoes.

    Raises
    ------
    InvalidInput
        When an address is not valid, or is there twice.

    Examples
    --------
    >>> board = NodeBoard(["10.0.0.7:9560"], salt="here")
    >>> (question,) = board.ask()
    >>> board.tell(Answer(asked=question, failed="no answer within 0.8 s"))
    >>> (view,) = board.views(now_s=5.0)
    >>> print(view.address, view.condition, view.reason)
    http://10.0.0.7:9560 silent no answer within 0.8 s
    """

    def __init__(self, addresses: Iterable[str], *, salt: str) -> None:
        given = [checked_address(address) for address in addresses]
        twice = sorted({address for address in given if given.count(address) > 1})
        if twice or not given:
            raise InvalidInput(
                f"nodes given twice: {', '.join(twice)}, expected each once"
                if twice
                else "no nodes, expected one address at least"
            )
        self._salt, self._cycle = salt, 0
        self._nodes = {
            address: _Node(NodeView(address=address, condition=NodeCondition.UNASKED))
            for address in given
        }

    def ask(self) -> list[Question]:
        """Return one question per node; questions of the previous cycle are not open any more."""
        self._cycle += 1
        questions = []
        for index, (address, node) in enumerate(self._nodes.items()):
            node.echo = f"{self._salt}.{self._cycle}.{index}"
            cursor = node.view.report.cursor if node.view.report else ""
            questions.append(Question(address=address, echo=node.echo, cursor=cursor))
        return questions

    def tell(self, answer: Answer) -> None:
        """Take what came back; an answer to a question that is not open any more is left out."""
        node = self._nodes[answer.asked.address]
        if answer.asked.echo != node.echo:
            return
        node.echo = ""
        if answer.failed:
            node.view = replace(node.view, condition=answer.condition, reason=answer.failed)
            return
        try:
            report = _read(answer.body)
            problem = self._problem(node, report, answer.asked)
        except Exception as error:  # noqa: BLE001 - no answer, however made, stops a hub
            problem = NodeCondition.WRONG, f"the answer makes no sense: {error}"
        if problem is None:
            self._accept(node, report, answer)
        else:
            condition, reason = problem
            node.view = replace(node.view, condition=condition, reason=reason[:200])

    def views(self, now_s: float) -> tuple[NodeView, ...]:
        """Return the views of all nodes, in the order of the addresses."""
        return tuple(
            replace(node.view, age_s=self._age_s(node, now_s)) for node in self._nodes.values()
        )

    def _problem(
        self, node: _Node, report: NodeReport, asked: Question
    ) -> tuple[NodeCondition, str] | None:
        """Return why an answer is not taken."""
        before = node.view.report
        if report.echo != asked.echo:
            return NodeCondition.WRONG, "it answers another question"
        for other in self._nodes.values():
            if other is not node and report.node in other.starts:
                if not self._is_rather(node, other, report):
                    return NodeCondition.TWICE, f"it is the node at {other.view.address}"
                self._dispossess(other, report, asked.address)
        if before is None:
            return None
        if report.name != before.name:
            return (NodeCondition.WRONG, f"it says it is {report.name!r}, expected {before.name!r}")
        if report.node == before.node and report.sequence <= before.sequence:
            return NodeCondition.WRONG, "it repeats an earlier answer"
        if report.node != before.node and report.node in node.starts:
            return NodeCondition.WRONG, "it answers for a start that has ended"
        return None

    def _is_rather(self, node: _Node, other: _Node, report: NodeReport) -> bool:
        """Return whether a report is of the node at one address rather than of that at another."""
        held = other.view.report
        ours = _directness(node.view.address, report.place)
        theirs = _directness(other.view.address, held.place) if held else -1
        if ours != theirs:
            return ours > theirs
        places = list(self._nodes)
        return places.index(node.view.address) < places.index(other.view.address)

    @staticmethod
    def _dispossess(other: _Node, report: NodeReport, address: str) -> None:
        """Take a report from an address, since it belongs to another one."""
        other.starts.discard(report.node)
        other.view = NodeView(
            address=other.view.address,
            condition=NodeCondition.TWICE,
            reason=f"it is the node at {address}",
        )

    @staticmethod
    def _accept(node: _Node, report: NodeReport, answer: Answer) -> None:
        before = node.view.report
        trip_s = max(answer.received_s - answer.sent_s, 0.0)
        node.view = replace(
            node.view,
            condition=NodeCondition.WELL,
            reason="",
            report=report,
            offset_s=report.at_s - (answer.wall_s - trip_s / 2.0),
            offset_error_s=trip_s / 2.0,
            restarts=node.view.restarts + (before is not None and before.node != report.node),
        )
        node.starts.add(report.node)
        node.received_s = answer.received_s

    @staticmethod
    def _age_s(node: _Node, now_s: float) -> float | None:
        report = node.view.report
        if report is None or report.age_s is None:
            return None
        return max(now_s - node.received_s, 0.0) + report.age_s


def checked_address(address: object) -> str:
    """Return an address with its scheme and port, or refuse it."""
    text = address if isinstance(address, str) else ""
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = _SCHEMES[parts.scheme] if parts.port is None else parts.port
    except (ValueError, KeyError):
        parts, port = urlsplit(""), 0
    if not (
        port
        and parts.scheme in _SCHEMES
        and parts.hostname
        and parts.path in ("", "/")
        and "@" not in parts.netloc
    ):
        raise InvalidInput(f"{address!r} is not a node, expected one such as http://10.0.0.7:9560")
    return f"{parts.scheme}://{place_of(parts.hostname, port)}"


def _directness(address: str, place: str) -> int:
    """Return how surely a question to an address reached a place directly.

    2 for the same host and port; 1 for the same port if the host is a name; 0 if somebody may
    have passed it on.
    """
    asked = address.partition("://")[2]
    if asked == place:
        return 2
    host, _, port = asked.rpartition(":")
    is_name = not host.replace(".", "").isdigit() and ":" not in host
    return int(is_name and port == place.rpartition(":")[2])


def _read(body: bytes) -> NodeReport:
    """Return the report in a body, or name the problem with it."""

    def refuse_constant(text: str) -> None:
        raise InvalidInput(f"{text} is not a number")

    report = decode(NodeReport, json.loads(body, parse_constant=refuse_constant), where="report")
    if not (report.node and isinstance(report.sequence, int) and math.isfinite(report.at_s)):
        raise InvalidInput("its identity, sequence or time is none")
    if report.age_s is not None and not 0.0 <= report.age_s < math.inf:
        raise InvalidInput(f"its status is {report.age_s} s old")
    for state in (report.status, report.health):
        for sample in state.samples if state else ():
            value = sample.value
            is_sound = is_number(value) and -LARGEST <= value <= LARGEST
            if not (value is None or isinstance(value, str) or is_sound):
                raise InvalidInput(f"{sample.name} is {short(value)}")
    return report


MOST_ANSWER_BYTES = 1024 * 1024  # read in a fifth of a second at most, as measured
_SILENCE, _NONSENSE = 0, 1  # in place of a status: no answer came, or none that can be read


class Hub:
    """Asks all nodes at once, and keeps their last good answers.

    Parameters
    ----------
    nodes
        Addresses of agents, such as ``10.0.0.7:9560`` or ``https://10.0.0.7:9560``.
    token
        Token of the agents.
    authority
        File with trusted certificates, in PEM; None for the certificates of the system.
    timeout_s
        Maximum time for an answer, in seconds.

    Raises
    ------
    InvalidInput
        When an address is not valid or is there twice, the token is not valid, or the file cannot
        be read.
    MissingExtra
        When the extra ``agent`` is not installed.

    Examples
    --------
    >>> from benchrigor.instrument import Agent
    >>> with Agent() as agent, Hub([agent.url]) as hub:
    ...     (view,) = hub.pull()
    >>> print(view.condition, view.report.sequence)
    well 1
    """

    def __init__(
        self,
        nodes: Iterable[str],
        *,
        token: str | None = None,
        authority: Path | None = None,
        timeout_s: float = 0.7,
    ) -> None:
        refuse(wrong_number("timeout_s", timeout_s), wrong_token(token))
        self._board = NodeBoard(nodes, salt=secrets.token_hex(4))
        self._timeout_s = timeout_s
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            context = ssl.create_default_context(cafile=authority)
        except (OSError, ssl.SSLError) as error:
            raise InvalidInput(f"{authority} holds no certificates in PEM: {error}") from error
        self._thread = LoopThread("benchrigor hub")
        self._session: aiohttp.ClientSession | None = self._thread.run(
            self._open_session(headers, context)
        )

    @staticmethod
    async def _open_session(
        headers: dict[str, str], context: ssl.SSLContext
    ) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=context),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    def pull(self) -> tuple[NodeView, ...]:
        """Ask all nodes once, and return their views.

        That is after `timeout_s` and the time to read the answers at the latest.
        """
        self._refuse_closed()
        self._thread.run(self._pull())
        return self._board.views(time.monotonic())

    def configure(self, thresholds: Iterable[Threshold]) -> dict[str, str]:
        """Put thresholds in force on all nodes; return the failures by address, or "" ."""
        self._refuse_closed()
        tables = {"thresholds": tables_of(thresholds)}
        return self._thread.run(self._configure(tables))

    def close(self) -> None:
        """Close all connections; may be called twice."""
        session, self._session = self._session, None
        if session is not None:
            self._thread.run(session.close())
            self._thread.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refuse_closed(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise InvalidInput("this hub is closed, expected one that is open")
        return self._session

    async def _pull(self) -> None:
        for finished in asyncio.as_completed([*map(self._ask, self._board.ask())]):
            self._board.tell(await finished)

    async def _ask(self, question: Question) -> Answer:
        """Ask a node, in any case."""
        sent_s = time.monotonic()
        query = {"echo": question.echo, "cursor": question.cursor}
        status, body = await self._exchange("GET", f"{question.address}/report", params=query)
        if status != 200:
            reason = body.decode(errors="replace")[:200]
            return Answer(asked=question, failed=reason, condition=_condition(status))
        return Answer(
            asked=question,
            body=body,
            sent_s=sent_s,
            received_s=time.monotonic(),
            wall_s=time.time(),
        )

    async def _configure(self, tables: dict[str, Any]) -> dict[str, str]:
        addresses = [view.address for view in self._board.views(0.0)]
        answers = await asyncio.gather(
            *(self._exchange("PUT", f"{address}/config", json=tables) for address in addresses)
        )
        return {
            address: "" if status == 200 else body.decode(errors="replace")[:2000]
            for address, (status, body) in zip(addresses, answers, strict=True)
        }

    async def _exchange(self, method: str, url: str, **what: Any) -> tuple[int, bytes]:
        """Return status and body of an answer, or a status outside HTTP and the reason."""
        session = self._refuse_closed()
        try:
            async with asyncio.timeout(self._timeout_s):
                async with session.request(method, url, allow_redirects=False, **what) as answer:
                    body = await _read_body(answer)
                    is_ours = body and answer.status in (200, 400, 401, 403)
                    return answer.status, body if is_ours else f"status {answer.status}".encode()
        except TimeoutError:
            return _SILENCE, f"no answer within {self._timeout_s:g} s".encode()
        except (aiohttp.ClientResponseError, aiohttp.ClientPayloadError) as error:
            return _NONSENSE, str(error).encode(errors="backslashreplace")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            reason = str(getattr(error, "os_error", error))
            return _SILENCE, reason.encode(errors="backslashreplace")


def _condition(status: int) -> NodeCondition:
    """Return the condition of a node that answers without a report."""
    if status in (401, 403):
        return NodeCondition.REFUSED
    return NodeCondition.SILENT if status == _SILENCE else NodeCondition.WRONG


async def _read_body(answer: aiohttp.ClientResponse) -> bytes:
    """Return a body that is not too large."""
    parts, size = [], 0
    async for part in answer.content.iter_chunked(64 * 1024):
        size += len(part)
        if size > MOST_ANSWER_BYTES:
            raise aiohttp.ClientPayloadError(
                f"the answer has more than {MOST_ANSWER_BYTES:,} bytes"
            )
        parts.append(part)
    return b"".join(parts)
