"""The readings of a benchmark that another tool recorded, before anything is estimated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchrigor.model.metric import Metric
from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine
from benchrigor.model.readings import Round
from benchrigor.model.run import Provenance

FILE = "file"  # kind of the subject of readings that were recorded elsewhere
PROCESSES = ("process", "fork")  # units that are processes
RESTARTED = (*PROCESSES, "repetition")  # units that do not continue one series


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recorded(OneLine):
    """One benchmark from a file that another tool wrote.

    Parameters
    ----------
    name
        Its name, with the parameters that distinguish it from other benchmarks of the file.
    metrics
        The metric that the tool was asked to measure, then optional ones.
    rounds
        The readings in order; values that the tool took as warm-up are unit readings under
        `readings.WARM_UP` and the name of the metric. Empty if the file holds no raw readings.
    tool
        Name of the tool.
    unit
        Meaning of a round: "process", "fork" or "repetition"; "series" if all readings continue
        one series in one process.
    provenance
        Machine, interpreter, commit, and whatever else the file says about the place of the run.
    parameters
        Parameters of the benchmark.
    notices
        Gaps in the file. A refusal explains why rounds are missing.
    """

    name: str
    metrics: tuple[Metric, ...]
    rounds: tuple[Round, ...]
    tool: str
    unit: str = "series"
    provenance: Provenance | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()

    @property
    def subject(self) -> dict[str, Any]:
        """Description of the benchmark, for programs."""
        facts = {"tool": self.tool, "unit": self.unit, "parameters": dict(self.parameters)}
        return {"kind": FILE, **facts}
