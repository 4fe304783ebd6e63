"""Secrets in what records and messages hold: hidden by the names and places of values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchrigor.secret_texts import HIDDEN, hide_in_text, hide_in_words, names_secret

_PATTERNS = ("picks", "unit_picks", "read")  # the places of readings in an output


def hide_secrets(item: Any) -> Any:
    """Return arguments, headers, environment variables or what holds them with secrets hidden.

    Examples
    --------
    >>> hide_secrets(["curl", "-H", "Authorization: Bearer c2VjcmV0", "https://me:pw@host/"])
    ['curl', '-H', 'Authorization: __hidden__', 'https://__hidden__@host/']
    >>> hide_secrets({"env": {"DB_PASSWORD": "hunter2", "LANG": "C"}})
    {'env': {'DB_PASSWORD': '__hidden__', 'LANG': 'C'}}
    >>> hide_secrets("mysqldump --password=hunter2 shop")
    'mysqldump --password=__hidden__ shop'
    """
    if isinstance(item, str):
        return hide_in_text(item)
    if isinstance(item, Mapping):
        return {
            key: value
            if key in _PATTERNS
            else HIDDEN
            if isinstance(value, str | bytes | int) and names_secret(str(key))
            else hide_secrets(value)
            for key, value in item.items()
        }
    if isinstance(item, list | tuple):
        if all(isinstance(word, str) for word in item):
            return type(item)(hide_in_words(item))
        return type(item)(map(hide_secrets, item))
    return item


def holds_hidden(item: Any) -> bool:
    """Return whether a secret was hidden in the subject of a record."""
    if isinstance(item, Mapping):
        return any(map(holds_hidden, item.values()))
    if isinstance(item, str):
        return HIDDEN in item
    return isinstance(item, list | tuple) and any(map(holds_hidden, item))
