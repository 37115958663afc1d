"""``python -m adk_memory`` is the command ``adk-memory``."""

import sys

from adk_memory.cli import main

if __name__ == "__main__":
    sys.exit(main())
