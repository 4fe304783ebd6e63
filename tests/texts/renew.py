"""Write the pages of texts again; ``README.md`` says what they are.

python tests/texts/renew.py [PAGE]...
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(folder) for folder in (TESTS.parent, TESTS / "golden", TESTS / "simulations")]


@click.command
@click.argument("names", nargs=-1)
def renew(names: tuple[str, ...]) -> None:
    """Write these pages again, or all of them."""
    from tests.texts.rendering import causes, notices, pages, text_of, write  # noqa: PLC0415

    for name in names or [*pages(), "notices"]:
        texts = (
            notices()
            if name == "notices"
            else {title: text_of(cause) for title, cause in causes(name).items()}
        )
        write(name, texts)


if __name__ == "__main__":
    renew()
