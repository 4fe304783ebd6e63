"""SEGMENTS of a program, recorded while they run: the time that other work took, in detail.

The light of one run is in `benchrigor.stats.interference`, since every record has one.
"""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "profiles": "composite_profile merge_processes quantise",
        "report": "plot_interference render_interference",
        "segment_recorder": "Segments process_of segments traced",
    },
)
__all__ = list(__dir__())
