"""Op cases of factorisations, Fourier transforms and custom calls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from ..hlo import ElementType, Shape
from ..hlo.layout import Layout
from ..hlo.ops.custom_call import CustomCallApiVersion, CustomCallAttributes
from ..hlo.ops.linalg import CholeskyAttributes, FftAttributes, FftType, TransposeKind, TriangularSolveAttributes
from .op_case import Array, Dimensions, E, O, OpCase, make_case, shape_of
from .op_values import NDArray, Values

SOLVABLE = (E.F16, E.BF16, E.F32, E.F64, E.C64, E.C128)


def _normal(t: ElementType, dims: Dimensions, rng: np.random.Generator) -> NDArray:
    values = rng.standard_normal(dims)
    if t.is_complex:
        values = values + 1j * rng.standard_normal(dims)
    return values


def gaussian(t: ElementType, dims: Dimensions, position: int, rng: np.random.Generator) -> NDArray:
    """Random numbers of mean 0."""
    return _normal(t, dims, rng).astype(t.dtype)


def positive_definite(t: ElementType, dims: Dimensions, position: int, rng: np.random.Generator) -> NDArray:
    """Hermitian matrices with large diagonals."""
    values = _normal(t, dims, rng)
    n = dims[-1]
    return (values @ values.conj().swapaxes(-1, -2) + 2 * n * np.eye(n)).astype(t.dtype)


def lower_is_definite(t: ElementType, dims: Dimensions, position: int, rng: np.random.Generator) -> NDArray:
    """As positive_definite, with NaN above the diagonal, which is not read."""
    values = positive_definite(t, dims, position, rng)
    n = dims[-1]
    values[..., ~np.tri(n, dtype=bool)] = np.nan
    return values


def upper_is_definite(t: ElementType, dims: Dimensions, position: int, rng: np.random.Generator) -> NDArray:
    """As lower_is_definite, the other way round."""
    return np.ascontiguousarray(lower_is_definite(t, dims, position, rng).conj().swapaxes(-1, -2))


def sometimes_indefinite(t: ElementType, dims: Dimensions, position: int, rng: np.random.Generator) -> NDArray:
    """Matrices: the second one has a negative pivot, the third one a zero, the fourth one a NaN."""
    values = positive_definite(t, dims, position, rng)
    values[1, -1, -1] *= -1
    values[2] = 0
    values[3, 0, 0] = np.nan
    return values


def well_conditioned(t: ElementType, dims: Dimensions, position: int, rng: np.random.Generator) -> NDArray:
    """Matrices with diagonals that outweigh the rest, for the first operand; any for others."""
    values = _normal(t, dims, rng)
    if position == 0:
        n = dims[-1]
        values = values + 2 * n * np.eye(n)
    return values.astype(t.dtype)


def lower_with_nan_above(t: ElementType, dims: Dimensions, position: int, rng: np.random.Generator) -> NDArray:
    """As well_conditioned, with NaN where the lower triangle is not."""
    values = well_conditioned(t, dims, position, rng)
    if position == 0:
        values[..., ~np.tri(dims[-1], dtype=bool)] = np.nan
    return values


def _cholesky() -> Iterator[OpCase]:
    for t, lower in product(SOLVABLE, (True, False)):
        sizes: tuple[Dimensions, ...] = ((4, 4), (3, 5, 5))
        if t is E.F32:
            sizes = (*sizes, (0, 0), (1, 1), (2, 3, 1, 1), (0, 3, 3), (2, 0, 0), (33, 33))
        for dims in sizes:
            values = lower_is_definite if lower else upper_is_definite
            note = "lower" if lower else "upper"
            attributes = CholeskyAttributes(lower)
            yield make_case(O.CHOLESKY, [Array(t, dims, values)], shape_of(t, dims), attributes, ulps=256, note=note)
    for t in (E.F32, E.C64):
        operand = Array(t, (5, 3, 3), sometimes_indefinite)
        yield make_case(O.CHOLESKY, [operand], operand.shape, CholeskyAttributes(True), ulps=64, note="indefinite")


def _solve(
    t: ElementType,
    dims: Dimensions,
    attributes: TriangularSolveAttributes,
    note: str = "",
    values: Values = well_conditioned,
) -> OpCase:
    size = dims[-2] if attributes.left_side else dims[-1]
    matrix = Array(t, (*dims[:-2], size, size), values)
    where = "left" if attributes.left_side else "right"
    parts = [where, "lower" if attributes.lower else "upper", attributes.transpose_a.value.lower()]
    parts += ["unit"] if attributes.unit_diagonal else []
    operands = [matrix, Array(t, dims, values)]
    name = "-".join(filter(None, [*parts, note]))
    return make_case(O.TRIANGULAR_SOLVE, operands, shape_of(t, dims), attributes, ulps=8192, note=name)


def _triangular_solve() -> Iterator[OpCase]:
    kinds = list(TransposeKind)
    for t, left, lower, kind in product(SOLVABLE, (True, False), (True, False), kinds):
        yield _solve(t, (4, 3), TriangularSolveAttributes(left, lower, False, kind))
    for left, lower in product((True, False), (True, False)):
        attributes = TriangularSolveAttributes(left, lower, True, kinds[1])
        yield _solve(E.F32, (2, 3, 3, 1), attributes)
    plain = TriangularSolveAttributes(True, True, False, kinds[0])
    for dims in ((0, 0), (0, 2), (3, 0), (1, 1), (0, 2, 2), (2, 1, 5), (40, 7)):
        yield _solve(E.F32, dims, plain)
    yield _solve(E.F32, (3, 2), plain, "nan", lower_with_nan_above)


def _fft() -> Iterator[OpCase]:
    sizes: tuple[tuple[Dimensions, int], ...] = (
        ((7,), 1), ((3, 8), 1), ((4, 6), 2), ((2, 3, 5), 3), ((2, 3, 4, 1), 3), ((0, 4), 1), ((3, 0), 1),
        ((2, 0, 4), 2), ((1,), 1), ((3, 30), 1),
    )  # fmt: skip
    for (dims, rank), kind, wide in product(sizes, FftType, (False, True)):
        if wide and dims not in ((7,), (2, 3, 5)):
            continue
        real, complex_ = (E.F64, E.C128) if wide else (E.F32, E.C64)
        lengths = dims[len(dims) - rank :]
        half = (*dims[:-1], dims[-1] // 2 + 1 if dims[-1] else 0)
        given, result = dims, shape_of(complex_, dims)
        t = complex_
        if kind is FftType.RFFT:
            t, result = real, shape_of(complex_, half)
        elif kind is FftType.IRFFT:
            given, result = half, shape_of(real, dims)
        attributes = FftAttributes(kind, lengths)
        note = "-".join([kind.value.lower(), *map(str, lengths)])
        yield make_case(O.FFT, [Array(t, given, gaussian)], result, attributes, ulps=2048, note=note)


def _custom_call() -> Iterator[OpCase]:
    typed = CustomCallApiVersion.TYPED_FFI
    for name in ("Sharding", "LayoutConstraint"):
        operand = Array(E.F32, (2, 3))
        yield make_case(O.CUSTOM_CALL, [operand], operand.shape, CustomCallAttributes(name), note=name)
    operand = Array(E.F32, (3, 7))
    result = Shape.tuple([shape_of(E.F32, (3, 2)), shape_of(E.S32, (3, 2))])
    yield make_case(O.CUSTOM_CALL, [operand], result, CustomCallAttributes("TopK"), note="topk")
    for batch in ((), (2,), (0,)):
        shape, factors = shape_of(E.F32, (*batch, 5, 3)), shape_of(E.F32, (*batch, 3))
        operand = Array(E.F32, shape.dimensions, gaussian)
        attributes = CustomCallAttributes("Qr")
        yield make_case(O.CUSTOM_CALL, [operand], Shape.tuple([shape, factors]), attributes, ulps=1024, note="qr")
        attributes = CustomCallAttributes("ProductOfElementaryHouseholderReflectors")
        operands = [operand, Array(E.F32, factors.dimensions, gaussian)]
        yield make_case(O.CUSTOM_CALL, operands, shape, attributes, ulps=8192, note="householder")
    yield from _large_calls()
    for t, letter in ((E.F32, "s"), (E.F64, "d"), (E.C64, "c"), (E.C128, "z")):
        for batch in ((), (3,), (0,)):
            square, tall, info = _columns(t, (*batch, 4, 4)), _columns(t, (*batch, 4, 3)), shape_of(E.S32, batch)
            attributes = CustomCallAttributes(
                f"lapack_{letter}potrf_ffi", "{uplo = 76 : ui8}", typed, operand_layout_constraints=(square,)
            )
            operand = Array(t, square.dimensions, positive_definite)
            result = Shape.tuple([square, info])
            yield make_case(O.CUSTOM_CALL, [operand], result, attributes, ulps=64, note="potrf")
            attributes = CustomCallAttributes(
                f"lapack_{letter}getrf_ffi", "{}", typed, operand_layout_constraints=(tall,)
            )
            result = Shape.tuple([tall, shape_of(E.S32, (*batch, 3)), info])
            operand = Array(t, tall.dimensions, gaussian)
            yield make_case(O.CUSTOM_CALL, [operand], result, attributes, ulps=1024, note="getrf")


def _large_calls() -> Iterator[OpCase]:
    """Matrices that are left to LAPACK. Small elements of a factor are differences of large numbers: LAPACK's own are
    up to 1,000 ulps from the exact factor, so two orders of summation may be twice as far apart."""
    typed = CustomCallApiVersion.TYPED_FFI
    for t, letter in ((E.F32, "s"), (E.C128, "z")):
        square, info = _columns(t, (40, 40)), shape_of(E.S32, ())

        def call(target: str, config: str, columns: Shape = square) -> CustomCallAttributes:
            return CustomCallAttributes(target, config, typed, operand_layout_constraints=(columns,))

        operand = Array(t, square.dimensions, positive_definite)
        attributes = call(f"lapack_{letter}potrf_ffi", "{uplo = 76 : ui8}")
        yield make_case(O.CUSTOM_CALL, [operand], Shape.tuple([square, info]), attributes, ulps=4096, note="potrf")
        attributes = call(f"lapack_{letter}getrf_ffi", "{}")
        result = Shape.tuple([square, shape_of(E.S32, (40,)), info])
        yield make_case(O.CUSTOM_CALL, [operand], result, attributes, ulps=1024, note="getrf")
        attributes = call(f"lapack_{letter}geqrf_ffi", "{}")
        result = Shape.tuple([square, shape_of(t, (40,))])
        yield make_case(O.CUSTOM_CALL, [operand], result, attributes, ulps=1 << 16, note="qr")


def _columns(t: ElementType, dims: Dimensions) -> Shape:
    """Column-major matrices, as in JAX's programs."""
    order = list(reversed(range(len(dims))))
    order[:2] = reversed(order[:2])
    return Shape.array(t, dims, Layout(tuple(order)))


def cases() -> Iterator[OpCase]:
    """The cases of cholesky, triangular-solve, fft and custom-call."""
    yield from _cholesky()
    yield from _triangular_solve()
    yield from _fft()
    yield from _custom_call()
