"""Secrets in commands and headers: which values they are, and what stands for them in a record."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

HIDDEN = "__hidden__"  # needs no quotes in a shell, so that a command reads the same with it

# A name is told by its end: --token is one of a secret, --max-tokens and --token-file are not.
_LONG = (
    r"passwords?|passwd|passphrase|secrets?|token|credentials?|pwd|signature|jwt"
    r"|(?:api|access|private|secret|auth|account|encryption|signing|shared|subscription)[-_.]?key"
    r"|sess(?:ion)?[-_]?id"
    r"|(?:admin|cert|db|ftp|https?|key|ldap|login|my|pg|proxy|redis|root|smtp|sql|store|sudo|user)pass"
)
_SHORT = r"pass|pw|auth|authorization|cookie|bearer|sig|sid|session|pin|otp|pat"  # whole words only
_NOT_NAMED = r"(?![-_]*(?:no|ask|single|first|second|two|multi)[-_])"
_NAME = rf"{_NOT_NAMED}(?:[\w.-]{{0,80}}?(?:{_LONG})|(?:[\w.-]{{0,80}}[-_.])?(?:{_SHORT}))"
_PART = r"token|secret|auth|session(?:-id)?|signature|credentials?"  # also a module's name
_HEADER = rf"(?:[\w-]{{1,80}}-(?:key|{_PART})|(?:[\w-]{{1,80}}-)?(?:authori[sz]ation|authentication"
_HEADER += r"|apikey|cookie|passw(?:or)?d|passphrase))"
_SCHEME = r"(?:(?:bearer|basic|digest|token)\s+)?"
_QUOTED = r""""(?:\\.|[^"\\])*"?|'[^']*'?"""
# As environment variables are written: SECRET_KEY_BASE, STRIPE_KEY, DBPASS; not BYPASS, nor PASS.
_VARIABLE = r"(?-i:[A-Z0-9_]*_KEY(?:_BASE)?|(?!BYPASS|COMPASS)[A-Z0-9_]+PASS)"
# No secret, whatever its name: a small number or a range, a version, a word for a choice.
_PLAIN = r"\d{1,3}(?:[-,.:]\d{1,3})*|v\d+|none|auto|basic|digest|ntlm|true|false|yes|no|on|off"
_PLAIN += r"|inline|default|stdin"
_VALUE = rf"""(?:{_QUOTED}|{_SCHEME}[^\s&;,'"\])}}]+)"""

_SECRET_NAME = re.compile(rf"{_NAME}|{_HEADER}|{_VARIABLE}", re.IGNORECASE)
_IS_PLAIN = re.compile(rf"-?(?:{_PLAIN})[:),;]*", re.IGNORECASE)
# An expression of a program, behind name=: a call, an item, an attribute of what holds settings,
# or with another = a comparison.
_IS_CODE = re.compile(
    r"=|[a-z_]+(?:\.[a-zA-Z_]+)*[(\[]|(?:self|cls|args|options|config|os)\.[a-z_.]+$"
)
_NAMED_IN_CODE = re.compile(r"[a-z_]+=")
_NAMING = r"(?:git\+)?(?:ssh|sftp|rsync|s3|git)"  # schemes in which a name stands before the @
# What hides a part of a text: user info of a URL, name=value, "name": "value",
# name = "value", Header: value.
_EMBEDDED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # A name without a password is a secret for some, as at GitHub, and for others never one.
        rf"(?P<before>\b(?!{_NAMING}://[^\s/:@%]*@)[a-z][a-z0-9+.-]{{0,30}}://)[^\s/?#'\"]+(?=@)",
        r"(?P<before>(?<![\w/:.-])//)[^\s/?#'\":@]+:[^\s/?#'\"@]+(?=@)",
        # A password with a slash or a question mark; what looks like a port is none.
        r"(?P<before>\b[a-z][a-z0-9+.-]{0,30}://)[^\s/?#'\":@\[]*:"
        r"(?!\d{1,5}(?:[,/?#]|$)|[{$<])(?:(?!://)[^\s'\"]){1,200}(?=@)",
        r"(?P<before>[?&;]key=)[^\s&;#'\"]+",
        rf"(?P<before>(?<![\w.-])-{{0,2}}(?:{_NAME}|{_VARIABLE})=){_VALUE}",
        # A URL within another.
        r"(?P<before>%3A%2F%2F)(?:(?!%2F)[^\s&;'\"]){1,200}(?=%40)",
        rf"(?P<before>(?:%3F|%26|%3B)(?:{_NAME})%3D)(?:(?!%26|%3B)[^\s&;'\"])+",
        rf"(?P<before>(?<![\w.-])(?P<quote>[\"']){_NAME}(?P=quote)\s*[:=]\s*)"
        rf"(?:\[[^\]]*\]?|\{{[^}}]*\}}?|{_VALUE})",
        rf"(?P<before><{_NAME}>)[^<]+",
        rf"(?P<before>(?<![\w.-]){_NAME}\s*[:=]\s*)(?:{_QUOTED})",
        rf"(?P<before>(?<![\w.-])(?:{_HEADER}|{_PART}):\s+)[^\n'\"]+",
        r"(?P<before>(?<![\w.-])pass:)[^\s'\"]+",
    )
)
# A name that is percent-encoded in part.
_ENCODED = re.compile(r"(?<![\w.%-])(?P<before>(?P<name>[\w.-]{0,80}%[\w.%-]{1,80})=)[^\s&;#'\"]+")
# A user and a password; numbers, or twice the same, are a user and a group.
_USER = r"(?!\d+:\d+$|(?P<group>[\w.-]+):(?P=group)$)[\w.@%-]+:.+"
# What hides all the rest of an argument: --name=value, Header:value, -H..., -uuser:password.
_ARGUMENTS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"(?P<before>-{{0,2}}(?:{_NAME}|{_VARIABLE})=).+",
        rf"(?P<before>(?:-H|--[\w-]+=)?\s*(?:{_HEADER}\s*:|(?:{_PART})\s*:\s)\s*).+",
        rf"(?P<before>-u|--(?:proxy-)?user=){_USER}",
    )
)
# An argument after which the next one is a secret, or is one if it names a user and a password.
_BEFORE_SECRET = re.compile(rf"-{{1,2}}{_NAME}|{_HEADER}:", re.IGNORECASE)
_BEFORE_USER = re.compile(r"-[a-zA-Z]*[uU]|--(?:proxy-)?user")  # with other letters, as of curl
_BEFORE_COOKIE = re.compile(r"-[a-zA-Z]*b")

