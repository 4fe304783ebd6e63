import gc
import signal

import pytest
from hypothesis import settings

from benchrigor.testing import FakeClock, FakeMeter

settings.register_profile("steady", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("steady")

pytest_plugins = ["pytester"]


def pytest_configure():
    """Let processes that tests start be interrupted.

    A job in the background of a script ignores SIGINT, and so does whatever it starts.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    """Spare the collector what stays until the end: modules, and the tests themselves."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def meter(clock: FakeClock) -> FakeMeter:
    return FakeMeter(clock)
