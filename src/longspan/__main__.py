"""The command `longspan`, also as `python -m longspan`."""

import sys


def main() -> None:
    """Run a command and exit. On a system without POSIX, exit with one line."""
    try:
        from longspan.simulator.cli import main as run
    except ImportError as error:
        if error.name != "longspan.simulator":
            raise
        sys.exit(f"longspan: {error}")
    run()


if __name__ == "__main__":
    main()
