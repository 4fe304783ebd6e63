"""A web server whose workers each serve one request at a time, for examples/map.toml.

It sleeps instead of working, 8 ms on average for /small and 12 ms for /large (exponential), so that
it hardly needs a processor.
"""

import argparse
import asyncio
import heapq
import random
import time

MEAN_S = {"small": 0.008, "large": 0.012}
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def serve(port: int, workers: int, slower: float) -> None:
    """Serve until killed."""
    free_s = [0.0] * workers  # when each worker is free
    rng = random.Random(1)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = (await reader.readuntil(b"\r\n\r\n")).decode()
                page = request.split(" ")[1].strip("/")
                begins_s = max(free_s[0], time.monotonic())
                mean_s = slower * MEAN_S.get(page, MEAN_S["small"])
                ends_s = begins_s + rng.expovariate(1.0 / mean_s)
                heapq.heapreplace(free_s, ends_s)
                await asyncio.sleep(ends_s - time.monotonic())
                writer.write(ANSWER)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port, backlog=1024)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8321)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--slower", type=float, default=1.0, help="times")
    given = parser.parse_args()
    asyncio.run(serve(given.port, given.workers, given.slower))
