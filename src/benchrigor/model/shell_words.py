"""The words of a command that is given as one text, read as a POSIX shell reads them."""

from __future__ import annotations

import re

from benchrigor.errors import InvalidInput
from benchrigor.safe_text import hide_secrets

_PIECE = re.compile(
    r"""\\\n                                     # the line goes on in the next one
    | \\(?P<escaped>.)
    | '(?P<single>[^']*)'
    | "(?P<double>(?:\\.|[^"\\])*)"
    | (?P<shell>&&|\|\||[&|;<>`]|\$\(|\n(?=\s*\S))
    | (?P<blank>\s+)
    | (?P<plain>[^\\'"\s&|;<>`$]+|\$)
    | (?P<open>.)                                # what none of these ends""",
    re.VERBOSE | re.DOTALL,
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_IN_DOUBLE = re.compile(r'\\(?:\n|([$`"\\]))|(\$\(|`)')  # which a shell reads in double quotes, too


def words_of(
    command: str, name: str = "", *, by_shell: bool = False, instead: str = "give --shell"
) -> list[str]:
    """Split a command into its program and arguments; ``by_shell`` has sh read it instead.

    InvalidInput if a quotation does not end, or for what only a shell carries out: the program
    would get it as an argument. The message has the ``name`` of its purpose, and how to
    have a shell read it ``instead``.
    """
    if by_shell:
        return ["sh", "-c", command]
    name = name or f"{hide_secrets(command)!r} cannot be read as a command"
    words: list[str] = []
    word, is_begun = "", False  # a word may be empty: ''
    for piece in _PIECE.finditer(command.lstrip()):
        kind = piece.lastgroup
        if found := _only_for_a_shell(piece, is_first=not (words or is_begun)):
            hint = f", write env {found}..." if found.endswith("=") else ""
            raise InvalidInput(
                f"{name}: {found} is for a shell, and no shell reads it; {instead}{hint}, or quote "
                "it if it is part of an argument"
            )
        if kind == "open":
            missing = "escaped character" if piece["open"] == "\\" else "closing quotation"
            raise InvalidInput(f"{name}: No {missing}")
        if kind == "blank":
            words += [word] * is_begun
            word, is_begun = "", False
        elif kind is not None:
            held = piece[kind]
            word += _IN_DOUBLE.sub(lambda part: part[1] or "", held) if kind == "double" else held
            is_begun = True
    return words + [word] * is_begun


def _only_for_a_shell(piece: re.Match[str], *, is_first: bool) -> str:
    """Return the words that only a shell carries out, or an empty text."""
    inner = (part[2] for part in _IN_DOUBLE.finditer(piece["double"] or ""))
    found = piece["shell"] or next(filter(None, inner), "")
    variable = _ASSIGNMENT.match(piece["plain"] or "") if is_first else None
    if variable is not None:
        return variable[0]
    return "a line break" if found == "\n" else found
