"""Control characters in names, units, paths and output of commands: escaped where they are shown.

A terminal obeys them, and a line break in a name would look like a line of the report.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

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


HIDDEN = "__hidden__"  # needs no quotes in a shell, so that a command reads the same with it

# The end of a name decides: --token names a secret, --max-tokens and --token-file do not.
_KEY = r"(?:api|access|account|auth|encryption|license|master|private|secret|session|signing)"
_ENDS = rf"passwords?|passwd|passphrase|secrets?|token|credentials?|pwd|{_KEY}[-_.]?key"
_WORD = r"(?:[\w.-]{0,80}[-_.])?pass"  # not bypass
_VARIABLE = r"(?-i:[A-Z0-9_]*_KEY(?:_BASE)?)"  # as in the environment: STRIPE_KEY
_NAME = rf"(?!-*(?:no|ask|first|single|two)[-_])(?:[\w.-]{{0,80}}?(?:{_ENDS})|{_WORD})"
_COOKIES = r"(?:[\w-]{1,80}-)?(?:authori[sz]ation|cookie)"
_HEADER = rf"(?:{_COOKIES}|[\w-]{{1,80}}-(?:key|token|secret|auth)|apikey)"
_SECRET_NAME = re.compile(rf"{_NAME}|{_VARIABLE}|{_HEADER}", re.IGNORECASE)

_VALUE = r"""(?P<value>(?:"(?:\\.|[^"\\])*"?|'[^']*'?)+|[^\s&;|,'")\]}>`]+)"""
_SCHEMED = rf"{HIDDEN}|(?:bearer|basic|token)\s+[^\s'\"]+|digest\s[^\n]+"
# No secret, regardless of its name: a small number or range, a version, a word for a choice.
_PLAIN = r"-?\d{1,3}(?:[-,.:]\d{1,3})*|v\d+|none|null|auto|basic|digest|true|false|yes|no|on|off"
_IS_PLAIN = re.compile(rf"(?:{_PLAIN}|inline|default|stdin)[:),;]*", re.IGNORECASE)
# After name= in a program: a call, an item, an attribute, the same name; or another =.
_IS_CODE = re.compile(r"=|[a-z_]+(?:\.[a-zA-Z_]+)*[(\[]|(?:self|cls|args|options|config|os)\.")
# After an option, another one, as in --token -v; or a word of a sentence, as in --token is missing.
_OPTION = r"-|--|-[a-zA-Z]\d{0,3}|--?[a-z][a-z-]*\d?(?:=.*)?"
_VERBS = r"(?:is|are|was|must|may|can|cannot|could|should|needs|requires|takes|has|and|or|not|to)\b"
_NAMING = r"(?:git\+)?(?:ssh|sftp|rsync|s3|git)"  # schemes in which a name stands before the @

_IN_TEXT = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # A name without a password is a secret for some, as at GitHub, and for others never one.
        rf"(?P<before>\b(?!{_NAMING}://[^\s/:@%]*@)[a-z][a-z0-9+.-]{{0,30}}://)"
        r"(?P<value>[^\s/?#'\"]+)(?=@)",
        rf"(?P<before>(?<=(?P<quote>['\"]))--?{_NAME}=)"
        r"(?P<value>[^'\"\n]+)(?=(?P=quote))",
        rf"(?P<before>(?<![\w.-])-{{0,2}}(?:{_NAME}|{_VARIABLE})(?:=|\s*=\s*(?=['\"]))|[?&;]key=)"
        rf"{_VALUE}",
        rf"(?P<before>(?<![\w.-])--?{_NAME}(?:[ \t]+|['\"]+,\s*))"
        rf"(?!{_VERBS}|(?:{_OPTION})(?:\s|['\"]|$)){_VALUE}",
        rf"(?P<before>(?:(?<![\w.-])|(?<=-H)){_COOKIES}:\s*)(?P<value>{_SCHEMED}|[^\n'\"]+)",
        rf"(?P<before>(?:(?<![\w.-])|(?<=-H)){_HEADER}:\s*)(?P<value>{_SCHEMED}|[^\s,;'\"]+)",
    )
)
# What hides all the rest of an argument.
_IN_ARGUMENT = re.compile(
    rf"(?P<before>-{{0,2}}(?:{_NAME}|{_VARIABLE})=|(?:-H|--[\w-]+=)?\s*{_HEADER}\s*:\s*)(?P<value>.+)",
    re.IGNORECASE | re.DOTALL,
)
_BEFORE_SECRET = re.compile(rf"--?{_NAME}", re.IGNORECASE)
_IS_OPTION = re.compile(_OPTION, re.DOTALL)
_LITERAL = re.compile(r""""(?:\\.|[^"\\])*"|'[^']*'""", re.DOTALL)
_FEWEST_BARE = 3  # characters of a secret that is looked for by itself
# A text without any of these holds no secret, which one quick look shows for most sentences.
_HINTS = ("pass", "pwd", "secret", "token", "credential", "key", "auth", "cookie", "://")


class Veiled(str):
    """An argument or a command with a secret that nothing marks; ``shown`` stands for it."""

    __slots__ = ("shown",)
    shown: str

    def __new__(cls, text: str, shown: str = HIDDEN) -> Veiled:
        """Veil a text."""
        made = super().__new__(cls, text)
        made.shown = shown
        return made


def hide_in_text(text: str) -> str:
    """Return a text with its secrets hidden, and all else as it is.

    Examples
    --------
    >>> hide_in_text("raise ValueError('GET https://me:hunter2@host/?token=hunter2 failed')")
    "raise ValueError('GET https://__hidden__@host/?token=__hidden__ failed')"
    """
    text = getattr(text, "shown", text)
    lowered = text.lower()
    return _hidden_text(text) if any(hint in lowered for hint in _HINTS) else text


def hide_in_words(words: Iterable[str]) -> list[str]:
    """Return the arguments of a command with their secrets hidden."""
    before, hidden = "", []
    for word in words:
        hidden.append(_hidden_word(before, getattr(word, "shown", word)))
        before = word
    return hidden


def hide_values(text: str, words: Sequence[str]) -> str:
    """Return the text of a command with its secrets hidden, also bare secrets of its arguments.

    Examples
    --------
    >>> hide_values("hunter2 is wrong", ["login", "--password", "hunter2"])
    '__hidden__ is wrong'
    """
    for word, hidden in zip(words, hide_in_words(words), strict=True):
        parts = "(.+?)".join(map(re.escape, hidden.split(HIDDEN)))
        found = re.fullmatch(parts, word, re.DOTALL) if word != hidden else None
        for value in found.groups() if found else ():
            for secret in (value, re.split(r"[\s:]", value)[-1]):  # of a user or scheme, its end
                if len(secret) >= _FEWEST_BARE:
                    text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", HIDDEN, text)
    return hide_in_text(text)


def names_secret(name: str) -> bool:
    """Return whether the value of this name is a secret."""
    return _SECRET_NAME.fullmatch(name) is not None


def hide_value(name: str, value: str) -> str:
    """Return a value with this name, hidden if it is a secret."""
    return HIDDEN if names_secret(name) and not _IS_PLAIN.fullmatch(value) else value


def _hidden_word(before: str, word: str) -> str:
    """Hide the secrets in one argument, which may be a line of a shell."""
    follows = _BEFORE_SECRET.fullmatch(before) and not _IS_OPTION.fullmatch(word)
    if follows and not _IS_PLAIN.fullmatch(word):
        return HIDDEN
    is_of_a_shell = re.fullmatch(r"-[a-z]*c", before)
    found = None if is_of_a_shell else _IN_ARGUMENT.fullmatch(word)
    return _hidden_value(found) if found else hide_in_text(word)


@lru_cache(maxsize=256)
def _hidden_text(text: str) -> str:
    for pattern in _IN_TEXT:
        text = pattern.sub(_hidden_value, text)
    return text


def _hidden_value(found: re.Match[str]) -> str:
    """Return the text of a match with its value hidden, unless it can be no secret."""
    name, value = found["before"], found["value"]
    is_in_url = found.string[found.start() - 1 : found.start()] in {"?", "&", ";"}
    is_code = not is_in_url and re.fullmatch("[a-z_]+=", name) and _IS_CODE.match(value)
    if is_code or name == f"{value.rstrip('),;')}=" or _IS_PLAIN.fullmatch(value):
        return found[0]
    quote = value[0] if _LITERAL.fullmatch(value) else ""
    return f"{name}{quote}{HIDDEN}{quote}"


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
