"""Costs of the native runtime: compiling and loading kernels, calling programs, threads, matrix products, memory.

    python benchmarks/runtime_bench.py [compile load call threads cores gemm memory]

Medians of several runs, and the best in parentheses; on a busy machine the best is closer to the truth.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
from hloom.numba_backend.runtime import blas, memory, threads
from hloom.numba_backend.runtime.blas import BatchDimension, Gemm
from hloom.numba_backend.runtime.compile import compile_kernels
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.program import ProgramBuilder, pointer

F32 = Parameter("pointer", "f32")
SIZE = Parameter("size", "s64")

SOURCES = {
    "add": (
        """def add(lo, hi, x, y, out):
    for i in range(lo, hi):
        out[i] = x[i] + y[i]
""",
        (F32, F32, F32),
    ),
    "exp": (
        """def exp_(lo, hi, x, out):
    for i in range(lo, hi):
        out[i] = exp(x[i])
""",
        (F32, F32),
    ),
    "softmax": (
        """def softmax(lo, hi, x, out, columns):
    for i in range(lo, hi):
        top = x[i * columns]
        for j in range(columns):
            top = reduce_max(top, x[i * columns + j])
        total = float32(0)
        for j in range(columns):
            e = exp(x[i * columns + j] - top)
            out[i * columns + j] = e
            total = reduce_add(total, e)
        scale = float32(1) / total
        for j in range(columns):
            out[i * columns + j] = out[i * columns + j] * scale
""",
        (F32, F32, SIZE),
    ),
    "layer norm": (
        """def layer_norm(lo, hi, x, bias, gain, shift, out, columns):
    for i in range(lo, hi):
        total = float32(0)
        for j in range(columns):
            v = x[i * columns + j] + bias[j]
            v = maximum(v * gain[j], shift[j])
            total = reduce_add(total, v)
        mean = total / float32(columns)
        squares = float32(0)
        for j in range(columns):
            v = x[i * columns + j] + bias[j]
            v = maximum(v * gain[j], shift[j])
            d = v - mean
            squares = reduce_add(squares, d * d)
        scale = rsqrt(squares / float32(columns) + float32(1e-5))
        for j in range(columns):
            v = x[i * columns + j] + bias[j]
            v = maximum(v * gain[j], shift[j])
            d = v - mean
            out[i * columns + j] = d * scale
