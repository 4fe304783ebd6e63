"""Pages of results: how large, how fast, and how they do in a browser.

    python docs/evidence/pages.py [--quick] [--only sizes,in-browser]

Needs the extra ``report``; the section on a browser needs Chromium (``chromium`` on PATH), and the
extra ``load``.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np

import benchrigor as br
from benchrigor import workbench
from benchrigor.report.html import document_of, sheet_of
from shared.running import Run, Script

script = Script(__doc__)
SEED = 20381127
MEGABYTE = 1e6
LEAST_CONTRAST = 4.5
Look = tuple[str, str, int, dict[str, Any]]
"""Page, theme and width, and what was seen there."""


@contextmanager
def folder() -> Iterator[Path]:
    """Give an empty folder."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def write_suite(path: Path, levels: Mapping[str, float], rng: np.random.Generator) -> None:
    """Write a file of hyperfine with thirty readings of each level."""
    results = [
        {"command": name, "times": (level * rng.normal(1.0, 0.02, 30)).tolist()}
        for name, level in levels.items()
    ]
    path.write_text(json.dumps({"results": results}))


def reported(*words: str | Path) -> tuple[int, float]:
    """Return the bytes and the seconds of a page that the command line makes."""
    with folder() as place:
        page = place / "page.html"
        start = time.perf_counter()
        told = [sys.executable, "-m", "benchrigor", "report", *map(str, words), "-o", str(page)]
        subprocess.run(told, check=True, capture_output=True)
        return page.stat().st_size, time.perf_counter() - start


@script.section("Size and time of pages", seed=SEED)
def sizes(run: Run) -> None:
    """Print bytes and seconds of a page of many readings, and of one of many benchmarks."""
    run.heading("page", "MB", "bar", "s", "bar")
    with folder() as place:
        file = place / "readings.txt"
        np.savetxt(file, run.rng(0).normal(1e-3, 3e-5, 100_000 if run.quick else 1_000_000))
        old, new = place / "old.json", place / "new.json"
        for index, suite in enumerate((old, new)):
            rng = run.rng(1, index)
            write_suite(suite, {f"benchmark {n}": 0.01 * (1 + n) for n in range(200)}, rng)
        for name, words, most_mb, most_s in (
            ("a million readings", [file], 3.0, 10.0),
            ("200 benchmarks, twice", [old, new], 6.0, 60.0),
        ):
            size, elapsed_s = reported(*words)
            small = run.bar(f"{name}, MB", size / MEGABYTE, "<=", most_mb)
            soon = run.bar(f"{name}, s", elapsed_s, "<=", most_s)
            run.row(name, round(size / MEGABYTE, 2), small, round(elapsed_s, 1), soon)


def results_of_each_kind() -> dict[str, Any]:
    """Return a result of each kind that has pictures."""
    peak = workbench.PeakSearch(threshold_s=0.1, seed_load=50.0)
    while (trial := peak.ask()) is not None:
        answer_s = 0.01 / (1.0 - trial.load / 400.0) if trial.load < 390.0 else 1.0
        n = int(trial.load * trial.duration_s)
        counts: dict[str, Any] = {"scheduled": n, "sent": n, "completed": n}
        peak.tell(trial, br.LoadResult(mean_response_s=answer_s, p95_response_s=None, **counts))
    levels = {"n": [1, 2, 4, 8], "m": [1, 2, 3]}
    factors = [workbench.Factor(name, levels=values) for name, values in levels.items()]
    surface = workbench.SurfaceMap(factors, samples=9, seed=1)
    while (sample := surface.ask()) is not None:
        value = 100.0 * float(sample.point["n"]) + 10.0 * float(sample.point["m"])
        surface.tell(sample, (value, 0.98 * value, 1.02 * value))
    words = ["alpha", "beta"] * 50
    return {
        "run": br.measure(lambda: sorted(words), budget_s=1.0),
        "pair": br.measure_pair(lambda: sorted(words), lambda: sorted(2 * words), budget_s=1.0),
        "several": br.measure_many({"dict": dict, "sort": lambda: sorted(words)}, budget_s=1.0),
        "peak": peak.result(),
        "surface": surface.result(),
    }


LOOK = """(() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([red, green, blue]) => [red, green, blue].map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const paper = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = numbers(getComputedStyle(at).backgroundColor);
      if (found.length < 4 || found[3] > 0) return light(found);
    }
    return 1;
  };
  for (const closed of document.querySelectorAll("details")) closed.open = true;
  const words = [...document.querySelectorAll("body *")].filter((element) =>
    !["SCRIPT", "STYLE", "title", "desc", "defs"].includes(element.tagName)
    && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
  const contrasts = words.map((element) => {
    const style = getComputedStyle(element);
    const ink = light(numbers(element.namespaceURI.endsWith("svg") ? style.fill : style.color));
    const [low, high] = [ink, paper(element)].sort((one, other) => one - other);
    return [(high + 0.05) / (low + 0.05), element.textContent.trim().slice(0, 40)];
  }).sort((one, other) => one[0] - other[0]);
  const drawn = [...document.querySelectorAll("svg")].map((svg) => svg.getBoundingClientRect());
  let unsorted = 0, clicks = 0;
  for (const button of document.querySelectorAll("table.sortable thead button")) {
    const head = button.parentElement, table = button.closest("table");
    const before = [...table.tBodies[0].rows];
    for (const way of ["ascending", "descending"]) {
      button.click();
      clicks += 1;
      const after = [...table.tBodies[0].rows];
      const worths = after.map((row) => row.cells[head.cellIndex].dataset.worth)
        .filter((worth) => worth !== undefined).map(Number);
      const ordered = worths.every((worth, index) => index === 0 || (way === "ascending"
        ? worths[index - 1] <= worth : worths[index - 1] >= worth));
      const same = before.length === after.length && before.every((row) => after.includes(row));
      if (head.getAttribute("aria-sort") !== way || !ordered || !same) unsorted += 1;
    }
  }
  let unfiltered = 0;
  for (const filter of document.querySelectorAll("input[type=search]")) {
    filter.value = "no row has these words";
    filter.dispatchEvent(new Event("input"));
    const rows = [...filter.nextElementSibling.querySelectorAll("tbody tr")];
    if (!rows.every((row) => row.hidden)) unfiltered += 1;
  }
  return {contrast: contrasts[0], figures: document.querySelectorAll("figure").length,
    drawn: drawn.filter((box) => box.width > 0 && box.height > 0).length, clicks, unsorted,
    unfiltered, wide: document.documentElement.scrollWidth - innerWidth};
})()"""
"""What a page looks like: the least contrast, its figures, and whether tables sort and filter."""


