"""Compute matrix products with the BLAS of NumPy or SciPy and the runtime's threads, without importing SciPy.

A GEMM row (a row is an instruction of a program's table) computes, row-major and for every index of the batch,

    C[m, n] = alpha * op(A)[m, k] @ op(B)[k, n] + beta * C,      op(X) = X, X^T or X^H

The BLAS is NumPy's where that is an OpenBLAS of `_RECENT` or later: it is in the process already, and was often made
later than SciPy's. On a Zen 3, 0.3.31 takes 0.82 to 0.92 of the time of 0.3.30, from 64 x 64 to 512 x 512. LAPACK
(`lapack.py`) is SciPy's, whose integers have 32 bits. Each of the two has a number of threads of its own.

BLAS is column-major, so it is called for the transpose: C^T = op(B)^T op(A)^T, without any copy. Where C is a vector
(m = 1 or n = 1), GEMV computes it: GEMM would copy the matrix into blocks first, and take two to ten times as long.

The runtime's threads are used, not the threads of the BLAS: big products are cut along n or m, whichever is longer (or
along the batch), and each piece is one single-threaded call. Two halves together take 1.00 to 1.09 times as long as the
whole; a cut along n costs less than one along m. A vector times a matrix gets one piece a thread: narrower strips of
its rows are read at two thirds of the speed. OpenBLAS's own threads spin for tens of milliseconds after each product,
which slows the kernels that follow, and suffer much more on a busy machine. While any product runs, OpenBLAS is set to
one thread, and afterwards to its previous number, so that a limit from threadpoolctl or `OPENBLAS_NUM_THREADS` holds:
it also limits the number of pieces. A BLAS without such a setting keeps its own threads and gets whole products.

A row may have kernels that follow the product row by row (`output_fusion/find.py` says which can). Where the product is
cut along m or the batch, they run on each piece of rows right after it, in the same thread. A product with too few rows
for that is computed first, as if they were rows of their own.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.machinery
import importlib.util
import math
import os
import re
import struct
from collections.abc import Sequence
from typing import Literal, NamedTuple

from ...hlo.support.named_address import NamedAddress
from ...hlo.support.records import dataclass
from ...hlo.system import system
from .errors import ProgramError
from .executor import GEMM_WORDS, native_function
from .kernel import ELEMENT_BYTES, KernelSource
from .threads import ENTER_BLAS, LEAVE_BLAS, RUN_PARALLEL, THREADS

ROUTINES = {"f32": "sgemm", "f64": "dgemm", "c64": "cgemm", "c128": "zgemm"}
"""The element types that BLAS multiplies."""
_VECTOR_ROUTINES = {"f32": "sgemv", "f64": "dgemv", "c64": "cgemv", "c128": "zgemv"}

Transpose = Literal["N", "T", "C"]
"""Unchanged, transposed, or transposed and conjugated."""

MAX_BATCH_DIMENSIONS = 6

# Words of a GEMM row, counted from its opcode. NumPy's BLAS reads integers as int64, SciPy's as int32 from the low half
# of their word.
_RUN, _GEMM, _TRANS_B, _TRANS_A, _M, _N, _K, _LDA, _LDB, _LDC = range(1, 11)
_ALPHA, _BETA, _A, _B, _C, _ELEMENT, _ROW_A, _COLUMN_B, ITEM, _GET, _SET, BATCH, _DIMENSIONS = (
    11, 13, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
)  # fmt: skip
_DIMENSION = 26  # then for each batch dimension, minor to major: count, byte strides of A, B, C
_AFTER = _DIMENSION + 4 * MAX_BATCH_DIMENSIONS  # the number of kernels after the product
_UNIT = _AFTER + 1  # pieces have a multiple of so many rows
_KERNELS = _UNIT + 1  # then for each kernel: entry, first argument, extent, grain
MOST_EPILOGUES = 4
assert _KERNELS + 4 * MOST_EPILOGUES == GEMM_WORDS
_PIECE_FLOP = 1 << 20  # a smaller piece is not worth a thread
_LEAST_ROWS = 256  # of a piece that kernels follow: shorter ones cost up to 10 % of the product
_LONG_PIECE = 512  # long enough for two pieces a thread, so that a late thread gets only one; shorter pieces cost 10 %


def _word(index: int) -> str:
    return f"load(row + {index * 8})"


_GEMM_ITEMS = f"""
def gemm_items(lo, hi, block):
    row = load(block)
    arguments = load(block + 8)
    pieces = load(block + 16)
    along_m = load(block + 24)
    step = load(block + 32)
    size = stack(2)
    for item in range(lo, hi):
        rest = quotient(item, pieces)
        above = rest * {_word(_M)}
        first = (item - rest * pieces) * step
        a = load(arguments + {_word(_A)} * 8)
        b = load(arguments + {_word(_B)} * 8)
        c = load(arguments + {_word(_C)} * 8)
        dimension = row + {_DIMENSION * 8}
        for _ in range({_word(_DIMENSIONS)}):
            count = load(dimension)
            next = quotient(rest, count)
            index = rest - next * count
            a += index * load(dimension + 8)
            b += index * load(dimension + 16)
            c += index * load(dimension + 24)
            rest = next
            dimension += 32
        m = {_word(_M)}
        n = {_word(_N)}
        if along_m:
            m = smaller(step, m - first)
            a += first * {_word(_ROW_A)}
            c += first * {_word(_LDC)} * {_word(_ELEMENT)}
        else:
            n = smaller(step, n - first)
            b += first * {_word(_COLUMN_B)}
            c += first * {_word(_ELEMENT)}
        store(size, m)
        store(size + 8, n)
        call_gemm({_word(_GEMM)}, row + {_TRANS_B * 8}, row + {_TRANS_A * 8}, size + 8, size, row + {_K * 8},
                  row + {_ALPHA * 8}, b, row + {_LDB * 8}, a, row + {_LDA * 8}, row + {_BETA * 8}, c, row + {_LDC * 8})
        if load(block + 40):
            if along_m:
                above += first
            total = {_word(_M)} * {_word(BATCH)}
            kernel = row + {_KERNELS * 8}
            for _ in range({_word(_AFTER)}):
                extent = load(kernel + 16)
                lo_row = quotient(above * extent, total)
                hi_row = quotient((above + m) * extent, total)
                call_kernel(load(kernel), lo_row, hi_row, arguments + load(kernel + 8) * 8)
                kernel += 32
    return 0
