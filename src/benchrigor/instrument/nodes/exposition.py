"""The state of a node, in the format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from benchrigor.instrument.nodes.node_service import NodeService


class NodeCollector:
    """Turns probes, status and alarms of a node into metrics, when they are asked for."""

    def __init__(self, service: NodeService) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; metrics of probes only rise."""
        service = self._service
        information = GaugeMetricFamily(
            "benchrigor_node_info", "Always 1.", labels=["node", "name"]
        )
        information.add_metric([service.node, service.name], 1.0)
        yield information
        probes = SummaryMetricFamily(
            "benchrigor_probe_seconds", "Durations of events.", labels=["probe", "clock"]
        )
        missed = CounterMetricFamily(
            "benchrigor_probe_missed_deadlines",
            "Events that took longer than the deadline of their probe.",
            labels=["probe", "deadline"],
        )
        for probe in service.registry.read().values():
            probes.add_metric([probe.name, probe.clock], probe.count, probe.total_s)
            if probe.deadline_s is not None:
                missed.add_metric([probe.name, f"{probe.deadline_s:g}"], probe.missed)
        yield from (probes, missed)
        states = GaugeMetricFamily(
            "benchrigor_state", "Samples of status and health.", labels=["sample", "unit"]
        )
        for state in (service.status, service.health):
            for sample in state.samples if state else ():
                if isinstance(sample.value, int | float):
                    # A name of a disk may hold bytes that are not UTF-8.
                    name = sample.name.encode(errors="replace").decode()
                    states.add_metric([name, sample.unit], float(sample.value))
        yield states
        yield GaugeMetricFamily(
            "benchrigor_state_age_seconds", "Since the status was read.", value=service.age_s
        )
        alarms = GaugeMetricFamily("benchrigor_alarm", "Whether an alarm stands.", labels=["code"])
        standing = {alarm.code for alarm in service.alarms.standing()}
        known = {threshold.code for threshold in service.alarms.thresholds if threshold.enabled}
        for code in sorted(standing | known):
            alarms.add_metric([code], float(code in standing))
        yield alarms


def exposition(service: NodeService) -> bytes:
    """Return the metrics of a node in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(NodeCollector(service))
    return generate_latest(registry)
