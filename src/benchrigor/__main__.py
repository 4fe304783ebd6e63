"""``python -m benchrigor``."""

from benchrigor.cli import main

if __name__ == "__main__":
    main()
