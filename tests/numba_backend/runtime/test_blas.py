"""Matrix products against NumPy: transposes, types, leading dimensions, batches, threads; respect for limits."""

from __future__ import annotations

import ctypes
import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hloom.hlo.system import system
from hloom.numba_backend.runtime import blas, threads
from hloom.numba_backend.runtime.blas import BatchDimension, Gemm
from hloom.numba_backend.runtime.errors import ProgramError
from hloom.numba_backend.runtime.program import ProgramBuilder, pointer

from support.runtime_kernels import Guarded, python

DTYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}
TOLERANCE = {"f32": 1e-4, "f64": 1e-12, "c64": 1e-4, "c128": 1e-12}


@pytest.fixture(autouse=True)
def restore_threads() -> Iterator[None]:
    yield
    threads.set_num_threads(None)


def numbers(rng: np.random.Generator, dtype: str, *shape: int) -> np.ndarray:
    values = rng.standard_normal(shape)
    if dtype.startswith("c"):
        return (values + 1j * rng.standard_normal(shape)).astype(DTYPES[dtype])
    return values.astype(DTYPES[dtype])


def op(matrix: np.ndarray, transpose: str) -> np.ndarray:
    if transpose == "N":
        return matrix
    return matrix.swapaxes(-1, -2) if transpose == "T" else matrix.swapaxes(-1, -2).conj()


def check(
    dtype: str, m: int, n: int, k: int, ta: str = "N", tb: str = "N", pad: int = 0,
    alpha: complex = 1, beta: complex = 0, batch: tuple[int, ...] = (), shared_b: bool = False,
) -> None:  # fmt: skip
    """One product with rows padded by `pad` elements; the padding and the bytes around must stay as they were."""
    rng = np.random.default_rng([m, n, k])
    a_shape, b_shape = ((m, k) if ta == "N" else (k, m)), ((k, n) if tb == "N" else (n, k))
    a = Guarded(numbers(rng, dtype, *batch, a_shape[0], a_shape[1] + pad))
    b = Guarded(numbers(rng, dtype, *(() if shared_b else batch), b_shape[0], b_shape[1] + pad))
    c = Guarded(numbers(rng, dtype, *batch, m, n + pad))
    if beta == 0:
        c.array[..., :n] = np.nan  # must not be read
    before = c.array.copy()
    expected = alpha * (op(a.array[..., : a_shape[1]], ta) @ op(b.array[..., : b_shape[1]], tb))
    if beta:
        expected = expected + beta * c.array[..., :n]
    size = a.array.itemsize
    dimensions = tuple(
        BatchDimension(
            count, *(guarded.array.strides[d] // size if guarded.array.ndim > 2 else 0 for guarded in (a, b, c))
        )
        for d, count in enumerate(batch)
    )
    gemm = Gemm(dtype, m, n, k, ta, tb, a_shape[1] + pad, b_shape[1] + pad, n + pad, alpha, beta, dimensions)  # type: ignore[arg-type]
    builder = ProgramBuilder()
    builder.gemm(gemm, pointer(0), pointer(1), pointer(2))
    builder.build().run([a.address, b.address, c.address])
    np.testing.assert_allclose(c.array[..., :n], expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * max(k, 1))
    np.testing.assert_array_equal(c.array[..., n:], before[..., n:])
    for guarded in (a, b, c):
        guarded.check()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("ta", "tb"), list(itertools.product("NTC", "NTC")))
def test_transposes(dtype: str, ta: str, tb: str) -> None:
    check(dtype, 5, 7, 3, ta, tb)
    check(dtype, 6, 1, 9, ta, tb, pad=2)
    check(dtype, 33, 70, 129, ta, tb, pad=1)


@pytest.mark.parametrize(
    "sizes", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0), (1, 1, 1), (1, 64, 64), (64, 1, 64), (17, 31, 1)]
)
def test_small_and_empty(sizes: tuple[int, int, int]) -> None:
    for ta, tb in itertools.product("NT", "NT"):
        check("f32", *sizes, ta, tb)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [(1, 1, 5), (1, 7, 5), (7, 1, 5), (1, 1, 1), (3, 1, 0)])
def test_vectors(dtype: str, sizes: tuple[int, int, int]) -> None:
    """Products of a matrix and a vector, on either side; what the result holds before is not read."""
    for ta, tb in itertools.product("NTC", "NT"):
        for pad, batch in ((0, ()), (2, (3,))):
            check(dtype, *sizes, ta, tb, pad=pad, batch=batch)
            check(dtype, *sizes, ta, tb, pad=pad, alpha=0.5, beta=2, batch=batch, shared_b=True)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("sizes", [(1, 2001, 600), (2001, 1, 600), (1, 70, 20_000)])
