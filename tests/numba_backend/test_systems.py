"""Whole systems of small matrices in one kernel: solve, inverse, determinant, LU with its permutation."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.linalg import forms

import hloom
import hloom.numpy as jnp
from hloom import lax

TYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}
BATCHES: tuple[tuple[int, ...], ...] = ((), (2, 20))
"""One matrix, and more than a vector has numbers."""


def drawn(kind: str, *dimensions: int) -> np.ndarray:
    rng = np.random.default_rng(sum(dimensions))
    found = rng.standard_normal(dimensions)
    if kind.startswith("c"):
        found = found + 1j * rng.standard_normal(dimensions)
    return found.astype(TYPES[kind])


def size(a: np.ndarray) -> np.ndarray:
    """The norm of each matrix."""
    return np.abs(a).sum(-1).max(-1)


def targets(function: Callable[..., Any], *operands: np.ndarray) -> list[str]:
    text = hloom.jit(function).lower(*operands).compile().as_text()
    return [line.split('"')[1] for line in text.splitlines() if "custom_call_target" in line]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("n", [1, 4])
def test_backward_errors(n: int, batch: tuple[int, ...], kind: str) -> None:
    """As small as LAPACK's."""
    a, b = drawn(kind, *batch, n, n), drawn(kind, *batch, n, 2)
    eps = np.finfo(a.dtype).eps
    with hloom.enable_x64(True):
        x, inverse, value = hloom.jit(lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a)))(a, b)
        factors, pivots, order = map(np.asarray, hloom.jit(lax.linalg.lu)(a))
    x, inverse = np.asarray(x), np.asarray(inverse)
    wide = a.astype(np.complex128)
    assert x.dtype == a.dtype
    assert (size(wide @ x - b) <= 4 * n * eps * (size(a) * size(x) + size(b))).all()
    assert (size(wide @ inverse - np.eye(n)) <= 4 * n * eps * size(a) * size(inverse)).all()
    assert (np.abs(value - np.linalg.det(wide)) <= 4 * n * eps * np.prod(np.linalg.norm(a, axis=-1), -1)).all()
    lower, upper = np.tril(factors, -1) + np.eye(n), np.triu(factors)
    rows = np.take_along_axis(a, order[..., None], -2)
    assert (size(lower.astype(np.complex128) @ upper - rows) <= 4 * n * eps * size(a)).all()
    most = 1.5 if kind.startswith("c") else 1 + eps  # the pivot is the largest, by |re| + |im|
    assert (np.abs(np.tril(factors, -1)) <= most).all()
    exchanged = np.broadcast_to(np.arange(n), (*batch, n)).reshape(-1, n).copy()
    for places, row in zip(exchanged, pivots.reshape(-1, n), strict=True):
        for i, other in enumerate(row):
            places[[i, other]] = places[[other, i]]
    np.testing.assert_array_equal(order.reshape(-1, n), exchanged)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("n", "columns"), [(4, 1), (5, 20), (8, 3)])
def test_forms_agree(n: int, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices in lanes, and one after the other: the same operations in the same order."""
    a, b = drawn("f32", 40, n, n), drawn("f32", 40, n, columns)
    a[1] = 0
    a[2, 0, 0] = np.nan
    a[3, n - 1] = a[3, 0]
    a[4] = np.inf
    functions = (jnp.linalg.solve, lambda a, b: jnp.linalg.inv(a), lambda a, b: jnp.linalg.det(a))
    results = []
    for side_by_side in (True, False):
        if not side_by_side:
            monkeypatch.setattr(forms, "fits_lanes", lambda *_: False)
        results.append([np.asarray(hloom.jit(lambda a, b, f=f: f(a, b))(a, b)) for f in functions])
    eps = np.finfo(np.float32).eps
    for other in results[1:]:
        for found, expected in zip(other, results[0], strict=True):
            good = np.r_[0, 5:40]
            assert np.isfinite(expected[good]).all()
            np.testing.assert_allclose(found[good], expected[good], rtol=2e4 * eps, atol=2e3 * eps)
            np.testing.assert_array_equal(np.isfinite(found[1:5]), np.isfinite(expected[1:5]))


@pytest.mark.parametrize("batch", [(), (40,)])
def test_without_an_inverse(batch: tuple[int, ...]) -> None:
    """Infinity or NaN, as in JAX; and a zero below the first pivot's column is no reason for either."""
    zeros, swap = np.zeros((*batch, 3, 3), np.float32), np.zeros((*batch, 2, 2), np.float32)
    swap[..., 0, 1] = swap[..., 1, 0] = 1
    assert not np.isfinite(hloom.jit(jnp.linalg.inv)(zeros)).any()
    np.testing.assert_array_equal(hloom.jit(jnp.linalg.inv)(swap), swap)
    np.testing.assert_array_equal(hloom.jit(jnp.linalg.det)(np.zeros((*batch, 5, 5), np.float32)), np.zeros(batch))
    missing = np.full((*batch, 3, 3), np.nan, np.float32)
    assert np.isnan(hloom.jit(jnp.linalg.inv)(missing)).all()


def test_what_becomes_of_a_solve() -> None:
    a, b = drawn("f32", 4, 4), drawn("f32", 4, 1)
    assert targets(jnp.linalg.solve, a, b) == ["hloom.solve"]
    assert targets(jnp.linalg.inv, a) == ["hloom.inverse"]
    assert targets(jnp.linalg.det, drawn("f32", 5, 5)) == ["hloom.determinant"]
    assert targets(jnp.linalg.det, a) == []  # products of minors
    both = targets(hloom.grad(lambda a, b: jnp.linalg.solve(a, b).sum()), a, b)
    assert both == ["LuDecomposition", "hloom.lu_solve", "hloom.lu_solve"]
    large = drawn("f32", 33, 33)
    assert targets(jnp.linalg.solve, large, large) == ["lapack_sgetrf_ffi"]


@pytest.mark.parametrize("shape", [(0, 3, 3), (5, 0, 0), (0, 0)])
def test_nothing_to_solve(shape: tuple[int, ...]) -> None:
    a = np.zeros(shape, np.float32)
    assert hloom.jit(jnp.linalg.inv)(a).shape == shape
    assert hloom.jit(jnp.linalg.solve)(a, a).shape == shape
    np.testing.assert_array_equal(hloom.jit(jnp.linalg.det)(a), np.ones(shape[:-2]))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["f32", "c128"])
