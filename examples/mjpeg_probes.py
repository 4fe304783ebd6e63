"""Where the time of a motion JPEG encoder goes.

    python examples/mjpeg_probes.py

Frames are made up; each is split into planes, whose blocks of 8 by 8 are transformed and quantised,
and then packed with zlib in place of Huffman codes.
"""

from __future__ import annotations

import zlib

import numpy as np

from benchrigor.instrument import ProbeRegistry
from benchrigor.instrument.probe_report import render_probes

Plane = np.ndarray

SIDE = 8
_steps = np.arange(SIDE)
COSINES = np.cos((2 * _steps[None, :] + 1) * _steps[:, None] * np.pi / (2 * SIDE))
COSINES *= np.sqrt(np.where(_steps[:, None] == 0, 1.0, 2.0) / SIDE)


def transformed(plane: Plane) -> Plane:
    """Return quantised cosine coefficients of a row of blocks, shape (blocks, 8, 8)."""
    blocks = plane.reshape(SIDE, -1, SIDE).transpose(1, 0, 2)
    found: Plane = np.rint(COSINES @ blocks @ COSINES.T / 16.0).astype(np.int16)
    return found


def encode(frames: int, width: int, height: int, registry: ProbeRegistry) -> bytes:
    """Return a stream of encoded frames; half the resolution in colour."""
    names = ("read/splitYUV", "yDCT", "uDCT", "vDCT", "VLC/write")
    read, *transforms, write = (registry.probe(name) for name in names)
    rng, stream = np.random.default_rng(1), b""
    for _ in range(frames):
        with read, read.work:
            frame = rng.integers(0, 256, (height, width, 3)).astype(np.float64)
            y = frame @ [0.299, 0.587, 0.114]
            u, v = ((frame[..., each] - y)[::2, ::2] for each in (2, 0))
        coded = []
        for plane, probe in zip((y, u, v), transforms, strict=True):
            for top in range(0, plane.shape[0], SIDE):
                with probe:
                    rows = plane[top : top + SIDE]
                    with probe.work:
                        coded.append(transformed(rows))
        with write, write.work:
            stream += zlib.compress(b"".join(each.tobytes() for each in coded))
    return stream


def main(frames: int = 5, width: int = 352, height: int = 288) -> None:
    """Print the table of probes, for the usual size of frames."""
    registry = ProbeRegistry()
    encode(frames, width, height, registry)
    print(render_probes(registry.read()))


if __name__ == "__main__":
    main()
