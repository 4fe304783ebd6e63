"""Options and parameter types that several verbs share."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from benchrigor.errors import StoreFailed
from benchrigor.model.options import Options
from benchrigor.safe_text import escaped
from benchrigor.settings import FLAG, SETTINGS, STATISTIC, Kind, Setting, typed_name
from benchrigor.storage import Journal, default_path
from benchrigor.units import positive_seconds_of, share_of

_PRINTED = "benchrigor.printed"


class Typed(click.ParamType):  # type: ignore[type-arg]  # not generic in older clicks
    """The value of a text, with ValueError for its problem; a default may be read already."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name, self._read = name, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a text."""
        try:
            return self._read(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


SHARE = Typed("share", share_of)  # its range is checked with all other options
WITH_UNIT = Typed("duration", partial(positive_seconds_of, bare_s=None))
IN_MINUTES = Typed("duration", partial(positive_seconds_of, bare_s=60.0))


class OutputPath(click.Path):
    """A file or folder to write; not "-", by which other programs mean standard output."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse "-"."""
        if value == "-":
            self.fail("'-' is not a path here; ./- names a file or folder like that", param, ctx)
        return super().convert(value, param, ctx)


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def together(*options: Decorator) -> Decorator:
    """Make one decorator of several; help shows their options in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def settings(*names: str, **own: Mapping[str, Any]) -> Decorator:
    """Add the options of settings, by default of all of `Options`; ``own`` is as of `setting`."""
    names = names or tuple(name for name, row in SETTINGS.items() if row.help and name in _DEFAULTS)
    return together(*(setting(name, **own.get(name, {})) for name in names))


def setting(name: str, text: str = "", *, usual: str = "", **own: Any) -> Decorator:
    """Add the option of a setting, with another text, default, or type where a verb has its own.

    ``usual`` describes the default if it is None.
    """
    row = SETTINGS[name]
    default = own.pop("default", _DEFAULTS.get(name, row.default))
    text, usual = text or row.help, usual or ("" if text else row.usual)
    return _option(
        typed_name(name), name, replace(row, help=text, usual=usual, default=default), own
    )


def settings_of(rows: Mapping[str, Setting], *names: str, **flags: str) -> Decorator:
    """Add the options of settings of a table, by default of all; ``flags`` differ from its own."""
    flags = {name: typed_name(name, rows) for name in rows} | flags
    return together(*(_option(flags[name], name, rows[name], {}) for name in names or rows))


def _option(flag: str, name: str, row: Setting, own: Mapping[str, Any]) -> Decorator:
    text = row.help + f"  [default: {row.usual}]" * bool(row.usual and row.default is None)
    return click.option(f"--{flag}", name, help=text, **{**_look_of(row.kind, row.default), **own})


_DEFAULTS = {field.name: field.default for field in fields(Options)}


def _look_of(kind: Kind, default: Any) -> dict[str, Any]:
    """Return how click reads a setting, and shows its default as somebody would type it."""
    if kind is FLAG:
        return {"is_flag": True, "flag_value": False, "default": default}
    if isinstance(default, float):
        default = f"{100.0 * default:g}%" if kind.metavar == "SHARE" else f"{default:g}"
    # The name of a statistic is checked with all other options.
    type_: Any = str if kind is STATISTIC else kind.read
    type_ = type_ if type_ in (str, float) else Typed("text", type_)
    if kind.least is not None:
        type_ = click.IntRange(min=kind.least)
    elif kind.choices:
        type_ = click.Choice([choice for choice in kind.choices if choice is not None])
    return {"type": type_, "default": default, "show_default": True, "metavar": kind.metavar}


def share_option(name: str, default: str | None, text: str) -> Decorator:
    """Add an option that takes a share."""
    return click.option(name, type=SHARE, default=default, show_default=True, help=text)


def count_option(*names: str, text: str, least: int = 1) -> Decorator:
    """Add an option that takes a whole number."""
    return click.option(*names, type=click.IntRange(min=least), metavar="N", help=text)


shell_option = click.option(
    "--shell",
    is_flag=True,
    help="Have sh read commands that are given as one text; its start is timed too.",
)

_LAST_CPU = 65_535  # more than any machine has
OF_PROCESSES = ("inherit_env", "cpus")  # parameters of `process_options`
FRESH = ("python", *OF_PROCESSES)  # of `fresh_options`


def _numbers(text: str) -> tuple[int, ...]:
    """Read numbers of processors: 0,2 or 4-7."""
    numbers: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            least, most = int(first), int(last or first)
            numbers += range(least, most + 1) if most <= _LAST_CPU else [most]  # refused later
    except ValueError:
        raise click.BadParameter(
            f"{text!r} names no processors, expected numbers such as 0,2 or 4-7"
        ) from None
    return tuple(numbers)


process_options = together(
    click.option(
        "--inherit-env",
        multiple=True,
        metavar="NAME",
        help="A further variable for a fresh interpreter, which has PATH, HOME, PYTHONPATH, the "
        "locale's, *_NUM_THREADS and a few more.",
    ),
    click.option("--cpus", type=_numbers, metavar="LIST", help="Processors to run on: 0,2 or 4-7."),
)

fresh_options = together(
    click.option(
        "--python",
        metavar="PROGRAM",
        help="The fresh interpreter, CPython 3.9 or newer.  [default: the one that runs this]",
    ),
    process_options,
)

run_id_argument = click.argument("run_id")
last_run_argument = click.argument("run_id", required=False, metavar="[RUN_ID]")

metric_option = click.option(
    "--metric", help="Which metric of a run.  [default: the first that must be satisfied]"
)


def remember(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """Keep an option for those who ask for it by its name."""
    context.meta[f"benchrigor.{option.name}"] = value
    return value


def remembered(name: str, otherwise: Any) -> Any:
    """Return an option of the current verb; something else without a verb, or the option."""
    context = click.get_current_context(silent=True)
    return otherwise if context is None else context.meta.get(f"benchrigor.{name}", otherwise)


store_option = click.option(
    "--store",
    type=OutputPath(dir_okay=False, path_type=Path),
    envvar="BENCHRIGOR_STORE",
    show_envvar=True,
    expose_value=False,  # what opens it asks for it
    callback=remember,
    help="File that keeps the runs.  [default: in the user's data folder]",
)

kept_options = together(
    click.option(
        "--no-store",
        is_flag=True,
        expose_value=False,
        callback=remember,
        help="Keep nothing.",
    ),
    store_option,
)


def wants_json() -> bool:
    """Return whether the current verb is to print JSON."""
    return bool(remembered("as_json", False))


def awaits_json() -> bool:
    """Return whether the current verb is to print JSON and has not done so yet."""
    return wants_json() and not click.get_current_context().meta.get(_PRINTED)


def note_json() -> None:
    """Remember that the current verb has printed its JSON: later errors print no more."""
    click.get_current_context().meta[_PRINTED] = True


json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    expose_value=False,  # printers of results ask for it
    is_eager=True,  # so that the problem with another option is shown as JSON
    callback=remember,
    help="Print JSON, for programs.",
)


def wants_details() -> bool:
    """Return whether the current verb is to print the whole report."""
    return bool(remembered("details", False))


details_option = click.option(
    "--details",
    is_flag=True,
    expose_value=False,  # printers of reports ask for it
    callback=remember,
    help="Print all that is known, not one page.",
)


def is_given(option: str) -> bool:
    """Return whether an option of the current verb is on the command line."""
    source = click.get_current_context().get_parameter_source(option)
    return source is ParameterSource.COMMANDLINE


def flags_given(given: Mapping[str, Any], *names: str) -> list[str]:
    """Return the flags, as typed, of options that are given a value."""
    return [f"--{typed_name(name)}" for name in names if given[name]]


def given_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are fields of `Options`, and whether a target is typed."""
    named = {name: given[name] for name in _DEFAULTS if name in given}
    return {**named, "target_given": is_given("target")}


def name_options(message: str, params: Iterable[click.Parameter]) -> str:
    """Name settings in an error as the options of a verb."""
    flags = {
        param.name: param.opts[0]
        for param in params
        if isinstance(param, click.Option) and not param.is_flag
    }
    return _NAMED.sub(lambda found: flags.get(found[0], found[0]), message)


# A setting that a problem begins with, or that it speaks of further on.
_NAMED = re.compile(r"(?m:(?:^|(?<=^- )|(?<=, but )))\w+(?=(?:\[\d+\])? (?:is|has|goes) )")


def open_store() -> Journal:
    """Open the store of the current verb; the first run makes it."""
    return Journal(remembered("store", None) or default_path())


def store_to_keep() -> Journal | None:
    """Open the store of a verb with `kept_options`, unless it is to keep nothing."""
    return None if remembered("no_store", False) else open_store()


def existing_store() -> Journal:
    """Open a store to read from it, which must not make one."""
    store = open_store()
    try:
        store.path.stat()
    except FileNotFoundError:
        raise StoreFailed(
            f"there is no store at {store.path} yet; the first run that is kept makes it"
        ) from None
    except OSError as error:
        raise StoreFailed(
            f"the store at {store.path} cannot be read: {error.strerror}; expected a file in a "
            "folder that you may enter"
        ) from None
    return store


def command_line() -> str:
    """Return the command line that was typed."""
    return _line(click.get_current_context().meta.get("benchrigor.typed", ()))


def hint(verb: str, *words: str) -> str:
    """Return the command line that goes on with a run, in the current store."""
    store = ["--store", str(remembered("store", None))] if is_given("store") else []
    return _line([verb, *words, *store])


def _line(words: Iterable[str]) -> str:
    return " ".join(map(_quote_for_shell, ["benchrigor", *words]))


def _quote_for_shell(word: str) -> str:
    """Quote a word for a shell, with control characters and bytes not in UTF-8 as escapes."""
    if escaped(word) == word:
        return shlex.quote(word)
    return "$'" + "".join(map(_byte, os.fsencode(word))) + "'"


def _byte(code: int) -> str:
    plain = 0x20 <= code < 0x7F and chr(code) not in "'\\"
    return chr(code) if plain else f"\\x{code:02x}"
