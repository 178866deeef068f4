"""Run calls to their end, even if an interrupt comes.

Python runs the handlers of signals in the main thread, after any call of Python code, and they may raise. The locks of
Numba, llvmlite, `threading.Event` and `Thread.start` do not survive this in all places: interrupted between the taking
of a lock and the block that it guards, they stay locked for ever. So all code that compiles or loads a kernel runs in a
thread of its own, where no handler runs. The caller waits for it with no more than a lock of the interpreter itself.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, TypeVar, cast

from ...hlo.support.progress import SILENT, current, join

T = TypeVar("T")


class Unwanted(Exception):
    """Raised by a function that ends early because its result is not wanted any more; `Call` catches it."""


_PATIENCE = 1.0
"""Seconds in which a thread begins, or never: where there is no memory for its first frame, Python drops it."""


class Call(Generic[T]):
    """A function for another thread. `_claims` gets an entry from the thread when it has the lock, and from a caller
    that does not want the call any more, or finds that no thread begins it; the first entry decides."""

    def __init__(self, function: Callable[[Callable[[], bool]], T], lock: AbstractContextManager[Any]) -> None:
        self._function = function
        self._lock = lock
        self._work = current()
        self._claims: list[bool] = []
        """True: it begins; False: it shall not."""
        self._unwanted = False
        self._begun = False
        self.done = False
        """Set before `_ended` is released: an exception in the waiting thread may discard the result of its wait."""
        self._ended = _thread.allocate_lock()
        self._ended.acquire()
        self.result: T | None = None
        self.error: BaseException | None = None

    def start(self) -> bool:
        """Start a thread for it; False where the system has no more, or Python starts none any more."""
        try:
            _thread.start_new_thread(self.run, ())
        except (RuntimeError, MemoryError):
            return False
        return True

    def run(self) -> None:
        # Any statement may raise MemoryError. The last three take no memory.
        try:
            self._begun = True
            join(self._work)
            own = _thread.get_ident()
            _calls[own] = self
            try:
                with self._lock:
                    self._claims.append(True)
                    if not self._claims[0]:
                        raise Unwanted
                    self.result = self._function(self.is_unwanted)
            finally:
                del _calls[own]
        except BaseException as error:
            self.error = error
        finally:
            del self._function  # the waiting thread may be done with its values before this one runs again
            self.done = True
            self._ended.release()

    def wait(self) -> bool:
        """Wait until it has ended; False if no thread has begun it, and none will."""
        while not self.done:
            for_ever = self._begun and self._work is SILENT
            if not self._ended.acquire(timeout=-1 if for_ever else _PATIENCE):
                if self._never_begins():
                    return False
                self._work.refresh()
        return True

    def _never_begins(self) -> bool:
        return not self._begun and self.withdraw()

    def is_unwanted(self) -> bool:
        return self._unwanted

    def withdraw(self) -> bool:
        """The result is not wanted any more; True if it will not begin."""
        self._unwanted = True
        self._claims.append(False)
        return not self._claims[0]


NO_LOCK = nullcontext()
_calls: dict[int, Call[Any]] = {}
"""The call of each thread that was made for one."""


def uninterrupted(function: Callable[[Callable[[], bool]], T], lock: AbstractContextManager[Any] = NO_LOCK) -> T:
    """`function(unwanted)`, run in another thread to its end, with the lock held there.

    What is raised meanwhile in this thread comes out when the function has ended, which may be early, by raising
    Unwanted, since `unwanted()` is true then; or at once, while it waits for the lock, and then it does not begin.
    Within such a call, another one runs at once, in the same thread. Where the system has no more threads, or no memory
    for one, or Python starts none any more, since it is about to exit, the function runs in this one.
    """
    outer = _calls.get(_thread.get_ident())
    if outer is not None:
        with lock:
            return function(outer.is_unwanted)
    call = Call(function, lock)
    raised: BaseException | None = None
    try:
        here = False
        try:
            here = not call.start()
        except BaseException as error:  # of a signal's handler, as below
            raised = error
            if call.withdraw():
                raise
        while not (here or call.done):
            try:
                here = not call.wait()
            except BaseException as error:
                raised = error
                if call.withdraw():
                    raise
        if raised is not None:
            raise raised
        if here:
            with lock:
                return function(lambda: False)
        if call.error is not None:
            raise call.error
        return cast(T, call.result)
    finally:
        del call, raised  # their tracebacks lead back here
