"""Calls in a thread of their own: results, errors, interrupts at every point, and nested calls."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable

import pytest
from hloom.numba_backend.runtime import compile
from hloom.numba_backend.runtime import uninterrupted as module
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.uninterrupted import Unwanted, uninterrupted

from support.interrupts import at_every_point
from support.runtime_kernels import F32, python


def test_the_result_comes_from_another_thread() -> None:
    assert uninterrupted(lambda _: threading.get_ident()) != threading.get_ident()


def test_errors_come_out() -> None:
    with pytest.raises(ZeroDivisionError):
        uninterrupted(lambda _: 1 // 0)
    with pytest.raises(SystemExit):
        uninterrupted(lambda _: exit(3))


def test_what_ended_holds_nothing() -> None:
    """The thread may have no turn for a while after the caller has the result."""

    class Held:
        pass

    held = Held()
    gone = weakref.ref(held)
    call = module.Call(lambda _, held=held: held is not None, module.NO_LOCK)  # type: ignore[misc]
    del held
    call.run()
    assert call.result and gone() is None


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
        with lock:  # abandoned work releases it, or never takes it
            pass
    assert points > 5 and results[-1] == 5
    for _ in range(1000):
        if not module._calls:
            return
        time.sleep(0.01)
    raise AssertionError(module._calls)


def test_what_waits_for_the_lock_does_not_begin_after_an_interrupt() -> None:
    lock, began = threading.RLock(), []

    call = module.Call(lambda _: began.append(1), lock)
    with lock:
        thread = threading.Thread(target=call.run)
        thread.start()
        assert call.withdraw()
    thread.join()
    assert not began and call.done


def no_thread(*_: object) -> None:
    raise RuntimeError("can't start new thread")


def no_memory_for_a_thread(*_: object) -> None:
    raise MemoryError


def no_memory_in_the_thread(*_: object) -> None:
    """The thread ends before the function's first line."""


def one_thread() -> Callable[[Callable[[], None], tuple[()]], object]:
    start, left = module._thread.start_new_thread, [1]
    return lambda *call: start(*call) if left and left.pop() else no_thread()


NO_THREADS: dict[str, Callable[..., object]] = {
    "no thread": no_thread, "no memory for a thread": no_memory_for_a_thread,
    "no memory in the thread": no_memory_in_the_thread,
}  # fmt: skip


@pytest.mark.parametrize("name", NO_THREADS)
def test_without_threads_it_runs_here(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.01)
    monkeypatch.setattr(module._thread, "start_new_thread", NO_THREADS[name])
    assert uninterrupted(lambda _: threading.get_ident()) == threading.get_ident()


def test_a_thread_that_begins_late_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Callable[[], None]] = []
    monkeypatch.setattr(module, "_PATIENCE", 0.01)
    monkeypatch.setattr(module._thread, "start_new_thread", lambda run, _: calls.append(run))
    began: list[int] = []
    uninterrupted(lambda _: began.append(1))
    (run,) = calls
    run()
    assert began == [1]


class Full(dict[int, object]):
    """A table that has no more memory."""

    def __setitem__(self, key: int, value: object) -> None:
        raise MemoryError


def test_no_memory_at_the_beginning_is_an_error_and_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(module, "_calls", Full())
        with pytest.raises(MemoryError):
            uninterrupted(lambda _: 1)
    assert uninterrupted(lambda _: 1) == 1


KERNELS = [
    KernelSource(f"k{n}", f"def k{n}(lo, hi, x):\n    for i in range(lo, hi):\n        x[i] = {n}\n", (F32,))
    for n in range(3)
]


@pytest.mark.parametrize("name", [*NO_THREADS, "one thread"])
def test_kernels_are_compiled_without_threads(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.01)
    monkeypatch.setattr(module._thread, "start_new_thread", NO_THREADS.get(name) or one_thread())
    monkeypatch.setattr(compile, "available_cpus", lambda: 2)
    for code in (compile.compile_kernels(KERNELS), uninterrupted(lambda _: compile.compile_kernels(KERNELS))):
        assert [object_file[:4] for object_file in code] == [b"\x7fELF"] * 3


def test_an_error_of_a_thread_that_compiles_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise SystemExit

    monkeypatch.setattr(compile, "spanning", exhausted)
    monkeypatch.setattr(compile, "_text_of", lambda *_: "")
    with pytest.raises(SystemExit):
        compile.compile_kernels(KERNELS)


LIMITED = """
import resource, sys
import numpy as np
import hloom, hloom.numpy as jnp
hloom.jit(lambda x: jnp.sin(x) * 2 + jnp.sort(x))(jnp.ones(7))
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]), -1))
try:
    hloom.jit(lambda x: jnp.cumsum(jnp.tanh(x) * 3.5) + jnp.sort(x))(np.arange(9.0, dtype=np.float32))
except MemoryError:
    pass
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
print(hloom.jit(lambda x: x + 1)(2.0))
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("left", [0, 100_000, 1_000_000])
def test_no_address_space(left: int) -> None:
    """Of threads that found no memory for their first frame Python prints a line."""
    try:
        out = python(LIMITED, str(left), environment={"HLOOM_CACHE_DIR": "off"}, timeout=60)
    except AssertionError as error:
        if "cannot allocate memory for thread-local data" in str(error):
            pytest.skip("the C library itself ends a process that has no memory for a thread's data")
        raise
    assert out == "3.0\n"