"""

# A row for GEMV has the same words: the matrix is A, with m rows of k elements each; the distances between the elements
# of the vectors B and C stand for ldb and ldc, which is 1; n is 1. `trans_b` says whether to clear C, since some
# versions of OpenBLAS keep a NaN there when beta is 0.
_GEMV_ITEMS = (
    _GEMM_ITEMS.partition("        m = ")[0].replace("gemm_items", "gemv_items")
    + f"""        m = {_word(_M)}
        if pieces > 1:
            m = smaller(step, m - first)
            a += first * {_word(_ROW_A)}
            c += first * {_word(_ELEMENT)}
        store(size, m)
        if {_word(_TRANS_B)}:
            zero_bytes(c, m * {_word(_ELEMENT)})
        rows = size
        columns = row + {_K * 8}
        if {_word(_TRANS_A)} == {ord("T")}:
            rows = row + {_K * 8}
            columns = size
        call_routine11({_word(_GEMM)}, row + {_TRANS_A * 8}, rows, columns, row + {_ALPHA * 8}, a, row + {_LDA * 8},
                       b, row + {_LDB * 8}, row + {_BETA * 8}, c, row + {_LDC * 8})
    return 0
"""
)

_RUN_GEMM = f"""
def run_gemm(row, arguments, pool):
    m = {_word(_M)}
    n = {_word(_N)}
    batch = {_word(BATCH)}
    block = stack(6)
    store(block, row)
    store(block + 8, arguments)
    store(block + 16, 1)
    store(block + 24, 0)
    store(block + 32, n)
    flop = 2 * m * n * {_word(_K)}
    threads = call4(load(pool + {ENTER_BLAS}), pool, {_word(_GET)}, {_word(_SET)}, 1)
    if {_word(_SET)} == 0 or flop * batch < {2 * _PIECE_FLOP}:
        threads = 1
    pieces = 1
    follow = 0
    if {_word(_AFTER)} > 0:
        if threads > 1 or load(pool + {THREADS}) == 1:
            follow = 1
        kernel = row + {_KERNELS * 8}
        for _ in range({_word(_AFTER)}):
            if load(kernel + 24) == 0 or load(kernel + 16) < load(kernel + 24) + load(kernel + 24):
                follow = 1
            kernel += 32
        if threads > 1 and batch < threads + threads and m < threads * {_LEAST_ROWS}:
            follow = 0
    store(block + 40, follow)
    if follow != 0 and batch < threads + threads:
        step = quotient(m + threads - 1, threads)
        step = quotient(step + 7, 8) * 8
        step = quotient(step + {_word(_UNIT)} - 1, {_word(_UNIT)}) * {_word(_UNIT)}
        pieces = quotient(m + step - 1, step)
        store(block + 16, pieces)
        store(block + 24, 1)
        store(block + 32, step)
    elif threads > 1 and batch < threads + threads:
        pieces = smaller(threads, quotient(flop, {_PIECE_FLOP}))
        if pieces == 0:
            pieces = 1
        longer = n
        unit = 32
        if m > n:
            longer = m
            unit = 8
        strips = n == 1 and {_word(_ROW_A)} == {_word(_ELEMENT)}
        if longer >= pieces * {2 * _LONG_PIECE} and not strips:
            pieces += pieces
        step = quotient(quotient(longer + pieces - 1, pieces) + unit - 1, unit) * unit
        pieces = quotient(longer + step - 1, step)
        store(block + 16, pieces)
        store(block + 24, m > n)
        store(block + 32, step)
    if threads > 1:
        call6(load(pool + {RUN_PARALLEL}), pool, {_word(ITEM)}, block, batch * pieces, 1, 0)
    else:
        call_kernel({_word(ITEM)}, 0, batch * pieces, block)
    call2(load(pool + {LEAVE_BLAS}), pool, {_word(_SET)})
    if follow == 0:
        kernel = row + {_KERNELS * 8}
        for _ in range({_word(_AFTER)}):
            words = arguments + load(kernel + 8) * 8
            extent = load(kernel + 16)
            grain = load(kernel + 24)
            if grain > 0:
                call6(load(pool + {RUN_PARALLEL}), pool, load(kernel), words, extent, grain, 0)
            else:
                call_kernel(load(kernel), 0, extent, words)
            kernel += 32
    return 0
