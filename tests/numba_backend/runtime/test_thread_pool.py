"""The thread pool: limits, concurrent and nested calls, fork and spawn, exit, idle threads."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hloom.hlo.system import system
from hloom.numba_backend.runtime import threads
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.program import Program, ProgramBuilder, pointer

from support.runtime_kernels import ADD, F32, S64, python, run
from support.spawned import add_ones

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")
needs_tasks = pytest.mark.skipif(
    os.name != "posix" or not os.path.isdir("/proc/self/task"), reason="it counts threads in /proc"
)

HITS = KernelSource("hits", "def hits(lo, hi, n):\n    for i in range(lo, hi):\n        n[i] = n[i] + 1\n", (S64,))


@pytest.fixture(autouse=True)
def restore_threads() -> Iterator[None]:
    yield
    threads.set_num_threads(None)


def program(kernel: KernelSource, extent: int, grain: int) -> Program:
    builder = ProgramBuilder()
    builder.kernel(kernel, [pointer(base) for base in range(len(kernel.parameters))], extent, grain)
    return builder.build()


@pytest.mark.parametrize("count", [1, 2, None])
@pytest.mark.parametrize(("extent", "grain"), [(1, 1), (2, 1), (3, 1), (63, 2), (129, 64), (1000, 1), (100_003, 5000)])
def test_each_index_is_run_exactly_once(count: int | None, extent: int, grain: int) -> None:
    threads.set_num_threads(count)
    counts = np.zeros(extent + 8, np.int64)
    hits = program(HITS, extent, grain)
    for _ in range(50):
        run(hits, counts)
    assert (counts[:extent] == 50).all() and not counts[extent:].any()


def test_concurrent_callers() -> None:
    big = program(ADD, 1 << 15, 1 << 10)
    start = threading.Barrier(5)

    def call(value: int) -> bool:
        x, y, out = np.full(1 << 15, value, np.float32), np.ones(1 << 15, np.float32), np.zeros(1 << 15, np.float32)
        start.wait()
        for _ in range(200):
            out[:] = 0
            run(big, x, y, out)
            if not (out == value + 1).all():
                return False
        return True

    with ThreadPoolExecutor(5) as pool:
        assert all(pool.map(call, range(5)))


TASKS = """
before = len(os.listdir("/proc/self/task"))

def more_tasks():  # than before; the threads in which kernels are compiled and loaded end soon
    counts = [0]
    while counts[-20:] != counts[-1:] * 20:
        time.sleep(0.01)
        counts.append(len(os.listdir("/proc/self/task")) - before)
    return counts[-1]
"""


@needs_tasks
def test_two_threads_are_used() -> None:
    if threads.available_cpus() < 2:
        pytest.skip("one CPU")
    code = """
import os, numpy as np, time
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.program import ProgramBuilder, pointer
""" + TASKS + """
source = "def k(lo, hi, x):\\n for i in range(lo, hi):\\n  v = x[i]\\n"
source += "  for j in range(20000):\\n   v = v * x[i]\\n  x[i] = v\\n"
k = KernelSource("k", source, (("pointer", "f64"),))
builder = ProgramBuilder()
builder.kernel(k, [pointer(0)], 4096, 64)
program = builder.build()
x = np.ones(4096)
program.run([x.ctypes.data])
started = more_tasks()
busy = [int(open(f"/proc/self/task/{t}/stat").read().rsplit(")")[1].split()[11]) for t in os.listdir("/proc/self/task")]
print(started, sum(ticks > 0 for ticks in busy))
"""
    started, busy = python(code).split()
    assert int(started) == threads.available_cpus() - 1 and int(busy) >= 2


@needs_tasks
@pytest.mark.parametrize(
    ("variable", "expected"), [("1", "1 0"), ("999", "all"), ("two", "ValueError"), ("0", "ValueError")]
)
def test_environment_limit(variable: str, expected: str) -> None:
    code = """
import os, numpy as np, time
from hloom.numba_backend.runtime import threads
""" + TASKS + """
try:
    threads.pool_address()
    print(threads.get_num_threads(), more_tasks())
