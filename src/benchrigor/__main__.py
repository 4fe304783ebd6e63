"""``benchrigor``, and ``python -m benchrigor``: the command line as a program of its own."""

import faulthandler
import sys
from contextlib import suppress

from benchrigor.cli import main


def run_program() -> None:
    """Run the command line; what was measured does not keep this program from ending.

    A crash of what is measured, as by a wrong pointer, is shown with the lines that led to it.
    """
    with suppress(AttributeError, OSError, RuntimeError, ValueError):  # there is no stderr
        faulthandler.enable(all_threads=False)
    try:
        main()
    except SystemExit as error:
        # Only verbs that measure load it.
        if (leaving := sys.modules.get("benchrigor.cli.leaving")) is not None:
            leaving.end_program(error.code if isinstance(error.code, int) else 1)
        raise


if __name__ == "__main__":
    run_program()
