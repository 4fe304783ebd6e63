"""Pairs of connected sockets."""

from __future__ import annotations

import socket
import ssl
import threading


def context(protocol: int) -> ssl.SSLContext:
    made = ssl.SSLContext(protocol)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers("AECDH-AES128-SHA:@SECLEVEL=0")
    return made


def connected(*, encrypted: bool = False) -> tuple[socket.socket, socket.socket]:
    """Return two sockets that are connected, if wanted with encryption; it needs no certificate."""
    ours, theirs = socket.socketpair()
    if not encrypted:
        return ours, theirs
    made: list[ssl.SSLSocket] = []

    def answer() -> None:
        server = context(ssl.PROTOCOL_TLS_SERVER)
        made.append(server.wrap_socket(theirs, server_side=True))

    thread = threading.Thread(target=answer)
    thread.start()
    client = context(ssl.PROTOCOL_TLS_CLIENT).wrap_socket(ours)
    thread.join()
    return client, made[0]
