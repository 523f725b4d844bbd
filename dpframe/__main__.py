"""The command line: `dpframe`, which is `python -m dpframe`."""

import sys

from dpframe.jobs import commands
from dpframe.jobs.answers import let_go, reserve_streams


def main() -> int:
    """Run a command as the whole of a process; nothing that comes later changes its exit code."""
    reserve_streams()
    try:
        return commands.main(leaving=True)
    finally:
        let_go()


if __name__ == "__main__":
    sys.exit(main())
