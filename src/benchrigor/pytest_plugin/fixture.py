"""The fixture that tests call, also with the interface of pytest-benchmark."""

from __future__ import annotations

import asyncio
import math
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pytest

from benchrigor import session
from benchrigor.clocks import WallClock
from benchrigor.errors import InvalidInput, NotEstimable, WorkloadFailed, without_our_frames
from benchrigor.model import Code, Comparison, Estimate, Options, RunRecord
from benchrigor.protocols import DelayMeter
from benchrigor.pytest_plugin.marks import NAMES
from benchrigor.pytest_plugin.suite import Benchmarked, Suite
from benchrigor.session import Session, default_rules
from benchrigor.session.measuring import run_in_loop
from benchrigor.session.session import meter_for
from benchrigor.storage.user_settings import time_metric
from benchrigor.workloads import CallableWorkload, InterpreterWorkload
from benchrigor.workloads.named_functions import awaits, hash_of_function, name_of
from benchrigor.workloads.processes import kinship
from benchrigor.workloads.processes.own_signals import EndedBySignal, ended_by_signals
from benchrigor.workloads.processes.time_limits import CallLimit, CallOverran
from benchrigor.workloads.timing import wrong_time_limit

T = TypeVar("T")
_Arguments = tuple[Sequence[Any], Mapping[str, Any]]
_OPTIONS = [field.name for field in fields(Options) if field.name in NAMES.values()]
_TIMES_BUDGET, _LEAST_BUDGET_S = 3.0, 5.0  # until a call of given rounds hangs
_NO_READINGS = (Code.CUT_ROUND, Code.NO_DATA)