""",
        (F32, F32, F32, F32, F32, SIZE),
    ),
}


def kernel(name: str, suffix: str = "") -> KernelSource:
    source, parameters = SOURCES[name]
    defined = source.split("(")[0].removeprefix("def ")
    return KernelSource(defined + suffix, source.replace(f"def {defined}", f"def {defined}{suffix}"), parameters)


def timed(call: Callable[[], object], runs: int = 15, seconds: float = 0.02) -> str:
    """Median and best time of one call, over `runs` runs of about `seconds` each."""
    call()
    started = time.perf_counter()
    call()
    repeats = max(1, int(seconds / (time.perf_counter() - started + 1e-9)))
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        for _ in range(repeats):
            call()
        times.append((time.perf_counter() - started) / repeats)
    return f"{shown(float(np.median(times)))} ({shown(min(times))})"


def shown(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.2f} {unit}"
    return f"{seconds * 1e6:.3f} us"


def section_compile() -> None:
    started = time.perf_counter()
    compile_kernels([kernel("add", "_first")])
    print(f"  first kernel of a process, with imports      {shown(time.perf_counter() - started)}")
    numbers = iter(range(10**6))
    for name in SOURCES:
        print(f"  {name:44s} {timed(lambda name=name: compile_kernels([kernel(name, f'_{next(numbers)}')]), 9, 0)}")
    batch = lambda: compile_kernels([kernel(name, f"_{next(numbers)}") for name in SOURCES for _ in range(3)])  # noqa: E731
    print(f"  {f'a batch of {3 * len(SOURCES)}':44s} {timed(batch, 5, 0)}")
    from numba import njit, types  # after the lines above, which must pay for the import

    namespace: dict[str, object] = {}
    exec(SOURCES["add"][0], namespace)
    element = types.CPointer(types.float32)
    signature = types.void(types.int64, types.int64, element, element, element)
    plain = lambda: njit([signature], error_model="numpy", _nrt=False)(namespace["add"])  # noqa: E731
    print(f"  {'for comparison, add with numba.njit':44s} {timed(plain, 9, 0)}")


LOAD = """
import sys, time
started = time.perf_counter()
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.store import KernelStore
imported = time.perf_counter()
store = KernelStore(sys.argv[1])
source = "def k{}(lo, hi, x):\\n    for i in range(lo, hi):\\n        x[i] = x[i] * x[i]\\n"
kernels = [KernelSource(f"k{i}", source.format(i), (("pointer", "f32"),)) for i in range(40)]
store.get_many(kernels[:1])
first = time.perf_counter()
store.get_many(kernels[1:])
last = time.perf_counter()
print(f"{store.statistics.compiled} {first - imported} {(last - first) / 39} {imported - started}")
"""


def section_load() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            done = subprocess.run([sys.executable, "-c", LOAD, folder], capture_output=True, text=True, check=True)
    compiled, first, other, imports = done.stdout.split()
    assert compiled == "0"
    print(f"  imports                                      {shown(float(imports))}")
    print(f"  first stored kernel of a process             {shown(float(first))}")
    print(f"  each further one                             {shown(float(other))}")


def section_call() -> None:
    x, y, out = np.ones(8, np.float32), np.ones(8, np.float32), np.zeros(8, np.float32)
    bases = [array.ctypes.data for array in (x, y, out)]
    for count in (1, 20):
        builder = ProgramBuilder()
        for _ in range(count):
            builder.kernel(kernel("add"), [pointer(0), pointer(1), pointer(2)], 8)
        program = builder.build()
        print(f"  program of {count:2d} tiny kernels                   {timed(lambda: program.run(bases))}")  # noqa: B023
    count_down = KernelSource(
        "count_down",
        "def count_down(lo, hi, n, more):\n    n[0] = n[0] - 1\n    more[0] = n[0] > 0\n",
        (Parameter("pointer", "s64"), Parameter("pointer", "pred")),
    )
    builder = ProgramBuilder()
    top, done = builder.label(), builder.label()
    builder.copy(pointer(3), builder.constant(np.array([100])), 8)
    builder.place(top)
    builder.kernel(kernel("add"), [pointer(0), pointer(1), pointer(2)], 8)
    builder.kernel(kernel("add"), [pointer(0), pointer(1), pointer(2)], 8)
    builder.kernel(count_down, [pointer(3), pointer(4)], 1)
    builder.jump_if_false(pointer(4), done)
    builder.jump(top)
    builder.place(done)
    program = builder.build()
    counter, more = np.zeros(1, np.int64), np.zeros(1, np.uint8)
    bases = [*bases, counter.ctypes.data, more.ctypes.data]
    print(f"  loop of 100 times 3 tiny kernels, 2 jumps    {timed(lambda: program.run(bases))}")


def section_threads() -> None:
    for name, grain in (("add", 1 << 13), ("exp", 1 << 12)):
        for extent in (1 << 14, 1 << 17, 1 << 20):
            arrays = [np.random.default_rng(0).standard_normal(extent).astype(np.float32) for _ in range(3)]
            builder = ProgramBuilder()
            used = len(SOURCES[name][1])
            builder.kernel(kernel(name), [pointer(base) for base in range(used)], extent, grain)
            program = builder.build()
            bases = [array.ctypes.data for array in arrays]
            for count in (1, threads.available_cpus()):
                threads.set_num_threads(count)
                print(f"  {name} of {extent:8d} f32, {count} thread(s)           {timed(lambda: program.run(bases))}")  # noqa: B023
    threads.set_num_threads(None)


def section_cores() -> None:
    """Pools larger than this machine: the processor's time of a short range that finds all workers asleep."""
    for count in (2, 8, 64):
        sleepers = threads.oversubscribe(count)
        for pieces in (2, 256):
            builder = ProgramBuilder()
            builder.kernel(kernel("add"), [pointer(0), pointer(0), pointer(0)], 64 * pieces, 64)
            program, x = builder.build(), np.zeros(64 * pieces, np.float32)
            own, whole = [], []
            for _ in range(15):
                started = time.process_time(), time.thread_time()
                program.run([x.ctypes.data])
                own.append(time.thread_time() - started[1])
                time.sleep(0.02)
                while sleepers() < count - 1:
                    time.sleep(0.02)
                whole.append(time.process_time() - started[0])
            caller, all_ = shown(float(np.median(own))), shown(float(np.median(whole)))
            print(f"  {count:2d} threads, {pieces:3d} pieces: caller {caller:10s} all until they sleep {all_}")