@pytest.mark.parametrize(
    ("target", "trans"),
    [("hloom.solve", 0), ("hloom.inverse", 0), ("hloom.determinant", 0), *(("hloom.lu_solve", t) for t in range(3))],
)
def test_targets_mean_what_kernels_do(target: str, kind: str, trans: int) -> None:
    """The evaluator calls LAPACK."""
    a, b = drawn(kind, 20, 4, 4), drawn(kind, 20, 4, 2)
    operands = {"hloom.solve": [a, b], "hloom.lu_solve": [a, a, np.argsort(a.real[..., 0], -1).astype(np.int32), b]}
    given = operands.get(target, [a])
    types = [f"{'s32' if o.dtype == np.int32 else kind}{list(o.shape)}".replace(" ", "") for o in given]
    result = {"hloom.inverse": "[20,4,4]", "hloom.determinant": "[20]"}.get(target, "[20,4,2]")
    lines = [f"  p{k} = {type_} parameter({k})" for k, type_ in enumerate(types)]
    names = ", ".join(f"p{k}" for k in range(len(types)))
    text = f"""HloModule m
ENTRY e {{
{chr(10).join(lines)}
  ROOT r = {kind}{result} custom-call({names}), custom_call_target="{target}",
    api_version=API_VERSION_TYPED_FFI, backend_config={{trans = {trans}}}
}}"""
    with hloom.enable_x64(True):
        (found,) = hloom.run_hlo(text, *given)
        (expected,) = hloom.run_hlo(text, *given, backend="evaluator")
    np.testing.assert_allclose(found, expected, rtol=1e-3 if kind == "f32" else 1e-9, atol=1e-4)


def test_places_outside_of_a_matrix_are_not_read() -> None:
    """A permutation in a text may be anything."""
    text = """HloModule m
ENTRY e {
  a = f32[3,2,2] parameter(0)
  o = s32[3,2] parameter(1)
  b = f32[3,2,1] parameter(2)
  ROOT r = f32[3,2,1] custom-call(a, a, o, b), custom_call_target="hloom.lu_solve",
    api_version=API_VERSION_TYPED_FFI, backend_config={trans = 0}
}"""
    a, b = np.broadcast_to(np.eye(2, dtype=np.float32), (3, 2, 2)), np.arange(6, dtype=np.float32).reshape(3, 2, 1)
    order = np.array([[-9, 1], [2**31 - 1, 0], [1, -(2**31)]], np.int32)
    (found,) = hloom.run_hlo(text, a, order, b)
    np.testing.assert_array_equal(found[..., 0], [[0, 1], [3, 2], [5, 4]])


def test_in_a_native_loop() -> None:
    """Each step solves; the loop is one kernel."""
    a = (drawn("f32", 20, 3, 3) + 4 * np.eye(3)).astype(np.float32)
    b = drawn("f32", 20, 3, 1)
    f = hloom.jit(lambda a, b: lax.fori_loop(0, 3, lambda _, x: jnp.linalg.solve(a, x), b))
    expected = b.astype(np.float64)
    for _ in range(3):
        expected = np.linalg.solve(a.astype(np.float64), expected)
    np.testing.assert_allclose(f(a, b), expected, rtol=1e-4, atol=1e-5)
    assert len(f.lower(a, b).compile().kernels()) == 1


@pytest.mark.parametrize("kind", ["f32", pytest.param("f64", marks=pytest.mark.slow)])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_triangular_solves_side_by_side(left: bool, lower: bool, kind: str) -> None:
    """The other triangle's elements, and a unit diagonal's, have no effect. Half of the combinations: all pairs of
    options are among them."""
    for number, options in enumerate(itertools.product((False, True), (False, True), (1, 4), (1, 3))):
        if (number.bit_count() + left + lower) % 2:
            continue
        transposed, unit, n, others = options
        a, b = drawn(kind, 21, n, n), drawn(kind, 21, *((n, others) if left else (others, n)))
        a += 3 * np.eye(n, dtype=a.dtype)
        kept = np.tri(n, k=-int(unit), dtype=bool)
        kept = kept if lower else kept.T
        named = {"left_side": left, "lower": lower, "transpose_a": transposed, "unit_diagonal": unit}
        with hloom.enable_x64(True):
            solve = hloom.jit(lambda a, b, named=named: lax.linalg.triangular_solve(a, b, **named))
            given = np.where(kept, a, np.nan).astype(a.dtype)
            assert "triangular_solve_lanes" in str(solve.lower(given, b).compile().kernels())
            x = np.asarray(solve(given, b))
        whole = np.where(kept, a, 0) + unit * np.eye(n)
        op = whole.swapaxes(1, 2) if transposed else whole
        rest = (op @ x if left else x @ op) - b
        eps = np.finfo(a.dtype).eps
        assert (size(rest) <= 4 * n * eps * (size(op) * size(x) + size(b))).all()
