"""Counters of the processor for the calling thread: instructions, floating-point operations."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

from benchrigor.machine.kernel_files import KernelFile, Unavailable

_HARDWARE, _INSTRUCTIONS = 0, 1  # ``type`` and ``config`` in ``linux/perf_event.h``
_SYSCALLS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
_ATTR_SIZE = 64
_NO_KERNEL, _NO_HYPERVISOR = 1 << 5, 1 << 6
_CLOSE_ON_EXEC = 8
# Raw events of all floating-point operations: FP_ARITH_INST_RETIRED of Intel (from Broadwell on)
# and FpRetSseAvxOps of AMD (from Zen on). Elsewhere these numbers mean something else.
_RAW, _FLOATING_POINT = 4, (0xFFC7, 0xFF03)
_TRIED = 1_000  # multiplications that show the meaning of an event's count


def open_counter(kind: int = _HARDWARE, event: int = _INSTRUCTIONS) -> KernelFile:
    """Begin to count one event of the calling thread in user mode, or raise `Unavailable`."""
    number = _SYSCALLS.get(platform.machine()) if sys.platform == "linux" else None
    if number is None:
        raise Unavailable(f"no perf_event_open known for {sys.platform} on {platform.machine()}")
    attributes = struct.pack(
        "=IIQQQQQ", kind, _ATTR_SIZE, event, 0, 0, 0, _NO_KERNEL | _NO_HYPERVISOR
    )
    system = ctypes.CDLL(None, use_errno=True)
    this_thread, any_processor, no_group = map(ctypes.c_int, (0, -1, -1))
    descriptor = system.syscall(
        ctypes.c_long(number),
        ctypes.create_string_buffer(attributes, _ATTR_SIZE),
        this_thread,
        any_processor,
        no_group,
        ctypes.c_ulong(_CLOSE_ON_EXEC),
    )
    if descriptor < 0:
        raise Unavailable(f"perf_event_open: {os.strerror(ctypes.get_errno())}")
    return KernelFile(int(descriptor))


def open_floating_point() -> KernelFile:
    """Begin to count floating-point operations, or raise `Unavailable`."""
    reasons = []
    for event in _FLOATING_POINT:
        try:
            counter = open_counter(_RAW, event)
        except Unavailable as error:
            reasons.append(str(error))
            continue
        before, product = read_counter(counter), 1.0
        for _ in range(_TRIED):
            product *= 0.9
        counted = read_counter(counter) - before
        if _TRIED <= counted <= 2 * _TRIED:
            return counter
        reasons.append(f"{event:#x} counts {counted} of {_TRIED} multiplications")
    raise Unavailable("; ".join(dict.fromkeys(reasons)))


def read_counter(counter: KernelFile) -> int:
    """Return the count so far."""
    return int.from_bytes(os.read(counter.descriptor, 8), sys.byteorder)
