"""The conditions that a fork of the process waits for, so that the child works.

A child has only the thread that forked. A lock that another thread held is never released in the child, and that
thread's work stays unfinished: a kernel in LLVM, a product in BLAS, an import. Most of these locks belong to other
libraries, and the child cannot repair them. So `os.fork` first waits until no thread is inside, keeps all out while it
copies the process, and then lets them go on, in both processes. It waits as long as one batch of kernels compiles or
one product runs; `subprocess` and `spawn` do not wait, since their children run another program.

    lock = fork_lock(Order.STORE)          a lock that a child finds free, with whole data behind it
    with PRODUCTS.inside(): ...            several threads at once, but no fork meanwhile
    kept_out_of_forks(order, guard)        anything else: the fork happens within the block of `guard()`

An interrupt may raise after any call of Python code, even between the taking of a lock and the block that it guards. So
every guard is held by the `with` statement on a lock of the interpreter itself, which nothing can interrupt, and is
released by the end of a generator: a `with` on an object of ours or of `threading` could lose its lock.
"""

from __future__ import annotations

import _thread
import enum
import importlib
import logging  # noqa: F401 - see the end
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ..system import at_fork

_PAUSE = 100e-6
_PACKAGES = frozenset(("hloom", "llvmlite", "ml_dtypes", "numba", "numpy", "opt_einsum", "optree", "scipy"))


class Order(enum.IntEnum):
    """The order in which locks are taken: a thread that holds one takes only those after it."""

    USER = -1  # the user's code runs within
    POOL = 0  # starting threads compiles their functions
    STORE = 1  # compiling uses Numba
    COMPILER = 2
    PRODUCTS = 3
    LEAF = 4  # held for a few instructions
    # A destructor may take these in any thread, regardless of the locks that the thread holds.
    LLVM = 5
    MEMORY = 6


_guards: list[tuple[Order, Callable[[], AbstractContextManager[Any]]]] = []


def kept_out_of_forks(order: Order, guard: Callable[[], AbstractContextManager[Any]]) -> None:
    """A fork happens within the block of `guard()`; entering it may wait."""
    _guards.append((order, guard))
    _guards.sort(key=lambda entry: entry[0])


def fork_lock(order: Order) -> Any:
    """A reentrant lock that is taken by every fork, so that a child finds it free. For the life of the process."""
    lock = threading.RLock()
    kept_out_of_forks(order, lambda: lock)
    return lock


_Holder = Generator[None, None, None]


def _holding(guard: AbstractContextManager[Any]) -> _Holder:
    """Holds it from the first `next` until the generator is dropped."""
    with guard:
        yield


def _hold(guards: Iterable[AbstractContextManager[Any]], held: list[_Holder]) -> None:
    """Take them in order; dropping what is in `held` lets them go."""
    for guard in guards:
        holder = _holding(guard)
        next(holder)
        held.append(holder)


class Gate:
    """`with gate.inside():` several threads may be inside at once; a fork waits until all others have left.

    Each thread has a lock of its own, and a fork takes all of them.
    """

    def __init__(self) -> None:
        self._door = threading.RLock()
        self._of_thread = threading.local()
        self._locks: weakref.WeakSet[Any] = weakref.WeakSet()

    def inside(self) -> AbstractContextManager[Any]:
        """This thread's lock. A thread that is inside may enter once more, even when a fork waits for it."""
        lock: Any = getattr(self._of_thread, "lock", None)
        if lock is None:
            lock = threading.RLock()
            with self._door:
                self._locks.add(lock)
            self._of_thread.lock = lock
        return lock  # type: ignore[no-any-return]

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Within the block, no other thread is inside."""
        with self._door:
            held: list[_Holder] = []
            _hold(list(self._locks), held)
            yield


PRODUCTS = Gate()
"""Around the calls of NumPy's or SciPy's BLAS and LAPACK from Python; inside, a thread takes no other lock."""
kept_out_of_forks(Order.PRODUCTS, PRODUCTS.closed)


def _imported_elsewhere() -> bool:
    """Is another thread importing one of these packages? A child could never import a package that was half
    imported."""
    locks: dict[str, Callable[[], Any]] = getattr(importlib._bootstrap, "_module_locks", {})
    others = sys._current_frames().keys() - {_thread.get_ident()}
    return any(
        name.partition(".")[0] in _PACKAGES and getattr(found(), "owner", None) in others
        for name, found in locks.copy().items()
    )


def _interrupt_soon() -> None:
    """Interrupt the main thread after its hooks, in which Python would ignore it."""
    time.sleep(_PAUSE)
    main = threading.main_thread().ident
    if main is not None and callable(signal.getsignal(signal.SIGINT)):
        importlib.import_module("..system", __package__).system.interrupt_thread(main)


_one_at_a_time = threading.RLock()
_held: list[list[_Holder]] = []
"""The guards that the forking thread holds."""
_interrupted: list[bool] = []


def _before() -> None:
    """Hold everything. An exception would not stop the fork, so an interrupt comes afterwards, in the parent."""
    while True:
        holders: list[_Holder] = []
        try:
            while _imported_elsewhere():
                time.sleep(_PAUSE)
            _hold([_one_at_a_time], holders)
            _hold((guard() for _, guard in _guards), holders)
            if not _imported_elsewhere():
                _held.append(holders)
                break
        except KeyboardInterrupt:
            _interrupted.append(True)
            if _held and _held[-1] is holders:
                break
        del holders[:]


def _after_in_parent() -> None:
    if _interrupted:
        _interrupted.clear()
        _thread.start_new_thread(_interrupt_soon, ())


# Logging is imported above, since hooks run last to first: its hook takes a lock that Numba needs, and a thread that
# compiles must be waited for before that.
at_fork(before=_before, after_in_parent=_held.clear, after_in_child=_held.clear)
at_fork(after_in_parent=_after_in_parent, after_in_child=_interrupted.clear)
