"""The thread pool: a few native threads that help the executor with one row of the program at a time.

Numba's own threading layers do not fit: workqueue aborts on concurrent calls, OpenMP dies in a forked child, and both
need Numba imported. These are plain threads of the system that run one native function (`worker`). They hold no Python
state, so the interpreter does not know them: they handle no signals, sleep when there is no work, and end with the
process.

A worker without work polls for 30 us, then polls for less than a millisecond whenever nothing else wants its CPU
(sched_yield), and then sleeps; waking a sleeping thread takes 50 us, and much longer on a busy machine. It does not
fall asleep while a range is being worked on: a worker that woke too late for this range would be too late for the next
one.

`run_parallel` cuts a range into chunks, and gives each thread a part of them: the first part to the caller, the others
to the workers by their numbers. A thread takes the chunks of its part, and then those that are left of other parts. So
its caches still have the part of an array that it wrote for the row before, or read in the call before. Where two
threads swap halves of an array each time, its sum takes 1.06 of the time at 16 MB, and 1.4 at 1 MB. A worker that wakes
late finds no work, so the caller never waits for a worker to wake. While it waits for the workers' last chunks of a
native loop, it looks for interrupts (`watch`, else 0); the workers, which Python does not know, cannot. When the pool
is busy (another thread's call, or a nested one) the caller runs the whole range itself.

A range has a ticket for each worker that it has chunks for. Chunks of several iterations may be short: each thread then
has two of them, but for a second one, which has what there is. The caller wakes two sleepers at most, and each of them
that gets a ticket two more, so the caller's work does not grow with the number of workers. Without a ticket a worker
only reads, and goes on towards its sleep.

A cache line that one core wrote takes another one 50 to 250 ns, and a short range is as long as a few of them. So the
words of a range are on one line, which a worker reads when it sees that there is a new one, and the `gate` among them
is three numbers: of the range, of the tickets left, and of the workers inside. A worker takes a ticket and is inside by
one exchange. The counts of the first eight parts are on lines of their own.

On a busy machine a worker may lose its CPU in the middle of a chunk, and the caller waits for the other program's time
slice. When the caller waited longer for a range than it worked on it, ranges are not cut for as long as it waited, and
for twice as long as before each time that it happens again, up to 64 times its wait. After a short wait the caller
sleeps, so that the worker can run.

The number of threads is the smallest of: the CPUs this process may use (affinity, cgroup quota), `HLOOM_NUM_THREADS`,
and `set_num_threads`. After a fork the child has its own pool, which starts when it is first needed.

Handlers of XLA's typed FFI may schedule tasks (ffi.py). They wait in a queue, in the order in which they came; workers
take them when they have no chunks, and do nothing else until none is left, and so do threads that wait for a future.

Here are also the doors to the BLAS, since they need the pool's block: `enter_blas` and `leave_blas` are called before
and after all products and factorisations of programs. The first that enters sets OpenBLAS's number of threads, the last
that leaves sets it back. Products and factorisations may have libraries of their own (`blas.py`), so there are two
doors, and the function that sets the number says which one it is. A fork, which would copy OpenBLAS's locks as they
are, closes both and waits until all have left.
"""

from __future__ import annotations

import ctypes
import os
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...hlo.support.forking import Order, fork_lock, kept_out_of_forks
from ...hlo.support.named_address import NamedAddress
from ...hlo.system import at_fork, system
from ..cpus import available_cpus
from ..machine import this_machine
from .executor import API, CALL_PYTHON, LOOK, STATUS, native_function
from .store import default_store

_SPIN_SECONDS = 30e-6
_YIELDS = 1000
_POLITE_YIELDS = 20
_NAP_SECONDS = 50e-6
_MOST_PENALTY = 64  # waits
_TASK_BYTES = 24  # the next task, the function, its argument

# Byte offsets in the pool's block. Words that several threads write are on separate cache lines.
RUN_PARALLEL, THREADS, SPINS = 8, 16, 24
_LOCK, _UNLOCK, _WAIT, _SIGNAL, _YIELD = 32, 40, 48, 56, 64
_BUSY, _GATE, _JOB, _NUMBERS, _SLEEPERS = 128, 192, 200, 384, 448
_CHUNKS, _OF_PART, _PARTS = _JOB + 32, _JOB + 40, _JOB + 48
_RANGE, _TICKET, _INSIDE = 1 << 32, 1 << 16, 1  # units of the numbers in the gate, from the upper bits to the lower
_TICKETS = _RANGE - _TICKET  # the bits of the tickets
_BLAS, _OTHER_BLAS = 640, 744  # doors
_BLAS_CLOSED, ENTER_BLAS, LEAVE_BLAS, _BLAS_SET = 664, 672, 680, 688
_BLAS_LOCK, _BLAS_DEPTH, _BLAS_SAVED = 0, 8, 16  # of a door
_SERIAL, _PENALTY, _NAP, _NAP_TIME = 704, 712, 720, 728
_MUTEX, _CONDITION = 768, 896
_TASK_LOCK, _FIRST_TASK, _LAST_TASK, TASKS, RUN_TASKS, SCHEDULE = 960, 968, 976, 984, 992, 1000
_TAKEN, _MOST_PARTS = 1024, 64  # how many chunks of each part were taken
_LINES = 8  # of these counts


