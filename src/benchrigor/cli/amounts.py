"""Work amounts as they are written on a command line: 1000, 64KiB, 1MB:1GB."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

import click

from benchrigor.errors import InvalidInput
from benchrigor.model.options import Work, check_work

_AMOUNT = re.compile(
    r"""((?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE][+-]?[0-9]{1,2})?)  # 1e6, 0.5
        (?:([kKMGTP])(i?))?(B?)                                                    # kB, MiB""",
    re.VERBOSE,
)
_POWERS = "KMGTP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """The work of all rounds, or the range of their work amounts, as in `Options`."""

    work: Work
    speed_unit: str = "/s"  # "B/s" for amounts in bytes


def amounts(text: str) -> Amounts:
    """Read an amount or a range: ``AMOUNT``, ``LOW:HIGH``, ``LOW:`` (no largest), ``:HIGH``.

    An amount may end in k, M, G, T or P (thousands), Ki, Mi and so on (1024), and in B (bytes).
    """
    low, colon, high = text.strip().partition(":")
    work: Work = (_amount(low or "0"), _amount(high) if high else None) if colon else _amount(low)
    try:
        check_work(work)
    except InvalidInput as error:
        raise click.BadParameter(f"{text!r}: {error}") from None
    return Amounts(work=work, speed_unit="B/s" if "B" in text else "/s")


def _amount(text: str) -> float:
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(
            f"{text!r} is no amount of work, expected one such as 1000, 1e6, 0.5, 64KiB or 1MB, "
            "or a range such as 1MB:1GB"
        )
    number, power, binary, _ = match.groups()
    step = 1024 if binary else 1000
    amount = Decimal(number) * (step ** (_POWERS.index(power.upper()) + 1) if power else 1)
    return int(amount) if amount == amount.to_integral_value() else float(amount)
