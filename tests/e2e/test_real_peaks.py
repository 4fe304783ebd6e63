"""Peaks of real servers on this machine, within some minutes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nginx_server
import pytest

import benchrigor as br
from benchrigor.workbench import PeakRun, PeakSearch
from benchrigor.workbench.loadgen import HttpRequest, HttpRequests, OpenLoop

SERVER = Path(__file__).parents[1] / "simulations" / "queue_server.py"
LIMIT_S = 0.06

pytestmark = [pytest.mark.slow, pytest.mark.minutes]


def searched(url: str) -> br.Estimate:
    limits = [br.Limit(metric="mean", at_most=LIMIT_S)]
    search = PeakSearch(limits=limits, budget_s=180.0, max_load=2000.0)
    generator = OpenLoop(HttpRequests(kinds=[HttpRequest(url=url)]), limits)
    found = PeakRun(search, name="a real server").carry_out(generator)
    assert found.load is not None
    return found.load


def test_the_peak_of_a_queue_on_a_socket():
    command = [sys.executable, str(SERVER), "200"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        load = searched(f"http://127.0.0.1:{server.stdout.readline().strip()}/")
        server.kill()
    assert load.value == pytest.approx(200.0 - 1.0 / LIMIT_S, rel=0.08)


@pytest.mark.skipif(nginx_server.where() is None, reason="there is no nginx: apt install nginx")
def test_the_peak_of_nginx_that_lets_200_a_second_through(tmp_path):
    """Waits of M/D/1 are share / (1 - share) / (2 rate): 60 ms at 192 a second."""
    with nginx_server.running(tmp_path, "200r/s") as url:
        load = searched(url)
    assert load.value == pytest.approx(192.0, rel=0.08)