def _taken(part: str) -> str:
    """The address of the count of a part."""
    return f"pool + {_TAKEN} + ({part} & {_LINES - 1}) * 64 + ({part} >> {_LINES.bit_length() - 1}) * 8"


_TAKE_CHUNKS = f"""
        entry_ = load(pool + {_JOB})
        arguments_ = load(pool + {_JOB + 8})
        extent_ = load(pool + {_JOB + 16})
        step_ = load(pool + {_JOB + 24})
        chunks_ = load(pool + {_CHUNKS})
        of_part_ = load(pool + {_OF_PART})
        parts_ = load(pool + {_PARTS})
        chunk = 0
        for visited in range(parts_):
            first = part * of_part_
            count = smaller(of_part_, chunks_ - first)
            taken = {_taken("part")}
            if visited != 0:
                chunk = atomic_load(taken)
            while chunk < count:
                chunk = atomic_add(taken, 1)
                if chunk < count:
                    lo = (first + chunk) * step_
                    call_kernel(entry_, lo, smaller(lo + step_, extent_), arguments_)
            part += 1
            if part == parts_:
                part = 0
"""
"""Begins with the part `part`, whose count it does not read first: the line is this thread's."""


def back_off(indent: int) -> str:
    """Statements for a loop that counts its iterations in `waited`: spin, then yield, then sleep. A thread that has
    lost its CPU must get it back, or the event that the loop waits for does not happen."""
    lines = f"""
waited += 1
if waited <= load(pool + {SPINS}):
    pause()
elif waited <= load(pool + {SPINS}) + {_POLITE_YIELDS}:
    call0(load(pool + {_YIELD}))
else:
    {system.nap_text(f'load(pool + {_NAP})', f'pool + {_NAP_TIME}')}"""
    return textwrap.indent(lines[1:], " " * indent)


def _wake(indent: int, second: str = "") -> str:
    """Statements that wake a sleeping worker, and under the condition `second` another one."""
    lines = f"""
call1(load(pool + {_LOCK}), pool + {_MUTEX})
call1(load(pool + {_SIGNAL}), pool + {_CONDITION})
"""
    if second:
        lines += f"if {second}:\n    call1(load(pool + {_SIGNAL}), pool + {_CONDITION})\n"
    lines += f"call1(load(pool + {_UNLOCK}), pool + {_MUTEX})"
    return textwrap.indent(lines[1:], " " * indent)


