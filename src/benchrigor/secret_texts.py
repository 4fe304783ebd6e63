"""Secrets in texts and arguments: which parts they are, and how they are hidden.

A text is a line of a shell, the message of an error, a line of a program. Secrets in it are first
masked, a character for a character, so that the rest keeps its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from urllib.parse import unquote

HIDDEN = "__hidden__"  # needs no quotes in a shell, so that a command reads the same with it
_MASK = "\ufdd0"  # stands for a character of a secret; it is none, and in no text

# The end of a name decides: --token names a secret, --max-tokens and --token-file do not.
_LONG = (
    r"passwords?|passwd|passphrase|passcode|secrets?|token|credentials?|pwd|signature|jwt|masterauth"
    r"|(?:api|access|private|secret|auth|account|encryption|signing|shared|subscription"
    r"|hmac|licen[sc]e|master|product|activation|decryption|session|consumer)[-_.]?key"
    r"|sess(?:ion)?[-_]?id"
    r"|(?:admin|cert|db|ftp|https?|key|ldap|login|my|pg|proxy|redis|require|root|smtp|sql|store"
    r"|sudo|user)pass"
)
_SHORT = r"pass|pw|psk|auth|authorization|cookie|bearer|sig|sid|session|pin|otp|pat"  # whole words
_NOT_NAMED = r"(?![-_]*(?:no|ask|single|first|second|two|multi)[-_])"
_NAME = rf"{_NOT_NAMED}(?:[\w.-]{{0,80}}?(?:{_LONG})|(?:[\w.-]{{0,80}}[-_.])?(?:{_SHORT}))"
_PART = r"token|secret|auth|session(?:-id)?|signature|credentials?"  # also a module's name
_WHOLE = r"(?:[\w-]{1,80}-)?(?:authori[sz]ation|authentication|cookie|passphrase)"
_HEADER = rf"(?:[\w-]{{1,80}}-(?:key|{_PART})|{_WHOLE}|(?:[\w-]{{1,80}}-)?(?:apikey|passw(?:or)?d))"
_SCHEMES = r"bearer|basic|token"
_SCHEME = rf"(?:(?:{_SCHEMES}|digest)\s+)?"
_CLOSED = r""""(?:\\.|[^"\\])*"|'[^']*'"""
_QUOTED = r""""(?:\\.|[^"\\])*"?|'[^']*'?"""
# As environment variables are written: SECRET_KEY_BASE, STRIPE_KEY, DBPASS; not BYPASS, nor PASS.
_VARIABLE = r"(?-i:[A-Z0-9_]*_KEY(?:_BASE)?|(?!BYPASS|COMPASS)[A-Z0-9_]+PASS)"
# No secret, regardless of its name: a small number or a range, a version, a word for a choice.
_PLAIN = r"\d{1,3}(?:[-,.:]\d{1,3})*|v\d+|none|auto|basic|digest|ntlm|true|false|yes|no|on|off"
_PLAIN += r"|inline|default|stdin"
_VALUE = rf"""(?:{_QUOTED}|{_SCHEME}[^\s&;,'"\])}}]+)"""
# Of sentences, as in "token: must be given" and "--token is missing".
_SENTENCE = r"[A-Za-z]?[a-z]+,?\s+\S"
_VERBS = (
    r"is|are|was|must|may|can|cannot|could|should|needs|requires|takes|has|and|or|not|to|for|in"
)

_SECRET_NAME = re.compile(rf"{_NAME}|{_HEADER}|{_VARIABLE}", re.IGNORECASE)
_IS_PLAIN = re.compile(rf"-?(?:{_PLAIN})[:),;]*", re.IGNORECASE)
# An expression of a program, after name=: a call, an item, an attribute of what holds settings,
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
        # Without a scheme: user:password@tcp(host)/ and user:password@host:port.
        r"(?P<before>(?<![\w/:.@%-])[\w.%-]{0,80}:)(?!//)[^\s'\"]{1,200}"
        r"(?=@(?:tcp|udp|unix|[\w+-]{0,20}sql)[\w+-]{0,20}\()",
        r"(?P<before>(?<![\w/:.@%-])[\w.%-]{1,80}:)[^\s/'\"@:]{1,200}"
        r"(?=@[\w.-]{1,80}:\d{2,5}(?![\w.]))",
        r"(?P<before>[?&;]key=)[^\s&;#'\"]+",
        rf"(?P<before>(?<![\w.-])-{{0,2}}(?:{_NAME}|{_VARIABLE})=){_VALUE}",
        # A URL within another.
        r"(?P<before>%3A%2F%2F)(?:(?!%2F)[^\s&;'\"]){1,200}(?=%40)",
        rf"(?P<before>(?:%3F|%26|%3B)(?:{_NAME})%3D)(?:(?!%26|%3B)[^\s&;'\"])+",
        rf"(?P<before>(?<![\w.-])(?P<quote>[\"']){_NAME}(?P=quote)\s*[:=]\s*)"
        rf"(?:\[[^\]]*\]?|\{{[^}}]*\}}?|{_VALUE})",
        rf"(?P<before><{_NAME}>)[^<]+",
        rf"(?P<before>(?<![\w.-]){_NAME}\s*[:=]\s*)(?:{_QUOTED})",
        rf"(?P<before>(?<![\w.-]){_WHOLE}:\s+)"
        rf"(?:(?:{HIDDEN}|{_MASK}+)(?![;{_MASK}])|digest\s[^\n]+|(?:{_SCHEMES})\s+[^\s'\"]+|[^\n'\"]+)",
        rf"(?P<before>(?<![\w.-])(?:{_HEADER}|{_PART}|[\w.-]{{0,80}}?(?:{_LONG})):\s+)"
        rf"(?!{_SENTENCE}){_SCHEME}[^\s,;'\"]+",
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
_BEFORE_SECRET = re.compile(rf"[(\[{{<`]*-{{1,2}}{_NAME}|{_HEADER}:", re.IGNORECASE)
_BEFORE_USER = re.compile(r"-[a-zA-Z]*[uU]|--(?:proxy-)?user")  # with other letters, as of curl
_BEFORE_COOKIE = re.compile(r"-[a-zA-Z]*b")

