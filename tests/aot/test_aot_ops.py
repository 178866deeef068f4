"""The table of op cases as programs compiled ahead of time: object code, and C where there is a compiler."""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.hlo.errors import UnsupportedError
from hloom.numba_backend.ahead.c_functions import PRELUDE, CFunctions
from hloom.numba_backend.ahead.c_program import program_in_c
from hloom.numba_backend.ahead.compiling import standalone
from hloom.numba_backend.ahead.llvm_program import program_object
from hloom.numba_backend.ahead.product import add_product
from hloom.numba_backend.ahead.standalone import StandaloneProgram
from hloom.numba_backend.ahead.targets import TargetMachine
from hloom.numba_backend.runtime.blas import BatchDimension, Gemm
from hloom.numba_backend.runtime.dialect import SCOPE
from hloom.numba_backend.runtime.dialect_define import Cast
from hloom.numba_backend.runtime.llvm_backend import load_objects
from hloom.numba_backend.runtime.program import ProgramBuilder, pointer

from hloom import hlo
from hloom.backend_check.op_table import CASES, OpCase, build_module, check_results, make_inputs

NDArray = np.ndarray[Any, Any]
Run = Callable[[Any, Any, Any, Any], int]
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
FEW, MANY = 127, 23
"""Of the table, every so many cases."""


def run(function: Any, program: StandaloneProgram, inputs: Sequence[NDArray]) -> list[NDArray]:
    """The results; every byte of their memory is known before."""
    given = [np.frombuffer(np.ascontiguousarray(x).tobytes() or b"\0", np.uint8) for x in inputs]
    results = [np.full(max(shape.byte_size, 1), 0xAA, np.uint8) for shape in program.results]
    memory = np.full(program.temporary_bytes + 64, 0xAA, np.uint8)
    start = memory.ctypes.data + (-memory.ctypes.data) % 64
    tables = [(ctypes.c_void_p * max(1, len(g)))(*[a.ctypes.data for a in g]) for g in (given, results)]
    assert function(*tables, ctypes.c_void_p(start), None) == 0
    return [
        r[: s.byte_size].view(s.element.dtype).reshape(s.dimensions)
        for r, s in zip(results, program.results, strict=True)
    ]


KIND = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def check_object(case: OpCase) -> None:
    module, inputs = build_module(case), make_inputs(case)
    try:
        program = standalone(module)
    except UnsupportedError as error:
        assert "Python" in str(error) or "process" in str(error)
        pytest.skip(str(error))
    code = program_object(program, "op", TargetMachine("native", "native").resolved())
    kept, (address,) = load_objects([("op_run", code)])
    check_results(case, run(KIND(address), program, inputs), hlo.evaluate(module, *inputs))
    del kept


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", CASES[::FEW], ids=lambda case: case.id)
def test_object_code_agrees_with_the_evaluator(case: OpCase) -> None:
    check_object(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES[::MANY], ids=lambda case: case.id)
def test_object_code_agrees_with_the_evaluator_for_many(case: OpCase) -> None:
    check_object(case)


@needs_cc
@pytest.mark.slow
def test_c_agrees_with_the_evaluator(tmp_path: Path) -> None:
    """Many cases in one library: the compiler takes most of the time."""
    programs: list[tuple[OpCase, StandaloneProgram]] = []
    for case in CASES[5::131]:
        try:
            programs.append((case, standalone(build_module(case))))
        except UnsupportedError:
            continue
    for number, (_, program) in enumerate(programs):
        (tmp_path / f"f{number}.c").write_text(program_in_c(program, f"f{number}"))
    files = [f"f{number}.c" for number in range(len(programs))]
    # A kernel takes all its sizes, also where it does not read them.
    quiet = ["-Wno-unused-function", "-Wno-unused-parameter", "-Wno-unused-but-set-variable"]
    command = ["cc", "-std=c11", "-O1", "-Wall", "-Wextra", *quiet]
    built = subprocess.run([*command, "-shared", "-fPIC", "-o", "all.so", *files, "-lm"], cwd=tmp_path,
                           capture_output=True, text=True)  # fmt: skip
    assert built.returncode == 0, built.stderr[:3000]
    assert "warning" not in built.stderr, built.stderr[:3000]
    library = ctypes.CDLL(str(tmp_path / "all.so"))
    for number, (case, program) in enumerate(programs):
        inputs = make_inputs(case)
        actual = run(KIND((f"f{number}_run", library)), program, inputs)
        check_results(case, actual, hlo.evaluate(build_module(case), *inputs))


def all_functions() -> CFunctions:
    """Every function of the dialect for all types that it takes."""
    functions = CFunctions()
    for name, function in SCOPE.items():
        if isinstance(function, Cast) or name in ("local_array", "interrupted", "opaque") or "reduce_pre" in name:
            continue
        for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
                     "complex64", "complex128"):  # fmt: skip
            for count in (1, 2, 3):
                arguments = ("uint8", kind, kind) if name == "select" else (kind,) * count
                try:
                    functions.use(name, arguments)
                except TypeError:  # not of this type, or of so many arguments
                    continue
                except UnsupportedError as error:
                    assert f"{name} of " in str(error)
    return functions


