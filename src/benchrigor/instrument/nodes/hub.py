"""Pulls from many nodes at once."""

from __future__ import annotations

import asyncio
import secrets
import ssl
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from benchrigor.errors import InvalidInput, MissingExtra
from benchrigor.instrument.data import NodeCondition, NodeView
from benchrigor.instrument.nodes.loop_thread import LoopThread
from benchrigor.instrument.nodes.node_board import Answer, NodeBoard, Question, wrong_token
from benchrigor.machine.thresholds import Threshold, tables_of
from benchrigor.model.checks import refuse, wrong_number

try:
    import aiohttp
except ImportError:
    raise MissingExtra("a hub", package="aiohttp", extra="agent") from None

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
