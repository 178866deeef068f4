"""Threads that run the devices of this process. They are kept for the next run: starting one costs more than a small
collective."""

from __future__ import annotations

import contextvars
import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Protocol, TypeVar

from ..errors import CollectiveError
from .communicator import Communicator, as_device

T = TypeVar("T")


class Outcome(Protocol):
    """Where the threads report: a board."""

    def finish(self, device: int) -> None:
        """The device has come to the end of its program."""

    def fail(self, device: int, error: BaseException) -> None:
        """The device has raised `error`."""

    @property
    def failed(self) -> dict[int, BaseException]:
        """What devices have raised, in the order in which they did."""


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
os.register_at_fork(after_in_child=_idle.clear)


def run_in_threads(
    outcome: Outcome, function: Callable[[Communicator], T], devices: Sequence[Communicator]
) -> list[T]:
    """The results of `function` for each device: each is called in its own thread, with a copy of the caller's context;
    for one device in this thread.

    If devices fail, raises the error of the first one that failed by itself. What interrupts the caller interrupts the
    threads.
    """
    if len(devices) == 1:
        return [_in_this_thread(outcome, function, devices[0])]
    results: dict[int, T] = {}
    done: SimpleQueue[int] = SimpleQueue()
    workers: list[_Worker] = []

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

    for device in devices:
        workers.append(_idle.pop() if _idle else _Worker())
        workers[-1].tasks.put(task(device))
    try:
        _wait(done, len(devices))
    except BaseException as error:
        outcome.fail(-1, error)
        for worker in workers:
            _interrupt(worker, error)
            worker.tasks.put(None)  # it is not used again: the interrupt may come late
        raise
    _idle.extend(workers)
    if outcome.failed:
        _raise_first(outcome.failed)
    return [results[device.device] for device in devices]


def _in_this_thread(outcome: Outcome, function: Callable[[Communicator], T], device: Communicator) -> T:
    try:
        with as_device(device):
            result = function(device)
    except BaseException as error:
        outcome.fail(device.device, error)
        raise
    outcome.finish(device.device)
    return result


def _wait(done: SimpleQueue[int], count: int) -> None:
    for _ in range(count):
        done.get()


def _interrupt(worker: _Worker, error: BaseException) -> None:
    """Raise the error's class in a thread, at its next look at Python's interrupts: a program's loops look too."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker.ident or 0), ctypes.py_object(type(error)))


def _raise_first(failed: dict[int, BaseException]) -> None:
    own = {d: e for d, e in failed.items() if not (isinstance(e, CollectiveError) and e.__cause__)}
    device, error = next(iter((own or failed).items()))
    if not isinstance(error, CollectiveError):
        error.add_note(f"raised on device {device} of the program")
    raise error