@needs_cc
@pytest.mark.slow
def test_every_function_of_the_dialect_has_a_form_in_c(tmp_path: Path) -> None:
    text = all_functions().text()
    assert text.count("static inline") > 700
    (tmp_path / "all.c").write_text(PRELUDE + text)
    command = ["cc", "-std=c11", "-Wall", "-Wno-unused-function", "-Werror", "-fsyntax-only", "all.c"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:3000]


PRODUCTS = [
    (dtype, m, n, k, a, b, batch)
    for dtype in ("f32", "f64", "c64")
    for m, n, k, batch in [
        (1, 1, 1, ()), (7, 5, 3, (2, 3)), (33, 17, 300, (2,)), (6, 16, 256, ()), (13, 40, 257, ()), (1, 9, 20, ()),
        (9, 1, 20, ()), (5, 6, 0, ()), (4, 33, 2, (1,)),
    ]
    for a, b in [("N", "N"), ("N", "T"), ("T", "N"), ("T", "T"), *([("C", "C")] if dtype == "c64" else [])]
]  # fmt: skip


def test_products_without_a_blas() -> None:
    """All in one program, so that their kernels are compiled in one batch. Beta 1 adds to the present elements."""
    rng = np.random.default_rng(0)
    builder = ProgramBuilder()
    bases: list[NDArray] = []
    checks = []
    for dtype, m, n, k, turn_a, turn_b, batch in PRODUCTS:
        kind = {"f32": np.float32, "f64": np.float64, "c64": np.complex64}[dtype]
        a = rng.standard_normal((*batch, *((m, k) if turn_a == "N" else (k, m)))).astype(kind)
        b = rng.standard_normal((*batch, *((k, n) if turn_b == "N" else (n, k)))).astype(kind)
        if dtype == "c64":
            a, b = a * np.complex64(1 + 2j), b * np.complex64(2 - 1j)
        items = [int(np.prod(batch[d + 1 :])) for d in range(len(batch))]
        sizes = (m * k, k * n, m * n)
        dimensions = tuple(BatchDimension(c, *(i * s for s in sizes)) for c, i in zip(batch, items, strict=True))
        for beta in (0.0, 1.0):
            c = np.full((*batch, m, n), np.nan if not beta else 3, kind)
            gemm = Gemm(dtype, m, n, k, turn_a, turn_b, max(a.shape[-1], 1), max(b.shape[-1], 1), n, beta=beta,
                        batch=dimensions)  # type: ignore[arg-type]  # fmt: skip
            add_product(builder, gemm, *(pointer(len(bases) + i) for i in range(3)))
            bases += [a, b, c]
            checks.append((transposed(a, turn_a) @ transposed(b, turn_b) + (3 if beta else 0), c))
    builder.build().run([base.ctypes.data for base in bases])
    for expected, found in checks:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def transposed(x: NDArray, turn: str) -> NDArray:
    if turn == "N":
        return x
    swapped: NDArray = np.swapaxes(x, -1, -2)
    return swapped.conj() if turn == "C" else swapped


TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, TASK, ctypes.c_void_p)


class Parallel(ctypes.Structure):
    """hloom_parallel"""

    _fields_ = (("context", ctypes.c_void_p), ("run", RUN))


def test_long_kernels_are_split_over_the_threads_of_the_caller() -> None:
    module = hlo.parse(
        "HloModule m\nENTRY e {\n  x = f32[700,900] parameter(0)\n  y = f32[900,400] parameter(1)\n"
        "  s = f32[700,900] sine(x)\n"
        "  ROOT d = f32[700,400] dot(s, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"
    )
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((700, 900), dtype=np.float32), rng.standard_normal((900, 400), dtype=np.float32)
    program = standalone(module)
    code = program_object(program, "op", TargetMachine("native", "native").resolved())
    kept, (address,) = load_objects([("op_run", code)])
    pieces: list[tuple[int, int, int]] = []

    def split(context: int, extent: int, grain: int, task: Any, data: int) -> None:
        bounds = [*range(0, extent - grain + 1, grain), extent]
        pieces.extend((lo, hi, grain) for lo, hi in itertools.pairwise(bounds))
        threads = [threading.Thread(target=task, args=(data, lo, hi)) for lo, hi in itertools.pairwise(bounds)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    result, alone = np.full((700, 400), np.nan, np.float32), np.full((700, 400), np.nan, np.float32)
    memory = np.empty(program.temporary_bytes + 64, np.uint8)
    start = ctypes.c_void_p(memory.ctypes.data + (-memory.ctypes.data) % 64)
    given = (ctypes.c_void_p * 2)(x.ctypes.data, y.ctypes.data)
    parallel = Parallel(None, RUN(split))
    function = KIND(address)
    assert function(given, (ctypes.c_void_p * 1)(result.ctypes.data), start, ctypes.byref(parallel)) == 0
    assert function(given, (ctypes.c_void_p * 1)(alone.ctypes.data), start, None) == 0
    assert len(pieces) > 4
    assert all(hi - lo >= grain for lo, hi, grain in pieces)
    np.testing.assert_array_equal(result, alone)
    np.testing.assert_allclose(result, np.sin(x) @ y, rtol=1e-3, atol=1e-3)
    del kept