_RUN_PARALLEL = f"""
def run_parallel(pool, entry, arguments, extent, grain, watch):
    threads = load(pool + {THREADS})
    serial = atomic_load(pool + {_SERIAL})
    if serial != 0:
        serial -= cycles()
        if serial > 0 and serial <= load(pool + {_PENALTY}):
            threads = 1
        else:
            atomic_store(pool + {_SERIAL}, 0)
    if threads < 2 or extent < grain + grain or compare_exchange(pool + {_BUSY}, 0, 1) == 0:
        call_kernel(entry, 0, extent, arguments)
    else:
        chunks = quotient(extent, grain)
        if chunks > threads * 4:
            chunks = threads * 4
        step = quotient(extent + chunks - 1, chunks)
        if step >= 64:
            step = (step + 63) & -64
        store(pool + {_JOB}, entry)
        store(pool + {_JOB + 8}, arguments)
        store(pool + {_JOB + 16}, extent)
        store(pool + {_JOB + 24}, step)
        chunks = quotient(extent + step - 1, step)
        store(pool + {_CHUNKS}, chunks)
        tickets = smaller(threads, chunks) - 1
        if grain > 1:
            tickets = smaller(tickets, quotient(chunks, 2) - 1)
        if tickets < 1:
            tickets = 1
        parts = smaller(tickets + 1, {_MOST_PARTS})
        of_part = quotient(chunks + parts - 1, parts)
        parts = quotient(chunks + of_part - 1, of_part)
        store(pool + {_OF_PART}, of_part)
        store(pool + {_PARTS}, parts)
        for part in range(parts):
            store({_taken("part")}, 0)
        started = cycles()
        atomic_add(pool + {_GATE}, {_RANGE} + tickets * {_TICKET})
        if atomic_load(pool + {_SLEEPERS}) > 0:
{_wake(12, "tickets > 1")}
        part = 0
{_TAKE_CHUNKS}
        worked = cycles()
        gate = atomic_load(pool + {_GATE})
        while gate & {_TICKETS} != 0:
            compare_exchange(pool + {_GATE}, gate, gate & {~_TICKETS})
            gate = atomic_load(pool + {_GATE})
        waited = 0
        while atomic_load(pool + {_GATE}) & {_TICKET - 1} != 0:
{back_off(12)}
            if watch != 0 and waited > load(pool + {SPINS}):
                if atomic_load(watch + {8 * STATUS}) == 0:
                    api = load(watch + {8 * API})
                    status = call3(load(watch + {8 * LOOK}), api, load(watch + {8 * CALL_PYTHON}), watch)
                    if status != 0:
                        atomic_store(watch + {8 * STATUS}, status)
        penalty = load(pool + {_PENALTY})
        lost = cycles() - worked
        if waited > load(pool + {SPINS}) + {_POLITE_YIELDS} and lost > worked - started:
            penalty = smaller(penalty + penalty, lost * {_MOST_PENALTY})
            if penalty < lost:
                penalty = lost
            atomic_store(pool + {_SERIAL}, worked + lost + penalty)
        else:
            penalty = quotient(penalty, 2)
        store(pool + {_PENALTY}, penalty)
        atomic_store(pool + {_BUSY}, 0)
    return 0
"""

_WORKER = f"""
def worker(pool):
    number = atomic_add(pool + {_NUMBERS}, 1)
    seen = 0
    waited = 0
    while load(pool + {RUN_PARALLEL}) != 0:
        spins = load(pool + {SPINS})
        gate = atomic_load(pool + {_GATE})
        while gate >> 32 == seen and waited < spins + {_YIELDS}:
            if waited < spins:
                pause()
                waited += 1
            else:
                call0(load(pool + {_YIELD}))
                if atomic_load(pool + {_BUSY}) == 0:
                    waited += 1
            gate = atomic_load(pool + {_GATE})
        woken = 0
        if gate >> 32 == seen:
            call1(load(pool + {_LOCK}), pool + {_MUTEX})
            atomic_add(pool + {_SLEEPERS}, 1)
            gate = atomic_load(pool + {_GATE})
            while gate >> 32 == seen:
                {system.wait_text(f'load(pool + {_WAIT})', f'pool + {_CONDITION}', f'pool + {_MUTEX}')}
                gate = atomic_load(pool + {_GATE})
            atomic_add(pool + {_SLEEPERS}, -1)
            call1(load(pool + {_UNLOCK}), pool + {_MUTEX})
            woken = 1
        seen = gate >> 32
        if gate & {_TICKETS} != 0:
            waited = 0
            inside = 0
            while inside == 0 and gate & {_TICKETS} != 0:
                inside = compare_exchange(pool + {_GATE}, gate, gate + {_INSIDE - _TICKET})
                if inside == 0:
                    gate = atomic_load(pool + {_GATE})
            if inside != 0:
                left = (gate & {_TICKETS}) - {_TICKET}
                if woken != 0 and left > 0 and atomic_load(pool + {_SLEEPERS}) > 0:
{_wake(20, f"left > {_TICKET}")}
                others = load(pool + {_PARTS}) - 1
                part = number - quotient(number, others) * others + 1
{textwrap.indent(_TAKE_CHUNKS, " " * 8)}
                atomic_add(pool + {_GATE}, {-_INSIDE})
        if atomic_load(pool + {TASKS}) != 0:
            waited = 0
            call1(load(pool + {RUN_TASKS}), pool)
    return 0
"""

_RUN_TASKS_TEXT = f"""
def run_tasks(pool):
    task = 1
    while task != 0:
        waited = 0
        while compare_exchange(pool + {_TASK_LOCK}, 0, 1) == 0:
{back_off(12)}
        task = load(pool + {_FIRST_TASK})
        if task != 0:
            store(pool + {_FIRST_TASK}, load(task))
            atomic_add(pool + {TASKS}, -1)
        atomic_store(pool + {_TASK_LOCK}, 0)
        if task != 0:
            function = load(task + 8)
            argument = load(task + 16)
            c_free(task)
            call1(function, argument)
    return 0
"""

