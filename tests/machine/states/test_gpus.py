"""GPUs of a made-up library of NVIDIA."""

from __future__ import annotations

import sys
from types import SimpleNamespace as Told

import pytest

from benchrigor.machine.states.gpus import Gpus
from benchrigor.machine.states.sampling import GuardedSampler


class NVMLError(Exception):
    pass


def fails(message: str):
    def fail(*_: object) -> None:
        raise NVMLError(message)

    return fail


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Told:
    made = Told(
        NVML_TEMPERATURE_GPU=0,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda gpu: f"Card {gpu}",
        nvmlDeviceGetUtilizationRates=lambda gpu: Told(gpu=40 + gpu),
        nvmlDeviceGetMemoryInfo=lambda _: Told(total=8e9, used=1e9, free=7e9),
        nvmlDeviceGetTemperature=lambda *_: 50,
    )
    monkeypatch.setitem(sys.modules, "pynvml", made)
    return made


def test_each_gpu_tells_how_busy_it_is(nvml) -> None:
    found = {each.name: (each.value, each.unit) for each in Gpus().sample()}
    assert found["gpus"] == (2, "")
    assert found["gpu 1 utilisation"] == (41, "%")
    assert found["gpu 0 memory used"] == (1e9, "B")
    assert found["gpu 1 temperature"] == (50, "°C")


def test_what_one_gpu_does_not_support_leaves_the_rest(nvml) -> None:
    nvml.nvmlDeviceGetUtilizationRates = fails("Not Supported")
    found = {each.name: each for each in Gpus().sample()}
    assert found["gpu 0 utilisation"].value is None
    assert "Not Supported" in found["gpu 0 utilisation"].reason
    assert found["gpu 0 memory free"].value == 7e9


def reason_of(gpus: Gpus) -> str:
    (sample,) = GuardedSampler("gpus", gpus.sample, "gpus").sample()
    return sample.reason


def test_without_a_driver_there_is_a_reason_and_it_is_looked_for_once(nvml) -> None:
    nvml.nvmlInit = fails("Driver Not Loaded")
    gpus = Gpus()
    nvml.nvmlInit = fails("asked again")
    assert reason_of(gpus) == "NVIDIA's library: Driver Not Loaded"


def test_without_the_library_the_reason_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "pip install 'benchrigor[gpu]'" in reason_of(Gpus())
