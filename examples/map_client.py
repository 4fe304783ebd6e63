"""Asks the server of examples/map_server.py for pages, eight at once, and prints their rate."""

import argparse
import asyncio
import time

AT_ONCE = 8


async def ask(port: int, page: str, until_s: float) -> int:
    """Ask for a page again and again, and return how often it was answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answers = 0
    while time.monotonic() < until_s:
        writer.write(f"GET /{page} HTTP/1.1\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\nok")
        answers += 1
    writer.close()
    return answers


async def count(port: int, page: str, seconds: float) -> None:
    """Print the rate of answers."""
    begun_s = time.monotonic()
    asking = (ask(port, page, begun_s + seconds) for _ in range(AT_ONCE))
    answers = sum(await asyncio.gather(*asking))
    print("rate", answers / (time.monotonic() - begun_s))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8321)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("page")
    given = parser.parse_args()
    asyncio.run(count(given.port, given.page, given.seconds))
