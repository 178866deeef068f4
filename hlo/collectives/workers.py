"""Threads that run the devices of this process. They are kept for the next run: starting one costs more than a small
collective."""

from __future__ import annotations

import contextvars
import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Protocol, TypeVar

from ..errors import CollectiveError, ExecutionError
from ..system import at_fork
from .communicator import Communicator, as_device

T = TypeVar("T")

_LOOK = 0.5
"""Seconds after which the caller looks for signals."""
_GRACE, _LONG_GRACE = 0.5, 5.0
"""Seconds in which the other devices of a run should end when one has failed; then they are interrupted; then they are
left alone."""


class _Stopped(BaseException):
    """Ends a device's program when another device has failed."""


class Outcome(Protocol):
    """Where the threads report: a board."""

    def finish(self, device: int) -> None:
        """The device has come to the end of its program."""

    def fail(self, device: int, error: BaseException) -> None:
        """The device has raised `error`."""

    @property
    def failed(self) -> dict[int, BaseException]:
        """The exceptions of devices, in the order in which they were raised."""


class _Worker(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="hloom device", daemon=True)
        self.tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.start()

    def run(self) -> None:
        """Run tasks until one is None."""
        while True:
            try:
                task = self.tasks.get()
                if task is None:
                    return
                task()
                del task
            except BaseException:  # an interrupt that came when its task had ended
                continue


_idle: list[_Worker] = []
at_fork(after_in_child=_idle.clear)


def run_in_threads(
    outcome: Outcome, function: Callable[[Communicator], T], devices: Sequence[Communicator]
) -> list[T]:
    """The results of `function` for each device: each is called in its own thread, with a copy of the caller's context;
    for one device in this thread.

    If devices fail, raises the error of the first one that failed on its own. An exception that interrupts the caller
    interrupts the threads, too.
    """
    if len(devices) == 1:
        return [_in_this_thread(outcome, function, devices[0])]
    results: dict[int, T] = {}
    done: SimpleQueue[int] = SimpleQueue()
    workers: dict[int, _Worker] = {}

    def task(device: Communicator) -> Callable[[], None]:
        context = contextvars.copy_context()

        def run() -> None:
            try:
                with as_device(device):
                    results[device.device] = context.run(function, device)
                outcome.finish(device.device)
            except BaseException as error:
                outcome.fail(device.device, error)
            finally:
                done.put(device.device)

        return run

    _take_workers(devices, workers)
    for device in devices:
        workers[device.device].tasks.put(task(device))
    running = set(workers)
    try:
        while running and not outcome.failed:
            _wait(done, running, _LOOK, 1)  # a signal that another thread receives does not wake this one
        _wait(done, running, _GRACE)
    except BaseException as error:
        outcome.fail(-1, error)
        _stop(workers, running, type(error))
        raise
    finally:
        _idle.extend(worker for device, worker in workers.items() if device not in running)
    if running:  # the program may be in a loop that no collective ends
        _stop(workers, running, _Stopped)
        _wait(done, running, _LONG_GRACE)
    if outcome.failed:
        _raise_first(outcome.failed)
    return [results[device.device] for device in devices]


def _take_workers(devices: Sequence[Communicator], workers: dict[int, _Worker]) -> None:
    """A thread for each device, before any of them begins: they would wait for those that have none."""
    try:
        for device in devices:
            workers[device.device] = _idle.pop() if _idle else _Worker()
    except (RuntimeError, MemoryError) as error:
        _idle.extend(workers.values())
        raise ExecutionError(
            f"a program for {len(devices)} devices of this process needs as many threads; the system gave "
            f"{len(workers)} ({error})"
        ) from error


def _in_this_thread(outcome: Outcome, function: Callable[[Communicator], T], device: Communicator) -> T:
    try:
        with as_device(device):
            result = function(device)
    except BaseException as error:
        outcome.fail(device.device, error)
        raise
    outcome.finish(device.device)
    return result


def _wait(done: SimpleQueue[int], running: set[int], seconds: float, most: int | None = None) -> None:
    """Wait for devices that run, for all or for `most` of them, but not longer."""
    end = time.monotonic() + seconds
    with suppress(Empty):
        for _ in range(len(running) if most is None else most):
            running.discard(done.get(timeout=max(0.0, end - time.monotonic())))


def _stop(workers: dict[int, _Worker], running: set[int], error: type[BaseException]) -> None:
    """Raise an error in threads, at their next look at Python's interrupts: a program's loops look too."""
    for device in running:
        worker = workers[device]
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker.ident or 0), ctypes.py_object(error))
        worker.tasks.put(None)  # it is not used again: the interrupt may come late


def _raise_first(failed: dict[int, BaseException]) -> None:
    own = {d: e for d, e in failed.items() if not (isinstance(e, CollectiveError) and e.__cause__)}
    device, error = next(iter((own or failed).items()))
    if not isinstance(error, CollectiveError):
        error.add_note(f"raised on device {device} of the program")
    raise error
