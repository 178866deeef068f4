"""Calls in a thread of their own: results, errors, interrupts at every point, and what is within them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from hloom.numba_backend.runtime import uninterrupted as module
from hloom.numba_backend.runtime.uninterrupted import Unwanted, uninterrupted

from support.interrupts import at_every_point


def test_the_result_comes_from_another_thread() -> None:
    assert uninterrupted(lambda _: threading.get_ident()) != threading.get_ident()


def test_errors_come_out() -> None:
    with pytest.raises(ZeroDivisionError):
        uninterrupted(lambda _: 1 // 0)
    with pytest.raises(SystemExit):
        uninterrupted(lambda _: exit(3))


def test_the_lock_is_held_there() -> None:
    lock = threading.RLock()

    def elsewhere() -> bool:
        taken = lock.acquire(blocking=False)
        if taken:
            lock.release()
        return taken

    assert uninterrupted(lambda _: lock.acquire(blocking=False) and lock.release() is None, lock)
    assert not uninterrupted(lambda _: run_in_thread(elsewhere), lock)
    assert elsewhere()


def run_in_thread(work: Callable[[], bool]) -> bool:
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def test_a_call_within_a_call_runs_in_its_thread_and_knows_when_it_is_unwanted() -> None:
    lock = threading.RLock()

    def outer(unwanted: Callable[[], bool]) -> tuple[int, int, bool]:
        return threading.get_ident(), uninterrupted(lambda _: threading.get_ident(), lock), unwanted()

    first, second, unwanted = uninterrupted(outer, lock)
    assert first == second and not unwanted


def test_interrupts_at_every_point_leave_no_call_behind() -> None:
    lock, results = threading.RLock(), []

    def work(unwanted: Callable[[], bool]) -> int:
        time.sleep(0.005)
        if unwanted():
            raise Unwanted
        return 5

    points = 0
    for _ in at_every_point(lambda: results.append(uninterrupted(work, lock)), "runtime/uninterrupted.py"):
        points += 1
        with lock:  # what nobody waits for lets it go, or never takes it
            pass
    assert points > 5 and results[-1] == 5
    for _ in range(1000):
        if not module._calls:
            return
        time.sleep(0.01)
    raise AssertionError(module._calls)


def test_what_waits_for_the_lock_does_not_begin_after_an_interrupt() -> None:
    lock, began = threading.RLock(), []

    call = module._Call(lambda _: began.append(1), lock)
    with lock:
        thread = threading.Thread(target=call.run)
        thread.start()
        assert call.withdraw()
    thread.join()
    assert not began and not call.ended.locked()


def test_without_threads_it_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(module._thread, "start_new_thread", none_left)
    assert uninterrupted(lambda _: threading.get_ident()) == threading.get_ident()