_SCHEDULE_TEXT = f"""
def schedule(pool, function, argument):
    task = 0
    if load(pool + {THREADS}) > 1:
        task = c_malloc({_TASK_BYTES})
    if task == 0:
        call1(function, argument)
    else:
        store(task, 0)
        store(task + 8, function)
        store(task + 16, argument)
        waited = 0
        while compare_exchange(pool + {_TASK_LOCK}, 0, 1) == 0:
{back_off(12)}
        if load(pool + {_FIRST_TASK}) == 0:
            store(pool + {_FIRST_TASK}, task)
        else:
            store(load(pool + {_LAST_TASK}), task)
        store(pool + {_LAST_TASK}, task)
        atomic_add(pool + {TASKS}, 1)
        atomic_store(pool + {_TASK_LOCK}, 0)
        atomic_add(pool + {_GATE}, {_RANGE})
        if atomic_load(pool + {_SLEEPERS}) > 0:
{_wake(12)}
    return 0
"""

_DOOR = f"""
    if load(pool + {_BLAS_SET}) == 0:
        compare_exchange(pool + {_BLAS_SET}, 0, set)
    door = pool + {_BLAS}
    if set == 0 or load(pool + {_BLAS_SET}) != set:
        door = pool + {_OTHER_BLAS}"""

_ENTER_BLAS = f"""
def enter_blas(pool, get, set, threads):{_DOOR}
    waited = 0
    locked = 0
    while locked == 0:
        if atomic_load(pool + {_BLAS_CLOSED}) == 0:
            locked = compare_exchange(door + {_BLAS_LOCK}, 0, 1)
            if locked != 0 and atomic_load(pool + {_BLAS_CLOSED}) != 0:
                locked = 0
                atomic_store(door + {_BLAS_LOCK}, 0)
        if locked == 0:
{back_off(12)}
    if set != 0 and load(door + {_BLAS_DEPTH}) == 0:
        store(door + {_BLAS_SAVED}, call0(get) & 0xffffffff)
        call1(set, smaller(threads, load(door + {_BLAS_SAVED})))
    store(door + {_BLAS_DEPTH}, load(door + {_BLAS_DEPTH}) + 1)
    allowed = smaller(load(pool + {THREADS}), load(door + {_BLAS_SAVED}))
    atomic_store(door + {_BLAS_LOCK}, 0)
    return allowed
"""

_LEAVE_BLAS = f"""
def leave_blas(pool, set):{_DOOR}
    waited = 0
    while compare_exchange(door + {_BLAS_LOCK}, 0, 1) == 0:
{back_off(8)}
    store(door + {_BLAS_DEPTH}, load(door + {_BLAS_DEPTH}) - 1)
    if set != 0 and load(door + {_BLAS_DEPTH}) == 0:
        call1(set, load(door + {_BLAS_SAVED}))
    atomic_store(door + {_BLAS_LOCK}, 0)
    return 0
"""

_CLOSE_BLAS = f"""
def close_blas(pool, closed):
    atomic_store(pool + {_BLAS_CLOSED}, closed)
    inside = atomic_load(pool + {_BLAS + _BLAS_LOCK}) + atomic_load(pool + {_BLAS + _BLAS_DEPTH})
    inside += atomic_load(pool + {_OTHER_BLAS + _BLAS_LOCK}) + atomic_load(pool + {_OTHER_BLAS + _BLAS_DEPTH})
    return inside
"""

_SPIN = """
def spin(count):
    for _ in range(count):
        pause()
    return 0
"""

POOL_FUNCTIONS = (
    native_function("run_parallel", _RUN_PARALLEL, 6),
    native_function("worker", _WORKER, 1),
    native_function("spin", _SPIN, 1),
    native_function("enter_blas", _ENTER_BLAS, 4),
    native_function("leave_blas", _LEAVE_BLAS, 2),
    native_function("close_blas", _CLOSE_BLAS, 2),
    native_function("run_tasks", _RUN_TASKS_TEXT, 1),
    native_function("schedule", _SCHEDULE_TEXT, 3),
)
"""The functions that must be compiled before the pool can start."""


