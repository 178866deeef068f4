"""`python -m tools.fuzz`."""

import signal
import sys

from .command import main

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a run that is ended says what it has found, too
    sys.exit(main())