class Bench(Benchmarked):
    """Measures functions for one test.

    ``record`` is the result of the last measurement, ``stats`` its figures as pytest-benchmark
    names them; both are None without a measurement. ``group``, ``baseline``, ``margin``
    and ``extra_info`` may be set until the test ends; see `Benchmarked`.
    """

    def __init__(self, node: pytest.Function, suite: Suite) -> None:
        super().__init__(node)
        suite.ignored |= self._ignored
        self.record: RunRecord | None = None
        self.stats: Stats | None = None
        self._suite = suite
        self._test = node.function
        self._times = 0

    @property
    def enabled(self) -> bool:
        """Whether functions are measured, and not only called."""
        return self._suite.measures and self._suite.revision is None

    @property
    def disabled(self) -> bool:
        """Whether functions are only called."""
        return not self.enabled

    def __call__(self, func: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Measure calls of ``func(*args, **kwargs)``, and return the result of the first one.

        If an event loop runs, await the result of a coroutine function: ``await bench(f)``.
        """
        __tracebackhide__ = True
        if awaits(func) and _is_in_loop():
            return self._measure_coroutine(func, args, kwargs)  # type: ignore[return-value]
        return self._measure(func, args, kwargs)

    def pedantic(  # noqa: PLR0917  # positional in pytest-benchmark too
        self,
        target: Callable[..., T],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        setup: Callable[[], object] | None = None,
        teardown: Callable[..., object] | None = None,
        rounds: int | None = None,
        warmup_rounds: int = 0,
        iterations: int | None = None,
    ) -> T:
        """Measure as `__call__` does, with an untimed setup before every reading.

        Parameters
        ----------
        target, args, kwargs
            The function and its arguments.
        setup
            Called before a reading; it may return ``(args, kwargs)`` for the call.
        teardown
            Called after a reading with the arguments of its call.
        rounds
            Exact number of readings; None for the number that the interval needs.
        warmup_rounds
            Number of earlier readings that do not count. Warm-up is found without them.
        iterations
            Calls per reading; None for the number that the clock needs.
        """
        __tracebackhide__ = True
        given: _Arguments = (args, kwargs or {})

        def begin() -> _Arguments:
            nonlocal given
            returned: Any = None if setup is None else setup()
            given = given if returned is None else returned
            return given

        def end() -> None:
            if teardown is not None:
                teardown(*given[0], **given[1])

        def warm_up() -> None:
            for _ in range(warmup_rounds):
                begin()
                for _ in range(iterations or 1):
                    target(*given[0], **given[1])
                end()

        if self.enabled and warmup_rounds:
            self._in_time(warm_up, target)
        if iterations is not None:
            self._settings["batch"] = iterations
        return self._measure(
            target,
            *given,
            rounds=rounds,
            setup=begin if setup or teardown else None,
            teardown=end if teardown else None,
        )

    def compare(
        self, old: Callable[[], object], new: Callable[[], object], *, margin: float | None = None
    ) -> Comparison:
        """Time ``old()`` and ``new()`` in turn, and say whether the new one is better or worse.

        ``margin`` is the relative change that does not matter; None for the test's margin. Skips
        the test if measurements are off.
        """
        __tracebackhide__ = True
        name = self._next_name()
        if not self._suite.measures:
            old(), new()
            self._suite.skip(name)
            pytest.skip("no side is measured, so both cannot be compared")
        options = self._chosen(*_OPTIONS[1:]) | {
            "margin": self.margin if margin is None else margin
        }
        sides: list[Any] = [self._in_interpreter(name, side) for side in (old, new)]
        if None in sides:
            sides, options = [old, new], options | self._chosen("batch", "gc")
        comparison = _raise_as_is(lambda: session.measure_pair(*sides, **options))
        self._suite.compared.append((self, name, comparison))
        return comparison

    def ratio(self, baseline: Callable[[], object], candidate: Callable[[], object]) -> Estimate:
        """Time two functions in turn, and return the time of the candidate over the baseline's.

        Raises NotEstimable without a number. Its ``notices`` give the median ratio if a few
        pairs carry the interval, which has no end (``math.inf``) if slow ones leave it open.

        Examples
        --------
        ``assert bench.ratio(old, new).high < 1.05`` holds when the new one is less than 5 % slower.
        """
        __tracebackhide__ = True
        comparison = self.compare(baseline, candidate)
        if comparison.ratio is None:
            raise NotEstimable(comparison.notices[0])
        return comparison.ratio

    def _measure(
        self,
        func: Callable[..., T],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        rounds: int | None = None,
        setup: Callable[[], _Arguments] | None = None,
        teardown: Callable[[], object] | None = None,
    ) -> T:
        """Measure a function with its arguments, and return its first result."""
        __tracebackhide__ = True
        name = self._next_name()
        self._measure_in_both(name, partial(func, *args, **kwargs), setup)
        if not self.enabled:
            self._suite.skip(name)
            return _called_once(func, (args, kwargs), setup, teardown)
        fresh = None
        if setup or rounds:
            self._suite.keep_inside(name, "a setup and given rounds are of this process")
        else:
            fresh = self._in_interpreter(name, func, args, kwargs)
        if fresh is not None:
            result = self._in_time(
                lambda: _called_once(func, (args, kwargs), setup, teardown), func
            )
            _raise_as_is(lambda: self._keep(self._session(name, fresh).run(fresh)))
            return result
        results: list[T] = []
        around: dict[str, Any] = {"setup": setup, "teardown": teardown}
        if rounds is not None:
            around |= {"first_call_apart": False, "timeout_s": self._longest_s()}
        call = _call_of(func, *(((), {}) if setup else (args, kwargs)))
        workload = self._workload(call, meter_for(None), **around, take_first=results.append)
        _raise_as_is(lambda: self._keep(self._session(name, workload, rounds).run(workload)))
        return results[0]

    def _measure_in_both(
        self, name: str, call: partial[Any], setup: Callable[[], _Arguments] | None = None
    ) -> None:
        """Compare a call with the same call in the revision, if the run has one."""
        __tracebackhide__ = True
        revision = self._suite.revision
        if revision is None or not self._suite.measures:
            return
        if setup is not None:
            revision.left_out[name] = "it has a setup, which is of this process"
            return
        timing = {"inner": self._settings.get("batch"), **self._chosen("gc")}
        options = self._chosen(*_OPTIONS[1:]) | {"margin": self.margin}
        options["store"] = self._suite.store
        comparison = _raise_as_is(lambda: revision.compare(name, call, timing, **options))
        if comparison is not None:
            self._suite.revised.append((self, name, comparison))

    async def _measure_coroutine(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Measure a coroutine function in the loop that runs, and return its first result."""
        __tracebackhide__ = True
        name = self._next_name()
        self._measure_in_both(name, partial(func, *args, **kwargs))
        if not self.enabled:
            self._suite.skip(name)
            return await func(*args, **kwargs)
        results: list[Any] = []
        workload = self._workload(_call_of(func, args, kwargs), None, take_first=results.append)
        try:
            self._keep(await run_in_loop(self._session(name, workload), workload))
        except WorkloadFailed as error:
            raise _own(error) from None
        return results[0]

    def _workload(
        self, call: Callable[..., object], meter: DelayMeter | None, **options: Any
    ) -> CallableWorkload:
        timing = {"inner": self._settings.get("batch"), **self._chosen("gc")}
        return CallableWorkload(call, clock=WallClock(), meter=meter, **timing, **options)

    def _session(
        self, name: str, workload: CallableWorkload | InterpreterWorkload, rounds: int | None = None
    ) -> Session:
        """Return the session of a measurement, with a fixed number of readings if it is given."""
        # The test is the benchmark: the measured code is often the code that should change.
        workload.function_hash = hash_of_function(self._test)
        metric, limits = time_metric(self._suite.root), self._chosen(*_OPTIONS)
        if "target" in limits:
            metric = replace(metric, relative_half_width=None)
            limits["target_given"] = True
        if rounds is not None:
            limits |= {"budget_readings": rounds, "budget_s": math.inf}
        options = Options(**limits)
        # The first rule ends a session that is satisfied.
        rules = None if rounds is None else default_rules(options)[1:]
        subject = {"kind": "function", "name": self.name, "test": self.fullname}
        store = self._suite.store
        return Session(options, (metric,), name=name, subject=subject, store=store, rules=rules)

    def _keep(self, record: RunRecord) -> None:
        """Keep a record; WorkloadFailed says why it has no readings, such as a call that hangs."""
        if not record.readings().size:
            reasons = [notice.sentence for notice in record.notices if notice.code in _NO_READINGS]
            error = WorkloadFailed(
                *(reason.replace("--budget", "--bench-budget") for reason in reasons)
            )
            error.record = record
            raise error
        self.record, self.stats = record, Stats(record)
        self._suite.records.append((self, record))

    def _in_time(self, call: Callable[[], T], func: Callable[..., object]) -> T:
        """Return the result of a call outside the readings; WorkloadFailed if it hangs."""
        __tracebackhide__ = True
        patience, results = CallLimit(), list[T]()
        with patience.kept(self._settings["budget_s"]):
            results.append(call())
        if not results:
            raise WorkloadFailed(patience.notice(name_of(func)).sentence)
        return results[0]

    def _longest_s(self) -> float | None:
        """Return the time limit of a call with given rounds; None unless a budget is given.

        It is also None if other code uses the timer.
        """
        longest_s = _TIMES_BUDGET * max(self._settings["given_budget"], _LEAST_BUDGET_S)
        is_free = not wrong_time_limit(longest_s) and not signal.getitimer(signal.ITIMER_REAL)[0]
        return longest_s if is_free else None

    def _in_interpreter(
        self,
        name: str,
        func: Callable[..., object],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> InterpreterWorkload | None:
        """Return a function as a workload of fresh interpreters; None if it is not to be one."""
        if not self._suite.is_fresh:
            return None
        try:
            timing = {"inner": self._settings.get("batch"), **self._chosen("gc")}
            return InterpreterWorkload(func, args=args, kwargs=kwargs, **timing)
        except InvalidInput as error:
            self._suite.keep_inside(name, str(error))
            return None

    def _chosen(self, *names: str) -> dict[str, Any]:
        return {name: self._settings[name] for name in names if name in self._settings}

    def _next_name(self) -> str:
        """Return the name of a measurement: the test's name, with a number from the second on."""
        self._times += 1
        return self.name if self._times == 1 else f"{self.name} #{self._times}"


class Stats:
    """The readings of a record, in seconds per call, by pytest-benchmark's names.

    Mean, or median, is the estimate if there is one.
    """

    def __init__(self, record: RunRecord) -> None:
        data = record.readings()
        q1, median, q3 = np.quantile(data, (0.25, 0.5, 0.75)).tolist()
        self.stats = self
        self.data: list[float] = data.tolist()
        self.rounds, self.iterations = data.size, record.facts.get("inner_loop", 1)
        self.min, self.max = float(data.min()), float(data.max())
        self.mean, self.median = float(data.mean()), median
        self.stddev = float(data.std(ddof=1)) if data.size > 1 else 0.0
        self.q1, self.q3, self.iqr = q1, q3, q3 - q1
        self.total, self.ops = float(data.sum()), 1.0 / self.mean if self.mean else math.inf
        estimate, statistic = record.estimate(), record.options.statistic
        if estimate is not None and statistic in ("mean", "median"):
            setattr(self, statistic, estimate.value)

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a figure by its name."""
        return getattr(self, name, default)


def _is_in_loop() -> bool:
    """Return whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _called_once(
    func: Callable[..., T],
    given: _Arguments,
    setup: Callable[[], _Arguments] | None,
    teardown: Callable[[], object] | None,
) -> T:
    """Call a function as a single reading would."""
    args, kwargs = setup() if setup else given
    try:
        returned: Any = func(*args, **kwargs)
        result: T = asyncio.run(returned) if awaits(func) else returned
        return result
    finally:
        if teardown is not None:
            teardown()


def _call_of(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Callable[..., Any]:
    """Return the timed callable: the function itself, without overhead, unless it has args."""
    return partial(func, *args, **kwargs) if args or kwargs else func


def _raise_as_is(measure: Callable[[], T]) -> T:
    """Raise the error of a measured function as if it had run without measurement.

    The same holds for signals, after started processes have ended.
    """
    __tracebackhide__ = True
    before = kinship.descendants()
    os.environ[kinship.MARK] = str(os.getpid())
    try:
        with ended_by_signals():
            return measure()
    except WorkloadFailed as error:
        raise _own(error) from None
    except EndedBySignal as error:
        kinship.kill_descendants(spared=before)
        kinship.kill_orphans()
        signal.raise_signal(error.number)
        raise  # if the signal did not end this process: an interrupt does not
    finally:
        os.environ.pop(kinship.MARK, None)


def _own(error: WorkloadFailed) -> BaseException:
    """Return the error of the measured function; ``error`` itself if a call was ended."""
    cause = error.__cause__
    return error if cause is None or type(cause) is CallOverran else without_our_frames(cause)