def test_big_vectors_are_cut_without_seams(count: int, sizes: tuple[int, int, int]) -> None:
    threads.set_num_threads(count)
    for dtype, ta, tb in itertools.product(("f32", "c64"), "NT", "NT"):
        check(dtype, *sizes, ta, tb, pad=3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_alpha_and_beta(dtype: str) -> None:
    check(dtype, 9, 8, 7, alpha=-0.5, beta=1)
    check(dtype, 300, 200, 100, alpha=2, beta=0.25)
    if dtype.startswith("c"):
        check(dtype, 9, 8, 7, alpha=1 - 2j, beta=0.5j)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("sizes", [(512, 300, 257), (129, 1001, 300), (1, 4000, 300), (4000, 3, 100), (8, 8, 100_000)])
def test_big_products_are_cut_without_seams(count: int, sizes: tuple[int, int, int]) -> None:
    threads.set_num_threads(count)
    for ta, tb in itertools.product("NT", "NT"):
        check("f32", *sizes, ta, tb, pad=3)


@pytest.mark.parametrize("batch", [(1,), (3,), (2, 3), (5, 1, 4), (0,), (2, 0), (50,), (2, 2, 2, 2, 2, 2)])
@pytest.mark.parametrize("shared_b", [False, True])
def test_batches(batch: tuple[int, ...], shared_b: bool) -> None:
    check("f32", 6, 5, 4, "N", "T", batch=batch, shared_b=shared_b)
    check("f64", 64, 33, 65, "T", "N", pad=1, batch=batch, shared_b=shared_b)


@pytest.mark.parametrize("count, batch", [(2, 3), (4, 7), (16, 20)])
def test_a_small_batch_of_products_that_are_not_worth_a_thread(count: int, batch: int) -> None:
    """All together are: fewer than two a thread, and each is less than a piece."""
    threads.set_num_threads(count)
    check("f32", 80, 80, 64, batch=(batch,))


def test_a_batch_whose_dimensions_interleave() -> None:
    """Heads of attention: [row, head, column], with no copy to bring the head to the front."""
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((10, 4, 8)).astype(np.float32) for _ in range(2))
    out = np.zeros((4, 10, 10), np.float32)
    builder = ProgramBuilder()
    gemm = Gemm("f32", 10, 10, 8, "N", "T", 32, 32, 10, batch=(BatchDimension(4, 8, 8, 100),))
    builder.gemm(gemm, pointer(0), pointer(1), pointer(2))
    builder.build().run([q.ctypes.data, k.ctypes.data, out.ctypes.data])
    np.testing.assert_allclose(out, np.einsum("rhd,chd->hrc", q, k), rtol=1e-5, atol=1e-5)


def test_concurrent_products() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((200, 200)).astype(np.float32) for _ in range(2))
    builder = ProgramBuilder()
    builder.gemm(Gemm("f32", 200, 200, 200, "N", "N", 200, 200, 200), pointer(0), pointer(1), pointer(2))
    program = builder.build()
    start = threading.Barrier(4)

    def call(_: int) -> np.ndarray:
        start.wait()
        c = np.zeros((200, 200), np.float32)
        for _ in range(50):
            program.run([a.ctypes.data, b.ctypes.data, c.ctypes.data])
        return c

    with ThreadPoolExecutor(4) as pool:
        for c in pool.map(call, range(4)):
            np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def openblas_threads() -> int:
    get, _ = blas.thread_setting()
    if not get:
        pytest.skip("SciPy's BLAS is not OpenBLAS")
    return int(ctypes.CFUNCTYPE(ctypes.c_int)(get)())


def test_a_product_that_waits_for_the_lock_sleeps() -> None:
    """The holder may have lost its CPU: a thread that only spins keeps it from going on."""
    rng = np.random.default_rng(0)
    a, b = numbers(rng, "f32", 64, 64), numbers(rng, "f32", 64, 64)
    c = np.zeros((64, 64), np.float32)
    builder = ProgramBuilder()
    builder.gemm(Gemm("f32", 64, 64, 64, "N", "N", 64, 64, 64), pointer(0), pointer(1), pointer(2))
    program = builder.build()
    lock = ctypes.c_int64.from_address(threads.pool_address() + threads._BLAS + threads._BLAS_LOCK)
    thread = threading.Thread(target=program.run, args=([x.ctypes.data for x in (a, b, c)],))
    lock.value = 1
    thread.start()
    time.sleep(0.05)
    used = []
    for _ in range(5):
        before = time.process_time()
        time.sleep(0.1)
        used.append(time.process_time() - before)
    lock.value = 0
    thread.join()
    assert min(used) < 0.05  # other threads of this process may be busy for a while
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


