"""HTTP requests, by aiohttp: one, or several kinds by their weights."""

from __future__ import annotations

import os
import random
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

from benchrigor.errors import MissingExtra
from benchrigor.model.checks import refuse, wrong_number, wrong_values
from benchrigor.model.secret_values import hide_secrets
from benchrigor.model.toml_tables import as_it_is
from benchrigor.workbench.loadgen.sending import Answer, RequestFailed, Send

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
        refuse(
            wrong_values(
                [
                    (
                        "url",
                        hide_secrets(self.url),
                        is_url(self.url),
                        "http://HOST[:PORT]/PATH, or https://",
                    ),
                    ("method", self.method, is_method, "a word such as GET"),
                    ("status", self.status, is_status, "a number from 100 to 599"),
                    ("headers", hide_secrets(self.headers), are_headers, "texts by name"),
                    ("body", self.body, isinstance(self.body, str), "text"),
                ]
            ),
            wrong_number("weight", self.weight),
        )


# Its table in a file: fields are checked when it is made.
REQUEST = dict.fromkeys((each.name for each in fields(HttpRequest)), as_it_is)


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