# After a secret's option, still an option: -v, -j4, -name, --verbose, --level=3, --.
_OPTION = re.compile(r"-?|--|-[a-zA-Z]\d{0,3}|--?[a-z][a-z-]*\d?(?:=.*)?", re.DOTALL)
# Programs that take a password right after -p.
_WITH_P = re.compile(r"(?:.*/)?(?:(?:mysql|mariadb)[\w-]*|sshpass|7z[ar]?)")

_IN_WORD = r"(?<=[a-z][a-z])'(?=(?:s|t|re|ve|ll|d|m)\b)"  # in it's and don't, which is not a quote
# A separator of commands ends a word, too.
_SHELL_WORD = re.compile(
    rf"""(?:{_IN_WORD}|'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\;|])+""", re.DOTALL
)
_PIECE = re.compile(
    rf"""{_IN_WORD}|'(?P<single>[^']*)'|"(?P<double>(?:\\.|[^"\\])*)"|\\?.""", re.DOTALL
)
_LITERAL = re.compile(_CLOSED, re.DOTALL)
_LITERALS = re.compile(rf"(?:{_CLOSED})(?:\s*,\s*(?:{_CLOSED}))+", re.DOTALL)  # as of a list
_FEWEST_BARE = 3  # characters of a secret that is looked for by itself
_AFTER = re.compile(r"[)\]}>`,;:.]+$")  # of the sentence or the program around an argument
# A text without any of these holds no secret, which one quick look shows for most sentences.
_HINTS = (
    *("pass", "pwd", "secret", "token", "credential", "signature", "jwt", "key", "auth", "cookie"),
    *("bearer", "sess", "user", "mysql", "mariadb", "7z", "@", "//"),
)
_SHORT_HINT = re.compile(r"(?:p(?:w|sk|in|at)|si[gd]|otp)(?![a-z])|-[a-z]*[ub]|%[0-9a-f]{2}")


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
    if not any(hint in lowered for hint in _HINTS) and not _SHORT_HINT.search(lowered):
        return text
    return _text_to_mask(_masked_text(text))


def hide_in_words(words: Iterable[str]) -> list[str]:
    """Return the arguments of a command with their secrets hidden."""
    line = _Words()
    return [_text_to_mask(line.mask(getattr(word, "shown", word))) for word in words]


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
    """Return whether what bears the name is a secret."""
    return _SECRET_NAME.fullmatch(name) is not None


def hide_value(name: str, value: str) -> str:
    """Return the value of what bears the name, hidden if it is a secret."""
    return HIDDEN if names_secret(name) and not _IS_PLAIN.fullmatch(value) else value


def _text_to_mask(text: str) -> str:
    return re.sub(f"{_MASK}+", HIDDEN, text)


class _Words:
    """The arguments of a command, one after the other."""

    def __init__(self) -> None:
        self.before = ""
        self._program = ""  # the last one of `_WITH_P`

    def mask(self, word: str) -> str:
        """Mask the secrets in the next argument, which may be a line of a shell."""
        before, self.before = self.before, word
        if _WITH_P.fullmatch(word):
            self._program = word
        is_sshpass = self._program.endswith("sshpass")
        if self._program and (word.startswith("-p") or (is_sshpass and before == "-p")):
            if is_sshpass and word != "-p":  # what follows has options of its own
                self._program = ""
            if word != "-p":
                return _mask(word, 2 if word.startswith("-p") else 0)
        if before.endswith(":") and re.fullmatch(
            f"{_SCHEMES}|digest", word, re.IGNORECASE
        ):  # the secret is after it
            self.before = before
            return word
        return _masked_word(before, word)


