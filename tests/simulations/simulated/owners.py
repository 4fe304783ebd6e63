"""Processes and threads that have used, and become of them, what a test says."""

from benchrigor.queues.writers import Owner, Owners, Used


class FakeOwners(Owners):
    """Knows of processes and threads what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.dead: frozenset[int] = frozenset()
        self.times: dict[Owner, Used | None] = {}

    def gone(self, pids: object) -> frozenset[int]:
        return self.dead

    def used(self, owner: Owner) -> Used | None:
        return self.times.get(owner)

    def use(self, pid: int, tid: int, cpu_ns: int, delay_ns: int) -> None:
        """Let a thread have used so much since it began."""
        self.times[Owner(pid, tid)] = Used(cpu_ns, delay_ns)
