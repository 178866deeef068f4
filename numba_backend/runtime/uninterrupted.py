"""Calls that no interrupt ends half way.

Python runs the handlers of signals in the main thread, after any call of Python code, and they may raise. Numba's and
llvmlite's locks, and those of `threading.Event` and `Thread.start`, do not survive this everywhere: interrupted between
the taking of a lock and the block that it guards, they stay locked for ever. So whatever compiles or loads a kernel
runs in a thread of its own, where no handler runs, and the caller waits for it with no more than a lock of the
interpreter itself.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class Unwanted(Exception):
    """Raised by a function that ends early because nobody waits for its result; nobody sees it."""


class _Call(Generic[T]):
    """One call. Its thread, when it has the lock, and a caller that does not want it any more take `_token`; who comes
    first decides."""

    def __init__(self, function: Callable[[Callable[[], bool]], T], lock: AbstractContextManager[Any]) -> None:
        self._function = function
        self._lock = lock
        self._token = [True]
        self._unwanted = False
        self.ended = _thread.allocate_lock()
        self.ended.acquire()
        self.result: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        _calls[_thread.get_ident()] = self
        try:
            with self._lock:
                self._token.pop()
                self.result = self._function(self.is_unwanted)
        except BaseException as error:
            self.error = error
        finally:
            del _calls[_thread.get_ident()]
            self.ended.release()

    def is_unwanted(self) -> bool:
        return self._unwanted

    def withdraw(self) -> bool:
        """The result is not wanted any more; True if it will not begin."""
        self._unwanted = True
        try:
            self._token.pop()
        except IndexError:
            return False
        return True


_NO_LOCK = nullcontext()
_calls: dict[int, _Call[Any]] = {}
"""What each thread that was made for a call runs."""


def uninterrupted(function: Callable[[Callable[[], bool]], T], lock: AbstractContextManager[Any] = _NO_LOCK) -> T:
    """`function(unwanted)`, run in another thread to its end, with the lock held there.

    What is raised meanwhile in this thread comes out when the function has ended, which may be early, by raising
    Unwanted, since `unwanted()` is true then; or at once, while it waits for the lock, and then it does not begin.
    Within such a call, another one runs at once, in the same thread. Where the system has no more threads, or Python
    starts none any more, since it is about to exit, the function runs in this one.
    """
    outer = _calls.get(_thread.get_ident())
    if outer is not None:
        with lock:
            return function(outer.is_unwanted)
    call = _Call(function, lock)
    raised: BaseException | None = None
    try:
        try:
            _thread.start_new_thread(call.run, ())
        except RuntimeError:
            if call.withdraw():
                with lock:
                    return function(lambda: False)
        except BaseException as error:  # of a signal's handler, as below
            raised = error
            if call.withdraw():
                raise
        while call.ended.locked():
            try:
                with call.ended:
                    pass
            except BaseException as error:
                raised = error
                if call.withdraw():
                    raise
        if raised is not None:
            raise raised
        if call.error is not None:
            raise call.error
        return cast(T, call.result)
    finally:
        del call, raised  # their tracebacks lead back here
