"""Native loops as rows of a program: kernels with memory of their own that look for interrupts."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hloom.numba_backend.runtime import dialect
from hloom.numba_backend.runtime.errors import KernelCompilationError, ProgramError
from hloom.numba_backend.runtime.executor import WATCH_WORDS
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.program import ProgramBuilder, pointer, size, watch

import hloom
from support.interrupted import BEGIN
from support.runtime_kernels import S64, compiled_kernel, python, run

F64 = Parameter("pointer", "f64")
SIZE = Parameter("size", "s64")

POWERS = KernelSource(
    "powers",
    """def powers(lo, hi, x, out, steps, watch):
    a = local_array(8, float64)
    b = local_array(3, int64)
    for i in range(lo, hi):
        for j in range(8):
            a[j] = x[i * 8 + j]
        b[1] = 0
        for step in range(steps):
            if interrupted(watch):
                return
            for j in range(8):
                a[j] = a[j] * 1.5 + 1.0
            b[1] = b[1] + 1
        for j in range(8):
            out[i * 8 + j] = a[j] + float64(b[1])
""",
    (F64, F64, SIZE, S64),
)


def powers(x: np.ndarray, steps: int) -> np.ndarray:
    for _ in range(steps):
        x = x * 1.5 + 1.0
    return x + steps


@pytest.mark.parametrize("grain", [0, 1])
@pytest.mark.parametrize("rows", [0, 1, 2, 37])
def test_a_native_loop_has_memory_of_its_own(rows: int, grain: int) -> None:
    builder = ProgramBuilder()
    builder.native_loop(POWERS, [pointer(0), pointer(1), size(5), watch()], rows, grain)
    program = builder.build()
    x = np.random.default_rng(0).random((rows, 8))
    out = np.zeros_like(x)
    run(program, x, out)
    np.testing.assert_allclose(out, powers(x, 5), rtol=1e-15)


def test_arrays_are_on_the_stack() -> None:
    text = to_llvm(POWERS, dialect.SCOPE, "one pass")
    assert "alloca [8 x double], align 64" in text
    assert "alloca [3 x i64], align 64" in text


def test_the_text_runs_under_plain_numba() -> None:
    scope = hloom.kernel_globals()
    exec(POWERS.source, scope)
    plain = numba.njit(error_model="numpy")(scope["powers"])
    x = np.random.default_rng(0).random((4, 8))
    out, none = np.zeros_like(x), np.zeros(WATCH_WORDS, np.int64)
    plain(0, 4, x.reshape(-1), out.reshape(-1), 5, none)
    np.testing.assert_allclose(out, powers(x, 5), rtol=1e-15)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a = local_array(0, float32)", "1 to 16384 elements"),
        ("a = local_array(20000, float32)", "1 to 16384 elements"),
        ("a = local_array(n, float32)", "literal"),
        ("a = local_array(4, 4)", "type of number"),
        ("if interrupted(n): return", "a pointer to int64"),
        ("if interrupted(x): return", "a pointer to int64"),
    ],
)
def test_wrong_texts_are_refused(line: str, reason: str) -> None:
    with pytest.raises(KernelCompilationError, match=reason):
        compiled_kernel(f"def wrong(lo, hi, x, n):\n    {line}\n", "wrong", (F64, SIZE))


def test_mistakes_are_refused() -> None:
    builder = ProgramBuilder()
    with pytest.raises(ProgramError, match="takes"):
        builder.native_loop(POWERS, [pointer(0)], 1)
    with pytest.raises(ProgramError, match="one watch"):
        builder.native_loop(POWERS, [pointer(0), pointer(1), size(5), pointer(2)], 1)
    with pytest.raises(ProgramError, match="one watch"):
        builder.native_loop(POWERS, [watch(), pointer(1), size(5), watch()], 1)
    with pytest.raises(ProgramError, match="one watch, for a pointer to s64"):
        builder.native_loop(POWERS, [watch(), pointer(1), size(5), pointer(0)], 1)
    with pytest.raises(ProgramError, match="negative"):
        builder.native_loop(POWERS, [pointer(0), pointer(1), size(5), watch()], -1)


def test_text() -> None:
    builder = ProgramBuilder()
    builder.native_loop(POWERS, [pointer(0), pointer(1), size(5), watch()], 3)
    line, *_ = builder.build().to_text().splitlines()
    assert line.split() == ["0", "native_loop", "powers", "[0]+0", "[1]+0", "5", "watch", "for", "3"]


LONG = (
    BEGIN
    + """
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.program import ProgramBuilder, pointer, size, watch

