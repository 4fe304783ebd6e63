"""``benchrigor``, and ``python -m benchrigor``: the command line as a program of its own."""

import sys

from benchrigor.cli import main


def run_program() -> None:
    """Run the command line; what was measured does not keep this program from ending."""
    try:
        main()
    except SystemExit as error:
        # Only verbs that measure load it.
        if (leaving := sys.modules.get("benchrigor.cli.leaving")) is not None:
            leaving.end_program(error.code if isinstance(error.code, int) else 1)
        raise


if __name__ == "__main__":
    run_program()
