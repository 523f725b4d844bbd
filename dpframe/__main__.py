"""The command line: `dpframe`, which is `python -m dpframe`."""

import sys

from dpframe.jobs.commands import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
