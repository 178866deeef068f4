"""Calls of LAPACK are rows without Python, for every routine and type, and give the evaluator's results bit by bit."""

from __future__ import annotations

import ctypes
import os
import re
import threading
from typing import Any

import numpy as np
import pytest
from hloom.hlo.custom_call_targets.table import LAPACK
from hloom.hlo.errors import UnsupportedError
from hloom.numba_backend.linalg import forms
from hloom.numba_backend.lowering_rules import custom_call
from hloom.numba_backend.runtime import blas, lapack
from hloom.numba_backend.runtime.threads import set_num_threads

import hloom
import hloom.numpy as jnp

TYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128, "s32": np.int32}
LETTERS = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}
REAL = {"f32": "f32", "f64": "f64", "c64": "f32", "c128": "f64"}
WIDE = {"f32": "c64", "f64": "c128", "c64": "c64", "c128": "c128"}
COMPLEX_NAMES = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "sytrd": "hetrd"}


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    """No row calls Python, and no kernel is in place of LAPACK."""

    def refuse(context: Any, instruction: Any, function: Any) -> None:
        raise AssertionError(f"{instruction.name} is a row that calls Python")

    monkeypatch.setattr(custom_call, "host_row", refuse)
    monkeypatch.setattr(forms, "MOST_ROWS", 0)


def values(types: str) -> list[np.ndarray]:
    """Arrays of types such as `f32[3,3], s32[2]`; the largest number of a matrix is on its diagonal."""
    found = []
    for kind, sizes in re.findall(r"(\w+)\[([\d,]*)\]", types):
        shape = [int(size) for size in sizes.split(",") if size]
        rng = np.random.default_rng(sum(shape))
        a = rng.standard_normal(shape)
        if kind == "s32":
            a = rng.integers(0, 2, shape)
        elif len(shape) > 1 and shape[-1] == shape[-2]:
            a = a + a.swapaxes(-1, -2) + 2 * shape[-1] * np.eye(shape[-1])
        found.append((a + 1j * rng.standard_normal(shape) * (a < 4) if kind[0] == "c" else a).astype(TYPES[kind]))
    return found


def module(kind: str, routine: str, operands: str, results: str, config: str, order: str = "") -> tuple[str, str]:
    """The text of a module with one call, and the types of its operands. T, R and C are the types of a signature."""
    for letter, table in {"T": {kind: kind}, "R": REAL, "C": WIDE}.items():
        operands, results = (re.sub(rf"\b{letter}\[", f"{table[kind]}[", x) for x in (operands, results))
    ordered = re.sub(r"(\[\d+,\d+,\d+\])", rf"\1{order}", operands) if order else operands
    results = re.sub(r"(\[\d+,\d+,\d+\])", rf"\1{order}", results) if order else results
    shapes = re.findall(r"\w+\[[\d,]*\](?:\{[\d,]*\})?", ordered)
    lines = [f"  a{k} = {shape} parameter({k})" for k, shape in enumerate(shapes)]
    constraints = f", operand_layout_constraints={{{', '.join(shapes)}}}" if order else ""
    name = COMPLEX_NAMES.get(routine, routine) if kind[0] == "c" else routine
    target = f"lapack_{LETTERS[kind]}{name}_ffi" if routine in LAPACK else routine
    names = ", ".join(f"a{k}" for k in range(len(shapes)))
    text = f"""HloModule m
ENTRY e {{
{chr(10).join(lines)}
  ROOT c = {results} custom-call({names}), custom_call_target="{target}"{constraints},
    api_version=API_VERSION_TYPED_FFI, backend_config={{{config}}}
}}"""
    return text, operands


def codes(**letters: str) -> str:
    return ", ".join(f"{key} = {ord(value)} : ui8" for key, value in letters.items())