def section_gemm() -> None:
    shapes = [(4, 4, 4), (16, 16, 16), (32, 32, 32), (64, 64, 64), (128, 128, 128), (128, 512, 784), (512, 512, 512)]
    rng = np.random.default_rng(0)
    blas.load()
    time.sleep(0.3)  # the threads of a BLAS spin when they are new, and after each of NumPy's products below
    for m, n, k in [*shapes, (1024, 1024, 1024)]:
        a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
        c = np.zeros((m, n), np.float32)
        builder = ProgramBuilder()
        builder.gemm(Gemm("f32", m, n, k, "N", "N", k, n, n), pointer(0), pointer(1), pointer(2))
        program = builder.build()
        bases = [array.ctypes.data for array in (a, b, c)]
        for count in sorted({1, threads.available_cpus()}):
            threads.set_num_threads(count)
            label = f"f32 {m}x{k} @ {k}x{n}, {count} thread(s)"
            program.run(bases)
            best = min(_seconds(lambda: program.run(bases)) for _ in range(20))  # noqa: B023
            print(f"  {label:44s} {timed(lambda: program.run(bases))}  {2e-9 * m * n * k / best:.0f} GFLOP/s")  # noqa: B023
    threads.set_num_threads(None)
    count, m = 256, 32
    a, b, c = (np.ones((count, m, m), np.float32) for _ in range(3))
    builder = ProgramBuilder()
    batch = (BatchDimension(count, m * m, m * m, m * m),)
    builder.gemm(Gemm("f32", m, m, m, "N", "N", m, m, m, batch=batch), pointer(0), pointer(1), pointer(2))
    program = builder.build()
    bases = [array.ctypes.data for array in (a, b, c)]
    print(f"  {f'f32 batch of {count} {m}x{m} @ {m}x{m}':44s} {timed(lambda: program.run(bases))}")
    print(f"  {'    numpy, the same batch':44s} {timed(lambda: np.matmul(a, b, out=c))}")
    for m, n, k in [*shapes, (1024, 1024, 1024)]:
        a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
        print(f"  {f'    numpy, {m}x{k} @ {k}x{n}':44s} {timed(lambda: a @ b)}")  # noqa: B023


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def section_memory() -> None:
    for nbytes in (64, 1 << 20):
        print(f"  allocate and free {nbytes:8d} bytes            {timed(lambda: memory.allocate(nbytes))}")  # noqa: B023
    builder = ProgramBuilder()
    builder.kernel(kernel("add"), [pointer(0), pointer(1), pointer(2)], 1 << 20, 1 << 15)
    program = builder.build()
    x = np.ones(1 << 20, np.float32)

    def recycled() -> None:
        out = memory.allocate(4 << 20)
        program.run([x.ctypes.data, x.ctypes.data, out.address])

    def fresh() -> None:
        out = np.empty(1 << 20, np.float32)
        program.run([x.ctypes.data, x.ctypes.data, out.ctypes.data])

    print(f"  add of 1M f32 into a recycled block          {timed(recycled)}")
    print(f"  add of 1M f32 into numpy.empty               {timed(fresh)}")


def main() -> None:
    prefix = "section_"
    sections = {name.removeprefix(prefix): value for name, value in globals().items() if name.startswith(prefix)}
    for name in sys.argv[1:] or sections:
        print(name)
        sections[name]()


if __name__ == "__main__":
    main()