"""

RUN_GEMM = native_function("run_gemm", _RUN_GEMM, 3)
GEMM_ITEMS = native_function("gemm_items", _GEMM_ITEMS, 3)
GEMV_ITEMS = native_function("gemv_items", _GEMV_ITEMS, 3)


@dataclass(frozen=True, slots=True)
class BatchDimension:
    """One dimension of a batch of products: its size, and the number of elements from one matrix to the next."""

    count: int
    a_stride: int
    b_stride: int
    c_stride: int


@dataclass(frozen=True, slots=True)
class Gemm:
    """The product of a GEMM row; in elements, and row-major: C[m, n] = alpha op(A)[m, k] op(B)[k, n] + beta C.

    `lda` is the distance between the rows of A as stored: at least k, or m when A is transposed; `ldb` and `ldc` alike.
    `batch` is major to minor.
    """

    dtype: str
    m: int
    n: int
    k: int
    transpose_a: Transpose
    transpose_b: Transpose
    lda: int
    ldb: int
    ldc: int
    alpha: complex = 1.0
    beta: complex = 0.0
    batch: tuple[BatchDimension, ...] = ()

    def __post_init__(self) -> None:
        if self.dtype not in ROUTINES:
            raise ProgramError(f"BLAS multiplies {', '.join(ROUTINES)}; not {self.dtype}")
        least = {
            "lda": self.k if self.transpose_a == "N" else self.m,
            "ldb": self.n if self.transpose_b == "N" else self.k,
            "ldc": self.n,
        }
        for name, value in least.items():
            if not value <= getattr(self, name):
                raise ProgramError(f"{name} must be at least {value}, got {getattr(self, name)}")
        for name in ("m", "n", "k", "lda", "ldb", "ldc"):
            if not 0 <= getattr(self, name) < 1 << 31:
                raise ProgramError(f"BLAS takes sizes from 0 to 2**31 - 1; {name} is {getattr(self, name)}")
        if len(self.batch) > MAX_BATCH_DIMENSIONS:
            raise ProgramError(f"a product can have at most {MAX_BATCH_DIMENSIONS} batch dimensions")

    @property
    def is_empty(self) -> bool:
        """True when there is nothing to write."""
        return not (self.m and self.n and all(dimension.count for dimension in self.batch))

    @property
    def flop(self) -> int:
        """The number of additions and multiplications."""
        return 2 * self.m * self.n * self.k * math.prod(dimension.count for dimension in self.batch)

    @property
    def takes_epilogues(self) -> bool:
        """True if kernels may follow this product in its row: there are several rows of results, one after another."""
        rows = self.m * math.prod(dimension.count for dimension in self.batch)
        return rows > 1 and self.ldc == self.n and self.n > 0 and self._as_vector() is None

    def operands(
        self, a: int, b: int, c: int, after: Sequence[tuple[KernelSource, int, int, int]] = ()
    ) -> tuple[int | KernelSource, ...]:
        """The words of the row after its opcode; a, b and c are indices of arguments. Functions in it are not compiled
        yet. `after`: kernels that follow the product row by row, each with its first argument, extent and grain."""
        size = ELEMENT_BYTES[self.dtype]
        get, set_ = thread_setting()
        vector = self._as_vector()
        of_a, of_b = (a, b) if vector is None or vector.matrix == "a" else (b, a)
        count = 1
        dimensions: list[int] = []
        for dimension in reversed(self.batch):
            count *= dimension.count
            strides = [dimension.a_stride, dimension.b_stride]
            if of_a != a:
                strides.reverse()
            dimensions += [dimension.count, *(stride * size for stride in (*strides, dimension.c_stride))]
        alpha, beta = (_words(value, self.dtype) for value in (self.alpha, self.beta))
        words: list[int | KernelSource]
        if vector is None:
            row_a = self.lda * size if self.transpose_a == "N" else size
            column_b = size if self.transpose_b == "N" else self.ldb * size
            words = [
                RUN_GEMM, _address(ROUTINES[self.dtype]), ord(self.transpose_b), ord(self.transpose_a),
                self.m, self.n, self.k, max(self.lda, 1), max(self.ldb, 1), max(self.ldc, 1), *alpha, *beta,
                a, b, c, size, row_a, column_b, GEMM_ITEMS,
            ]  # fmt: skip
        else:
            clear = self.beta == 0
            row_a = (1 if vector.transpose == "N" else vector.leading) * size
            words = [
                RUN_GEMM, _address(_VECTOR_ROUTINES[self.dtype]), int(clear), ord(vector.transpose),
                vector.rows, 1, self.k, max(vector.leading, 1), vector.step, 1, *alpha,
                *(_words(1, self.dtype) if clear else beta), of_a, of_b, c, size, row_a, 0, GEMV_ITEMS,
            ]  # fmt: skip
        words += [get, set_, count, len(self.batch), *dimensions]
        if after:
            if not self.takes_epilogues or len(after) > MOST_EPILOGUES:
                raise ProgramError(f"{len(after)} kernels cannot follow {self} in one row")
            rows = self.m * count
            unit = math.lcm(*(rows // extent if rows % extent == 0 else 1 for _, _, extent, _ in after))
            words += [0] * (_AFTER - 1 - len(words))
            words += [len(after), unit, *[word for kernel in after for word in kernel]]
        return tuple(words + [0] * (GEMM_WORDS - 1 - len(words)))

    def _as_vector(self) -> _Vector | None:
        """The product of a matrix and a vector that this one is, or None."""
        if not self.k or "C" in (self.transpose_a, self.transpose_b):
            return None
        if self.n == 1 and (self.m == 1 or self.ldc == 1):
            step = self.ldb if self.transpose_b == "N" else 1
            return _Vector("a", self.m, "T" if self.transpose_a == "N" else "N", self.lda, step)
        if self.m == 1:
            step = 1 if self.transpose_a == "N" else self.lda
            return _Vector("b", self.n, self.transpose_b, self.ldb, step)
        return None


class _Vector(NamedTuple):
    """How GEMV computes a product."""

    matrix: Literal["a", "b"]
    rows: int
    """The length of the result."""
    transpose: Transpose
    """The transpose for BLAS, which sees the matrix column-major."""
    leading: int
    step: int
    """The distance between neighbouring elements of the other operand, the vector."""


def _words(value: complex, dtype: str) -> tuple[int, int]:
    """A number of the given type as it is stored in memory, as two int64 words."""
    form = {"f32": "<fxxxxxxxxxxxx", "f64": "<dxxxxxxxx", "c64": "<ffxxxxxxxx", "c128": "<dd"}[dtype]
    parts = (value.real, value.imag) if dtype in ("c64", "c128") else (value.real,)
    first, second = struct.unpack("<qq", struct.pack(form, *parts))
    return first, second


_RECENT = (0, 3, 30)
"""The first version of NumPy's OpenBLAS that is used: earlier ones have not been measured."""
_THREAD_FUNCTIONS = ("openblas_get_num_threads", "openblas_set_num_threads")


