"""Record the results of the golden cases anew, and say what changed; ``README.md`` says when.

    python tests/golden/renew.py            # all cases
    python tests/golden/renew.py NAME...    # these

A record whose result has not changed stays as it is, to the last digit.
"""

from __future__ import annotations

import click
from fence import CASES, records


@click.command
@click.argument("names", nargs=-1, type=click.Choice(sorted(CASES)), metavar="[NAME]...")
def renew(names: tuple[str, ...]) -> None:
    """Record cases anew: those that are named, or all of them."""
    changed = sum(_renewed(name) for name in names or sorted(CASES))
    for name in [] if names else sorted(records.names() - CASES.keys()):
        records.forget(name)
        click.echo(f"{name}: forgotten, there is no such case")
    click.echo(f"{changed} records renewed")


def _renewed(name: str) -> bool:
    """Record a case where its result has changed; return whether it has."""
    result = records.found(name)
    changes = records.changes_of(name, result) if name in records.names() else ["new"]
    if changes:
        records.write(name, result)
        click.echo("\n  ".join([f"{name}:", *changes]))
    return bool(changes)


if __name__ == "__main__":
    renew()
