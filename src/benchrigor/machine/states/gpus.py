"""GPUs of NVIDIA, by its own library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from benchrigor.errors import MissingExtra
from benchrigor.machine.kernel_files import Unavailable
from benchrigor.machine.states.sampling import sample_of
from benchrigor.model import Sample


class Gpus:
    """Reads the GPUs that are there; a library or a driver that is missing is looked for once."""

    def __init__(self) -> None:
        self._handles: list[Any] = []
        self._reason = ""
        try:
            import pynvml  # type: ignore[import-untyped]  # noqa: PLC0415  # optional

            # It stays initialised: that takes long, and the library counts its users.
            pynvml.nvmlInit()
            self._nvml = pynvml
            for index in range(pynvml.nvmlDeviceGetCount()):
                self._handles.append(pynvml.nvmlDeviceGetHandleByIndex(index))
        except ImportError:
            self._reason = str(MissingExtra("reading GPUs", package="nvidia-ml-py", extra="gpu"))
        except Exception as error:  # noqa: BLE001 - a driver may raise anything
            self._reason = f"NVIDIA's library: {error}"

    def models(self, *_: object) -> Iterator[Sample]:
        """Yield what each GPU is."""
        return self._of_each(
            {
                ("", ""): lambda nvml, gpu: nvml.nvmlDeviceGetName(gpu),
                (" memory", "B"): lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).total,
            }
        )

    def sample(self, *_: object) -> Iterator[Sample]:
        """Yield how busy, full and hot each GPU is."""
        return self._of_each(
            {
                (" utilisation", "%"): lambda nvml, gpu: (
                    nvml.nvmlDeviceGetUtilizationRates(gpu).gpu
                ),
                (" memory used", "B"): lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).used,
                (" memory free", "B"): lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).free,
                (" temperature", "°C"): lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(
                    gpu, nvml.NVML_TEMPERATURE_GPU
                ),
            }
        )

    def _of_each(
        self, readers: Mapping[tuple[str, str], Callable[[Any, Any], float | str]]
    ) -> Iterator[Sample]:
        if self._reason:
            raise Unavailable(self._reason)
        yield Sample("gpus", len(self._handles))
        for index, handle in enumerate(self._handles):
            for (what, unit), read in readers.items():
                yield sample_of(f"gpu {index}{what}", unit, partial(read, self._nvml, handle))