@functools.cache
def _numpys() -> ctypes.CDLL | None:
    """NumPy's extension as a shared library, which gives access to its BLAS, if that is a recent OpenBLAS. Names end in
    ``64_``: its integers have 64 bits."""
    try:
        extension = importlib.import_module("numpy._core._multiarray_umath")
    except ImportError:  # NumPy 1
        return None
    try:
        library = ctypes.CDLL(system.library_of(str(extension.__file__)))
    except OSError:
        return None
    has_all = all(hasattr(library, f"scipy_{name}64_") for name in ("sgemm_", *_THREAD_FUNCTIONS))
    return library if has_all and _version(library) >= _RECENT else None


def _version(library: ctypes.CDLL) -> tuple[int, ...]:
    """The version of NumPy's OpenBLAS, from "OpenBLAS 0.3.31.188.0 USE64BITINT DYNAMIC_ARCH"; () for other words."""
    get = getattr(library, "scipy_openblas_get_config64_", None)
    if get is None:
        return ()
    get.restype = ctypes.c_char_p
    found = re.match(r"OpenBLAS (\d+)\.(\d+)\.(\d+)", (get() or b"").decode(errors="replace"))
    return tuple(map(int, found.groups())) if found else ()


@functools.cache
def _library() -> ctypes.CDLL | None:
    """SciPy's `cython_blas` extension as a shared library, which gives access to its BLAS.

    Importing it as a module would import all of scipy.linalg: 260 ms, against 5 ms.
    """
    spec = importlib.util.find_spec("scipy")
    for folder in (spec and spec.submodule_search_locations) or []:
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            path = os.path.join(folder, "linalg", "cython_blas" + suffix)
            if os.path.exists(path):
                _check_address_space()
                return ctypes.CDLL(system.library_of(path))
    return None


