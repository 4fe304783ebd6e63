"""The hosts of a pool in a file: their names, and the way to reach them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchrigor.model.checks import refuse
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import short
from benchrigor.model.toml_tables import TomlTables, list_of, words_of
from benchrigor.workbench.pool.executors import Executor, LocalExecutor
from benchrigor.workbench.settings import HOSTS, wrong_hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTable(OneLine):
    """The hosts of a map; a host measures one sample at a time.

    Parameters
    ----------
    names
        Of the hosts; with a scheduler, of its workers, and all of them by default.
    prefix
        Words that run a command on a host, with a place for its name: ``ssh {host}``. Without it,
        and without a scheduler, all hosts are this machine.
    scheduler
        Address of a Dask scheduler.
    python
        The interpreter on the hosts; None for the path of this one.
    cwd
        The folder on the hosts; None for the path of this one.
    interchangeable
        Whether hosts are similar enough to exchange samples freely.
    generators
        The number of further hosts of a sample, which send its requests.
    deadline_s
        Seconds after which no sample begins; None without a limit.
    limit_s
        Seconds after which an unfinished sample counts as lost; None for the budget, or a day.
    """

    names: Sequence[str] = ()
    prefix: Sequence[str] = ()
    scheduler: str | None = None
    python: str | None = None
    cwd: str | None = None
    interchangeable: bool = False
    generators: int = 0
    deadline_s: float | None = None
    limit_s: float | None = None

    @property
    def are_alike(self) -> bool:
        """Whether hosts have no effects of their own: by option, or as all are this machine."""
        return self.interchangeable or self.is_here

    @property
    def is_here(self) -> bool:
        """Whether all hosts are this machine, and write their results into its store."""
        return not self.prefix and self.scheduler is None

    @property
    def at_once(self) -> int:
        """The number of samples at the same time, by the number of names."""
        return max(1, len(self.names) // (1 + self.generators))


prefix_of = partial(words_of, instead="put it into a script")
"""Reads the words that run a command on a host."""


def read_hosts(tables: TomlTables) -> HostTable | None:
    """Read the table ``hosts`` of a file, and note its problems; None without a table."""
    if not isinstance(tables.at("hosts"), Mapping):
        return None
    given = tables.settings(("hosts",), HOSTS, {"names": list_of, "prefix": prefix_of})
    return tables.attempt(("hosts",), hosts_of, given)


def hosts_of(given: Mapping[str, Any]) -> HostTable:
    """Make the table of hosts that are given; InvalidInput with all problems."""
    refuse(wrong_hosts("names", given.get("names", ())), _wrong_ways(given))
    return HostTable(**given)


def _wrong_ways(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of the ways to hosts."""
    n_hosts = len(given.get("names", ()))
    if not n_hosts and "scheduler" not in given:
        yield "neither names of hosts nor a scheduler is given, expected one of them"
    if n_hosts in range(1, 1 + given.get("generators", 0)):
        yield f"generators is {given['generators']}, expected fewer than hosts: {n_hosts}"
    if "scheduler" in given and {*given} & {"prefix", "python"}:
        yield "scheduler goes with neither prefix nor python: its workers run already"
    if "prefix" in given and not any("{host}" in word for word in given["prefix"]):
        yield f"prefix is {short(given['prefix'])}, expected a place for the name: {{host}}"


def executor_for(hosts: HostTable) -> Executor:
    """Return the executor of jobs on the hosts."""
    if hosts.scheduler is not None:
        from benchrigor.workbench.pool.dask_executor import DaskExecutor  # noqa: PLC0415  # an extra

        return DaskExecutor(hosts.scheduler, hosts=hosts.names or None)
    return LocalExecutor(hosts.names, prefix=hosts.prefix, python=hosts.python)
