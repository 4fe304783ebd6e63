"""SEGMENTS of a program, recorded while they run: the time that other work took, in detail.

The light of one run is in `benchrigor.stats.interference`, since every record has one.
"""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "picture": "plot_interference",
        "profiles": "composite_profile merge_processes quantise",
        "recording.segment_recorder": "Segments process_of segments traced",
        "report": "render_interference",
    },
)
__all__ = list(__dir__())
