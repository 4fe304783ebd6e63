"""``benchrigor agent``: serve the state of this machine."""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack
from pathlib import Path

import click

from benchrigor.cli.options import json_option
from benchrigor.cli.output import print_result, remark
from benchrigor.cli.verb_help import Verb
from benchrigor.instrument.agent import Agent
from benchrigor.instrument.node_options import token_option
from benchrigor.machine import Alarms, read_thresholds
from benchrigor.model.codec import is_there
from benchrigor.storage import data_folder

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
