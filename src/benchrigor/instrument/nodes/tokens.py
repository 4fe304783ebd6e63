"""What an agent and its hubs share, so that only they are answered."""

from __future__ import annotations

from benchrigor.model.checks import wrong_values

SHORTEST_TOKEN = 16


def wrong_token(token: object) -> list[str]:
    """Return the problems with a token, without showing it; None is none, which is not wrong."""
    fits = token is None or (
        isinstance(token, str)
        and len(token) >= SHORTEST_TOKEN
        and token.isascii()
        and token.isprintable()
        and " " not in token
    )
    expected = f"at least {SHORTEST_TOKEN} printable characters of ASCII without spaces"
    return wrong_values([("token", "(not shown)", fits, expected)])