class Browser:
    """Chromium without a window, by its DevTools protocol."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._asked = 0
        self.said: list[str] = []

    async def ask(self, method: str, session: str = "", **given: Any) -> dict[str, Any]:
        """Send a command, and return its result; note what the console says meanwhile."""
        self._asked += 1
        sent = {"id": self._asked, "method": method, "params": given}
        await self._socket.send_json(sent | ({"sessionId": session} if session else {}))
        while True:
            told = await self._socket.receive_json(timeout=60.0)
            if told.get("method") in (
                "Runtime.consoleAPICalled",
                "Runtime.exceptionThrown",
                "Log.entryAdded",
            ):
                self.said.append(json.dumps(told["params"])[:200])
            if told.get("id") == self._asked:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']}")
                return dict(told["result"])

    async def look(self, page: Path, theme: str, width: int) -> dict[str, Any]:
        """Open a page, and return what it looks like."""
        target = (await self.ask("Target.createTarget", url="about:blank"))["targetId"]
        attached = await self.ask("Target.attachToTarget", targetId=target, flatten=True)
        session = attached["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            await self.ask(f"{domain}.enable", session)
        feature = {"name": "prefers-color-scheme", "value": theme}
        await self.ask("Emulation.setEmulatedMedia", session, features=[feature])
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        await self.ask("Emulation.setDeviceMetricsOverride", session, **screen)
        await self.ask("Page.navigate", session, url=page.as_uri())
        ready = "new Promise((done) => document.readyState === 'complete' ? done() : onload = done)"
        await self.ask("Runtime.evaluate", session, expression=ready, awaitPromise=True)
        told = await self.ask("Runtime.evaluate", session, expression=LOOK, returnByValue=True)
        await self.ask("Target.closeTarget", targetId=target)
        if "value" not in told["result"]:
            raise RuntimeError(f"{page.name}: {told}")
        return dict(told["result"]["value"])


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """Start Chromium, and end it."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise br.InvalidInput("no chromium on PATH, expected Debian's package chromium")
    with folder() as profile:
        words = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
        process = subprocess.Popen(
            [program, *words, f"--user-data-dir={profile}", "about:blank"],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr is not None
            found = next(filter(None, (re.search(r"ws://\S+", line) for line in process.stderr)))
            async with aiohttp.ClientSession() as client, client.ws_connect(found[0]) as socket:
                yield Browser(socket)
        finally:
            process.kill()
            process.wait()


async def look_at(
    pages: list[Path],
) -> tuple[list[tuple[str, str, int, dict[str, Any]]], list[str]]:
    """Look at pages in both themes, narrow and wide; return what was seen, and what was said."""
    async with browser() as opened:
        found = [
            (page.stem, theme, width, await opened.look(page, theme, width))
            for page in pages
            for theme in ("light", "dark")
            for width in (360, 1200)
        ]
        return found, opened.said


@script.section("Pages in a browser", seed=SEED + 10, quick=False)
def in_browser(run: Run) -> None:
    """Print what Chromium says of a page of each kind."""
    with folder() as place:
        for name, result in results_of_each_kind().items():
            (place / f"{name}.html").write_text(document_of([sheet_of(result)], name))
        suites = [place / "old.json", place / "new.json"]
        for index, suite in enumerate(suites):
            levels = {f"benchmark {n}": 0.01 * (n + 1) for n in range(30)}
            write_suite(suite, levels, run.rng(index))
        told = [sys.executable, "-m", "benchrigor", "report", *map(str, suites)]
        subprocess.run([*told, "-o", str(place / "suites.html")], check=True, capture_output=True)
        seen, said = asyncio.run(look_at(sorted(place.glob("*.html"))))
    run.heading("page", "theme", "width", "figures", "clicks", "least contrast", "of")
    for name, theme, width, look in seen:
        contrast, text = look["contrast"]
        run.row(name, theme, width, look["figures"], look["clicks"], round(contrast, 2), text)
    looks = [look for *_, look in seen]
    missing = sum(look["figures"] - look["drawn"] for look in looks)
    run.say(f"messages of the console: {run.bar('messages', len(said), '<=', 0)}")
    run.say("".join(f"* {message}\n" for message in said))
    run.say(f"figures that are missing: {run.bar('figures', missing, '<=', 0)}")
    for what in ("unsorted", "unfiltered"):
        count = sum(look[what] for look in looks)
        run.say(f"{what} tables: {run.bar(what, count, '<=', 0)}")
    least = min(look["contrast"][0] for look in looks)
    run.say(f"least contrast {least:.2f}: {run.bar('contrast', least, '>=', LEAST_CONTRAST)}")
    over = max(look["wide"] for look in looks)
    run.say(f"pixels that a page is wider than its window: {run.bar('wide', over, '<=', 0)}")


if __name__ == "__main__":
    raise SystemExit(script.main())