_BLAS_BYTES, _THREAD_BYTES, _MOST_THREADS = 64 << 20, 40 << 20, 64


def _check_address_space() -> None:
    """MemoryError if there is no room for OpenBLAS and its threads' memory: without it, it tries for ever."""
    threads = min(system.scheduled_cpus(), _MOST_THREADS)
    system.check_address_space(_BLAS_BYTES + threads * _THREAD_BYTES, "the BLAS")


def load() -> None:
    """Load the BLAS now; otherwise the first program with a product loads it."""
    _numpys() or _library()


def _symbol(library: ctypes.CDLL | None, *names: str) -> int:
    """The address of the first of these names that a library has; 0 when it has none."""
    for name in names:
        function = getattr(library, name, None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value or 0
    return 0


def _of_products(name: str) -> int:
    """The address of a function of the BLAS that computes products; 0 when it has none. ``sgemm_`` is one of Fortran's
    names."""
    numpys = _numpys()
    return _symbol(_library(), f"scipy_{name}", name) if numpys is None else _symbol(numpys, f"scipy_{name}64_")


@functools.cache
def _address(routine: str) -> int:
    address = _of_products(f"{routine}_")
    if address:
        return NamedAddress(address, "blas", routine)
    module = importlib.import_module("scipy.linalg.cython_blas")
    capsule = module.__pyx_capi__[routine]
    name, get = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return NamedAddress(get(capsule, name(capsule)), "blas", routine)


@functools.cache
def thread_setting() -> tuple[int, int]:
    """The addresses of the functions that get and set the number of threads of the BLAS that computes products; zeros
    where it is no OpenBLAS."""
    return _setting("", *map(_of_products, _THREAD_FUNCTIONS))


@functools.cache
def lapack_thread_setting() -> tuple[int, int]:
    """The same for LAPACK, which is SciPy's."""
    library = _library()
    return _setting("lapack ", *[_symbol(library, f"scipy_{name}", name) for name in _THREAD_FUNCTIONS])


def _setting(of: str, get: int, set_: int) -> tuple[int, int]:
    if not (get and set_):
        get = set_ = 0
    return NamedAddress(get, "blas threads", f"{of}get"), NamedAddress(set_, "blas threads", f"{of}set")


def description() -> str:
    """The BLAS of products in its own words, such as "OpenBLAS 0.3.29 DYNAMIC_ARCH Zen"; empty if it is another one, or
    missing."""
    words = []
    for name in ("openblas_get_config", "openblas_get_corename"):
        address = _of_products(name)
        if address:
            words.append((ctypes.CFUNCTYPE(ctypes.c_char_p)(address)() or b"").decode(errors="replace"))
    return " ".join(words)


def thread_function(name: str) -> int:
    """One of `thread_setting` or `lapack_thread_setting`, by the name of its NamedAddress."""
    get, set_ = lapack_thread_setting() if name.startswith("lapack") else thread_setting()
    return get if name.endswith("get") else set_
