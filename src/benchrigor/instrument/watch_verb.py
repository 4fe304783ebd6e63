"""``benchrigor watch``: how nodes are."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchrigor.cli.exits import ExitCode
from benchrigor.cli.options import json_option, note_json, wants_json
from benchrigor.cli.output import say
from benchrigor.cli.verb_help import Verb
from benchrigor.instrument.data.node import NodeCondition, NodeView
from benchrigor.instrument.node_options import token_option
from benchrigor.instrument.node_report import COLUMNS, node_notes, node_rows
from benchrigor.instrument.nodes.hub import Hub
from benchrigor.model import codec
from benchrigor.model.text import many

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

_WORDS = {"node", "is"}
_STYLES = {NodeCondition.WELL: "green", NodeCondition.UNASKED: "dim"}


@click.command(cls=Verb)
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@token_option
@click.option(
    "--authority",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Trust these certificates, PEM.  [default: those of the system]",
)
@click.option("--once", is_flag=True, help="Ask once, and end.")
@json_option
@click.pass_context
def watch(
    ctx: click.Context,
    *,
    nodes: Sequence[str],
    token: str | None,
    authority: Path | None,
    once: bool,
) -> None:
    """Show the state of nodes that run an agent.

    NODE is an address such as 10.0.0.7:9560. The verb asks all nodes once a second until it is
    interrupted. If a node does not answer, its last answer stays, with its age. --json prints a
    line per second. With --once the exit code is 0 if all nodes answer and no alarm stands, 4 if
    none answers, and 3 otherwise.

    \b
    Examples:
      benchrigor watch 127.0.0.1:9560
      benchrigor watch --once --json 10.0.0.7:9560 10.0.0.8:9560
    """  # noqa: D301  # click wants the backspace itself
    with Hub(nodes, token=token, authority=authority) as hub:
        views = hub.pull()
        if once:
            _print(views)
            ctx.exit(_exit_code(views))
        if wants_json() or not sys.stdout.isatty():
            while True:
                _print(views)
                views = _after_a_second(hub)
        _watch(hub, views)


def _watch(hub: Hub, views: Sequence[NodeView]) -> None:
    """Draw the table anew once a second."""
    from rich.live import Live  # noqa: PLC0415  # for people only

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the cursor is shown again
    with Live(auto_refresh=False) as live:
        while True:
            live.update(screen(views, live.console.height), refresh=True)
            views = _after_a_second(hub)


def _after_a_second(hub: Hub) -> tuple[NodeView, ...]:
    """Wait until the next second begins, and ask again."""
    time.sleep(1.0 - time.monotonic() % 1.0)
    return hub.pull()


def _print(views: Sequence[NodeView]) -> None:
    if wants_json():
        document = {**codec.versions(), "nodes": codec.encode(views)}
        say(json.dumps(document, allow_nan=False))
        note_json()
        return
    from rich.console import Console  # noqa: PLC0415  # for people only
    from rich.text import Text  # noqa: PLC0415  # likewise

    console = Console()
    console.print(_table(views))
    for note in node_notes(views):
        console.print(Text(note))


def screen(views: Sequence[NodeView], height: int) -> Group:
    """Return the problems, and below them the table: a low terminal cuts off its end."""
    from rich.console import Group  # noqa: PLC0415  # for people only
    from rich.text import Text  # noqa: PLC0415  # likewise

    ordered = sorted(views, key=_is_calm)
    notes, most = node_notes(ordered), height // 4  # they may take two lines, and more
    if len(notes) > most:
        notes[most:] = [f"and {many(len(notes) - most, 'more note')}"]
    return Group(*map(Text, notes), _table(ordered))


def _table(views: Sequence[NodeView]) -> Table:
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415  # for people only
    from rich.table import Table  # noqa: PLC0415  # likewise
    from rich.text import Text  # noqa: PLC0415  # likewise

    table = Table(box=SIMPLE_HEAD, padding=0)
    for name in COLUMNS:
        table.add_column(
            name,
            justify="left" if name in _WORDS else "right",
            no_wrap=name != "node",  # else a long name would take the width of the figures
            overflow="fold" if name == "node" else "ellipsis",
        )
    for view, (node, condition, *figures) in zip(views, node_rows(views), strict=True):
        style = _STYLES.get(view.condition, "red")
        table.add_row(Text(node), Text(condition, style=style), *figures)
    return table


def _is_calm(view: NodeView) -> bool:
    """Return whether a node is well and has no alarm."""
    return view.condition is NodeCondition.WELL and not (view.report and view.report.alarms)


def _exit_code(views: Sequence[NodeView]) -> ExitCode:
    if all(view.condition is not NodeCondition.WELL for view in views):
        return ExitCode.NOTHING_MEASURED
    return ExitCode.RESULT if all(map(_is_calm, views)) else ExitCode.TARGET_MISSED