# After a secret's option, still an option: -v, -j4, -name, --verbose, --level=3, --.
_OPTION = re.compile(r"-?|--|-[a-zA-Z]\d{0,3}|--?[a-z][a-z-]*\d?(?:=.*)?", re.DOTALL)
# Programs of which -p with a word right behind it is a password.
_WITH_P = re.compile(r"(?:.*/)?(?:(?:mysql|mariadb)[\w-]*|sshpass|7z[ar]?)")

# A separator of commands ends a word, too.
_SHELL_WORD = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\;|])+""", re.DOTALL)
_PATTERNS = ("picks", "unit_picks", "read")  # say where readings stand in an output


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
        return _hide_in_text(str(item))
    if isinstance(item, Mapping):
        return {
            key: value
            if key in _PATTERNS
            else HIDDEN
            if isinstance(value, str | bytes | int) and _SECRET_NAME.fullmatch(str(key))
            else hide_secrets(value)
            for key, value in item.items()
        }
    if isinstance(item, list | tuple):
        if all(isinstance(word, str) for word in item):
            return type(item)(map(_Words().hide, item))
        return type(item)(map(hide_secrets, item))
    return item


def holds_hidden(item: Any) -> bool:
    """Return whether a secret was hidden in what a record says of its subject."""
    if isinstance(item, Mapping):
        return any(map(holds_hidden, item.values()))
    if isinstance(item, str):
        return HIDDEN in item
    return isinstance(item, list | tuple) and any(map(holds_hidden, item))


class _Words:
    """The arguments of a command, one after the other."""

    def __init__(self) -> None:
        self._before = ""
        self._program = ""  # the last one of `_WITH_P`

    def hide(self, word: str) -> str:
        """Hide what is secret in the next argument, which may be a line of a shell."""
        before, self._before = self._before, word
        if _WITH_P.fullmatch(word):
            self._program = word
        is_sshpass = self._program.endswith("sshpass")
        if self._program and (word.startswith("-p") or (is_sshpass and before == "-p")):
            if is_sshpass and word != "-p":  # what follows has options of its own
                self._program = ""
            if word != "-p":
                return f"-p{HIDDEN}" if word.startswith("-p") else HIDDEN
        return _hide_in_word(before, word)


def _hide_in_word(before: str, word: str) -> str:
    """Hide what is secret in one argument."""
    follows_user = _BEFORE_USER.fullmatch(before) and re.fullmatch(_USER, word, re.DOTALL)
    follows_cookie = _BEFORE_COOKIE.fullmatch(before) and "=" in word
    follows_secret = _BEFORE_SECRET.fullmatch(before) and not _OPTION.fullmatch(word)
    if (follows_user or follows_cookie or follows_secret) and not _IS_PLAIN.fullmatch(word):
        return HIDDEN
    if before != "-c":
        for pattern in _ARGUMENTS:
            if found := pattern.fullmatch(word):
                return _hidden(found)
    return _hide_in_text(word) if re.search(r"[\s'\"\\]", word) else _hide_embedded(word)


def _hide_embedded(text: str) -> str:
    for pattern in _EMBEDDED:
        text = pattern.sub(_hidden, text)
    return _ENCODED.sub(_hidden_by_decoded_name, text)


def _hidden_by_decoded_name(found: re.Match[str]) -> str:
    name = unquote(unquote(found["name"]))
    return _hidden(found) if name == "key" or _SECRET_NAME.fullmatch(name) else found[0]


def _hidden(found: re.Match[str]) -> str:
    """Return the text of a match with its value hidden, unless it can be no secret."""
    name = found["before"]
    value = found[0].removeprefix(name)
    is_in_url = found.string[found.start() - 1 : found.start()] in {"?", "&", ";"}
    is_code = not is_in_url and _NAMED_IN_CODE.fullmatch(name) and _IS_CODE.match(value)
    is_itself = name == f"{value.rstrip('),;')}="  # as password=password in a call
    return found[0] if is_code or is_itself or _IS_PLAIN.fullmatch(value) else name + HIDDEN


@lru_cache(maxsize=256)
def _hide_in_text(text: str) -> str:
    """Hide what is secret in a text, such as a line of a shell, quotes and spaces as they were."""
    words = _Words()

    def hide(found: re.Match[str]) -> str:
        try:
            (word,) = shlex.split(found[0])
        except ValueError:  # quotes that are never closed
            word = found[0]
        hidden = word if word == text else words.hide(word)
        return found[0] if hidden == word else shlex.quote(hidden)

    # Words first: within the quotes of a shell, others would seem to begin and end.
    return _hide_embedded(_SHELL_WORD.sub(hide, text))