except ValueError as error:
    assert "HLOOM_NUM_THREADS" in str(error)
    print("ValueError")
"""
    if expected == "all":
        expected = f"{threads.available_cpus()} {threads.available_cpus() - 1}"
    assert python(code, environment={"HLOOM_NUM_THREADS": variable}).strip() == expected


@pytest.mark.parametrize(("pieces", "grain", "awake"), [(2, 1, 1), (3, 1, 2), (64, 1, 7), (8, 2, 1), (12, 2, 2)])
def test_no_more_workers_wake_than_have_pieces(pieces: int, grain: int, awake: int) -> None:
    """One piece where it is a single iteration, which may take long, otherwise two."""
    code = """
import sys, time, numpy as np
from hloom.numba_backend.runtime import threads
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.program import ProgramBuilder, pointer

pieces, grain, awake = map(int, sys.argv[1:])
source = "def k(lo, hi, x):\\n for i in range(lo, hi):\\n  for j in range(200000):\\n   x[i] = x[i] * 0.5 + 1\\n"
kernel = KernelSource("k", source, (("pointer", "f64"),))
builder = ProgramBuilder()
builder.kernel(kernel, [pointer(0)], pieces, grain)
program = builder.build()
x = np.zeros(pieces)
sleepers = threads.oversubscribe(8)
end, counts = time.monotonic() + 100, []
while counts.count(awake) < 3 and time.monotonic() < end:
    while sleepers() != 7:
        time.sleep(0.01)
    fewest = 7
    program.run([x.ctypes.data])
    seen = time.monotonic() + 0.02
    while time.monotonic() < seen:
        fewest = min(fewest, sleepers())
    if fewest < 7:
        counts.append(7 - fewest)
all_awake = counts.count(7) if awake < 7 else 0
print(awake in counts, all_awake <= len(counts) // 2, set(x.tolist()))
"""
    # On a busy machine a worker that was woken may run so late that it is counted in the next round, too.
    assert python(code, str(pieces), str(grain), str(awake)).strip() == "True True {2.0}"


def test_set_num_threads() -> None:
    threads.set_num_threads(1)
    assert threads.get_num_threads() == 1
    threads.set_num_threads(None)
    assert threads.get_num_threads() == threads.available_cpus()
    with pytest.raises(ValueError, match="at least 1"):
        threads.set_num_threads(0)


FORK = """
import os, signal, sys, numpy as np
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.program import ProgramBuilder, pointer
from support.signals import end_after
end_after(200)
k = KernelSource("k", "def k(lo, hi, x):\\n for i in range(lo, hi):\\n  x[i] = x[i] + 1\\n", (("pointer", "f32"),))
builder = ProgramBuilder()
builder.kernel(k, [pointer(0)], 1 << 16, 1 << 10)
program = builder.build()
x = np.zeros(1 << 16, np.float32)
def work():
    for _ in range(100):
        program.run([x.ctypes.data])
if sys.argv[1] == "before":
    work()
children = []
for _ in range(3):
    child = os.fork()
    if not child:
        signal.alarm(200)
        x[:] = 0
        work()
        grandchild = os.fork()
        if not grandchild:
            signal.alarm(200)
            work()
            os._exit(0 if (x == 200).all() else 1)
        ok = os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]) == 0
        os._exit(0 if ok and (x == 100).all() else 1)
    children.append(child)
    work()
print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


@needs_fork
@pytest.mark.parametrize("when", ["before", "never"])
def test_fork(when: str) -> None:
    assert python(FORK, when).split() == ["0", "0", "0"]


