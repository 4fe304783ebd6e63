"""``benchrigor``, and ``python -m benchrigor``: the command line as a program of its own."""

import faulthandler
import sys
from contextlib import suppress

from benchrigor.cli import main


def run_program() -> None:
    """Run the command line; the measured code does not keep this program from ending.

    A crash of the measured code, as by a wrong pointer, is shown with the lines that led to it.
    """
    with suppress(AttributeError, OSError, RuntimeError, ValueError):  # without stderr
        faulthandler.enable(all_threads=False)
    try:
        main()
    except BaseException as error:  # noqa: BLE001  # after any error, threads must not go on
        code = error.code if isinstance(error, SystemExit) else 1
        if not isinstance(error, SystemExit):
            sys.excepthook(type(error), error, error.__traceback__)
        # Only verbs that measure load it.
        if (leaving := sys.modules.get("benchrigor.cli.exits")) is not None:
            leaving.end_program(code if isinstance(code, int) else int(code is not None))
        raise SystemExit(code) from None


if __name__ == "__main__":
    run_program()
