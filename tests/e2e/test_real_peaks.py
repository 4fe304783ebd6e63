"""Peaks of real servers on this machine, within some minutes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import nginx_server
import pytest

SERVER = Path(__file__).parents[1] / "simulations" / "queue_server.py"
LIMIT_S = 0.06

pytestmark = pytest.mark.minutes


@pytest.fixture
def peak(cli):
    """Return what finds the peak of a server."""

    def search(url: str) -> float:
        words = ("--mean", f"{LIMIT_S}s", "--budget", "180s", "--max-load", "2000", "--json")
        return json.loads(cli("peak", "--url", url, *words).stdout)["load"]["value"]

    return search


def test_the_peak_of_a_queue_on_a_socket(peak):
    command = [sys.executable, str(SERVER), "200"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        load = peak(f"http://127.0.0.1:{server.stdout.readline().strip()}/")
        server.kill()
    assert load == pytest.approx(200.0 - 1.0 / LIMIT_S, rel=0.08)


@pytest.mark.skipif(nginx_server.where() is None, reason="there is no nginx: apt install nginx")
def test_the_peak_of_nginx_that_lets_200_a_second_through(peak, tmp_path):
    """Waits of M/D/1 are share / (1 - share) / (2 rate): 60 ms at 192 a second."""
    with nginx_server.running(tmp_path, "200r/s") as url:
        load = peak(url)
    assert load == pytest.approx(192.0, rel=0.08)
