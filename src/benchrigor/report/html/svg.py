"""Figures as SVG within HTML: they take colours and letters from the page around them."""

from __future__ import annotations

import io
import re
from html import escape
from typing import Any

from benchrigor.report.html.sheet import Picture
from benchrigor.report.plots.drawing import PALETTE
from benchrigor.safe_text import escaped

_DARK = (
    "@media screen and (prefers-color-scheme: dark) {{ .benchrigor {{ {0} }} }}\n"
    '[data-jp-theme-light="false"] .benchrigor, .vscode-dark .benchrigor {{ {0} }}\n'
)
_VARIABLES = {light: f"var(--{name})" for name, (light, _) in PALETTE.items()}
_BEFORE = re.compile(r"^.*?(?=<svg)|<metadata>.*?</metadata>|<style.*?</style>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_GROUP = re.compile(r'(<g) id="[^"]*"')
_FONT = re.compile(r" font-family: [^;\"]*;?| ?transform=\"rotate\(-0 [^)]*\)\"")
_FINE = re.compile(r"(\.\d\d)\d+")
_SIZE = re.compile(r' width="([\d.]+)pt" height="[\d.]+pt"')
_SPACE = re.compile(r"\s+")
# A round mark begins with a curve from the point below its middle.
_ROUND = re.compile(r'<path id="(\w+)" d="M 0 ([\d.]+)\s+C [^"]*"(?: style="stroke: none")?/>')
_DOTS = re.compile(  # of one mark and style
    r'<use xlink:href="#(\w+)" x=[^>]*? style="fill: ([^;"]*)((?:;[^"]*)?)"/>'
    r'(?>\s*<use xlink:href="#\1" x=[^>]*? style="fill: \2\3"/>){20,}+'
)
_PLACE = re.compile(r'x="([\d.-]+)" y="([\d.-]+)"')


def css_of_palette() -> str:
    """Return the colours as variables of CSS, in both themes."""
    light, dark = (
        " ".join(f"--{name}: {pair[which]};" for name, pair in PALETTE.items()) for which in (0, 1)
    )
    return f".benchrigor {{ {light} }}\n" + _DARK.format(dark)


def svg_of(picture: Picture, number: int = 0) -> str:
    """Draw a picture as SVG; ``number`` tells its names from the names of other pictures."""
    from matplotlib import rc_context  # noqa: PLC0415  # matplotlib is loaded by now

    figure: Any = picture.draw().get_figure(root=True)
    written = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": f"{number}"}):
        figure.savefig(written, format="svg", metadata={"Date": None})
    return _embedded(written.getvalue(), escape(escaped(picture.title)))


def _embedded(text: str, title: str) -> str:
    """Leave out of an SVG all that a page has, and shorten it."""
    text = _join_dots(_BEFORE.sub("", text))
    text = _TAG.sub(lambda tag: _shortened(tag[0]), text)
    return _SIZE.sub(r' role="img" style="--width: \1pt"', text, count=1).replace(
        ">", f"><title>{title}</title>", 1
    )


def _shortened(tag: str) -> str:
    tag = _FINE.sub(r"\1", _FONT.sub("", _GROUP.sub(r"\1", tag)))
    for color, variable in _VARIABLES.items():
        tag = tag.replace(color, variable)
    return _SPACE.sub(" ", tag)


def _join_dots(text: str) -> str:
    """Write many round marks as one path: its strokes without length have round ends."""
    radii = {found[1]: float(found[2]) for found in _ROUND.finditer(text)}

    def join(found: re.Match[str]) -> str:
        if found[1] not in radii:
            return found[0]
        places = " ".join(f"M{float(x):.1f} {float(y):.1f}h0" for x, y in _PLACE.findall(found[0]))
        style = f"fill: none; stroke: {found[2]}{found[3].replace('fill', 'stroke')}"
        width = 2.0 * radii[found[1]]
        return f'<path d="{places}" style="{style}; stroke-width: {width}; stroke-linecap: round"/>'

    return _DOTS.sub(join, text)