def _mask(text: str, start: int = 0, stop: int | None = None) -> str:
    """Mask a part of a text."""
    stop = len(text) if stop is None else stop
    return text[:start] + _MASK * (stop - start) + text[stop:]


def _masked_word(before: str, word: str) -> str:
    """Mask the secrets in one argument."""
    follows_user = _BEFORE_USER.fullmatch(before) and re.fullmatch(_USER, word, re.DOTALL)
    follows_cookie = _BEFORE_COOKIE.fullmatch(before) and "=" in word
    follows_secret = _BEFORE_SECRET.fullmatch(before) and not _OPTION.fullmatch(word)
    if (follows_user or follows_cookie or follows_secret) and not _IS_PLAIN.fullmatch(word):
        return _mask(word)
    if before != "-c":
        for pattern in _ARGUMENTS:
            if found := pattern.fullmatch(word):
                return _masked_value(found)
    return _masked_text(word) if re.search(r"[\s'\"\\]", word) else _mask_embedded(word)


def _mask_embedded(text: str) -> str:
    for pattern in _EMBEDDED:
        text = pattern.sub(_masked_value, text)
    return _ENCODED.sub(_masked_by_decoded_name, text)


def _masked_by_decoded_name(found: re.Match[str]) -> str:
    name = unquote(unquote(found["name"]))
    return _masked_value(found) if name == "key" or names_secret(name) else found[0]


def _masked_value(found: re.Match[str]) -> str:
    """Return the text of a match with its value masked, unless it can be no secret."""
    name = found["before"]
    value = found[0].removeprefix(name)
    is_in_url = found.string[found.start() - 1 : found.start()] in {"?", "&", ";"}
    is_code = not is_in_url and _NAMED_IN_CODE.fullmatch(name) and _IS_CODE.match(value)
    is_itself = name == f"{value.rstrip('),;')}="  # as password=password in a call
    if is_code or is_itself or _IS_PLAIN.fullmatch(value):
        return found[0]
    quotes = int(_LITERAL.fullmatch(value) is not None)
    return _mask(found[0], len(name) + quotes, len(found[0]) - quotes)


@lru_cache(maxsize=256)
def _masked_text(text: str) -> str:
    """Mask the secrets in a text."""
    text = _LITERALS.sub(_masked_literals, text)
    words, end = _Words(), 0

    def mask(found: re.Match[str]) -> str:
        nonlocal end
        raw, gap, end = found[0], text[end : found.start()], found.end()
        word, places = _unquote(raw)
        is_of_sentence = words.before.endswith(":") or re.fullmatch(_VERBS, word)
        if re.search(r"[\n;|]", gap) or (
            is_of_sentence and re.match(_SENTENCE, text[found.start() : end + 2])
        ):
            words.before = ""
        masked = word if word == text else words.mask(word)
        shown = list(raw)
        for char, (start, stop) in zip(masked, places, strict=True):
            if char == _MASK:
                shown[start:stop] = _MASK * (stop - start)
        behind = _AFTER.search(raw)
        if behind and (raw[behind.start() - 1] in "'\"" or len(raw) == len(word)):
            shown[behind.start() :] = behind[0]
        return _PIECE.sub(_masked_piece, "".join(shown)) if len(raw) > len(word) else "".join(shown)

    # Words first: within the quotes of a shell, others would seem to begin and end.
    return _mask_embedded(_SHELL_WORD.sub(mask, text))


def _masked_literals(found: re.Match[str]) -> str:
    """Mask the secrets in quoted arguments that a program or a message lists."""
    words = _Words()
    return _LITERAL.sub(
        lambda quote: f"{quote[0][0]}{words.mask(quote[0][1:-1])}{quote[0][-1]}", found[0]
    )


def _masked_piece(found: re.Match[str]) -> str:
    """Mask the secrets within quotes in a word, as in the call of a program."""
    inner = found["single"] or found["double"] or ""
    return f"{found[0][0]}{_masked_text(inner)}{found[0][-1]}" if inner else found[0]


def _unquote(raw: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a word as a shell reads it, and the places of its characters."""
    places = []
    for piece in _PIECE.finditer(raw):
        start, stop = piece.span()
        if piece["single"] is not None:
            places += [(at, at + 1) for at in range(start + 1, stop - 1)]
        elif piece["double"] is not None:
            inner = re.finditer(r'\\(?=["\\]).|.', piece["double"], re.DOTALL)
            places += [(start + 1 + match.start(), start + 1 + match.end()) for match in inner]
        else:
            places.append((start, stop))
    return "".join(raw[stop - 1] for _, stop in places), places
