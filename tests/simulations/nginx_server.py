"""Debian's nginx on a port of its own, with a known capacity: so many requests per second."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The key must not be empty, or there is no limit; a burst without "nodelay" waits in a queue.
_CONFIGURATION = """
worker_processes 1;
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_requests 1000000;
    {zone}
    server {{
        listen 127.0.0.1:{port} backlog=1024;
        location / {{ {limit} root {folder}; try_files /ok =404; }}
    }}
}}
"""
_START_S = 10.0


def where() -> str | None:
    """Return the program; None where there is none."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


@contextmanager
def running(folder: Path, rate: str = "") -> Iterator[str]:
    """Run it in a folder, with a rate such as 200r/s, and give its address."""
    program = where()
    assert program is not None
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "ok").write_text("ok")
    folder.chmod(0o755)  # its worker is another user
    zone = f"limit_req_zone $server_addr zone=all:1m rate={rate};" if rate else ""
    limit = "limit_req zone=all burst=4000;" if rate else ""
    text = _CONFIGURATION.format(folder=folder, port=port, zone=zone, limit=limit)
    (folder / "nginx.conf").write_text(text)
    command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            _wait_for(port)
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.terminate()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"nginx did not start within {_START_S:g} s")
