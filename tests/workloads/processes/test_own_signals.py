"""Signals that end this program reach what its main thread waits in."""

import subprocess
import sys

import pytest

WAITING = """
import signal, threading, time
from benchrigor.workloads.processes.own_signals import EndedBySignal, ended_by_signals

def take_a_signal():
    time.sleep(0.3)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    threading.Event().wait()

threading.Thread(target=take_a_signal, daemon=True).start()
with ended_by_signals():
    try:
        threading.Event().wait()
    except EndedBySignal as error:
        print(error)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux wakes that thread")
def test_a_signal_that_another_thread_takes_interrupts_what_the_main_thread_waits_for():
    """Of signals that come together, the second wakes any thread, which may take them all."""
    argv = [sys.executable, "-c", WAITING]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=20.0, check=True)
    assert run.stdout == "ended by SIGTERM\n"