class _Pool:
    """The pool of this process. Its block is never freed: workers look at it as long as the process lives."""

    def __init__(self) -> None:
        self._lock = fork_lock(Order.POOL)
        self._asked: int | None = None
        self.pointer = ctypes.c_int64(0)
        self._workers = 0

    def reset(self) -> None:
        """For a forked child, which has no workers. If a callback forked it, the program that called the callback goes
        on with the old block."""
        if self.pointer.value:
            _write(self.pointer.value, THREADS, 1)
        self.pointer.value = 0
        self._workers = 0

    def address(self) -> int:
        """The pool's block; the first call starts the workers."""
        if self.pointer.value:
            return self.pointer.value
        with self._lock:
            if not self.pointer.value:
                block = self._create()
                self.resize(block, self.threads())
                self.pointer.value = block
        return self.pointer.value

    def threads(self) -> int:
        limit = min(available_cpus(), this_machine().cores)
        named = os.environ.get("HLOOM_NUM_THREADS", "")
        if named:
            if not named.isdecimal() or int(named) < 1:
                raise ValueError(f"HLOOM_NUM_THREADS must be a positive integer, got {named!r}")
            limit = min(limit, int(named))
        return limit if self._asked is None else min(limit, self._asked)

    def ask(self, count: int | None) -> None:
        if count is not None and count < 1:
            raise ValueError(f"the number of threads must be at least 1, got {count}")
        with self._lock:
            self._asked = count
            if self.pointer.value:
                self.resize(self.pointer.value, self.threads())

    @contextmanager
    def without_products(self) -> Iterator[None]:
        """Within the block, no program is in the BLAS."""
        block = self.pointer.value
        if not block:
            yield
            return
        close = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(self._close_address)
        try:
            while close(block, 1):
                time.sleep(_NAP_SECONDS)
            yield
        finally:
            close(block, 0)

    def _create(self) -> int:
        functions = default_store().get_many(POOL_FUNCTIONS)
        run_parallel, self._worker_address, self._spin_address, enter, leave, self._close_address = functions[:6]
        run_tasks, schedule = functions[6:]
        block: int = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)(system.c_address("calloc"))(
            _TAKEN + 8 * _MOST_PARTS + 64, 1
        )
        if not block:
            raise MemoryError("no memory for the thread pool")
        block = (block + 63) & -64
        _write(block, RUN_PARALLEL, run_parallel)
        _write(block, ENTER_BLAS, enter)
        _write(block, LEAVE_BLAS, leave)
        _write(block, RUN_TASKS, run_tasks)
        _write(block, SCHEDULE, schedule)
        _write(block, THREADS, 1)
        for offset, name in (
            (_LOCK, "lock"), (_UNLOCK, "unlock"), (_WAIT, "wait"), (_SIGNAL, "signal"), (_YIELD, "yield"),
            (_NAP, "nap"),
        ):  # fmt: skip
            _write(block, offset, system.native_address(name))
        for index, word in enumerate(system.nap_words):
            _write(block, _NAP_TIME + 8 * index, word)
        system.prepare_waiting(block + _MUTEX, block + _CONDITION)
        return block

    def resize(self, block: int, threads: int) -> None:
        if threads > 1 and not self._workers:
            _write(block, SPINS, _spins(self._spin_address))
        while self._workers < threads - 1:
            if not system.start_thread(self._worker_address, block):
                threads = self._workers + 1
                break
            self._workers += 1
        _write(block, THREADS, threads)


def _write(block: int, offset: int, value: int) -> None:
    ctypes.c_int64.from_address(block + offset).value = value


def _spins(function: int) -> int:
    """The number of pause instructions that take about as long as waking a thread."""
    spin = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(function)
    spin(100)
    started = time.perf_counter()
    spin(1000)
    return max(100, int(1000 * _SPIN_SECONDS / (time.perf_counter() - started)))


_pool = _Pool()
at_fork(after_in_child=_pool.reset)
kept_out_of_forks(Order.PRODUCTS, _pool.without_products)


def set_num_threads(count: int | None) -> None:
    """Use at most `count` threads from now on; None lifts the limit. Never more than `available_cpus()`."""
    _pool.ask(count)


def oversubscribe(count: int) -> Callable[[], int]:
    """Start a pool of so many threads, also on fewer CPUs, to see how a pool behaves on a larger machine. The function
    tells how many workers sleep, and lifts the penalty for waiting."""
    block = _pool.address()
    _pool.resize(block, count)

    def sleepers() -> int:
        for offset in (_SERIAL, _PENALTY):
            _write(block, offset, 0)
        return ctypes.c_int64.from_address(block + _SLEEPERS).value

    return sleepers


def get_num_threads() -> int:
    """The largest number of threads for one row of a program."""
    return _pool.threads()


def pool_pointer(name: str = "pointer") -> int:
    """The address at which native code finds the address of the pool's block, or 0 when there is no pool yet. `name`:
    of its NamedAddress."""
    return NamedAddress(ctypes.addressof(_pool.pointer), "pool", name)


def pool_address() -> int:
    """The block to give to the executor. Starts the workers when there are none yet."""
    return _pool.address()