CASES = [
    ("potrf", "T[4,4]", "(T[4,4], s32[])", codes(uplo="L")),
    ("potrf", "T[2,3,3]", "(T[2,3,3], s32[2])", codes(uplo="U")),
    ("getrf", "T[5,3]", "(T[5,3], s32[3], s32[])", ""),
    ("getrf", "T[2,3,11]", "(T[2,3,11], s32[2,3], s32[2])", ""),
    ("LuDecomposition", "T[2,5,4]", "(T[2,5,4], s32[2,4], s32[2,5])", ""),
    ("geqrf", "T[2,5,3]", "(T[2,5,3], T[2,3])", ""),
    ("geqrf", "T[1,9]", "(T[1,9], T[1])", ""),
    ("Qr", "T[3,5]", "(T[3,5], T[3])", ""),
    ("geqp3", "T[2,5,4], s32[2,4]", "(T[2,5,4], s32[2,4], T[2,4])", ""),
    ("orgqr", "T[2,5,4], T[2,3]", "T[2,5,4]", ""),
    ("ProductOfElementaryHouseholderReflectors", "T[2,5,4], T[2,3]", "T[2,5,4]", ""),
    ("ormqr", "T[2,5,3], T[2,3], T[2,5,4]", "T[2,5,4]", "left = true, transpose = true"),
    ("ormqr", "T[2,4,3], T[2,3], T[2,5,4]", "T[2,5,4]", "left = false, transpose = false"),
    ("trsm", "T[2,4,4], T[2,4,3]", "T[2,4,3]", codes(side="L", uplo="U", trans_x="N", diag="N")),
    ("trsm", "T[2,3,3], T[2,4,3]", "T[2,4,3]", codes(side="R", uplo="L", trans_x="C", diag="U")),
    ("gtsv", "T[2,5], T[2,5], T[2,5], T[2,5,3]", "(T[2,5], T[2,5], T[2,5], T[2,5,3], s32[2])", ""),
    ("syevd", "T[1,1]", "(T[1,1], R[1], s32[])", codes(mode="V", uplo="L")),
    ("syevd", "T[4,4]", "(T[4,4], R[4], s32[])", codes(mode="V", uplo="U")),
    ("syevd", "T[2,1,5,5]", "(T[2,1,5,5], R[2,1,5], s32[2,1])", codes(mode="N", uplo="L")),
    ("Eigh", "T[2,5,5]", "(T[2,5,5], R[2,5])", 'backend_config = "0,1,15,1e-5"'),
    ("sytrd", "T[2,5,5]", "(T[2,5,5], R[2,5], R[2,4], T[2,4], s32[2])", codes(uplo="L")),
    ("gehrd", "T[2,5,5]", "(T[2,5,5], T[2,4], s32[2])", "low = 2 : i32, high = 5 : i32"),
    ("gesdd", "T[4,3]", "(T[4,3], R[3], T[4,4], T[3,3], s32[])", codes(mode="A")),
    ("gesdd", "T[2,3,4]", "(T[2,3,4], R[2,3], T[2,3,3], T[2,3,4], s32[2])", codes(mode="S")),
    ("gesdd", "T[5,1]", "(T[5,1], R[1], T[5,1], T[1,1], s32[])", codes(mode="S")),
    ("gesdd", "T[2,3,9]", "(T[2,3,9], R[2,3], T[2,3,3], T[2,9,9], s32[2])", codes(mode="N")),
    ("gesvd", "T[2,4,3]", "(T[2,4,3], R[2,3], T[2,4,4], T[2,3,3], s32[2])", codes(mode="A")),
]
COMPLEX_ONLY = [
    ("geev", "T[2,5,5]", "(T[2,5], T[2,5,5], T[2,5,5], s32[2])", codes(compute_left="V", compute_right="N")),
    ("gees", "T[2,5,5]", "(T[2,5,5], T[2,5,5], T[2,5], s32[2], s32[2])", codes(mode="V", sort="N")),
]
REAL_ONLY = [
    ("geev", "T[2,5,5]", "(R[2,5], R[2,5], C[2,5,5], C[2,5,5], s32[2])", codes(compute_left="V", compute_right="V")),
    ("gees", "T[2,5,5]", "(T[2,5,5], T[2,5,5], T[2,5], T[2,5], s32[2], s32[2])", codes(mode="N", sort="N")),
]
ALL = [(kind, *case) for kind in LETTERS for case in (*CASES, *(COMPLEX_ONLY if kind[0] == "c" else REAL_ONLY))]


def test_every_routine_has_a_case() -> None:
    assert {routine for _, routine, *_ in ALL} >= set(LAPACK)


IN_PLACE = ("potrf", "trsm")
"""Routines that work on the transpose, and so add up in another order."""


def same_bits(text: str, *arrays: np.ndarray) -> None:
    expected = hloom.run_hlo(text, *arrays, backend="evaluator")
    found = hloom.run_hlo(text, *arrays, backend="numba")
    in_place = any(name in text for name in IN_PLACE)
    for one, other in zip(found, expected, strict=True):
        if in_place and one.dtype != np.int32:
            np.testing.assert_allclose(one, other, rtol=16 * np.finfo(one.dtype).eps)
        else:
            np.testing.assert_array_equal(one, other)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("kind", "routine", "operands", "results", "config"), ALL)
def test_the_rows_give_the_same_bits_as_calls_from_python(
    kind: str, routine: str, operands: str, results: str, config: str, native: None
) -> None:
    text, types = module(kind, routine, operands, results, config)
    arrays = values(types)
    if routine == "geev":
        arrays[0] = np.asarray(np.random.default_rng(3).standard_normal(arrays[0].shape), arrays[0].dtype)
    same_bits(text, *arrays)


@pytest.mark.parametrize("routine", ["getrf", "gesvd", "trsm"])
def test_matrices_in_another_order_of_dimensions(routine: str, native: None) -> None:
    (case,) = [c for c in CASES if c[0] == routine and c[1].startswith("T[2") and "R" not in c[3]][:1]
    text, types = module("f32", *case, order="{1,2,0}")
    same_bits(text, *values(types))


