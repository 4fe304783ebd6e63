"""``benchrigor agent`` and ``watch``: serve the state of this machine, and show that of nodes."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchrigor.cli.exits import ExitCode
from benchrigor.cli.options import json_option, note_json, wants_json
from benchrigor.cli.output import print_result, remark, say
from benchrigor.cli.verb_help import Verb
from benchrigor.files import readable
from benchrigor.instrument.agent import Agent
from benchrigor.instrument.data import NodeCondition, NodeView
from benchrigor.instrument.hub import Hub
from benchrigor.machine import Alarms, read_thresholds
from benchrigor.model import codec
from benchrigor.model.codec import is_there
from benchrigor.safe_text import escaped
from benchrigor.storage import data_folder
from benchrigor.units import many, shortened, show_duration, show_value

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table


TOKEN = "BENCHRIGOR_TOKEN"  # noqa: S105  # the name of a variable


def _token(_ctx: click.Context, _option: click.Parameter, path: Path | None) -> str | None:
    if path is None:
        return os.environ.get(TOKEN) or None
    try:
        return readable(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        raise click.BadParameter(f"{path} cannot be read: {error.strerror}") from error


token_option = click.option(
    "--token-file",
    "token",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    callback=_token,
    metavar="FILE",
    help=f"The token is in this file.  [default: the environment variable {TOKEN}]",
)


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(cls=Verb)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=9560,
    show_default=True,
    help="Listen here; 0 for any that is free.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Listen on this address; beyond this machine a token is needed.",
)
@token_option
@click.option(
    "--tls",
    type=_FILE,
    nargs=2,
    metavar="CERTIFICATE KEY",
    help="Serve HTTPS with this certificate and its key, both PEM.",
)
@click.option(
    "--thresholds", type=_FILE, metavar="FILE", help="When to raise alarms, as TOML, at first."
)
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep thresholds that others put here.  [default: in the user's data folder, by port]",
)
@json_option
def agent(
    *,
    port: int,
    host: str,
    token: str | None,
    tls: tuple[Path, Path] | None,
    thresholds: Path | None,
    config: Path | None,
) -> None:
    """Serve this machine's state to those who ask for it.

    It answers /capabilities, /status, /health, /probes, /alarms, /config and, for Prometheus,
    /metrics, until it is interrupted. Nothing is sent unasked, and nothing is kept but thresholds.
    --json prints where it serves as JSON.

    \b
    Examples:
      benchrigor agent
      benchrigor agent --host 0.0.0.0 --token-file token --tls cert.pem key.pem
      curl http://127.0.0.1:9560/status
    """  # noqa: D301  # click wants the backspace itself
    if config is None and port:
        config = _kept_at(port)
    ended = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with ExitStack() as stack:
        stack.callback(signal.signal, signal.SIGTERM, before)
        served = stack.enter_context(
            Agent(
                port,
                host=host,
                token=token,
                tls=tls or None,
                config=config,
                alarms=Alarms(read_thresholds(thresholds)),
            )
        )
        if thresholds is not None and config is not None and is_there(config):
            said = f"thresholds kept in {config} are in force, and {thresholds} is not read"
            remark(said)
        print_result(
            lambda: f"serving {served.url} until it is interrupted (Ctrl-C)",
            url=served.url,
            node=served.service.node,
        )
        while not ended.wait(3600.0):  # a wait without an end cannot be interrupted everywhere
            pass


def _kept_at(port: int) -> Path:
    return data_folder() / f"agent-{port}.json"


COLUMNS = ("node", "is", "age", "busy", "load", "free", "pressure", "clock", "alarms")
_PRESSURE = ("pressure cpu some", "pressure io some", "pressure memory some")
_LONGEST = 200  # characters of a note
_WIDEST = 9  # characters of a figure: no answer of a node makes the others unreadable
_MOST_ALARMS = 5  # shown per node


def node_rows(views: Iterable[NodeView]) -> list[tuple[str, ...]]:
    """Return a row of `COLUMNS` per node: its condition now, and its last report.

    Parameters
    ----------
    views
        As `benchrigor.instrument.Hub.pull` returns them.

    Examples
    --------
    >>> view = NodeView(address="http://a:9560", condition=NodeCondition.SILENT, reason="no answer")
    >>> node_rows([view])
    [('a:9560', 'silent', '', '', '', '', '', '', '')]
    >>> node_notes([view])
    ['a:9560: no answer']
    """
    return [
        (_name(view), str(view.condition), *(shortened(cell, _WIDEST) for cell in _figures(view)))
        for view in views
    ]


def node_notes(views: Iterable[NodeView]) -> list[str]:
    """Return lines for failed answers, and for the first alarms of all nodes."""
    return [
        f"{_name(view)}: {shortened(note, _LONGEST)}"
        for view in views
        for note in (
            view.reason if view.condition is not NodeCondition.WELL else "",
            *_alarms(view),
        )
        if note
    ]


def _alarms(view: NodeView) -> list[str]:
    alarms = view.report.alarms if view.report else ()
    more = len(alarms) - _MOST_ALARMS
    first = [str(alarm) for alarm in alarms[:_MOST_ALARMS]]
    return [*first, f"and {many(more, 'more alarm')}"] if more > 0 else first


def _figures(view: NodeView) -> tuple[str, ...]:
    report = view.report
    status = report.status.samples if report and report.status else ()
    known = {item.name: item.value for item in status if isinstance(item.value, int | float)}
    pressures = [known[name] for name in _PRESSURE if name in known]
    return (
        "" if view.age_s is None else show_duration(view.age_s),
        f"{known['cpu busy']:.0f}%" if "cpu busy" in known else "",
        f"{known['load 1 min']:.1f}" if "load 1 min" in known else "",
        show_value(known["memory available"], "B") if "memory available" in known else "",
        f"{max(pressures):.0f}%" if pressures else "",
        _clock(view),
        str(len(report.alarms) or "") if report else "",
    )


def _name(view: NodeView) -> str:
    return escaped(view.address.partition("://")[2])


def _clock(view: NodeView) -> str:
    """Show how far the node's clock is ahead, or the error from the round trip if it is larger."""
    if view.offset_s is None or view.offset_error_s is None:
        return ""
    if abs(view.offset_s) <= view.offset_error_s:
        return f"< {show_value(view.offset_error_s, 's')}"
    return f"{'+' if view.offset_s > 0.0 else '-'}{show_duration(abs(view.offset_s))}"


_WORDS = {"node", "is"}
_STYLES = {NodeCondition.WELL: "green", NodeCondition.UNASKED: "dim"}


@click.command(cls=Verb)
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@token_option
@click.option(
    "--authority",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Trust these certificates, PEM.  [default: the system's]",
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
    """Draw the table again once a second."""
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

    console = Console(markup=False, highlight=False, emoji=False)
    console.print(_table(views), *node_notes(views), sep="\n")


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
