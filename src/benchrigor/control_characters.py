"""Control characters in names, units, paths and output of commands: escaped where they are shown.

A terminal obeys them, and a line break in a name would look like a line of the report.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# C0, DEL, C1, line and paragraph separators, what changes the direction of text, lone surrogates.
_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def escaped(text: str) -> str:
    r"""Return a text with its control characters, and line breaks too, as visible escapes.

    Examples
    --------
    >>> print(escaped("\x1b[31mµs\n"))
    \x1b[31mµs\n
    """
    return _CONTROLS.sub(lambda character: ascii(character[0])[1:-1], text)


def page(lines: Iterable[str]) -> str:
    """Join the lines of a report, each escaped: no text in a line can break it into two."""
    return "\n".join(map(escaped, lines))