@pytest.mark.parametrize("several", [False, True])
def test_threads_share_a_batch(several: bool, native: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lapack, "SHARE_NANOSECONDS", 500)
    if several:
        monkeypatch.setattr(lapack, "large_bytes", lambda: 1)
    case = ("geqrf", "T[37,12,9]", "(T[37,12,9], T[37,9])", "")
    text, types = module("f64", *case)
    same_bits(text, *values(types))


def test_one_thread_computes_a_batch_alone(native: None) -> None:
    text, types = module("f64", "geqrf", "T[2000,4,4]", "(T[2000,4,4], T[2000,4])", "")
    set_num_threads(1)
    try:
        same_bits(text, *values(types))
    finally:
        set_num_threads(None)


def test_threads_of_the_blas_are_as_they_were(native: None) -> None:
    """Of both libraries, products and factorisations run at the same time in any order."""
    getters = [blas.thread_setting()[0], blas.lapack_thread_setting()[0]]
    if not all(getters):
        pytest.skip("this BLAS has no setting of threads")
    threads = [ctypes.CFUNCTYPE(ctypes.c_int)(get) for get in getters]
    qr, squared = hloom.jit(jnp.linalg.qr), hloom.jit(lambda a: a @ a)
    before = [get() for get in threads]
    batch, large = (np.random.default_rng(0).standard_normal(shape) for shape in ((500, 6, 6), (1, 300, 300)))
    work = [lambda: qr(batch), lambda: squared(large[0])] * 3
    workers = [threading.Thread(target=lambda each=each: [each() for _ in range(5)]) for each in work]
    for worker in workers:
        worker.start()
    qr(large)
    for worker in workers:
        worker.join()
    assert [get() for get in threads] == before


def test_what_fails_says_so(native: None) -> None:
    text, types = module("f64", "gesdd", "T[2,3,3]", "(T[2,3,3], R[2,3], T[2,3,3], T[2,3,3], s32[2])", codes(mode="A"))
    (a,) = values(types)
    a[1, 0, 0] = np.nan
    assert hloom.run_hlo(text, a)[-1].tolist() == [0, -4]
    (case,) = [c for c in REAL_ONLY if c[0] == "geev"]
    text, types = module("f64", *case)
    (a,) = values(types)
    a[0, 1, 2] = np.inf
    assert hloom.run_hlo(text, a)[-1].tolist() == [-4, 0]
    same_bits(text, a)


@pytest.mark.parametrize("kind", LETTERS)
def test_a_matrix_without_a_cholesky_factor_is_nan(kind: str, native: None) -> None:
    a = np.stack([np.eye(40), -np.eye(40), np.eye(40)]).astype(TYPES[kind])
    a[2, 7, 7] = np.nan
    for lower in ("true", "false"):
        text = f"""HloModule m
ENTRY e {{
  a = {kind}[3,40,40] parameter(0)
  ROOT c = {kind}[3,40,40] cholesky(a), lower={lower}
}}"""
        (found,) = hloom.run_hlo(text, a)
        np.testing.assert_array_equal(found[0], a[0])
        assert np.isnan(found[1:]).all()


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0)])
def test_nothing_to_compute(shape: tuple[int, ...]) -> None:
    a = np.zeros(shape, np.float32)
    assert jnp.linalg.eigvalsh(a).shape == shape[:-1]


def test_without_lapack_the_compiler_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> int:
        raise UnsupportedError("no LAPACK")

    monkeypatch.setattr(lapack, "address_of", missing)
    with pytest.raises(UnsupportedError, match="no LAPACK"):
        hloom.jit(lambda x: jnp.linalg.eigh(x)[0])(jnp.diag(jnp.arange(7.0)))


def test_in_loops_threads_and_forks(native: None) -> None:
    def power(a: Any) -> Any:
        return hloom.lax.fori_loop(0, 3, lambda _, x: x / jnp.linalg.eigvalsh(x)[-1], a)

    a = jnp.asarray(np.diag(np.arange(1, 5, dtype=np.float32)))
    run = hloom.jit(power)
    expected = np.asarray(run(a))
    np.testing.assert_allclose(expected, a / 4)
    same: list[bool] = []
    workers = [
        threading.Thread(target=lambda: same.extend(np.array_equal(run(a), expected) for _ in range(50)))
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert same == [True] * 200
    child = os.fork()
    if not child:
        os._exit(0 if np.array_equal(run(a), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_small_call_gives_up_the_gil(native: None) -> None:
    """It may wait for a fork, which needs the GIL to go on."""
    a = jnp.asarray(np.diag(np.arange(1, 4, dtype=np.float32)))
    run = hloom.jit(jnp.linalg.eigvalsh)
    run(a)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            run(a).block_until_ready()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(20):
            child = os.fork()
            if not child:
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for worker in workers:
            worker.join()
