"""Signals that a process sends to itself, on systems with POSIX' signals and on those without.

Windows has Ctrl-C and no signals: `os.kill` ends the process. It calls the handler of Ctrl-C in a thread of its own;
`signal.raise_signal` in another thread than the main does the same to Python.
"""

from __future__ import annotations

import os
import signal
import threading

ANOTHER = getattr(signal, "SIGUSR1", signal.SIGTERM)
"""A signal that is not Ctrl-C, and has no handler."""


def interrupt(number: int = signal.SIGINT) -> None:
    """Send a signal to this process, Ctrl-C by default."""
    if hasattr(signal, "pthread_kill"):
        os.kill(os.getpid(), number)
    else:
        signal.raise_signal(number)


def end_after(seconds: float) -> None:
    """End this process then, in case that it hangs."""
    if hasattr(signal, "alarm"):
        signal.alarm(int(seconds))
    else:
        timer = threading.Timer(seconds, os._exit, (14,))
        timer.daemon = True
        timer.start()