@pytest.fixture
def other_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """SciPy's BLAS computes the products, as where NumPy's is old."""
    cached = (blas._numpys, blas._address, blas.thread_setting)
    for function in cached:
        function.cache_clear()
    monkeypatch.setattr(blas, "_RECENT", (10**6,))
    yield
    for function in cached:
        function.cache_clear()


@pytest.mark.parametrize("dtype", blas.ROUTINES)
def test_products_of_the_other_library(dtype: str, other_library: None) -> None:
    assert blas._numpys() is None
    check(dtype, 33, 70, 50)
    check(dtype, 33, 1, 50)
    assert openblas_threads() >= 1


def test_openblas_keeps_its_own_number_of_threads() -> None:
    before = openblas_threads()
    for _ in range(3):
        check("f32", 300, 300, 300)
    test_concurrent_products()
    assert openblas_threads() == before


@pytest.mark.parametrize("variable", ["OPENBLAS_NUM_THREADS", "HLOOM_NUM_THREADS"])
def test_limits_hold_for_products(variable: str) -> None:
    code = """
import os, time, numpy as np
from hloom.numba_backend.runtime.blas import Gemm
from hloom.numba_backend.runtime.program import ProgramBuilder, pointer
n = 512
a = np.ones((n, n), np.float32)
c = np.empty_like(a)
builder = ProgramBuilder()
builder.gemm(Gemm("f32", n, n, n, "N", "N", n, n, n), pointer(0), pointer(0), pointer(1))
program = builder.build()
bases = [a.ctypes.data, c.ctypes.data]
program.run(bases)
time.sleep(0.2)  # OpenBLAS's own threads spin when they are new
def others():
    ticks = 0
    for task in os.listdir("/proc/self/task"):
        if int(task) != os.getpid():
            fields = open(f"/proc/self/task/{task}/stat").read().rsplit(")")[1].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks
before, started = others(), time.process_time()
while time.process_time() < started + 1.5:
    program.run(bases)
assert (c == n).all()
print(100 * (others() - before) / os.sysconf("SC_CLK_TCK") / time.process_time())
"""
    assert float(python(code, environment={variable: "1"})) < 10  # per cent of the whole


def test_scipy_is_not_imported() -> None:
    code = """
import sys
from hloom.numba_backend.runtime.blas import Gemm
from hloom.numba_backend.runtime.program import ProgramBuilder, pointer
builder = ProgramBuilder()
builder.gemm(Gemm("f32", 2, 2, 2, "N", "N", 2, 2, 2), pointer(0), pointer(0), pointer(1))
builder.build()
print([name for name in sys.modules if name.startswith("scipy.linalg")])
import scipy.linalg.cython_blas
print(scipy.linalg.cython_blas.__name__)
"""
    # Numba itself may import scipy.linalg when it compiles; a process with stored functions does not compile.
    python(code)
    assert python(code).splitlines() == ["[]", "scipy.linalg.cython_blas"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("s32", 2, 2, 2, "N", "N", 2, 2, 2), "s32"),
        (("f32", 2, 3, 4, "N", "N", 3, 3, 3), "lda must be at least 4"),
        (("f32", 2, 3, 4, "T", "N", 1, 3, 3), "lda must be at least 2"),
        (("f32", 2, 3, 4, "N", "T", 4, 3, 3), "ldb must be at least 4"),
        (("f32", 2, 3, 4, "N", "N", 4, 3, 2), "ldc must be at least 3"),
        (("f32", 2**31, 3, 4, "N", "N", 4, 3, 3), "2\\*\\*31"),
        (("f32", 2, 3, -4, "N", "N", 4, 3, 3), "2\\*\\*31"),
        (("f32", 2, 2, 2, "N", "N", 2, 2, 2, 1, 0, (BatchDimension(1, 1, 1, 1),) * 7), "batch"),
    ],
)
def test_mistakes_are_refused(arguments: tuple[object, ...], says: str) -> None:
    with pytest.raises(ProgramError, match=says):
        Gemm(*arguments)  # type: ignore[arg-type]


def test_without_room_for_it_the_blas_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenBLAS would try for ever to get memory, while it is loaded."""

    blas._check_address_space()
    monkeypatch.setattr(type(system), "has_address_space", lambda *_: False)
    with pytest.raises(MemoryError, match=r"the BLAS needs \d+ MiB of address space"):
        blas._check_address_space()