SOURCE = '''
def count(lo, hi, state, steps, watch):
    fuel = 20000
    s = state[0]
    for i in range(steps):
        s = s * 0.5 + 1.0
        fuel -= 1
        if fuel == 0:
            fuel = 20000
            if interrupted(watch):
                return
    state[0] = s
'''
KERNEL = KernelSource("count", SOURCE, (("pointer", "f64"), ("size", "s64"), ("pointer", "s64")))

def program(steps):
    builder = ProgramBuilder()
    builder.native_loop(KERNEL, [pointer(0), size(steps), watch()], 1)
    return builder.build()

def run(program):
    state = np.ones(1)
    program.run([state.ctypes.data])
    return state[0]

forever, brief = program(10**11), program(100_000)
"""
)

INTERRUPTED = """
late = []
for delay in (0.05, 0.12, 0.3):
    threading.Timer(delay, interrupt).start()
    started = time.monotonic()
    try:
        run(forever)
    except KeyboardInterrupt:
        late.append(time.monotonic() - started - delay)
    assert run(brief) == 2.0
assert len(late) == 3 and min(late) < 1 and max(late) < 20, late
print("done")
"""


def test_an_interrupt_stops_a_native_loop() -> None:
    assert python(LONG + INTERRUPTED).split() == ["done"]


THREADS = """
class Stop(Exception):
    pass

ended = []
def work():
    try:
        run(forever)
    except Stop:
        ended.append(run(brief))

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
threading.Timer(0.3, interrupt).start()
started = time.monotonic()
try:
    run(forever)
except KeyboardInterrupt:
    print("interrupted")
assert time.monotonic() - started < 20 and all(thread.is_alive() for thread in threads)
raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
for thread in threads:
    raise_in(ctypes.c_ulong(thread.ident), ctypes.py_object(Stop))
for thread in threads:
    thread.join()
assert ended == [2.0, 2.0] and run(brief) == 2.0
print("done")
"""


def test_native_loops_in_threads_stop_one_by_one() -> None:
    assert python(LONG + THREADS).split() == ["interrupted", "done"]


PARTS = """
from hloom.numba_backend.runtime.threads import set_num_threads
set_num_threads(2)
PARTED = '''
def parted(lo, hi, state, many, watch):
    for i in range(lo, hi):
        s = 1.0
        for step in range(many[i]):
            s = s * 0.5 + 1.0
            if step & 65535 == 0:
                if interrupted(watch):
                    return
        state[i] = s
'''
KERNEL = KernelSource("parted", PARTED, (("pointer", "f64"), ("pointer", "s64"), ("pointer", "s64")))
builder = ProgramBuilder()
builder.native_loop(KERNEL, [pointer(0), pointer(1), watch()], 2, 1)
parted = builder.build()

def both(*many):
    state, many = np.ones(2), np.array(many)
    parted.run([state.ctypes.data, many.ctypes.data])
    return state.tolist()

assert both(1000, 1000) == [2.0, 2.0]
late = []
for many in ((10**12, 10**12), (1000, 10**12), (10**12, 1000)):  # also where one thread only waits for the other
    threading.Timer(0.3, interrupt).start()
    started = time.monotonic()
    try:
        both(*many)
    except KeyboardInterrupt:
        late.append(time.monotonic() - started - 0.3)
    assert both(1000, 1000) == [2.0, 2.0]
assert len(late) == 3 and min(late) < 1 and max(late) < 20, late
print("done")
"""


def test_an_interrupt_stops_all_threads_of_a_native_loop() -> None:
    assert python(LONG + PARTS, environment={"HLOOM_NUM_THREADS": "2"}).split() == ["done"]