@needs_fork
def test_fork_while_another_thread_runs() -> None:
    code = """
import os, signal, threading, numpy as np
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.program import ProgramBuilder, pointer
signal.alarm(200)
k = KernelSource("k", "def k(lo, hi, x):\\n for i in range(lo, hi):\\n  x[i] = x[i] + 1\\n", (("pointer", "f32"),))
builder = ProgramBuilder()
builder.kernel(k, [pointer(0)], 1 << 16, 1 << 10)
program = builder.build()
stop = False
def work():
    y = np.zeros(1 << 16, np.float32)
    while not stop:
        program.run([y.ctypes.data])
thread = threading.Thread(target=work)
thread.start()
status = []
for _ in range(10):
    child = os.fork()
    if not child:
        x = np.zeros(1 << 16, np.float32)
        for _ in range(20):
            program.run([x.ctypes.data])
        os._exit(0 if (x == 20).all() else 1)
    status.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop = True
thread.join()
print(set(status))
"""
    assert python(code).strip() == "{0}"


@pytest.mark.parametrize("before", [0, 3])
def test_spawned_processes(before: int) -> None:
    """As `test_fork`, where processes start anew: the parent's pool runs before, and while they do."""
    expected = (system.name, {float(before)})
    assert add_ones(before) == expected
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        waiting = [pool.apply_async(add_ones, (20,)) for _ in range(4)]
        assert add_ones(before) == expected
        assert [one.get(200) for one in waiting] == [(system.name, {20.0})] * 4
    assert add_ones(before) == expected


def test_exit_while_workers_sleep_or_spin() -> None:
    code = FORK.split("if sys.argv")[0] + "work()\nprint('done')\n"
    for _ in range(3):
        assert python(code).strip() == "done"


def test_idle_workers_use_no_cpu() -> None:
    """Soon after a program: on a busy machine it may take a while until each worker has had its turn to go to sleep."""
    run(program(HITS, 1 << 16, 1 << 10), np.zeros(1 << 16, np.int64))
    for _ in range(20):
        before = time.process_time()
        time.sleep(0.2)
        if time.process_time() - before < 0.05:
            return
    raise AssertionError("still busy after four seconds")


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals reach no thread of the system")
def test_workers_get_no_signals() -> None:
    """A signal must interrupt the main thread's system call, so no worker may take it."""
    code = (
        FORK.split("if sys.argv")[0]
        + """
import time
work()
signal.signal(signal.SIGUSR1, lambda *_: (_ for _ in ()).throw(InterruptedError()))
import threading
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
started = time.monotonic()
try:
    time.sleep(120)
except InterruptedError:
    print(time.monotonic() - started < 60)
"""
    )
    assert python(code).strip() == "True"


def test_float32_sums_do_not_depend_on_the_number_of_threads() -> None:
    x, y = np.random.default_rng(1).standard_normal((2, 100_001)).astype(np.float32)
    results = []
    for count in (1, 2):
        threads.set_num_threads(count)
        out = np.zeros_like(x)
        run(program(KernelSource("add", ADD.source, (F32,) * 3), x.size, 1000), x, y, out)
        results.append(out)
    np.testing.assert_array_equal(*results)


def test_ranges_are_not_cut_for_a_while_after_a_worker_was_late() -> None:
    code = """
import ctypes, threading, time
from hloom.numba_backend.runtime import threads

threads.oversubscribe(2)
pool = threads.pool_address()
delay, ranges = 0.5, []

@ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
def kernel(low, high, arguments):
    ranges.append((low, high))
    if threading.current_thread() is not threading.main_thread():
        time.sleep(delay)
    else:
        time.sleep(0.01)  # so that the worker gets its part
    return 0

run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 6)(
    ctypes.c_int64.from_address(pool + threads.RUN_PARALLEL).value
)

def call():
    ranges.clear()
    run(pool, ctypes.cast(kernel, ctypes.c_void_p).value, 0, 2, 1, 0)
    assert sorted(sum((list(range(*r)) for r in ranges), [])) == [0, 1]
    return len(ranges)

while True:  # until the worker took its part: it wakes late on a busy machine
    started = time.perf_counter()
    call()
    if time.perf_counter() - started > delay:
        break
print(call(), call())
delay = 0
time.sleep(1)  # longer than the wait
print(call())
"""
    assert python(code).split() == ["1", "1", "2"]
