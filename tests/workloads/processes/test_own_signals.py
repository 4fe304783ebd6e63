"""Signals that end this program reach what its main thread waits in."""

import faulthandler
import os
import signal
import subprocess
import sys

import pytest

from benchrigor.workloads.processes import own_signals

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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux wakes that thread")
def test_a_signal_that_another_thread_takes_interrupts_what_the_main_thread_waits_for():
    """Of signals that come together, the second wakes any thread, which may take them all."""
    argv = [sys.executable, "-c", WAITING]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=300.0, check=True)
    assert "SIGTERM" in run.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells who handles")
def test_handlers_of_others_stay_in_place(fork):
    """Those of the caller, also in C, and those that measured code puts in place, also in forks."""

    def own(_number, _frame):
        pass

    def has_own():
        os._exit(0 if signal.getsignal(signal.SIGUSR2) is own else 1)

    before = signal.getsignal(signal.SIGUSR2)
    faulthandler.register(signal.SIGUSR1)
    try:
        with own_signals.ended_by_signals():
            assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
            assert signal.getsignal(signal.SIGUSR2) not in {before, signal.SIG_DFL}
            signal.signal(signal.SIGUSR2, own)
            child = fork(has_own)
            child.join()
        assert child.exitcode == 0
        assert signal.getsignal(signal.SIGUSR2) is own
        assert signal.getsignal(signal.SIGXCPU) == signal.SIG_DFL
    finally:
        faulthandler.unregister(signal.SIGUSR1)
        signal.signal(signal.SIGUSR2, signal.SIG_DFL)
