"""Stands for `ssh HOST`: runs python -m MODULE here, with a clock that is an hour ahead on oak."""

import runpy
import sys
import time

host, module = sys.argv[1], sys.argv[-1]
monotonic = time.monotonic
if host == "oak":
    time.monotonic = lambda: monotonic() + 3600.0
sys.argv = sys.argv[-1:]
runpy.run_module(module, run_name="__main__", alter_sys=True)
